/* Limits in Redis: what changes them, what wakes then, what stays counted. The clock is the test's own. */
#include <hiredis/hiredis.h>
#include <math.h>

#include "core/client/pages.h"
#include "core/clock.h"
#include "core/script/script.h"
#include "queue/limits/rate.h"
#include "queue/status/status.h"
#include "tests/client.h"
#include "tests/library.h"
#include "tests/play.h"
#include "tests/scene_client.h"
#include "tests/test.h"

static struct error error;

#define expect(expected, ...) assert_answer(__LINE__, expected, server_ask(&server, __VA_ARGS__, NULL))

static void assert_answer(int line, const char *expected, char *answer)
{
    fail_if(strcmp(answer, expected) != 0, "line %d: %s, not %s", line, answer, expected);
    free(answer);
}

static long long number(const char *command, const char *key)
{
    return server_number(&server, command, textf(PREFIX "%s", key), NULL);
}

/* ---- Calls: change is the answer to the last one */

static json_t *change;

/* Sends a request of that script. */
static int send_change(struct args *a, const char *script)
{
    int status;

    json_decref(change);
    status = client_ask(w, script, a, &change);
    error = w->error;
    return status;
}

/* The last change was of something that had been there. */
static bool was(void)
{
    return json_is_true(json_object_get(change, "was"));
}
static size_t asleep_count(void)
{
    return json_array_size(json_object_get(change, "asleep"));
}

/* rules: as a person writes them, joined by blanks; NULL: removes the limit. */
static int set_at(int64_t now_us, const char *name, const char *rules)
{
    struct rule_set set;
    struct args a = {0};

    if (rules)
        set = client_rules(rules);
    rate_set_request(&a, PREFIX, now_us, name, rules ? &set : NULL, 0);
    return send_change(&a, "rate_set");
}

static void set(const char *name, const char *rules)
{
    assert_int_equal(set_at(BEGIN_US, name, rules), 0);
}

static int pause_at(int64_t now_us, const char *limit, int64_t for_us)
{
    struct args a = {0};

    rate_pause_request(&a, PREFIX, now_us, limit, &(struct pausing){.for_us = for_us});
    return send_change(&a, "rate_pause");
}

/* All pages of a queue; returns how many there were. */
static int apply_at(int64_t now_us, const char *queue, const char *type, const char *limit, bool resume)
{
    char cursor[24] = "0";
    struct args a = {0};
    int pages = 0;

    do {
        rate_apply_request(&a, PREFIX, now_us, queue, cursor, type, limit, resume);
        assert_int_equal(send_change(&a, "rate_apply"), 0);
        snprintf(cursor, sizeof cursor, "%s", answer_text(change, "cursor"));
        pages++;
    } while (*cursor);
    return pages;
}

static void list_at(int64_t now_us, struct limits *limits)
{
    assert_int_equal(status_limits(w, now_us, limits), 0);
}

/* The slots of that rule of limit mail. */
static void expect_slots(int64_t now_us, int rule, int slots)
{
    struct limits limits;

    list_at(now_us, &limits);
    assert_int_equal(limit_slots(&limits.at[0], rule), slots);
    limits_free(&limits);
}

static void expect_limit(const char *name, const char *text)
{
    expect(text, "HGET", PREFIX "limits", name);
}

static void add_waiting(void)
{
    server_do(&server, "SADD", PREFIX "queues", "default", "high", "idle");
    server_do(&server, "ZADD", PREFIX "wake:default", "1795000100000000", "mail#0", "1795000100000000",
              "mail#7", "1795000200000000", "sms#0");
    server_do(&server, "ZADD", PREFIX "wake:high", "+inf", "mail#2", "1794000000000000", "mail#1");
    server_do(&server, "HSET", PREFIX "duty", "a", "w1 1795000001000000 default", "b",
              "w2 1795000001000000 x,high", "old", "w3 1794900000000000 default", "odd", "?");
}

