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

/* Rules as a person writes them, joined by blanks. */
/* rules NULL: removes the limit. */
static int set_at(int64_t now_us, const char *name, const char *rules)
{
    struct rule_set set;
    struct args a = {0};

    if (rules)
        set = client_rules(rules);
    rate_set_request(&a, PREFIX, now_us, name, rules ? &set : NULL, false);
    return send_change(&a, "rate_set");
}

static void set(const char *name, const char *rules)
{
    assert_int_equal(set_at(BEGIN_US, name, rules), 0);
}

static int use(const char *type, bool is_use, const char *limit, int64_t cost)
{
    struct args a = {0};

    rate_use_request(&a, PREFIX, BEGIN_US, type, is_use, &limit, limit ? 1 : 0, cost);
    return send_change(&a, "rate_use");
}

static int weigh(const char *limit, const char *key, int64_t weight)
{
    struct args a = {0};

    rate_weight_request(&a, PREFIX, BEGIN_US, limit, key, weight);
    return send_change(&a, "rate_weight");
}

static int pause_at(int64_t now_us, const char *limit, int64_t for_us)
{
    struct args a = {0};

    rate_pause_request(&a, PREFIX, now_us, limit, &(struct pausing){.for_us = for_us});
    return send_change(&a, "rate_pause");
}

