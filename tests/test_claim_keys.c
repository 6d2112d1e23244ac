/* claim and settle under limits by key. Under virtual time. */
#include "tests/scene.h"

WORKER_TEST(test_keyed_lanes_sleep_until_their_gates_open)
{
    must(turns_rate("slow", "1/1000000/1,by=key"));
    enqueue_with("slow", "a1 a2", KEY("a"));
    enqueue_with("slow", "b1", KEY("b"));
    enqueue("default", "slow", "n1 n2");
    expect_claim("a1 b1 n1");
    expect_token(0, "@1795000000000000/default/slow/a");
    expect_token(2, "@1795000000000000/default/slow/-");
    assert_memory_equal(turns.claim.leases[1].key.at, "b", 1);
    assert_int_equal(turns.claim.leases[1].key.len, 1);
    expect_next(SECOND_US - LEAD_US);
    expect_list(LANE("slow") "a", "a2");
    expect_list(LANE("slow") "-", "n2");
    assert_int_equal(redis_number("EXISTS", PREFIX "ring:default/slow"), 0);
    expect_text("*\n1795000001000000", "ZRANGE", WAKE, "0", "-1", "WITHSCORES");
    expect_text("slow#0/-\n1795000001000000\nslow#0/a\n1795000001000000", "ZRANGE", SLEEP, "0", "-1",
                "WITHSCORES");
    expect_text("slow/a", "ZRANGE", PREFIX "wait:default/slow#0/a", "0", "-1");
    expect_counters("slow", "enqueued 5, pulled 3, parked 2, keyless 2");
    turns.now_us += SECOND_US;
    expect_claim("a2 n2");
    assert_int_equal(redis_number("EXISTS", WAKE, SLEEP), 0);
    expect_counters("slow", "served 2");
}

WORKER_TEST(test_keys_take_turns_at_a_limit_for_all)
{
    must(turns_rate("slow", "gcra:10/1000000/1 gcra:1000/1000000/1000,by=key"));
    enqueue_with("slow", "a1 a2 a3 a4", KEY("a"));
    enqueue_with("slow", "b1 b2", KEY("b"));
    enqueue_with("slow", "c1", KEY("c"));
    expect_claim("a1");
    expect_text("a\nb\nc", "ZRANGE", PREFIX "ring:default/slow", "0", "-1");
    expect_text("slow#0", "ZRANGE", WAKE, "0", "-1"); /* nobody sleeps: no * */
    turns.now_us = turns.claim.next_us + LEAD_US;
    expect_in_turn("a2 b1 c1 a3 b2 a4");
    assert_int_equal(redis_number("EXISTS", PREFIX "ring:default/slow", WAKE, SLEEP), 0);
}

WORKER_TEST(test_a_weight_is_a_share)
{
    must(turns_rate("slow", "gcra:10/1000000/1 gcra:1000/1000000/1000,by=key"));
    must(turns_weight("slow", "a", 3));
    enqueue_with("slow", "x", KEY("x"));
    enqueue_with("slow", "a1 a2 a3 a4 a5", KEY("a"));
    enqueue_with("slow", "b1 b2", KEY("b"));
    expect_in_turn("x a1 a2 a3 b1 a4 a5 b2");
    assert_int_equal(redis_number("EXISTS", PREFIX "credit:default/slow"), 0);
}