/* Many keys sleep: between pages Redis is left to others. */
TEST_WITH(test_a_change_of_many_keys_rests, client_flush, NULL)
{
    static const char fill[] =
        "for i = 1, 3000 do redis.call('ZADD', KEYS[1] .. 'sleep:default', '9e15', 'mail#0/k' .. i) "
        "redis.call('ZADD', KEYS[1] .. 'wait:default/mail#0/k' .. i, 1, 'mail/k' .. i) end "
        "redis.call('SADD', KEYS[1] .. 'queues', 'default') "
        "return redis.call('ZADD', KEYS[1] .. 'wake:default', '9e15', '*')";
    int64_t began_us, busy_us = 0;
    struct rule_set kept;
    char *text;

    assert_int_equal(rate_set(w, "mail", "1/1d,by=key", false, &kept, NULL, NULL), 0);
    server_do(&server, "EVAL", fill, "1", PREFIX);
    server_do(&server, "CONFIG", "RESETSTAT");
    began_us = clock_mono_us();
    assert_int_equal(rate_set(w, "mail", "2/1d,by=key", false, &kept, NULL, NULL), 0);
    began_us = clock_mono_us() - began_us;
    text = server_ask(&server, "INFO", "commandstats", NULL);
    for (const char *at = text; (at = strstr(at, "cmdstat_fcall")); at++)
        busy_us += strtoll(strstr(at, ",usec=") + 6, NULL, 10);
    free(text);
    assert_true(began_us > busy_us * 3 / 2);
}

TEST_WITH(test_a_bell_of_one_queue, client_flush, NULL)
{
    static const char *const files[] = {"core/script/pattern.lua", "core/script/bell.lua", NULL};
    struct redisReply *reply;
    struct args a = {0};

    library_load(&server, files, "script('ring', function(ARGV) bell.ring(ARGV[2]) end)");
    add_waiting();
    library_begin(&a, "ring", PREFIX, BEGIN_US);
    args_add(&a, "high");
    assert_int_equal(redis_call(w->redis, &a, &reply, NULL, &error), 0);
    freeReplyObject(reply);
    args_free(&a);
    assert_int_equal(number("LLEN", "bell:b"), 1);
    assert_int_equal(number("EXISTS", "bell:a"), 0);
}

/* ---- What a gate has counted stays with its rule */

#define DAY "fixed-window:1000/86400000000/0"
#define USED_DAY "1794999999000000 0 - - " DAY " 1794999999000000 900"

TEST_WITH(test_a_quota_outlives_the_rules_before_it, client_flush, NULL)
{
    struct limits limits;

    client_send("HSET", "limits", "mail", "gcra:10/1000000/10 " DAY);
    client_send("SET", "gate:mail#1", USED_DAY, NULL);
    set("mail", "1000/1d,algorithm=fixed-window");
    expect(USED_DAY, "GET", PREFIX "gate:mail#1");
    expect_slots(BEGIN_US, 0, 100);
    set("mail", "5/s 1000/1d,algorithm=fixed-window 5/1m");
    list_at(BEGIN_US, &limits);
    assert_int_equal(limits.at[0].set.at[1].algorithm, ALGORITHM_FIXED_WINDOW);
    assert_int_equal(limit_slots(&limits.at[0], 1), 100);
    limits_free(&limits);
}

TEST_WITH(test_a_removed_quota_that_is_set_again_is_used, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:10/1000000/10 " DAY);
    client_send("SET", "gate:mail#1", USED_DAY, NULL);
    set("mail", NULL);
    set("mail", "1000/1d,algorithm=fixed-window"
                " 10/s");
    expect_slots(BEGIN_US, 1, 100);
}

/* Tightened at one time and looked at later: what was used counts from the change on. */
TEST_WITH(test_a_gate_changes_over_with_its_rule, client_flush, NULL)
{
    char *gate;

    client_send("HSET", "limits", "mail", "gcra:10/1000000/10");
    client_send("SET", "gate:mail#0", "1795000000000000 0 - - gcra:10/1000000/10 1795000000500000 0", NULL);
    set("mail", "1/s,burst=10");
    gate = server_ask(&server, "GET", PREFIX "gate:mail#0", NULL);
    assert_non_null(strstr(gate, " gcra:1/1000000/10 "));
    free(gate);
    expect_slots(BEGIN_US + 4000000, 0, 9); /* 5 were used, 4 seconds ago */
}

#define expect_refused(status, says)                                                                         \
    fail_if((status) != WEIR_EINPUT || !strstr(error.text, says), "%s (not: %s)", error.text, says)