static int pause_key_at(int64_t now_us, const char *limit, const char *key, int64_t for_us)
{
    struct args a = {0};

    rate_pause_key_request(&a, PREFIX, now_us, limit, key, &(struct pausing){.for_us = for_us});
    return send_change(&a, "rate_pause_key");
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

static void list_at(int64_t now_us, const char *name, struct limits *limits)
{
    assert_int_equal(limits_ask(w, now_us, name, limits), 0);
}

/* The slots of that rule of limit mail. */
static void expect_slots(int64_t now_us, int rule, int slots)
{
    struct limits limits;

    list_at(now_us, "mail", &limits);
    assert_int_equal(limit_slots(&limits.at[0], rule), slots);
    limits_free(&limits);
}

static void expect_limit(const char *name, const char *text)
{
    expect(text, "HGET", PREFIX "limits", name);
}

/* ---- Setting */

TEST_WITH(test_set_and_remove, client_flush, NULL)
{
    set("mail", "100/1m,burst=20");
    assert_false(was());
    assert_string_equal(answer_text(change, "kept"), "gcra:100/60000000/20");
    expect_limit("mail", "gcra:100/60000000/20");
    set("mail", "10/s concurrency=5 1000/1d,algorithm=fixed-window,offset=6h");
    assert_true(was());
    expect_limit("mail", "gcra:10/1000000/10 concurrency:5 fixed-window:1000/86400000000/21600000000");
    assert_int_equal(number("LLEN", "changes"), 2);
    set("mail", NULL);
    assert_true(was());
    server_do(&server, "DEL", PREFIX "changes", PREFIX "revisions");
    set("mail", NULL);
    assert_false(was());
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

TEST_WITH(test_a_dry_run_changes_nothing, client_flush, NULL)
{
    struct rule_set both = client_rules("5/h 7/1m");
    struct args a = {0};

    set("mail", "7/1m");
    rate_set_request(&a, PREFIX, BEGIN_US, "mail", &both, true);
    assert_int_equal(send_change(&a, "rate_set"), 0);
    assert_true(was());
    assert_string_equal(answer_text(change, "kept"),
                        "gcra:7/60000000/7 gcra:5/3600000000/5"); /* 7 stays in its place */
    expect_limit("mail", "gcra:7/60000000/7");
    assert_int_equal(number("LLEN", "changes"), 1);
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

TEST_WITH(test_what_waits_is_looked_at_again, client_flush, NULL)
{
    static const char *const rules[] = {"1000/s,burst=1", NULL};

    for (size_t i = 0; i < COUNT(rules); i++) {
        server_do(&server, "FLUSHALL");
        add_waiting();
        client_send("HSET", "limits", "mail", "gcra:1/1000000/1");
        set("mail", rules[i]);
        assert_int_equal(asleep_count(), 0);
        expect("1795000000000000", "ZSCORE", PREFIX "wake:default", "mail#0");
        expect("1795000000000000", "ZSCORE", PREFIX "wake:default", "mail#7");
        expect("1795000200000000", "ZSCORE", PREFIX "wake:default", "sms#0");
        expect("1795000000000000", "ZSCORE", PREFIX "wake:high", "mail#2");
        expect("1794000000000000", "ZSCORE", PREFIX "wake:high", "mail#1"); /* is due as it is */
        assert_int_equal(number("EXISTS", "wake:idle"), 0);
        assert_int_equal(number("LLEN", "bell:a"), 1);
        assert_int_equal(number("LLEN", "bell:b"), 1);
        assert_true(number("PTTL", "bell:b") > 50000);
        expect("4", "HLEN", PREFIX "duty"); /* those of long ago are forgotten with a heartbeat */
        assert_int_equal(server_number(&server, "EXISTS", PREFIX "bell:old", PREFIX "bell:odd", NULL), 0);
    }
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

    assert_int_equal(rate_set(w, "mail", "1/1d,by=key", false, &kept), 0);
    server_do(&server, "EVAL", fill, "1", PREFIX);
    server_do(&server, "CONFIG", "RESETSTAT");
    began_us = clock_mono_us();
    assert_int_equal(rate_set(w, "mail", "2/1d,by=key", false, &kept), 0);
    began_us = clock_mono_us() - began_us;
    text = server_ask(&server, "INFO", "commandstats", NULL);
    for (const char *at = text; (at = strstr(at, "cmdstat_fcall")); at++)
        busy_us += strtoll(strstr(at, ",usec=") + 6, NULL, 10);
    free(text);
    assert_true(began_us > busy_us * 3 / 2);
}

TEST_WITH(test_a_bell_is_rung_once_and_only_where_something_waits, client_flush, NULL)
{
    add_waiting();
    set("fax", "1/s");
    assert_int_equal(number("EXISTS", "bell:a"), 0);
    set("mail", "1/s");
    set("sms", "1/s");
    assert_int_equal(number("LLEN", "bell:a"), 1);
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

TEST_WITH(test_a_duty_of_another_kind_fails_nobody, client_flush, NULL)
{
    add_waiting();
    server_do(&server, "SET", PREFIX "duty", "x");
    set("mail", "1/s");
    expect_limit("mail", "gcra:1/1000000/1");
}

/* ---- What a gate has counted stays with its rule */

#define DAY "fixed-window:1000/86400000000/0"
#define USED_DAY "1794999999000000 0 - - " DAY " 1794999999000000 900"

TEST_WITH(test_rules_keep_their_places, client_flush, NULL)
{
    static const struct {
        const char *before, *rules, *after;
    } cases[] = {
        {"gcra:5/1000000/5", "9/s 5/s",
         "gcra:9/1000000/9 gcra:5/1000000/5"}, /* 9/s is like neither: see below */
        {DAY, "10/s 1000/1d,algorithm=fixed-window", DAY " gcra:10/1000000/10"},
        {DAY " concurrency:5", "concurrency=5 1000/1d,algorithm=fixed-window", DAY " concurrency:5"},
        {DAY " concurrency:5", "concurrency=7 1/s 2000/1d,algorithm=fixed-window",
         "fixed-window:2000/86400000000/0 concurrency:7 gcra:1/1000000/1"},
        {"gcra:1/1000000/1 " DAY, "1000/1d,algorithm=fixed-window", "- " DAY},
        {"gcra:1/1000000/1 - concurrency:5 " DAY, "1000/1d,algorithm=fixed-window 5/1m,algorithm=sliding-log",
         "sliding-log:5/60000000 - - " DAY},
        {"- - " DAY, "1/s", "gcra:1/1000000/1"},
        {"gcra:1/1000000/1,by=key", "1/s", "gcra:1/1000000/1"},
        {"gcra:1/1000000/1 gcra:1/60000000/1", "3/1m 2/s", "gcra:2/1000000/2 gcra:3/60000000/3"},
    };

    for (size_t i = 1; i < COUNT(cases); i++) {
        client_send("DEL", "revisions", NULL, NULL);
        client_send("HSET", "limits", "mail", cases[i].before);
        set("mail", cases[i].rules);
        expect_limit("mail", cases[i].after);
    }
    client_send("DEL", "revisions", NULL, NULL);
    client_send("HSET", "limits", "mail", cases[0].before);
    set("mail", cases[0].rules);
    expect_limit("mail", "gcra:5/1000000/5 gcra:9/1000000/9");
}

TEST_WITH(test_a_quota_outlives_the_rules_before_it, client_flush, NULL)
{
    struct limits limits;

    client_send("HSET", "limits", "mail", "gcra:10/1000000/10 " DAY);
    client_send("SET", "gate:mail#1", USED_DAY, NULL);
    set("mail", "1000/1d,algorithm=fixed-window");
    expect(USED_DAY, "GET", PREFIX "gate:mail#1");
    expect_slots(BEGIN_US, 0, 100);
    set("mail", "5/s 1000/1d,algorithm=fixed-window 5/1m");
    list_at(BEGIN_US, "mail", &limits);
    assert_int_equal(limits.at[0].set.at[1].algorithm, ALGORITHM_FIXED_WINDOW);
    assert_int_equal(limit_slots(&limits.at[0], 1), 100);
    limits_free(&limits);
}

/* "remove" is for none. */
TEST_WITH(test_a_rule_that_comes_back_finds_its_place, client_flush, NULL)
{
#define DAY_RULE "1000/1d,algorithm=fixed-window"
    static const char eight[] = "1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s", remove[] = "remove";
    static const struct {
        const char *steps[5], *kept;
    } cases[] = {
        {{"5/s " DAY_RULE, remove, DAY_RULE " 5/s"}, "gcra:5/1000000/5 " DAY},
        {{"5/s,by=key 7/1m,by=key", remove, "7/1m,by=key 1/s 5/s,by=key"},
         "gcra:5/1000000/5,by=key gcra:7/60000000/7,by=key gcra:1/1000000/1"},
        {{"5/s,by=key 1/s", "1/s", "1/s 9/s,by=type", "1/s 5/s,by=key"},
         "gcra:5/1000000/5,by=key gcra:1/1000000/1"},
        {{"5/s " DAY_RULE " concurrency=3", "5/s", "5/s concurrency=3 " DAY_RULE},
         "gcra:5/1000000/5 " DAY " concurrency:3"},
        {{"5/s " DAY_RULE, "5/s", "5/s concurrency=3", DAY_RULE}, "- " DAY},
        {{"5/s " DAY_RULE, "5/s", "5/s 2000/1d,algorithm=fixed-window"},
         "gcra:5/1000000/5 fixed-window:2000/86400000000/0"},
        {{"5/s 1000/1d", "5/s", "1000/1d"}, "- gcra:1000/86400000000/1000"},
        {{DAY_RULE, remove, "concurrency=3"}, "concurrency:3"},
        {{eight, "1/s", "1/s concurrency=3"}, "gcra:1/1000000/1 concurrency:3"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        client_send("DEL", "revisions", PREFIX "limits", NULL);
        for (size_t k = 0; k < COUNT(cases[i].steps) && cases[i].steps[k]; k++)
            set("mail", cases[i].steps[k] == remove ? NULL : cases[i].steps[k]);
        expect_limit("mail", cases[i].kept);
    }
}

TEST_WITH(test_a_removed_quota_that_is_set_again_is_used, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:10/1000000/10 " DAY);
    client_send("SET", "gate:mail#1", USED_DAY, NULL);
    set("mail", NULL);
    set("mail", DAY_RULE " 10/s");
    expect_slots(BEGIN_US, 1, 100);
#undef DAY_RULE
}

TEST_WITH(test_jobs_in_flight_stay_with_their_place, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "concurrency:5 " DAY);
    client_send("SET", "gate:mail#0", "1794999999000000 0 - - concurrency:5 3", NULL);
    client_send("SET", "gate:mail#1", USED_DAY, NULL);
    set("mail", "1000/1d,algorithm=fixed-window");
    expect(USED_DAY, "GET", PREFIX "gate:mail#1");
    set("mail", "1000/1d,algorithm=fixed-window concurrency=4");
    expect_limit("mail", "concurrency:4 " DAY);
    expect("1795000000000000 0 - - concurrency:4 3", "GET", PREFIX "gate:mail#0");
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

/* ---- Types */

#define expect_refused(status, says)                                                                         \
    fail_if((status) != WEIR_EINPUT || !strstr(error.text, says), "%s (not: %s)", error.text, says)
TEST_WITH(test_use_and_unuse, client_flush, NULL)
{
    assert_int_equal(use("sms", true, "acct", 0), 0);
    assert_string_equal(answer_text(change, "missing"), "acct");
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
    set("acct", "10/s");
    set("other", "10/s");
    assert_int_equal(use("sms", true, "acct", 0), 0);
    expect("use=acct", "HGET", PREFIX "types", "sms");
    assert_int_equal(use("sms", true, "acct", 3), 0);
    expect("use=acct cost=3", "HGET", PREFIX "types", "sms");
    client_send("HSET", "types", "sms", "later=x use=acct cost=3");
    assert_int_equal(use("sms", true, "other", 0), 0);
    expect("use=acct,other cost=3 later=x", "HGET", PREFIX "types", "sms");
    assert_int_equal(use("sms", false, "nobody", 0), 0);
    assert_string_equal(answer_text(change, "missing"), "nobody");
    assert_int_equal(use("sms", false, "acct", 0), 0);
    assert_int_equal(use("sms", false, "other", 0), 0);
    assert_int_equal(use("sms", true, NULL, 1), 0);
    expect("later=x", "HGET", PREFIX "types", "sms");
    expect_refused(use("sms", true, "sms", 0), "type sms: always held by the limit of its own name");
}

TEST_WITH(test_unuse_wakes_what_waits_there, client_flush, NULL)
{
    add_waiting();
    client_send("HSET", "types", "sms", "use=mail");
    server_do(&server, "ZADD", PREFIX "sleep:high", "5", "x#0/1");
    assert_int_equal(use("sms", false, "mail", 0), 0);
    expect("1795000000000000", "ZSCORE", PREFIX "wake:high", "mail#2");
    expect("1795000000000000", "ZSCORE", PREFIX "wake:default", "mail#0");
    expect("1795000200000000", "ZSCORE", PREFIX "wake:default", "sms#0");
    assert_int_equal(asleep_count(), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(change, "asleep"), 0)), "high");
}

TEST_WITH(test_another_cost_wakes_what_waits, client_flush, NULL)
{
    add_waiting();
    client_send("HSET", "limits", "sms", "gcra:10/1000000/10");
    client_send("HSET", "types", "sms", "cost=5");
    assert_int_equal(use("sms", true, NULL, 5), 0);
    expect("1795000200000000", "ZSCORE", PREFIX "wake:default", "sms#0");
    assert_int_equal(use("sms", true, NULL, 2), 0);
    expect("1795000000000000", "ZSCORE", PREFIX "wake:default", "sms#0");
}

TEST_WITH(test_what_does_not_go_together, client_flush, NULL)
{
    set("acct", "10/s,by=args.a");
    set("mail", "10/s,by=key 5/s");
    expect_refused(use("mail", true, "acct", 0),
                   "type mail: limit mail goes by key and limit acct by args.a; the keyed rules of a type "
                   "have one path");
    set("mail", "10/s");
    assert_int_equal(use("mail", true, "acct", 0), 0);
    expect_refused(set_at(BEGIN_US, "mail", "10/s,by=key"),
                   "limit mail goes by key and limit acct by args.a");
    expect_limit("mail", "- gcra:10/1000000/10");
    expect_refused(use("mail", true, NULL, 11),
                   "type mail: a job costs 11 and limit mail never lets more than 10");
    assert_int_equal(use("mail", true, NULL, 10), 0);
    expect_refused(set_at(BEGIN_US, "mail", "9/s"), "a job costs 10 and limit mail never lets more than 9");
    set("mail", "10/s concurrency=2"); /* that counts jobs */
    expect_refused(set_at(BEGIN_US, "mail", "10/s,algorithm=fixed-window,adapt=0.1..0.5"), "a job costs 10");
    expect_refused(use("mail", true, NULL, 1000000001), "cost: must be 1 to 1000000000");
}

TEST_WITH(test_sixteen_rules_at_most, client_flush, NULL)
{
    static const char eight[] = "1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s";

    set("a", eight);
    set("b", eight);
    assert_int_equal(use("mail", true, "a", 0), 0);
    assert_int_equal(use("mail", true, "b", 0), 0);
    expect_refused(set_at(BEGIN_US, "mail", "1/s"), "type mail: 17 rules over all its limits; at most 16");
    set("b", "1/s 2/s 3/s 4/s 5/s 6/s 7/s");
    set("mail", "1/s");
    expect_refused(set_at(BEGIN_US, "b", eight), "type mail: 17 rules");
}

/* No command writes that: a type is always held by the limit of its own name, once. */
TEST_WITH(test_a_type_that_uses_its_own_limit, client_flush, NULL)
{
    set("mail", "10/s");
    set("acct", "10/s");
    client_send("HSET", "types", "mail", "use=mail,acct");
    assert_int_equal(use("mail", false, "acct", 0), 0);
    expect("", "HGET", PREFIX "types", "mail");
    client_send("HSET", "types", "mail", "use=mail");
    set("mail", NULL);
    expect("0", "HEXISTS", PREFIX "limits", "mail");
}

TEST_WITH(test_a_limit_in_use_is_not_removed, client_flush, NULL)
{
    set("acct", "10/s");
    assert_int_equal(use("sms", true, "acct", 0), 0);
    assert_int_equal(use("fax", true, "acct", 0), 0);
    client_send("HSET", "types", "acct", "");
    expect_refused(set_at(BEGIN_US, "acct", NULL),
                   "limit acct: used by fax, sms; end that first: weir rate unuse fax acct");
    assert_int_equal(use("sms", false, "acct", 0), 0);
    assert_int_equal(use("fax", false, "acct", 0), 0);
    set("acct", NULL);
    assert_int_equal(number("EXISTS", "limits"), 0);
}

/* ---- Weights and pauses */

TEST_WITH(test_weights, client_flush, NULL)
{
    assert_int_equal(weigh("mail", "42", 3), 0);
    assert_string_equal(answer_text(change, "missing"), "mail");
    set("mail", "10/s");
    expect_refused(weigh("mail", "42", 3), "limit mail: has no keys to weigh");
    set("mail", "10/s,by=args.a");
    expect_refused(weigh("mail", "42", 0), "weight: must be 1 to 1000");
    expect_refused(weigh("mail", "42", 1001), "weight: must be 1 to 1000");
    assert_int_equal(weigh("mail", "42", 1), 0);
    expect_limit("mail", "gcra:10/1000000/10,by=args.a");
    server_do(&server, "CONFIG", "RESETSTAT");
    assert_int_equal(weigh("mail", "42", 3), 0);
    assert_int_equal(weigh("mail", "a@b", 1000), 0);
    assert_int_equal(server_calls(&server, "hgetall"), 0); /* however many keys have weights */
    expect_limit("mail", "gcra:10/1000000/10,by=args.a weights:1");
    expect("3", "HGET", PREFIX "weights", "mail/42");
    expect("1000", "HGET", PREFIX "weights", "mail/h.d0338b23241f124f2c83fa6f5821920039bf85db");
    set("mail", "20/s,by=args.a");
    expect_limit("mail", "gcra:20/1000000/20,by=args.a weights:1");
    assert_int_equal(weigh("mail", "42", 1), 0);
    expect("1", "HLEN", PREFIX "weights");
    client_send("HSET", "weights", "mailgun/42", "2");
    set("mail", NULL);
    expect("mailgun/42", "HKEYS", PREFIX "weights");
}

/* Until when a gate is paused, as its state says. */
static void expect_paused(const char *gate, const char *until)
{
    char *state = server_ask(&server, "GET", gate, NULL), *at = strchr(state, ' ');

    if (*until ? !at || strncmp(at + 1, until, strlen(until)) != 0 : at && strncmp(at + 1, "0 ", 2) != 0)
        fail_msg("%s: %s, not %s", gate, state, until);
    free(state);
}

TEST_WITH(test_a_key_is_paused, client_flush, NULL)
{
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "42", RATE_ENDLESS), 0);
    assert_string_equal(answer_text(change, "missing"), "mail");
    set("mail", "10/s");
    expect_refused(pause_key_at(BEGIN_US, "mail", "42", RATE_ENDLESS), "limit mail: has no keys to pause");
    set("mail", "10/s 5/s,by=args.a");
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "42", RATE_ENDLESS), 0);
    assert_false(was());
    expect_paused(PREFIX "gate:mail#1/42", "8000000000000000 ");
    expect("8000000000000000/1795000000000000", "HGET", PREFIX "key_pauses", "mail/42");
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "42", 9000000), 0); /* shorter: that of before is over */
    assert_true(was());
    expect_paused(PREFIX "gate:mail#1/42", "1795000009000000 ");
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "a b", 5000000), 0);
    expect("1795000005000000/1795000000000000 a b", "HGET", PREFIX "key_pauses",
           "mail/h.7dbde93504122a707f849f2c12bdd9de71b41929");
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "42", RATE_RESUME), 0);
    assert_true(was());
    expect_paused(PREFIX "gate:mail#1/42", "");
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "42", RATE_RESUME), 0);
    assert_false(was());
    expect("1", "HLEN", PREFIX "key_pauses");
}

