/* Takes by the library and by the command, keys of any text, and denials that are remembered. What take.lua
 * decides is test_gate's matter. */
#include <hiredis/hiredis.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "core/script/script.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/test.h"
#include "throttle/key.h"
#include "throttle/take/denials.h"
#include "throttle/take/take.h"

static struct error error;

static int flush(void **state)
{
    client_flush(state);
    free(w->denials); /* of the test before */
    w->denials = NULL;
    return 0;
}

static void set_limit(const char *name, const char *rules)
{
    fail_if(weir_rate_set(w, name, rules) < 0, "%s: %s", rules, weir_message(w));
}

/* ---- Keys */

TEST_WITH(test_keys_of_any_text, flush, NULL)
{
    static const char *const names[] = {"alice",
                                        "a",
                                        "--",
                                        "h.",
                                        "h.0",
                                        "10.0.0.1",
                                        "A-b_c.9",
                                        "h.3bc15c8aae3e4124dd409035f32ea2fd6835efcX",
                                        "h.3BC15C8AAE3E4124DD409035F32EA2FD6835EFC9",
                                        "h.3bc15c8aae3e4124dd409035f32ea2fd6835efc90",
                                        "x.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"};
    static const char *const others[] = {
        "2001:db8::1",
        "a b",
        "a/b",
        "\xc3\xa9",
        "x@y.z",
        "%",
        "\n",
        "-",
        "h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"}; /* the last two look like keys that Weir made */
    char key[LIMIT_NAME_SIZE], text[300];

    for (size_t i = 0; i < COUNT(names); i++) {
        key_make(names[i], strlen(names[i]), key);
        assert_string_equal(key, names[i]);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        char *hash = server_ask(&server, "EVAL", "return redis.sha1hex(ARGV[1])", "0", others[i], NULL);

        key_make(others[i], strlen(others[i]), key);
        assert_string_equal(key, textf("h.%s", hash));
        free(hash);
    }
    for (size_t len = 40; len < sizeof text - 1; len++) { /* all paddings; from 129 on too long for a name */
        char *hash;

        memset(text, ':', len);
        text[len] = '\0';
        hash = server_ask(&server, "EVAL", "return redis.sha1hex(ARGV[1])", "0", text, NULL);
        key_make(text, len, key);
        assert_string_equal(key + 2, hash);
        free(hash);
    }
    memset(text, 'n', 129);
    key_make(text, 128, key);
    assert_memory_equal(key, text, 128);
    key_make(text, 129, key);
    assert_int_equal(strlen(key), 42);
}

/* ---- Denials */

static const struct weir_take denied = {
    .limit = 20, .remaining = 3, .retry_after_s = 0.25, .reset_after_s = 10};

TEST_WITH(test_a_denial_stands_until_it_can_change, flush, NULL)
{
    struct denials *d = denials_new();
    const struct question q = {"mail/alice", "", 1};
    struct weir_take t;

    assert_non_null(d);
    assert_false(denials_find(d, &q, BEGIN_US, &t));
    denials_keep(d, &q, BEGIN_US, &denied);
    assert_true(denials_find(d, &q, BEGIN_US + 100000, &t));
    assert_int_equal(t.allowed, 0);
    assert_int_equal(t.limit, 20);
    assert_int_equal(t.remaining, 3);
    assert_true(t.retry_after_s > 0.149 && t.retry_after_s < 0.151);
    assert_true(t.reset_after_s > 9.89 && t.reset_after_s < 9.91);
    assert_true(denials_find(d, &q, BEGIN_US + 249998, &t));
    assert_true(t.retry_after_s > 0);
    assert_false(denials_find(d, &q, BEGIN_US + 250000, &t));
    free(d);
}