TEST_WITH(test_pause_and_resume, client_flush, NULL)
{
    struct limits limits;

    assert_int_equal(pause_at(BEGIN_US, "mail", 1000000), 0);
    assert_string_equal(answer_text(change, "missing"), "mail");
    add_waiting();
    set("mail", "10/s");
    assert_int_equal(pause_at(BEGIN_US, "mail", 9000000), 0);
    assert_false(was());
    expect_limit("mail", "gcra:10/1000000/10 pause:1795000009000000/1795000000000000");
    assert_int_equal(set_at(BEGIN_US + 1000000, "mail", "20/s"), 0);
    expect_limit("mail", "gcra:20/1000000/20 pause:1795000009000000/1795000000000000");
    list_at(BEGIN_US + 1000000, &limits);
    assert_int_equal(limits.at[0].pause_until_us, BEGIN_US + 9000000);
    assert_int_equal(limit_slots(&limits.at[0], 0), 20); /* paused, and not spent */
    assert_int_equal(limits_next_start(&limits, &limits.at[0]), BEGIN_US + 9000000);
    limits_free(&limits);
    list_at(BEGIN_US - 5000000, &limits); /* the clock was set back: the pause goes with it */
    assert_int_equal(limits.at[0].pause_until_us, BEGIN_US + 4000000);
    limits_free(&limits);
    server_do(&server, "ZADD", PREFIX "wake:default", "1795000009000000", "mail#0", "1795000009000000",
              "mail#pause");
    assert_int_equal(pause_at(BEGIN_US + 2000000, "mail", 0), 0);
    assert_true(was());
    expect_limit("mail", "gcra:20/1000000/20");
    expect("1795000002000000", "ZSCORE", PREFIX "wake:default", "mail#0");
    expect("1795000002000000", "ZSCORE", PREFIX "wake:default", "mail#pause");
    assert_int_equal(pause_at(BEGIN_US, "mail", 0), 0);
    assert_false(was());
    expect_refused(pause_at(BEGIN_US, "mail", INT64_C(400000000000001)), "pause: must be at most ten years");
}

TEST_WITH(test_resume_ends_what_a_provider_asked_for, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:10/1000000/10");
    client_send("SET", "gate:mail#0",
                "1795000000000000 1795000009000000 - - gcra:10/1000000/10 1795000000500000 0", NULL);
    expect_slots(BEGIN_US, 0, 5);
    assert_int_equal(pause_at(BEGIN_US, "mail", 0), 0);
    assert_true(was());
    expect_slots(BEGIN_US, 0, 5);
}

/* ---- Lanes that sleep */

/* n lanes of type mail in queue default, each at a gate of its own that opens a day from now. */
static void add_sleeping(int n, const char *rule)
{
    for (int i = 0; i < n; i++) {
        const char *gate = textf("mail#0/%d", i);
        const char *lane = textf("mail/%d", i);

        client_send("ZADD", "sleep:default", "1795086400000000", gate);
        client_send("ZADD", textf("wait:default/%s", gate), "1", lane);
        client_send("SET", textf("gate:%s", gate),
                    textf("1795000000000000 0 - - %s 1795086400000000 0", rule), NULL);
    }
    server_do(&server, "SADD", PREFIX "queues", "default", "high");
    server_do(&server, "HSET", PREFIX "duty", "a", "w1 1795000001000000 default");
}

static void expect_sleeping(const char *from, const char *to, int n)
{
    assert_int_equal(server_number(&server, "ZCOUNT", PREFIX "sleep:default", from, to, NULL), n);
}

TEST_WITH(test_sleeping_lanes_are_looked_at_page_by_page, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:1/86400000000/1,by=key");
    add_sleeping(600, "gcra:1/86400000000/1");
    server_do(&server, "ZADD", PREFIX "sleep:default", "7", "other#0/1");
    set("mail", "1/1h,by=key");
    assert_int_equal(asleep_count(), 1);
    expect_sleeping("1795086400000000", "1795086400000000", 600);
    client_send("ZADD", "wake:default", "1795086400000000", "*");
    assert_true(apply_at(BEGIN_US, "default", NULL, "mail", false) > 1);
    expect_sleeping("1795003600000000", "1795003600000000", 600);
    expect("1795003600000000", "ZSCORE", PREFIX "wake:default", "*"); /* what a claim goes by */
    expect("7", "ZSCORE", PREFIX "sleep:default", "other#0/1");
    assert_int_equal(number("LLEN", "bell:a"), 1);
    /* The gates were written with it: a look later says the same. */
    assert_true(apply_at(BEGIN_US + 60000000, "default", NULL, "mail", false) > 1);
    expect_sleeping("1795003600000000", "1795003600000000", 600);
    set("mail", NULL);
    apply_at(BEGIN_US, "default", NULL, "mail", false);
    expect_sleeping("1795000000000000", "1795000000000000", 600);
    assert_int_equal(apply_at(BEGIN_US, "high", NULL, "mail", false), 1);
    assert_int_equal(number("EXISTS", "sleep:high"), 0);
}