/* It stays with the key, whatever becomes of the rules by that path, and when the limit is resumed; not longer than these. */
TEST_WITH(test_a_paused_key_and_its_rules, client_flush, NULL)
{
    set("mail", "10/s,by=args.a concurrency=3,by=args.a");
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "42", RATE_ENDLESS), 0);
    set("mail", "20/s,by=args.a");
    expect_paused(PREFIX "gate:mail#0/42", "8000000000000000 ");
    set("mail", "20/s 7/m,by=args.a,algorithm=sliding-log");
    expect_paused(PREFIX "gate:mail#2/42", "8000000000000000 ");
    expect_paused(PREFIX "gate:mail#0/42", "");
    client_send("ZADD", "sleep:default", "9000000000000000", "mail#2/42");
    client_send("ZADD", "wake:default", "9000000000000000", "*");
    client_send("SADD", "queues", "default", NULL);
    assert_int_equal(pause_at(BEGIN_US, "mail", RATE_RESUME), 0);
    apply_at(BEGIN_US, "default", NULL, "mail", true);
    expect_paused(PREFIX "gate:mail#2/42", "8000000000000000 ");
    set("mail", "20/s 7/m,by=args.b");
    expect_paused(PREFIX "gate:mail#2/42", "");
    expect("0", "EXISTS", PREFIX "key_pauses", NULL);
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "42", RATE_ENDLESS), 0);
    set("mail", NULL);
    expect_paused(PREFIX "gate:mail#2/42", "");
    expect("0", "EXISTS", PREFIX "key_pauses", NULL);
}