WORKER_TEST(test_keys_come_from_a_path)
{
    static const struct {
        const char *args, *key;
    } cases[] = {
        {"{\"who\":{\"id\":\"a.b_C-1\"}}", "a.b_C-1"},
        {"{\"who\":{\"id\":\"a b\"}}", "h.7dbde93504122a707f849f2c12bdd9de71b41929"},
        {"{\"who\":{\"id\":\"\"}}", "h.da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"{\"who\":{\"id\":\"-\"}}", "h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"},
        {"{\"who\":{\"id\":\"h.7dbde93504122a707f849f2c12bdd9de71b41929\"}}",
         "h.bf558f9e61799888c5cb0f5e7cb88438d754d1c8"},
        {"{\"who\":{\"id\":\"h.7dbde93504122a707f849f2c12bdd9de71b4192X\"}}",
         "h.7dbde93504122a707f849f2c12bdd9de71b4192X"},
        {"{\"who\":{\"id\":\"--\"}}", "--"},
        {"{\"who\":{\"id\":42}}", "42"},
        {"{\"who\":{\"id\":-7}}", "-7"},
        {"{\"who\":{\"id\":1e3}}", "1000"},
        {"{\"who\":{\"id\":1234567890123456789}}", "1234567890123456789"},
        {"{\"who\":{\"id\":9223372036854775807}}", "9223372036854775807"},
        {"{\"n\":9007199254740992,\"t\":\":9007199254740993,\",\"who\":{\"id\":-9007199254740993}}",
         "-9007199254740993"},
        {"{\"n\":[9007199254740992,9007199254740993],\"t\":\":9007199254740993,\",\"who\":{\"id\":"
         "9007199254740993}}",
         "9007199254740993"},
        {"{\"who\":{\"id\":90071992547409930e0}}", "90071992547409936"},
        {"{\"who\":{\"id\":true}}", "true"},
        {"{\"who\":{\"id\":false}}", "false"},
        {"{\"who\":{\"id\":1.5}}", "1.5"},
        {"{\"who\":{\"id\":15e-1}}", "1.5"},
        {"{\"who\":{\"id\":1.50}}", "1.5"},
        {"{\"who\":{\"id\":0.1}}", "0.1"},
        {"{\"who\":{\"id\":0.30000000000000004}}", "0.30000000000000004"},
        {"{\"who\":{\"id\":1.0}}", "1"},
        {"{\"who\":{\"id\":-0}}", "0"},
        {"{\"who\":{\"id\":-0.0}}", "0"},
        {"{\"who\":{\"id\":1e20}}", "1e20"},
        {"{\"who\":{\"id\":100000000000000000000}}", "1e20"},
        {"{\"who\":{\"id\":-9223372036854775808}}", "-9223372036854775808"},
        {"{\"who\":{\"id\":-9223372036854775808.0}}", "-9223372036854775808"},
        {"{\"who\":{\"id\":2.50E-07}}", "2.5e-7"},
        {"{\"who\":{\"id\":null}}", "-"},
        {"{\"who\":{\"id\":{}}}", "h.bf21a9e8fbc5a3846fb05b4fa0859e0917b2202f"},
        {"{\"who\":{\"id\":[1]}}", "h.f629ae44b7b3dcfed444d363e626edf411ec69a8"},
        {"{\"who\":{\"id\":[ 1.0 ]}}", "h.f629ae44b7b3dcfed444d363e626edf411ec69a8"},
        {"{\"who\":{\"id\":{\"b\":\"1\",\"a\":[1,null,{\"x\":true}]}}}",
         "h.945ecb30e717ceef7dd522cfae45b8941202e3ea"},
        {"{\"who\":{\"id\":{\"a\":[1.0,null,{\"x\":true}], \"\\u0062\":\"1\"}}}",
         "h.945ecb30e717ceef7dd522cfae45b8941202e3ea"},
        {"{\"who\":{}}", "-"},
        {"{\"who\":7}", "-"},
        {"[]", "-"},
        {"\"who\"", "-"},
    };

    must(turns_rate("slow", "1000/1000000/1000,by=args.who.id"));
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct lease *lease = turns.claim.leases;

        enqueue_with("slow", textf("j%zu", i), textf("\"args\":%s", cases[i].args));
        assert_int_equal(claim("w", 1, 0), 1);
        lease = turns.claim.leases;
        if (lease->key.len != strlen(cases[i].key) ||
            memcmp(lease->key.at, cases[i].key, lease->key.len) != 0)
            fail_msg("%s: key %.*s", cases[i].args, (int)lease->key.len, lease->key.at);
    }
    expect_counters("slow", "keyless 5");
    turns_check();
}

/* Looked at as often as it may be, until an executor is free for it. */
WORKER_TEST(test_a_job_without_a_key_counts_once)
{
    must(turns_rate("slow", "3/1000000/3,by=key"));
    enqueue_many("slow", 5);
    for (int i = 0; i < 4; i++)
        assert_int_equal(claim("w", 0, 5), 0);
    expect_counters("slow", "enqueued 5, keyless 0");
    expect_claim("slow0 slow1 slow2");
    for (int i = 0; i < 2; i++) {
        turns.now_us += 100000;
        expect_claim("");
    }
    turns.now_us += SECOND_US;
    expect_claim("slow3 slow4");
    expect_counters("slow", "pulled 3, parked 2, served 2, keyless 5");
}

/* A long number is found again in the text of its job: by who asks before any claim, too. */
SCENE_TEST(test_why_reads_long_numbers)
{
    must(turns_rate("slow", CLOSED_RULE ",by=args.n"));
    redis_do("FUNCTION", "FLUSH");
    must(turns_ask("why", WORDS("queue:default", "slow",
                                "{\"id\":\"a\",\"type\":\"slow\",\"args\":{\"n\":9007199254740993}}")));
    assert_string_equal(answer_text(turns.answer, "key"), "9007199254740993");
}