TEST_WITH(test_a_denial_stands_a_second_at_most, flush, NULL)
{
    struct denials *d = denials_new();
    struct question q = {"mail", "", 1};
    struct weir_take late = denied, never = {.limit = 20, .never = 1, .retry_after_s = -1}, t;

    late.retry_after_s = 1e12;
    denials_keep(d, &q, BEGIN_US, &late);
    assert_true(denials_find(d, &q, BEGIN_US + 999999, &t));
    assert_false(denials_find(d, &q, BEGIN_US + 1000000, &t));
    q.cost = 21;
    denials_keep(d, &q, BEGIN_US, &never);
    assert_true(denials_find(d, &q, BEGIN_US + 999999, &t));
    assert_true(t.never && t.retry_after_s == -1);
    assert_false(denials_find(d, &q, BEGIN_US + 1000000, &t));
    free(d);
}

TEST_WITH(test_only_the_same_question_is_denied, flush, NULL)
{
    static const struct question others[] = {{"mail/alice", "1/s", 2},
                                             {"mail/alic", "e1/s", 1},
                                             {"mail/alice", "1/", 1},
                                             {"mail/alice", "", 1},
                                             {"", "", 1}};
    const struct question q = {"mail/alice", "1/s", 1};
    struct denials *d = denials_new();
    struct weir_take t;

    denials_keep(d, &q, BEGIN_US, &denied);
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(denials_find(d, &others[i], BEGIN_US, &t));
    denials_keep(d, &q, BEGIN_US + 200000, &denied); /* the newer one takes its place */
    assert_true(denials_find(d, &q, BEGIN_US + 300000, &t));
    free(d);
}