/* Those that are over leave when there is no room for one more. */
TEST_WITH(test_so_many_keys_are_paused, client_flush, NULL)
{
    set("mail", "10/s,by=args.a");
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "over", 1000000), 0);
    for (int i = 1; i < 1000; i++)
        client_send("HSET", "key_pauses", textf("mail/%d", i), "8000000000000000/1795000000000000");
    expect_refused(pause_key_at(BEGIN_US, "mail", "more", RATE_ENDLESS),
                   "limit mail: 1000 keys of all limits are paused, and that is the most; resume some");
    assert_int_equal(pause_key_at(BEGIN_US, "mail", "7", 5000000), 0);
    assert_int_equal(pause_key_at(BEGIN_US + 2000000, "mail", "more", RATE_ENDLESS), 0);
    expect("1000", "HLEN", PREFIX "key_pauses");
    expect("(nil)", "HGET", PREFIX "key_pauses", "mail/over");
}

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
    list_at(BEGIN_US + 1000000, "mail", &limits);
    assert_int_equal(limits.at[0].pause_until_us, BEGIN_US + 9000000);
    assert_int_equal(limit_slots(&limits.at[0], 0), 20); /* paused, and not spent */
    assert_int_equal(limits_next_start(&limits, &limits.at[0]), BEGIN_US + 9000000);
    limits_free(&limits);
    list_at(BEGIN_US - 5000000, "mail", &limits); /* the clock was set back: the pause goes with it */
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

