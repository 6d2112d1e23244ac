#include "tests/play_words.h"

#include <inttypes.h>

#include "queue/limits/known.h"
#include "tests/scene.h"

/* What workers know of limits, by their names. */
static struct knower {
    char name[16];
    struct known_limits known;
} knowers[4];

void play_forget_known(void)
{
    for (size_t i = 0; i < COUNT(knowers); i++) {
        known_limits_free(&knowers[i].known);
        knowers[i] = (struct knower){.name = ""};
    }
}

static struct known_limits *known_of(const char *name)
{
    size_t i = 0;

    while (*knowers[i].name && strcmp(knowers[i].name, name) != 0)
        assert_true(++i < COUNT(knowers));
    snprintf(knowers[i].name, sizeof knowers[i].name, "%s", name);
    return &knowers[i].known;
}

/* A worker of these types asks for all that has changed; "birth=..." is that of the data that it knows. */
static int learn(FILE *out)
{
    struct known_limits *known = known_of(words[1]);
    bool born = strncmp(words[2], "birth=", 6) == 0;
    const struct names types = {words + 2 + born, word_count - 2 - born};
    int rc;

    do {
        struct args a = {0};

        rate_known_request(&a, PREFIX, turns.now_us, known, born ? words[2] + 6 : "", types);
        rc = turns_send(&a);
        if (rc == 0)
            rc = rate_known_reply(turns.reply, known, &turns.error);
    } while (rc == 0 && known_limits_asks_more(known));
    put_text(out, textf("%zu records, as of %s", known->records.count, known->newest));
    if (rc == 0 && turns.reply->elements == 1)
        fputs("; the same", out);
    return rc;
}

/* It writes again what Redis has lost. */
static int write_again(FILE *out)
{
    struct known_limits *known = known_of(words[1]);
    char written[200] = "";
    struct args a = {0};
    int rc;

    known_limits_begin_again(known);
    rate_again_request(&a, PREFIX, turns.now_us, "worker w@host", known);
    rc = turns_send(&a);
    if (rc == 0)
        rc = rate_again_reply(turns.reply, known, written, sizeof written, &turns.error);
    assert_true(rc != 0 || !known_limits_has_more(known));
    fputs(*written || rc ? written : "nothing", out);
    return rc;
}

int play_knowing(FILE *out)
{
    if (is("learn"))
        return learn(out);
    if (is("written")) {
        known_limits_are_written(known_of(words[1]));
        return 0;
    }
    return is("rewrite") ? write_again(out) : OTHER;
}