TEST_WITH(test_denials_are_bounded, flush, NULL)
{
    struct denials *d = denials_new();
    char key[DENIAL_TEXT_SIZE + 1];
    struct question q = {key, "", 1};
    struct weir_take t;
    int found = 0;

    for (int i = 0; i < 5 * DENIALS_MOST; i++) {
        snprintf(key, sizeof key, "mail/%d", i);
        denials_keep(d, &q, BEGIN_US + i, &denied);
        assert_true(denials_find(d, &q, BEGIN_US + i, &t)); /* what is new has a place */
    }
    for (int i = 0; i < 5 * DENIALS_MOST; i++) {
        snprintf(key, sizeof key, "mail/%d", i);
        found += denials_find(d, &q, BEGIN_US + i, &t);
    }
    assert_int_equal(found, DENIALS_MOST);
    memset(key, 'x', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    denials_keep(d, &q, BEGIN_US, &denied); /* too long */
    assert_false(denials_find(d, &q, BEGIN_US, &t));
    key[DENIAL_TEXT_SIZE - 2] = '\0';
    denials_keep(d, &q, BEGIN_US, &denied);
    assert_true(denials_find(d, &q, BEGIN_US, &t));
    free(d);
}

/* ---- Request and answer */

TEST_WITH(test_what_is_asked, flush, NULL)
{
    static const struct {
        const char *target;
        int64_t cost;
        const char *name, *key, *why; /* of a good or a bad one */
    } cases[] = {
        {"mail", 0, "mail", "", NULL},
        {"mail/alice", 3, "mail", "alice", NULL},
        {"mail/a/b", 1, "mail", "h.0", NULL},
        {"mail/-", 1, "mail", "-", NULL},
        {"mail/\"-\"", 1, "mail", "h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9", NULL},
        {"", 1, NULL, NULL, "not a valid name of a limit"},
        {"/key", 1, NULL, NULL, "not a valid name of a limit"},
        {"a b", 1, NULL, NULL, "not a valid name of a limit"},
        {"mail/", 1, NULL, NULL, "the key is empty"},
        {"mail", -1, NULL, NULL, "wrong cost"},
    };
    char longest[140] = "";
    struct take_question q;
    const char *why;

    for (size_t i = 0; i < COUNT(cases); i++) {
        int status = take_read(&q, cases[i].target, cases[i].cost, NULL, &why);

        assert_int_equal(status, cases[i].why ? WEIR_EINPUT : 0);
        if (status < 0) {
            assert_non_null(strstr(why, cases[i].why));
            continue;
        }
        assert_string_equal(q.name, cases[i].name);
        assert_memory_equal(q.key, cases[i].key, strlen(cases[i].key) < 3 ? 1 : 2);
        assert_int_equal(q.cost, cases[i].cost ? cases[i].cost : 1);
    }
    memset(longest, 'n', 129);
    assert_int_equal(take_read(&q, longest, 1, NULL, &why), WEIR_EINPUT);
    longest[128] = '\0';
    assert_int_equal(take_read(&q, longest, 1, NULL, &why), 0);
}

TEST_WITH(test_the_rules_of_a_caller, flush, NULL)
{
    char stored[RULE_SET_TEXT_SIZE], text[3000];

    assert_int_equal(take_rules(NULL, stored, &error), 0);
    assert_string_equal(stored, "");
    assert_int_equal(take_rules("10/s,burst=2  100/1d,algorithm=fixed-window ", stored, &error), 0);
    assert_string_equal(stored, "gcra:10/1000000/2 fixed-window:100/86400000000/0");
    assert_int_equal(take_rules("", stored, &error), WEIR_EINPUT);
    assert_int_equal(take_rules("fast", stored, &error), WEIR_EINPUT);
    assert_int_equal(take_rules("1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s 9/s", stored, &error), WEIR_EINPUT);
    memset(text, ' ', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(take_rules(text, stored, &error), WEIR_EINPUT);
}

TEST_WITH(test_answers_of_another_version_are_refused, flush, NULL)
{
    struct redisReply word = {.type = REDIS_REPLY_STRING, .str = "maybe", .len = 5};
    struct redisReply number = {.type = REDIS_REPLY_INTEGER}, nil = {.type = REDIS_REPLY_NIL};
    struct redisReply few = {.type = REDIS_REPLY_ARRAY, .elements = 9};
    const struct redisReply *const answers[] = {&word, &number, &nil, &few, NULL};
    struct redisReply *fields[5] = {&word, &number, &number, &number, &number};
    const struct redisReply strange = {.type = REDIS_REPLY_ARRAY, .elements = 5, .element = fields};
    struct weir_take t;
    const char *why;

    for (size_t i = 0; i < COUNT(answers); i++)
        assert_int_equal(take_reply(answers[i], 2, &error), WEIR_EINTERNAL);
    assert_int_equal(take_reply(&strange, 1, &error), 0);
    assert_int_equal(take_answer(&strange, 0, &t, &why), WEIR_EINTERNAL);
}

/* ---- The library */

TEST_WITH(test_weir_take, flush, NULL)
{
    struct weir_take t;

    assert_int_equal(weir_take(w, "mail", NULL, 0, 0, &t), WEIR_ENOTFOUND);
    assert_string_equal(weir_message(w),
                        "take mail: there is no such limit; set it with weir rate set, or give a rule");
    set_limit("mail", "1/1h");
    assert_int_equal(weir_take(w, "mail", NULL, 0, WEIR_TAKE_PEEK, &t), 0);
    assert_true(t.allowed && t.remaining == 1);
    assert_int_equal(weir_take(w, "mail", NULL, 0, 0, &t), 0);
    assert_true(t.allowed && t.remaining == 0 && t.limit == 1 && t.retry_after_s == -1 &&
                t.reset_after_s == 3600);
    assert_int_equal(weir_take(w, "mail", NULL, 0, 0, &t), 0);
    assert_true(!t.allowed && !t.never && t.retry_after_s > 3590 && t.retry_after_s <= 3600);
    assert_int_equal(weir_take(w, "mail", NULL, 2, 0, &t), 0);
    assert_true(!t.allowed && t.never && t.retry_after_s == -1);
}

TEST_WITH(test_what_cannot_be_taken, flush, NULL)
{
    static const struct {
        const char *target, *rule;
        int status;
        const char *says;
    } cases[] = {
        {"nobody/key", NULL, WEIR_ENOTFOUND, "take nobody/key: there is no such limit"},
        {"mail/key", NULL, WEIR_EINPUT, "take mail/key: the limit has no keys"},
        {"api", NULL, WEIR_EINPUT, "take api: the limit is kept for each key"},
        {"mail", "100/1m,burst=21", WEIR_EINPUT, "take mail: the limit has other rules"},
        {"slots", NULL, WEIR_EINPUT, "take slots: its concurrency rule counts"},
        {"x", "concurrency=3", WEIR_EINPUT, "take x: its concurrency rule counts"},
        {"broken", NULL, WEIR_ECONFIG, "take broken: the limit's rules cannot be read"},
        {"a b", NULL, WEIR_EINPUT, "take a b: not a valid name of a limit"},
        {"x", "1/0s", WEIR_EINPUT, "rule '1/0s'"},
    };
    struct weir_take t;

    set_limit("mail", "100/1m,burst=20");
    set_limit("api", "10/s,by=key");
    set_limit("slots", "concurrency=5");
    server_do(&server, "HSET", PREFIX "limits", "broken", "100/1m");
    for (size_t i = 0; i < COUNT(cases); i++) {
        int status = weir_take(w, cases[i].target, cases[i].rule, 1, 0, &t);

        if (status != cases[i].status || strncmp(weir_message(w), cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("%s: %d: %s", cases[i].target, status, weir_message(w));
    }
    assert_int_equal(weir_take(w, "mail", "100/1m,burst=20", 1, 0, &t), 0); /* its own rules are no others */
    assert_int_equal(weir_take(w, "api/2001:db8::1", NULL, 1, 0, &t), 0);
}

TEST_WITH(test_a_hot_denied_key_costs_no_round_trip, flush, NULL)
{
    struct weir_take t;
    int64_t begun_us;
    long before, rounds = 0;

    set_limit("mail", "1/1h");
    assert_int_equal(weir_take(w, "mail", NULL, 1, 0, &t), 0);
    do { /* within the second for which a denial stands, however busy the machine is */
        begun_us = clock_mono_us();
        assert_int_equal(weir_take(w, "mail", NULL, 1, WEIR_TAKE_ASK, &t), 0);
        before = server_calls(&server, "fcall");
        for (int i = 0; i < 10000; i++) {
            assert_int_equal(weir_take(w, "mail", NULL, 1, 0, &t), 0);
            assert_false(t.allowed);
        }
        assert_true(++rounds < 20);
    } while (clock_mono_us() - begun_us > 800000);
    assert_int_equal(server_calls(&server, "fcall"), before);
    assert_int_equal(weir_take(w, "mail", NULL, 1, WEIR_TAKE_PEEK, &t), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 1, WEIR_TAKE_ASK, &t), 0);
    assert_int_equal(server_calls(&server, "fcall"), before + 2);
    set_limit("mail", "1000/1s"); /* shows within a second */
    for (begun_us = clock_mono_us(); !t.allowed; assert_int_equal(weir_take(w, "mail", NULL, 1, 0, &t), 0))
        assert_true(clock_mono_us() - begun_us < 20000000);
}

TEST_WITH(test_many, flush, NULL)
{
    enum { MANY = 2500 };
    static struct weir_take_item items[MANY];
    static char targets[MANY][32];
    long before;
    int allowed = 0;

    set_limit("mail", "1000/10h");
    for (int i = 0; i < MANY; i++) {
        snprintf(targets[i], sizeof targets[i], i % 2 ? "mail" : "key/%d", i);
        items[i] = (struct weir_take_item){.target = targets[i]};
    }
    before = server_calls(&server, "fcall");
    assert_int_equal(weir_take_many(w, items, MANY, NULL, 0), 0);
    assert_in_range(server_calls(&server, "fcall") - before, 3, 3);
    for (int i = 0; i < MANY; i++) {
        if (i % 2 == 0) {
            assert_int_equal(items[i].status, WEIR_ENOTFOUND);
            assert_non_null(items[i].why);
            continue;
        }
        assert_int_equal(items[i].status, 0);
        assert_int_equal(items[i].take.allowed, i / 2 < 1000);
        allowed += items[i].take.allowed;
    }
    assert_int_equal(allowed, 1000);
    assert_int_equal(weir_take_many(w, items, 0, NULL, 0), 0);
    assert_int_equal(weir_take_many(w, items, 1, "fast", 0), WEIR_EINPUT);
    assert_int_equal(items[0].status, WEIR_EINPUT);
}

TEST_WITH(test_costs_of_many, flush, NULL)
{
    struct weir_take_item items[] = {
        {.target = "mail", .cost = 6},  {.target = "mail", .cost = 6},  {.target = "mail", .cost = 4},
        {.target = "mail", .cost = 11}, {.target = "mail", .cost = -1}, {.target = "mail", .cost = 1},
    };

    set_limit("mail", "10/10h");
    assert_int_equal(weir_take_many(w, items, COUNT(items), NULL, 0), 0);
    assert_true(items[0].take.allowed && items[0].take.remaining == 4);
    assert_true(!items[1].take.allowed && items[1].take.remaining == 4);
    assert_true(items[2].take.allowed && items[2].take.remaining == 0);
    assert_true(items[3].take.never);
    assert_int_equal(items[4].status, WEIR_EINPUT);
    assert_true(!items[5].take.allowed && items[5].take.retry_after_s > 3590);
}

TEST_WITH(test_redis_away, flush, NULL)
{
    struct weir *lost = weir_new("redis://", "no good");
    struct weir_take_item items[2] = {{.target = "mail"}, {.target = "a b"}};
    struct weir_take t;

    assert_non_null(lost);
    assert_int_equal(weir_take(lost, "mail", NULL, 0, WEIR_TAKE_OR_ALLOW, &t),
                     WEIR_ECONFIG); /* to be mended */
    weir_free(lost);
    lost = weir_new("/nowhere/redis.sock", NULL);
    assert_int_equal(weir_take(lost, "mail", NULL, 0, 0, &t), WEIR_EUNREACHABLE);
    assert_int_equal(weir_take(lost, "mail", NULL, 0, WEIR_TAKE_OR_ALLOW, &t), 0);
    assert_true(t.allowed && t.assumed && t.retry_after_s == -1);
    assert_non_null(strstr(weir_message(lost), "no such socket"));
    assert_int_equal(weir_take(lost, "mail", NULL, 0, WEIR_TAKE_OR_DENY, &t), 0);
    assert_true(!t.allowed && t.assumed && t.retry_after_s > 0);
    assert_int_equal(weir_take_many(lost, items, 2, NULL, 0), WEIR_EUNREACHABLE);
    assert_int_equal(items[0].status, WEIR_EUNREACHABLE);
    assert_int_equal(items[1].status, WEIR_EINPUT);
    assert_int_equal(weir_take_many(lost, items, 2, NULL, WEIR_TAKE_OR_DENY), 0);
    assert_true(items[0].status == 0 && items[0].take.assumed && !items[0].take.allowed);
    assert_int_equal(items[1].status, WEIR_EINPUT);
    weir_free(lost);
}

/* ---- The command */

static void expect(const struct outcome *o, int code, const char *out, const char *err)
{
    if (o->code != code || !strstr(o->out, out) || !strstr(o->err, err))
        fail_msg("%d, not %d: '%s' '%s'", o->code, code, o->out, o->err);
}

#define TAKE(...) run_in(&o, NULL, built("weir"), "take", "--redis", server.url, __VA_ARGS__, NULL)

TEST_WITH(test_the_command_waits, flush, NULL)
{
    struct outcome o;
    int64_t begun_us;

    set_limit("mail", "2/1s,burst=1");
    begun_us = clock_mono_us();
    TAKE("mail");
    TAKE("mail", "--wait");
    expect(&o, 0, "allowed", "");
    TAKE("mail", "--wait=30s");
    expect(&o, 0, "allowed", "");
    assert_true(clock_mono_us() - begun_us >
                900000); /* from the first slot to the third are two T of 0.5 s */
    set_limit("slow", "1/1h");
    TAKE("slow");
    TAKE("slow", "--wait=2s");
    expect(&o, 75, "denied", "");
}

/* A key is told from others by its last byte, however long it is. */
TEST_WITH(test_long_lines, flush, NULL)
{
    enum { MOST = 64 * 1024 };
    static const size_t lengths[] = {511, 512, 5000, MOST};
    static char text[2 * MOST + 4];
    struct outcome o;
    char folder[64], path[96];

    folder_make(folder);
    snprintf(path, sizeof path, "%s/answers", folder);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        char *second = text + lengths[i] + 1;

        memset(text, 'k', sizeof text);
        memcpy(text, "x/", 2);
        memcpy(second - 2, "1\nx/", 4);
        strcpy(second + lengths[i] - 1, "2\n");
        write_text(folder, "lines", text);
        run_in(&o, folder, "/bin/sh", "-c", "\"$1\" take --redis \"$2\" --rule 1/1h --from lines >answers",
               "sh", built("weir"), server.url, NULL);
        fail_if(o.code != 0, "%zu bytes: %d: %s", lengths[i], o.code, o.err);
        assert_true(read_text(folder, "answers", text, sizeof text));
        assert_int_equal(strcspn(text, ":"), lengths[i]);
    }
    memset(text, 'k', MOST + 1);
    memcpy(text, "x/", 2);
    strcpy(text + MOST + 1, "\nx/a\n");
    write_text(folder, "lines", text);
    run_in(&o, folder, built("weir"), "take", "--redis", server.url, "--rule", "1/1h", "--from", "lines",
           NULL);
    expect(&o, 65, "line 1: no answer: it is longer than 64 KiB; give a shorter key\nx/a: allowed; ",
           "weir: take --from: line 1: it is longer than 64 KiB");
    folder_remove(folder);
}

TEST_WITH(test_thousands_of_lines, flush, NULL)
{
    enum { LINES = 3500 };
    static char text[LINES * 8];
    struct outcome o;
    char folder[64];
    size_t len = 0;
    FILE *f;
    int lines = 0, allowed = 0, c;

    folder_make(folder);
    set_limit("mail", "1234/10h");
    for (int i = 0; i < LINES; i++)
        len += (size_t)sprintf(text + len, "mail\n");
    write_text(folder, "lines", text);
    run_in(&o, folder, "/bin/sh", "-c", "\"$1\" take --redis \"$2\" --from - --json <lines >answers", "sh",
           built("weir"), server.url, NULL);
    assert_int_equal(o.code, 75);
    f = fopen(textf("%s/answers", folder), "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f)) {
        lines++;
        allowed += strstr(text, "\"allowed\":true") != NULL;
    }
    c = fclose(f);
    assert_int_equal(c, 0);
    assert_int_equal(lines, LINES);
    assert_int_equal(allowed, 1234);
    folder_remove(folder);
}

/* A program that writes a line and reads its answer before the next one waits for nothing but Redis: at a tenth of a second a line these took
 * ten seconds. */
TEST_WITH(test_a_program_that_asks_line_by_line, flush, NULL)
{
    struct outcome o;

    set_limit("mail", "1000/1h");
    run_in(&o, NULL, "/bin/bash", "-c",
           "begin=${EPOCHREALTIME/./}\n"
           "coproc \"$1\" take --redis \"$2\" --from - --json\n"
           "for i in {1..100}; do echo mail >&${COPROC[1]}; read -r answer <&${COPROC[0]} || exit 1; done\n"
           "[ $((${EPOCHREALTIME/./} - begin)) -lt 5000000 ] && echo \"$answer\"",
           "bash", built("weir"), server.url, NULL);
    expect(&o, 0, "\"remaining\":900", "");
}

TESTS(client_start, client_stop)