WORKER_TEST(test_jobs_are_sorted_when_their_type_gets_keys)
{
    must(turns_rate("slow", CLOSED_RULE));
    enqueue_with("slow", "a1 a2", KEY("a"));
    enqueue_with("slow", "b1", KEY("b"));
    enqueue("default", "slow", "n1");
    enqueue_with("slow", "a3", KEY("a"));
    expect_claim("a1");
    expect_list(LANE("slow"), "a2 b1 n1 a3");
    must(turns_rate("slow", "1/1000000/1,by=key"));
    expect_claim("a2 b1 n1"); /* another gate: never used */
    assert_int_equal(redis_number("EXISTS", LANE("slow")), 0);
    expect_list(LANE("slow") "a", "a3");
    expect_counters("slow", "parked 4, served 3, pulled 1");
    /* And back: the lanes of keys are served as they are. */
    turns.now_us += 1000;
    enqueue_with("slow", "c1 c2", KEY("c"));
    expect_claim("c1");
    must(turns_rate("slow", "10/1000000/10"));
    enqueue_with("slow", "a4", KEY("a"));
    expect_claim("a3 c2 a4");
    assert_int_equal(turns_check().parked, 0);
}

/* Whatever path their keys were found by when they were put there; a retry comes back to its old lane. */
WORKER_TEST(test_jobs_are_sorted_when_their_path_changes)
{
    must(turns_rate("slow", CLOSED_RULE " gcra:9/1000000/9,by=args.n"));
    enqueue_with("slow", "a1 a2 b1", KEY("a") ",\"args\":{\"n\":1}");
    enqueue_with("slow", "a3 a4", KEY("a") ",\"args\":{\"n\":2}");
    enqueue_with("slow", "c1", KEY("c") ",\"args\":{\"n\":2}");
    expect_claim("a1");
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "again");
    expect_list(LANE("slow") "1", "a2 b1");
    expect_list(LANE("slow") "2", "a3 a4 c1");
    expect_text("lanes=args.n", "HGET", PREFIX "types", "slow");
    must(turns_rate("slow", "9/1000000/9 gcra:1/86400000000/1,by=key"));
    turns.now_us += SECOND_US;
    expect_claim("");
    expect_list(LANE("slow") "a", "a2 b1 a3 a4");
    expect_list(LANE("slow") "c", "c1");
    expect_claim("a2 c1");
    expect_text("lanes=*", "HGET", PREFIX "types", "slow");
    promote(1);
    expect_claim("");
    assert_int_equal(redis_number("EXISTS", LANE("slow") "1", LANE("slow") "2"), 0);
    assert_int_equal(turns_check().parked, 4);
}

/* Lanes that sleep too: they do not wait for the gates of their old keys. */
WORKER_TEST(test_lanes_that_sleep_are_sorted_when_their_path_changes)
{
    must(turns_rate("slow", "1/86400000000/1,by=args.a"));
    for (int i = 2; i < 5; i++) {
        const char *args = textf("\"args\":{\"a\":1,\"b\":%d}", i);

        enqueue_with("slow", textf("j%d", i), args);
    }
    enqueue_with("slow", "k2 k5", "\"args\":{\"a\":7,\"b\":7}");
    expect_claim("j2 k2");
    settle("w", SETTLE_RETRY, tokens[0], 1, "again");
    expect_list(LANE("slow") "1", "j3 j4");
    must(turns_rate("slow", "1/86400000000/1,by=args.b"));
    expect_text("1795086400000000", "ZSCORE", SLEEP, "slow#0/7"); /* a value that is its key by both paths */
    enqueue_with("slow", "new", "\"args\":{\"b\":3}");
    expect_claim("j3 j4");
    expect_list(LANE("slow") "3", "new");
    expect_list(LANE("slow") "7", "k5");
    assert_int_equal(redis_number("EXISTS", LANE("slow") "1"), 0);

    /* One that comes back to its old lane, where others sleep by now: what key 1 of the old path used stays
     * used. */
    enqueue_with("slow", "m", "\"args\":{\"b\":1}");
    expect_claim("");
    turns.now_us += 1;
    promote(1);
    expect_claim("");
    assert_true(turns.claim.more);
    expect_claim("j2");
    expect_list(LANE("slow") "1", "m");
    assert_int_equal(redis_number("EXISTS", PREFIX "ring:default/slow"), 0);
    turns_check();

    /* Another rate by the same path wakes nobody before its time. */
    must(turns_rate("slow", "1/86400000001/1,by=args.b"));
    assert_true(redis_number("ZSCORE", SLEEP, "slow#0/1") > turns.now_us);
    turns_check();
}