TEST_WITH(test_the_log_is_capped, client_flush, NULL)
{
    json_t *log;

    for (int i = 0; i < 1003; i++)
        assert_int_equal(set_at(BEGIN_US + 1000 * i + 7, "mail", "1/s"), 0);
    set("mail", NULL);
    for (int i = 0; i < 1003; i++)
        rate_note(w, "job cancel %d", i);
    assert_int_equal(rate_log_read(w, true, &log), 0);
    assert_int_equal(json_array_size(log), 2000);
    assert_non_null(strstr(json_string_value(json_array_get(log, 0)), "\"what\":\"job cancel 1002\""));
    assert_non_null(strstr(json_string_value(json_array_get(log, 999)), "\"what\":\"job cancel 3\""));
    assert_non_null(strstr(json_string_value(json_array_get(log, 1000)), "\"what\":\"remove mail\""));
    json_decref(log);
    assert_int_equal(rate_log_read(w, false, &log), 0);
    assert_int_equal(json_array_size(log), 1000);
    assert_non_null(strstr(json_string_value(json_array_get(log, 999)), "\"at\":1795000000.004007,"));
    assert_non_null(strstr(json_string_value(json_array_get(log, 1)), "\"what\":\"set mail 1\\/1s\""));
    assert_non_null(strstr(json_string_value(json_array_get(log, 0)), "\"at\":1795000000.000000,"));
    assert_non_null(strstr(json_string_value(json_array_get(log, 0)), "\"what\":\"remove mail\""));
    json_decref(log);
}

/* ---- The library */

TEST_WITH(test_weir_rate, client_flush, NULL)
{
    struct limits limits;

    assert_int_equal(weir_rate_set(w, "mail", "100/1m,burst=20  5/s"), 0);
    assert_int_equal(status_limits(w, -1, &limits), 0);
    assert_int_equal(limits.count, 1);
    assert_int_equal(limits.at[0].set.at[0].burst, 20);
    limits_free(&limits);
    assert_int_equal(weir_rate_set(w, "mail", "100"), WEIR_EINPUT);
    assert_int_equal(weir_rate_set(w, "mail", ""), WEIR_EINPUT);
    assert_int_equal(weir_rate_set(w, "mail", "1/s 1/s 1/s 1/s 1/s 1/s 1/s 1/s 1/s"), WEIR_EINPUT);
    assert_int_equal(weir_rate_set(w, "a mail", "100/1m"), WEIR_EINPUT);
    assert_int_equal(weir_rate_remove(w, ""), WEIR_EINPUT);
    assert_int_equal(weir_rate_remove(w, "mail"), 0);
    assert_int_equal(weir_rate_remove(w, "mail"), WEIR_ENOTFOUND);
    assert_string_equal(weir_message(w), "limit mail: there is none; weir rate list shows them");
    assert_int_equal(status_limits(w, -1, &limits), 0);
    assert_int_equal(limits.count, 0);
    limits_free(&limits);
}

