#include "tests/play_words.h"

#include <inttypes.h>

#include "queue/schedule/schedule.h"
#include "tests/scene.h"

/* The first schedule that the last promote named, as a worker keeps it until schedule_fire. */
static struct {
    char name[129], text[1000];
    int64_t due_us, now_us;
} told;

static void keep_due(const struct due_schedule *due)
{
    snprintf(told.name, sizeof told.name, "%.*s", (int)due->name.len, due->name.at);
    snprintf(told.text, sizeof told.text, "%.*s", (int)due->definition.len, due->definition.at);
    told.due_us = due->due_us;
    told.now_us = turns.now_us;
}

/* What is due is moved, and schedules are named. */
static int promote_due(FILE *out)
{
    int64_t moved;
    int rc = turns_promote(100, &moved);

    if (rc != 0)
        return rc;
    assert_int_equal(turns.promoted.now_us, turns.now_us);
    fprintf(out, "%" PRId64, moved);
    for (size_t i = 0; i < turns.promoted.due_count; i++) {
        const struct due_schedule *due = &turns.promoted.due[i];

        put_text(out, textf("; due %.*s %" PRId64, (int)due->name.len, due->name.at, due->due_us));
    }
    if (turns.promoted.due_count > 0)
        keep_due(&turns.promoted.due[0]);
    return 0;
}

/* schedule_fire, as a worker calls it. */
static int fire_told(bool *fired)
{
    struct span name = span_str(told.name), text = span_str(told.text);
    struct schedule_plan plan;
    struct schedule s;
    struct error e;
    struct args a = {0};
    int rc = schedule_read(name, text, &s, &e);

    if (rc == 0)
        schedule_make_plan(&s, told.due_us, told.now_us, &plan);
    schedule_fire_request(&a, PREFIX, turns.now_us, name, text, told.due_us, rc == 0 ? &s : NULL, &plan);
    schedule_free(&s);
    rc = turns_send(&a);
    return rc ? rc : schedule_fire_reply(turns.reply, fired, &turns.error);
}

static int fire(FILE *out)
{
    bool fired = false;
    int rc = fire_told(&fired);

    if (rc == 0)
        fputs(fired ? "fired" : "not fired", out);
    return rc;
}

/* As workers do it until nothing is due: how often. */
static int fire_all(FILE *out)
{
    bool fired = true;
    int times = 0, rc;

    while ((rc = turns_promote(100, &(int64_t){0})) == 0 && turns.promoted.due_count > 0 && fired) {
        keep_due(&turns.promoted.due[0]);
        rc = fire_told(&fired);
        if (rc != 0)
            return rc;
        times++;
    }
    assert_true(fired);
    fprintf(out, "%d", times);
    return rc;
}

/* Of type t: its name, when, what is done about missed ones, when it is due, args, and "keep": that stays as it is. */
static int add(FILE *out)
{
    static const char *const policies[] = {
        [WEIR_MISSED_ONCE] = "once", [WEIR_MISSED_ALL] = "all", [WEIR_MISSED_SKIP] = "skip"};
    struct weir_job_spec job = {.type = "t", .args = *words[5] ? words[5] : NULL};
    struct schedule s;
    size_t missed = 0;
    char *text;
    int rc;

    while (!policies[missed] || strcmp(policies[missed], words[3]) != 0)
        assert_true(++missed < COUNT(policies));
    rc = schedule_make(words[1], words[2], "UTC", (enum weir_missed)missed, &job, &s, &text, &turns.error);
    if (rc != 0)
        return rc;
    rc = turns_ask("schedule_add", WORDS(words[1], text, words[4], *words[6] ? "1" : "0", "t", ""));
    if (rc == 0 && json_is_true(json_object_get(turns.answer, "known")))
        fputs("known", out);
    schedule_free(&s);
    free(text);
    return rc;
}

int play_schedules(FILE *out)
{
    if (is("promote"))
        return promote_due(out);
    if (is("schedule"))
        return add(out);
    if (is("fire"))
        return fire(out);
    if (is("fires"))
        return fire_all(out);
    return OTHER;
}