TEST_WITH(test_sleeping_lanes_and_pauses, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:1/3600000000/1,by=key");
    add_sleeping(3, "gcra:1/3600000000/1");
    client_send("SET", "gate:mail#0/0",
                "1795000000000000 1795009000000000 - - gcra:1/3600000000/1 1795000000000000 0", NULL);
    client_send("DEL", "gate:mail#0/1", NULL, NULL);
    assert_int_equal(pause_at(BEGIN_US, "mail", 5000000), 0);
    apply_at(BEGIN_US, "default", NULL, "mail", false);
    expect("1795009000000000", "ZSCORE", PREFIX "sleep:default", "mail#0/0");
    expect("1795000005000000", "ZSCORE", PREFIX "sleep:default", "mail#0/1");
    assert_int_equal(pause_at(BEGIN_US, "mail", 0), 0);
    apply_at(BEGIN_US, "default", NULL, "mail", true);
    expect("1795000000000000", "ZSCORE", PREFIX "sleep:default", "mail#0/0");
    expect("1795000000000000", "ZSCORE", PREFIX "sleep:default", "mail#0/1");
}

TEST_WITH(test_sleeping_lanes_of_a_full_gate, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "concurrency:1,by=key");
    client_send("ZADD", "sleep:default", "+inf", "mail#0/a");
    client_send("ZADD", "sleep:default", "+inf", "mail#0/b");
    client_send("SET", "gate:mail#0/a", "1795000000000000 0 - - concurrency:1 1", NULL);
    client_send("SET", "gate:mail#0/b", "1795000000000000 0 - - concurrency:1 2", NULL);
    set("mail", "concurrency=2,by=key");
    apply_at(BEGIN_US, "default", NULL, "mail", false);
    expect("1795000000000000", "ZSCORE", PREFIX "sleep:default", "mail#0/a");
    expect("inf", "ZSCORE", PREFIX "sleep:default", "mail#0/b");
}