TEST_WITH(test_weir_rate_use_and_the_others, client_flush, NULL)
{
    assert_int_equal(weir_rate_use(w, "mail", "acct", 0), WEIR_ENOTFOUND);
    assert_string_equal(weir_message(w), "limit acct: there is none; set it first: weir rate set acct RULE");
    assert_int_equal(weir_rate_use(w, "mail", "", 0), WEIR_EINPUT);
    assert_int_equal(weir_rate_use(w, "mail", "", -1), WEIR_EINPUT);
    assert_int_equal(weir_rate_use(w, "mail", "a a a a a a a a a a a a a a a a a", 0), WEIR_EINPUT);
    assert_int_equal(weir_rate_use(w, "a mail", "acct", 0), WEIR_EINPUT);
    assert_int_equal(weir_rate_set(w, "acct", "10/s,by=key"), 0);
    assert_int_equal(weir_rate_set(w, "more", "10/s"), 0);
    assert_int_equal(weir_rate_use(w, "mail", "acct more", 2), 0);
    expect("use=acct,more cost=2", "HGET", PREFIX "types", "mail");
    assert_int_equal(weir_rate_unuse(w, "mail", "more"), 0);
    assert_int_equal(weir_rate_unuse(w, "mail", "more"), WEIR_ENOTFOUND);
    assert_int_equal(weir_rate_weight(w, "acct", "42", 2), 0);
    assert_int_equal(weir_rate_weight(w, "acct", "a@b", 2), 0);
    expect("2", "HGET", PREFIX "weights", "acct/h.d0338b23241f124f2c83fa6f5821920039bf85db");
    assert_int_equal(weir_rate_weight(w, "acct", "", 2), WEIR_EINPUT);
    assert_int_equal(weir_rate_weight(w, "gone", "42", 2), WEIR_ENOTFOUND);
    assert_int_equal(weir_rate_weight(w, "acct", "42", 0), WEIR_EINPUT);
    assert_int_equal(weir_rate_pause(w, "acct", 0.5), 0);
    assert_int_equal(weir_rate_pause(w, "acct", 0), WEIR_EINPUT);
    assert_int_equal(weir_rate_pause(w, "acct", 1e9), WEIR_EINPUT);
    assert_int_equal(weir_rate_pause(w, "gone", 1), WEIR_ENOTFOUND);
    assert_int_equal(weir_rate_resume(w, "acct"), 0);
    assert_int_equal(weir_rate_resume(w, "gone"), WEIR_ENOTFOUND);
    assert_int_equal(weir_rate_pause(w, "acct/a/b c", INFINITY), 0);
    expect("1", "HLEN", PREFIX "key_pauses");
    assert_int_equal(weir_rate_resume(w, "acct/a/b c"), 0);
    expect("0", "HLEN", PREFIX "key_pauses");
    assert_int_equal(weir_rate_pause(w, "acct", INFINITY), 0);
    assert_int_equal(weir_rate_resume(w, "acct"), 0);
    assert_int_equal(weir_rate_pause(w, "acct/", 1), WEIR_EINPUT);
    assert_int_equal(weir_rate_pause(w, "more/42", 1), WEIR_EINPUT);
}

/* The calls do the rest of their change themselves. */
TEST_WITH(test_weir_rate_looks_at_sleeping_lanes, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:1/86400000000/1,by=key");
    add_sleeping(300, "gcra:1/86400000000/1");
    server_do(&server, "ZUNIONSTORE", PREFIX "sleep:default", "1", PREFIX "sleep:default", "WEIGHTS",
              "2"); /* by Redis's own time, these lie ahead */
    expect_sleeping("3590172800000000", "3590172800000000", 300);
    assert_int_equal(weir_rate_set(w, "mail", "1000/s,by=key"), 0);
    expect_sleeping("3590172800000000", "3590172800000000", 0);
}

/* What was used under the old rule stays used; with the state goes its lifetime. */
TEST_WITH(test_a_new_rule_applies_at_once, client_flush, NULL)
{
    struct weir_take t;

    assert_int_equal(weir_rate_set(w, "mail", "2/1d"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 2, WEIR_TAKE_ASK, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(weir_rate_set(w, "mail", "10/1h"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 1, WEIR_TAKE_ASK, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(t.remaining, 7);
    assert_int_equal(weir_rate_set(w, "mail", "1/1h"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 1, WEIR_TAKE_ASK, &t), 0);
    assert_int_equal(t.allowed, 0);
    assert_true(t.retry_after_s > 3590 && t.retry_after_s <= 3600);
    assert_int_equal(weir_rate_set(w, "mail", "1000/1s"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 1, WEIR_TAKE_ASK, &t), 0);
    assert_int_equal(t.allowed, 1);
    /* What was used of the first rule's day is known until it is over. */
    assert_in_range(number("PTTL", "gate:mail#0"), 86390000, 86400002);
    assert_int_equal(weir_rate_set(w, "mail", "2/1d"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 1, WEIR_TAKE_ASK, &t), 0);
    assert_int_equal(t.allowed, 0);
}

PLAY("limit")

static int end(void **state)
{
    json_decref(change);
    return scene_stop_client(state);
}

TESTS(scene_start_client, end)
