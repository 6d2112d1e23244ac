/* How long a call keeps Redis from all others, by what the server itself has measured: where there is much of
 * something, no call takes longer than with little of it. Each case is tried several times, and the quickest
 * counts: a machine that is busy with other tests makes calls slow, but none quick. */
#include "tests/scene.h"

#define MOST_US 10000
#define TRIES 5

/* What all calls of scripts have taken so far. */
static int64_t script_us(void)
{
    char *info = redis_text("INFO", "commandstats"), *at = strstr(info, "cmdstat_fcall:");
    int64_t us = at ? atoll(strstr(at, "usec=") + strlen("usec=")) : 0;

    free(info);
    return us;
}

struct timing {
    const char *what;
    int64_t best_us;
};

static void took(struct timing *timing, int64_t us)
{
    if (timing->best_us == 0 || us < timing->best_us)
        timing->best_us = us;
}

static void expect_short(const struct timing *timing)
{
    print_message("%s: %.2f ms\n", timing->what, (double)timing->best_us / 1e3);
    if (timing->best_us > MOST_US)
        fail_msg("%s took %.2f ms", timing->what, (double)timing->best_us / 1e3);
}

/* Runs a script's text over the keys of this namespace: what would take many calls to build. */
#define build(text, ...)                                                                                     \
    free(redis_text("EVAL", "local P = ARGV[1]\n" text "return 0", "0", PREFIX, ##__VA_ARGS__))

/* ---- Gates that open for many queues */

#define QUEUES 5000
#define SETTLED 500

static char queue_texts[QUEUES][24];
static const char *queue_names[QUEUES];

static struct names many_queues(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snprintf(queue_texts[i], sizeof queue_texts[i], "q%zu", i);
        queue_names[i] = queue_texts[i];
    }
    return (struct names){queue_names, count};
}

/* All leases of the last claim are done, in one call. */
static int64_t settle_all(const char *type)
{
    int64_t stale, before_us;
    struct args a;

    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_done(&a, type, (struct span){"", 0}, turns.claim.lease_count);
    for (size_t i = 0; i < turns.claim.lease_count; i++)
        settle_token(&a, turns.claim.leases[i].token);
    before_us = script_us();
    must(turns_send(&a));
    must(settle_reply(turns.reply, &stale, &turns.error));
    assert_int_equal(stale, 0);
    return script_us() - before_us;
}

static void test_ends_ask_no_queue_in_which_nobody_waits(void **state)
{
    struct timing timing = {"settle of 500 jobs in flight, 5,000 queues", 0};

    (void)state;
    start("w");
    must(turns_adopt("w2", "", NULL, 0, many_queues(QUEUES), NULL));
    must(turns_rate("t", "concurrency:1000"));
    for (int try = 0; try < TRIES; try++) {
        build("for i = 1, 500 do redis.call('RPUSH', P .. 'queue:default', '{\"id\":\"j' .. i .. "
              "'\",\"type\":\"t\"}') end\n");
        assert_int_equal(claim("w", SETTLED, 0), SETTLED);
        took(&timing, settle_all("t"));
    }
    expect_short(&timing);
}

static int64_t count_due(void)
{
    return redis_number("EVAL",
                        "local due = 0\n"
                        "for _, queue in ipairs(redis.call('SMEMBERS', ARGV[1] .. 'queues')) do\n"
                        "  due = due + redis.call('ZCOUNT', ARGV[1] .. 'wake:' .. queue, '-inf', '(inf')\n"
                        "end\n"
                        "return due",
                        "0", PREFIX);
}

#define WAITING 1500 /* more than one call wakes */

/* A job of t in each queue: one starts, all others wait for its end. */
static void wait_everywhere(void)
{
    ask.queues = many_queues(WAITING);
    must(turns_adopt("w", "", NULL, 0, ask.queues, NULL));
    must(turns_rate("t", "concurrency:1"));
    build("for i = 0, 1499 do redis.call('RPUSH', P .. 'queue:q' .. i, '{\"id\":\"j' .. i .. "
          "'\",\"type\":\"t\"}') end\n");
    assert_int_equal(claim("w", 2, 0), 1);
    keep_tokens();
    while (redis_number("EXISTS", PREFIX "queue:q1499") == 1)
        assert_int_equal(claim("w", 1, 0), 0);
    turns_check();
    assert_int_equal(count_due(), 0);
}

static void test_queues_that_wait_are_woken_bit_by_bit(void **state)
{
    struct timing timing = {"waking 500 queues", 0};
    int64_t before_us, taken, workers;

    (void)state;
    wait_everywhere();
    before_us = script_us();
    settle("w", SETTLE_FINISH, tokens[0], 0, "");
    took(&timing, script_us() - before_us);
    assert_int_equal(count_due(), 500);
    for (int beats = 2; beats <= 3; beats++) {
        before_us = script_us();
        must(turns_reap("w", &taken, &workers));
        took(&timing, script_us() - before_us);
        assert_int_equal(count_due(), beats < 3 ? beats * 500 : WAITING - 1);
    }
    assert_int_equal(redis_number("EXISTS", PREFIX "opened"), 0);
    expect_short(&timing);
}

/* ---- The registry of queues */

static void test_queues_that_nobody_needs_leave(void **state)
{
    int64_t taken, workers;

    (void)state;
    start("w");
    build("for i = 1, 500 do redis.call('SADD', P .. 'queues', 'old' .. i) end\n"
          "redis.call('HSET', P .. 'active:w', '@', '{\"queues\":[\"default\",\"mine\"]}')\n"
          "redis.call('HSET', P .. 'duty', 'other', 'gone 1 theirs')\n"
          "redis.call('SADD', P .. 'queues', 'full', 'paused', 'parked', 'held', 'theirs', 'mine')\n"
          "redis.call('RPUSH', P .. 'queue:full', '{}')\n"
          "redis.call('HSET', P .. 'halted', 'q/paused', '1')\n"
          "redis.call('ZADD', P .. 'wake:parked', 1, 't#0')\n"
          "redis.call('ZADD', P .. 'held:held', 1, 't')\n");
    for (int i = 0; i < 200 && redis_number("SCARD", PREFIX "queues") > 7; i++)
        must(turns_reap("w", &taken, &workers));
    expect_text("default\nfull\nheld\nmine\nparked\npaused\ntheirs", "SORT", PREFIX "queues", "ALPHA");
    /* What was lost comes back with the heartbeats of those who serve it. */
    free(redis_text("DEL", PREFIX "queues"));
    must(turns_reap("w", &taken, &workers));
    expect_text("default\nmine", "SORT", PREFIX "queues", "ALPHA");
}

/* Whoever brings something into a queue that has left registers it. */
static void test_a_queue_that_has_something_is_registered(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    must(turns_rate("t", CLOSED_RULE));
    push("default", "{\"id\":\"a\",\"type\":\"t\"}");
    push("default", "{\"id\":\"b\",\"type\":\"t\"}");
    free(redis_text("DEL", PREFIX "queues"));
    claim("w", 1, 0);
    expect_leases("a");
    claim("w", 1, 0);
    expect_text("default", "SMEMBERS", PREFIX "queues"); /* b was parked */
    must(turns_rate("t", ""));
    claim("w", 1, 0);
    expect_leases("b");
    keep_tokens();
    free(redis_text("DEL", PREFIX "queues"));
    must(turns_settle_end("w", SETTLE_BACK, tokens[0], 0, "", &stale));
    expect_text("default", "SMEMBERS", PREFIX "queues");
    claim("w", 1, 0);
    must(turns_enqueue("default", "t", "later", SECOND_US));
    free(redis_text("DEL", PREFIX "queues"));
    turns.now_us += SECOND_US;
    promote(1);
    expect_text("default", "SMEMBERS", PREFIX "queues");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_ends_ask_no_queue_in_which_nobody_waits, scene_begin),
        cmocka_unit_test_setup(test_queues_that_wait_are_woken_bit_by_bit, scene_begin),
        cmocka_unit_test_setup(test_queues_that_nobody_needs_leave, scene_begin),
        cmocka_unit_test_setup(test_a_queue_that_has_something_is_registered, scene_begin),
    };

    return cmocka_run_group_tests(tests, turns_start, turns_stop);
}