TEST_WITH(test_sleeping_lanes_of_a_type, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:1/86400000000/1,by=key");
    add_sleeping(3, "gcra:1/86400000000/1");
    client_send("ZADD", "wait:default/mail#0/1", "2", "sms/1");
    apply_at(BEGIN_US, "default", "sms", NULL, false);
    expect_sleeping("1795086400000000", "1795086400000000", 2);
    expect("1795000000000000", "ZSCORE", PREFIX "sleep:default", "mail#0/1");
}

/* ---- What is wrong changes nothing */

static void expect_wrong(const char *script, const char *const *words, const char *says)
{
    struct redisReply *reply;
    struct args a = {0};

    script_begin(&a, script, PREFIX, BEGIN_US);
    for (size_t i = 0; words[i]; i++)
        args_add(&a, words[i]);
    assert_int_equal(redis_call(w->redis, &a, &reply, NULL, &error), WEIR_EINPUT);
    fail_if(strncmp(error.text, says, strlen(says)) != 0, "%s: %s", script, error.text);
    args_free(&a);
}
TEST_WITH(test_wrong_arguments_change_nothing, client_flush, NULL)
{
    static const struct {
        const char *script;
        const char *words[8];
    } calls[] = {
        {"rate_set", {NULL}},
        {"rate_set", {"mail", "gcra:1/1000000/1", "0", "what", NULL}},
        {"rate_set", {"mail", "gcra:1/1000000/1", "0", "what", "by", "more", NULL}},
        {"rate_set", {"mail", "gcra:1/1000000/1", "2", "what", "by", NULL}},
        {"rate_set", {"", "gcra:1/1000000/1", "0", "what", "by", NULL}},
        {"rate_set", {"a b", "gcra:1/1000000/1", "0", "what", "by", NULL}},
        {"rate_set", {"a/b", "", "0", "what", "by", NULL}},
        {"rate_set", {"mail", "1/s", "0", "what", "by", NULL}},
        {"rate_set", {"mail", "gcra:0/1000000/1", "0", "what", "by", NULL}},
        {"rate_set", {"mail", "gcra:1/1000000/1 weights:1", "0", "what", "by", NULL}},
        {"rate_set", {"mail", "gcra:1/1000000/1,by=a gcra:1/1000000/1,by=b", "0", "what", "by", NULL}},
        {"rate_set", {"mail", "gcra:1/1000000/1", "0", "what", "by", "x", "1", NULL}},
        {"rate_recount", {"mail", NULL}},
        {"rate_recount", {"a b", "gcra:1/1000000/1", NULL}},
        {"rate_recount", {"mail", "gcra:1/1000000/1", "x", NULL}},
        {"rate_use", {"mail", "use", "", "what", NULL}},
        {"rate_use", {"mail", "take", "", "what", "by", NULL}},
        {"rate_use", {"a b", "use", "", "what", "by", NULL}},
        {"rate_use", {"mail", "use", "", "what", "by", "a/b", NULL}},
        {"rate_weight", {"mail", "42", "3", "what", NULL}},
        {"rate_weight", {"mail", "a b", "3", "what", "by", NULL}},
        {"rate_pause", {"mail", "3", "", "what", NULL}},
        {"rate_pause", {"a b", "3", "", "what", "by", NULL}},
        {"rate_apply", {"default", "0", "", NULL}},
        {"rate_apply", {"a b", "0", "", "0", "mail", NULL}},
        {"rate_apply", {"default", "x", "", "0", "mail", NULL}},
        {"rate_log", {"more", NULL}},
        {"rate_list", {NULL}},
        {"rate_list", {"", "limits", NULL}},
        {"rate_list", {"", "nothing", "0", NULL}},
        {"rate_list", {"", "limits", "x", NULL}},
        {"rate_list", {"", "limits", "0", "more", NULL}},
        {"rate_export", {"limits", NULL}},
        {"rate_export", {"nothing", "0", NULL}},
        {"rate_export", {"limits", "x", NULL}},
        {"rate_export", {"limits", "0", "more", NULL}},
        {"rate_fits", {"mail", NULL}},
        {"rate_fits", {"a b", "1", NULL}},
        {"rate_fits", {"mail", "0", NULL}},
        {"rate_fits", {"mail", "1", "a", NULL}},
        {"rate_fits", {"mail", "1", "a b", "", NULL}},
        {"rate_fits", {"mail", "1", "a", "x", NULL}},
    };

    for (size_t i = 0; i < COUNT(calls); i++)
        expect_wrong(calls[i].script, calls[i].words, calls[i].script);
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

TEST_WITH(test_wrong_numbers_change_nothing, client_flush, NULL)
{
    static const char *const costs[] = {"0", "-1", "1.5", "x", "nan", "inf", "1000000001"},
                             *const weights[] = {"0", "-1", "1.5", "x", "", "nan", "1001"},
                             *const times[] = {"-1", "1.5", "x", "1s", "nan", "inf", "315360000000001"};
    static const struct {
        const char *script, *first, *second, *third; /* the number stands where there is none */
        const char *const *numbers;
        const char *says;
    } calls[] = {
        {"rate_use", "mail", "use", NULL, costs, "cost: must be 1 to 1000000000"},
        {"rate_weight", "mail", "42", NULL, weights, "weight: must be 1 to 1000"},
        {"rate_pause", "mail", NULL, "", times, "pause: must be at most ten years (3650d)"},
    };

    for (size_t i = 0; i < COUNT(calls); i++)
        for (size_t k = 0; k < COUNT(costs); k++) {
            const char *words[] = {calls[i].first, calls[i].second, calls[i].third, "what", "by", NULL};

            words[calls[i].second ? 2 : 1] = calls[i].numbers[k];
            expect_wrong(calls[i].script, words, calls[i].says);
        }
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

TEST_WITH(test_keys_of_another_kind_change_nothing, client_flush, NULL)
{
    static const char *const keys[] = {"limits", "queues", "types", "changes", "weights", "key_pauses"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        long long before;

        server_do(&server, "FLUSHALL");
        add_waiting();
        client_send("HSET", "limits", "mail", "gcra:1/1000000/1,by=key");
        client_send("SET", keys[i], "x", NULL);
        before = server_number(&server, "DBSIZE", NULL);
        assert_int_equal(set_at(BEGIN_US, "mail", "1/s"), WEIR_ECONFIG);
        assert_int_equal(use("sms", true, "mail", 0), WEIR_ECONFIG);
        assert_int_equal(weigh("mail", "42", 2), WEIR_ECONFIG);
        assert_int_equal(pause_at(BEGIN_US, "mail", 5), WEIR_ECONFIG);
        assert_int_equal(pause_key_at(BEGIN_US, "mail", "42", 5), WEIR_ECONFIG);
        assert_int_equal(server_number(&server, "DBSIZE", NULL), before);
        expect("inf", "ZSCORE", PREFIX "wake:high", "mail#2");
    }
}

TEST_WITH(test_gates_of_another_kind, client_flush, NULL)
{
    client_send("HSET", "limits", "mail", "gcra:1/1000000/1");
    client_send("RPUSH", "gate:mail#3", "x", NULL);
    assert_int_equal(set_at(BEGIN_US, "mail", "2/s"), WEIR_ECONFIG);
    assert_non_null(strstr(error.text, "gate:mail#3"));
    assert_int_equal(pause_at(BEGIN_US, "mail", 5), WEIR_ECONFIG);
    expect_limit("mail", "gcra:1/1000000/1");
    client_send("HSET", "limits", "mail", "gcra:1/1000000/1,by=key");
    client_send("RPUSH", "gate:mail#0/a", "x", NULL);
    client_send("ZADD", "sleep:default", "1795000900000000",
                "mail#0/a"); /* the claim that it wakes looks into it */
    apply_at(BEGIN_US, "default", NULL, "mail", false);
    expect("1795000000000000", "ZSCORE", PREFIX "sleep:default", "mail#0/a");
}

TEST_WITH(test_the_log_is_capped, client_flush, NULL)
{
    json_t *log;

    for (int i = 0; i < 1003; i++)
        assert_int_equal(set_at(BEGIN_US + 1000 * i + 7, "mail", "1/s"), 0);
    set("mail", NULL);
    assert_int_equal(rate_log_read(w, true, &log), 0);
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
    assert_int_equal(limits_read(w, NULL, &limits), 0);
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
    assert_int_equal(limits_read(w, "mail", &limits), WEIR_ENOTFOUND);
    limits_free(&limits);
    assert_int_equal(limits_read(w, "a mail", &limits), WEIR_EINPUT);
    assert_int_equal(limits_read(w, NULL, &limits), 0);
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

TESTS(client_start, client_stop)