/* Lanes of 2,500 keys that sleep, two jobs in each. */
static void fill_crowd(void)
{
    redis_do("HSET", PREFIX "types", "slow", "lanes=key");
    redis_do("EVAL",
             "local P = ARGV[1]\n"
             "redis.call('SADD', P .. 'queues', 'default')\n"
             "redis.call('HSET', P .. 'stats:slow', 'enqueued', 5000, 'parked', 5000)\n"
             "for i = 1, 2500 do\n"
             "    for n = 1, 2 do\n"
             "        local args = ',\"args\":{\"b\":' .. i % 10 .. '}}'\n"
             "        local body = '{\"id\":\"' .. i .. '.' .. n .. "
             "'\",\"type\":\"slow\",\"key\":\"k' .. i .. '\"'\n"
             "        redis.call('RPUSH', P .. 'lane:default/slow/k' .. i, body .. args)\n"
             "    end\n"
             "    redis.call('ZADD', P .. 'wait:default/slow#0/k' .. i, ARGV[2], 'slow/k' .. i)\n"
             "    redis.call('ZADD', P .. 'sleep:default', ARGV[3], 'slow#0/k' .. i)\n"
             "end\n"
             "return redis.call('ZADD', P .. 'wake:default', ARGV[3], '*')",
             "0", PREFIX, "1795000000000000", "1795086400000000");
    turns_check();
}

/* A hundred times as many lanes as a claim may sort: those of the new keys start in the first claim, with
 * what comes then. */
WORKER_TEST(test_new_keys_do_not_wait_for_a_crowd_that_sleeps)
{
    must(turns_rate("slow", "1/86400000000/1,by=key"));
    fill_crowd();
    must(turns_rate("slow", "1/86400000000/1,by=args.b"));
    enqueue_with("slow", "new", "\"args\":{\"b\":11}");
    assert_int_equal(claim("w", 20, 0), 11);
    expect_text("lanes=*", "HGET", PREFIX "types", "slow");
    assert_int_equal(turns_check().parked, 4990);
}

/* The crowd is sorted a few at a time: between two of these calls a job of a new key starts, and with it those that are sorted. */
WORKER_TEST(test_new_keys_start_while_a_crowd_is_sorted)
{
    must(turns_rate("slow", "1/86400000000/1,by=key"));
    fill_crowd();
    redis_do("HSET", PREFIX "limits", "slow", "gcra:1/86400000000/1,by=args.b");
    for (int i = 0; i < 3; i++) {
        char id[16], args[40];
        int64_t asleep = redis_number("ZCARD", SLEEP);

        must(ask_line("rate_apply default 0 _ 0 slow"));
        assert_in_range(asleep - redis_number("ZCARD", SLEEP), 1, 60);
        snprintf(id, sizeof id, "new%d", i);
        snprintf(args, sizeof args, "\"args\":{\"b\":%d}", 100 + i);
        enqueue_with("slow", id, args);
        assert_in_range(claim("w", 20, 0), i == 0 ? 2 : 1, 11);
        assert_int_equal(redis_number("LLEN", QUEUE), 0);
        assert_int_equal(redis_number("EXISTS", LANE("slow") "100", LANE("slow") "101", LANE("slow") "102"),
                         0);
        turns_check();
    }
}

/* No more than one call may read: more calls go over such a page. */
SCENE_TEST(test_large_jobs_that_sleep_are_read_up_to_a_bound)
{
    size_t size = 1000000;
    char *body = malloc(size + 1);

    assert_non_null(body);
    start("w");
    must(turns_rate("slow", "1/86400000000/1,by=args.a"));
    for (int i = 0; i < 20; i++) {
        int len =
            snprintf(body, size, "{\"id\":\"%d\",\"type\":\"slow\",\"args\":{\"a\":%d,\"b\":%d,\"x\":\"", i,
                     i / 2, i / 2 + 100);

        memset(body + len, 'x', size - (size_t)len);
        strcpy(body + size - 3, "\"}}");
        push("default", body);
    }
    free(body);
    while (redis_number("EXISTS", QUEUE))
        claim("w", 20, 0);
    assert_int_equal(redis_number("ZCARD", SLEEP), 10);
    must(turns_rate("slow", "1/86400000000/1,by=args.b"));
    assert_int_equal(redis_number("EXISTS", SLEEP), 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "ring:default/slow"), 10);
    turns_check();
}

/* A pause that a provider asked for ends all the same. */
WORKER_TEST(test_a_resume_reaches_lanes_that_are_to_be_sorted)
{
    must(turns_rate("slow", "9/1000000/9,by=args.a"));
    enqueue_with("slow", "x y", "\"args\":{\"a\":1,\"b\":2}");
    claim("w", 1, 0);
    settle("w", SETTLE_THROTTLED, tokens[0], DAY_US, "busy");
    expect_claim("");
    assert_int_equal(redis_number("ZCARD", SLEEP), 1);
    must(turns_rate("slow", "9/1000000/9,by=args.b"));
    must(turns_pause("slow", 0));
    enqueue_with("slow", "z", "\"args\":{\"a\":1,\"b\":1}");
    expect_claim("x y z");
}

TESTS(turns_start, turns_stop)
