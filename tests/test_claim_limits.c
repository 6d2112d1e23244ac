/* claim and settle under all that can hold a job: limits that types share, keys, jobs in flight, costs, and
 * pauses after a provider said stop. Under virtual time; random sequences: test_throttle.c, what it means for
 * shares and rates: test_lanes.c. */
#include "tests/scene.h"
#include "throttle/gate.h"

#define KEY(key) "\"key\":\"" key "\""
#define WAKE PREFIX "wake:default"
#define SLEEP PREFIX "sleep:default"
#define STATE(gate) PREFIX "gate:" gate
#define DAY_US (86400 * SECOND_US)

/* All that the last claim did not lease is parked, and is to be looked at that much later. */
static void expect_next(int64_t after_us)
{
    if (turns.claim.next_us != turns.now_us + after_us)
        fail_msg("next after %lld us, not %lld", (long long)(turns.claim.next_us - turns.now_us),
                 (long long)after_us);
}

static void expect_claim(const char *ids)
{
    claim("w", 10, 0);
    expect_leases(ids);
    turns_check();
}

/* Each claim leases one, as its time comes: their ids in order. */
static void expect_in_turn(const char *ids)
{
    char text[400], *rest = text;

    snprintf(text, sizeof text, "%s", ids);
    for (char *id; (id = strsep(&rest, " "));) {
        claim("w", 10, 0);
        expect_leases(id);
        turns_check();
        if (rest)
            turns.now_us = turns.claim.next_us + LEAD_US;
    }
}

/* ---- Limits that types share */

/* The text was written by somebody: a type is held by the limit of its own name, once. */
static void test_a_type_that_names_its_own_limit(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("t", "10/1000000/2"));
    free(redis_text("HSET", PREFIX "types", "t", "use=t"));
    enqueue("default", "t", "a b c");
    expect_claim("a b");
}

static void test_types_take_turns_at_a_shared_limit(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("acct", "10/1000000/1"));
    use("t", "acct");
    use("slow", "acct");
    enqueue("default", "t", "a0 a1 a2 a3 a4");
    enqueue("default", "slow", "b0 b1");
    expect_in_turn("a0 a1 b0 a2 b1 a3 a4");
    assert_int_equal(turns.now_us, BEGIN_US + 600000); /* no slot was left */
    expect_text("acct=gcra:10/1000000/1", "ECHO", turns.reply->element[6]->element[1]->str);
    /* Who comes new waits behind those that wait. */
    enqueue("default", "t", "a5");
    expect_claim("");
    turns.now_us += 1000;
    enqueue("default", "slow", "b2");
    expect_claim("");
    turns.now_us = BEGIN_US + 700000;
    expect_in_turn("a5 b2");
    assert_int_equal(redis_number("EXISTS", WAKE), 0);
}

static void test_a_job_takes_a_slot_of_all_its_limits_or_of_none(void **state)
{
    char *before, *after;

    (void)state;
    start("w");
    must(turns_rate("t", "1/1000000/1"));
    must(turns_rate("acct", "10/1000000/1"));
    use("t", "acct");
    use("slow", "acct");
    enqueue("default", "t", "a b");
    expect_claim("a");
    expect_text("t=gcra:1/1000000/1|acct=gcra:10/1000000/1", "ECHO",
                turns.reply->element[6]->element[1]->str);
    expect_next(SECOND_US - LEAD_US);
    expect_text("t#0", "ZRANGE", WAKE, "0", "-1");
    expect_text("t", "ZRANGE", PREFIX "wait:default/t#0", "0", "-1");
    turns.now_us += SECOND_US / 2;
    before = redis_text("GET", STATE("acct#0"));
    expect_claim("");
    after = redis_text("GET", STATE("acct#0"));
    assert_string_equal(before, after);
    free(before);
    free(after);
    enqueue("default", "slow", "c d e"); /* not held up by t */
    expect_in_turn("c d e");
    turns.now_us = BEGIN_US + SECOND_US;
    expect_claim("b");
    turns_check();
}

static void test_an_older_waiter_holds_what_is_open_for_one_slot(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("fast", "10/1000000/1"));
    must(turns_rate("other", "10/1000000/1"));
    use("t", "fast");
    use("t", "other");
    use("slow", "fast");
    enqueue("default", "t", "a b");
    expect_claim("a");
    turns.now_us += 100000; /* both could start b, but one pauses for less than the other's slot */
    must(turns_pause("other", 50000));
    enqueue("default", "slow", "c");
    expect_claim("");
    expect_next(50000 - LEAD_US);
    turns.now_us = turns.claim.next_us;
    expect_claim("b");
    turns.now_us += 100000;
    expect_claim("c");
    /* Not for longer than a slot. */
    enqueue("default", "t", "d");
    expect_claim("");
    turns.now_us = turns.claim.next_us + LEAD_US;
    must(turns_pause("other", 150000));
    enqueue("default", "slow", "e");
    expect_claim("e");
}

/* ---- Keys */

static void test_keyed_lanes_sleep_until_their_gates_open(void **state)
{
    (void)state;
    start("w");
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

static void test_keys_take_turns_at_a_limit_for_all(void **state)
{
    (void)state;
    start("w");
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

static void test_a_weight_is_a_share(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "gcra:10/1000000/1 gcra:1000/1000000/1000,by=key"));
    must(turns_weight("slow", "a", 3));
    enqueue_with("slow", "x", KEY("x"));
    enqueue_with("slow", "a1 a2 a3 a4 a5", KEY("a"));
    enqueue_with("slow", "b1 b2", KEY("b"));
    expect_in_turn("x a1 a2 a3 b1 a4 a5 b2");
    assert_int_equal(redis_number("EXISTS", PREFIX "credit:default/slow"), 0);
}

static void test_keys_come_from_a_path(void **state)
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
        {"{\"who\":{\"id\":1.5}}", "-"},
        {"{\"who\":{\"id\":null}}", "-"},
        {"{\"who\":{\"id\":{}}}", "-"},
        {"{\"who\":{\"id\":[1]}}", "-"},
        {"{\"who\":{}}", "-"},
        {"{\"who\":7}", "-"},
        {"[]", "-"},
        {"\"who\"", "-"},
    };

    (void)state;
    start("w");
    must(turns_rate("slow", "1000/1000000/1000,by=args.who.id"));
    for (size_t i = 0; i < COUNT(cases); i++) {
        char fields[200], id[32];
        const struct lease *lease = turns.claim.leases;

        snprintf(fields, sizeof fields, "\"args\":%s", cases[i].args);
        snprintf(id, sizeof id, "j%zu", i);
        enqueue_with("slow", id, fields);
        assert_int_equal(claim("w", 1, 0), 1);
        lease = turns.claim.leases;
        if (lease->key.len != strlen(cases[i].key) ||
            memcmp(lease->key.at, cases[i].key, lease->key.len) != 0)
            fail_msg("%s: key %.*s", cases[i].args, (int)lease->key.len, lease->key.at);
    }
    expect_counters("slow", "keyless 8");
    turns_check();
}

/* Looked at as often as it may be, until an executor is free for it. */
static void test_a_job_without_a_key_counts_once(void **state)
{
    (void)state;
    start("w");
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
static void test_why_reads_long_numbers(void **state)
{
    static const char *const words[] = {"queue:default", "slow",
                                        "{\"id\":\"a\",\"type\":\"slow\",\"args\":{\"n\":9007199254740993}}"};

    (void)state;
    must(turns_rate("slow", CLOSED_RULE ",by=args.n"));
    free(redis_text("FUNCTION", "FLUSH"));
    must(turns_ask("why", words, COUNT(words)));
    assert_string_equal(answer_text(turns.answer, "key"), "9007199254740993");
}

static void test_jobs_are_sorted_when_their_type_gets_keys(void **state)
{
    (void)state;
    start("w");
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
static void test_jobs_are_sorted_when_their_path_changes(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", CLOSED_RULE " gcra:9/1000000/9,by=args.n"));
    enqueue_with("slow", "a1 a2 b1", KEY("a") ",\"args\":{\"n\":1}");
    enqueue_with("slow", "a3 a4", KEY("a") ",\"args\":{\"n\":2}");
    enqueue_with("slow", "c1", KEY("c") ",\"args\":{\"n\":2}");
    expect_claim("a1");
    keep_tokens();
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
static void test_lanes_that_sleep_are_sorted_when_their_path_changes(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "1/86400000000/1,by=args.a"));
    for (int i = 2; i < 5; i++) {
        char id[16], args[40];

        snprintf(id, sizeof id, "j%d", i);
        snprintf(args, sizeof args, "\"args\":{\"a\":1,\"b\":%d}", i);
        enqueue_with("slow", id, args);
    }
    enqueue_with("slow", "k2 k5", "\"args\":{\"a\":7,\"b\":7}");
    expect_claim("j2 k2");
    keep_tokens();
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

/* A hundred times as many lanes as a claim may sort: those of the new keys start in the first claim, with
 * what comes then. */
static void test_new_keys_do_not_wait_for_a_crowd_that_sleeps(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "1/86400000000/1,by=key"));
    free(redis_text("HSET", PREFIX "types", "slow", "lanes=key"));
    free(redis_text("EVAL",
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
                    "0", PREFIX, "1795000000000000", "1795086400000000"));
    turns_check();
    must(turns_rate("slow", "1/86400000000/1,by=args.b"));
    enqueue_with("slow", "new", "\"args\":{\"b\":11}");
    assert_int_equal(claim("w", 20, 0), 11);
    expect_text("lanes=*", "HGET", PREFIX "types", "slow");
    assert_int_equal(turns_check().parked, 4990);
}

/* No more than one call may read: more calls go over such a page. */
static void test_large_jobs_that_sleep_are_read_up_to_a_bound(void **state)
{
    size_t size = 1000000;
    char *body = malloc(size + 1);

    (void)state;
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
static void test_a_resume_reaches_lanes_that_are_to_be_sorted(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "9/1000000/9,by=args.a"));
    enqueue_with("slow", "x y", "\"args\":{\"a\":1,\"b\":2}");
    claim("w", 1, 0);
    keep_tokens();
    settle("w", SETTLE_THROTTLED, tokens[0], DAY_US, "busy");
    expect_claim("");
    assert_int_equal(redis_number("ZCARD", SLEEP), 1);
    must(turns_rate("slow", "9/1000000/9,by=args.b"));
    must(turns_pause("slow", 0));
    enqueue_with("slow", "z", "\"args\":{\"a\":1,\"b\":1}");
    expect_claim("x y z");
}

/* ---- Jobs in flight */

static void test_jobs_in_flight_are_counted_by_their_leases(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    must(turns_rate("slow", "concurrency:2"));
    enqueue("default", "slow", "a b c d e f g h");
    expect_claim("a b");
    expect_token(0, "@1795000000000000/default/slow/~slow#0");
    assert_int_equal(turns.claim.next_us, -1);
    expect_text("slow#0\ninf", "ZRANGE", WAKE, "0", "-1", "WITHSCORES");
    keep_tokens();
    expect_stale("w", SETTLE_DEAD, (struct span){"1.zz@1795000000000000/default/slow/~slow#0", 42});
    must(turns_settle_done("w", "slow", tokens, 1, &stale));
    assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), 1);
    expect_claim("c");
    keep_tokens();
    for (int verb = SETTLE_RETRY; verb <= SETTLE_DEAD; verb++) {
        static const char *const next[] = {"d", "e", "e", "e"};

        settle("w", (enum settle_verb)verb, tokens[0], 3600 * SECOND_US, "x");
        expect_stale("w", (enum settle_verb)verb, tokens[0]);
        if (verb == SETTLE_THROTTLED) /* it pauses the limit too */
            must(turns_pause("slow", 0));
        expect_claim(verb == SETTLE_THROTTLED ? "d" : verb == SETTLE_BACK ? "d" : next[verb]);
        keep_tokens();
    }
}

static void test_who_dies_or_leaves_frees_what_it_had_in_flight(void **state)
{
    size_t lost;

    (void)state;
    start("w");
    start("dead");
    must(turns_rate("slow", "concurrency:3,by=key"));
    must(turns_rate("acct", "concurrency:4"));
    use("slow", "acct");
    enqueue_with("slow", "a1 a2 a3 a4", KEY("a"));
    enqueue_with("slow", "b1 b2", KEY("b"));
    assert_int_equal(claim("dead", 5, 0), 4);
    expect_leases("a1 a2 a3 b1");
    expect_token(3, "@1795000000000000/default/slow/b~acct#0,slow#0/b");
    turns_check();
    expect_claim("");
    pass("w", LEASE_US + SECOND_US);
    turns_check();
    expect_claim("a4 b2"); /* the others run alone */
    /* It connects anew with what it still runs, and without the rest. */
    keep_tokens();
    must(turns_adopt("w2", "w", tokens, 1, default_queue, &lost));
    turns_check();
    ask.turn = 100;
    assert_int_equal(claim("w2", 5, 0), 1);
    turns_check();
    must(turns_adopt("", "w2", NULL, 0, default_queue, NULL));
    assert_int_equal(redis_number("EXISTS", STATE("acct#0"), STATE("slow#0/a")), 2);
    assert_int_equal(turns_check().leased, 0);
}

static void test_what_is_in_flight_outlives_a_change_of_the_limit(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    must(turns_rate("slow", "concurrency:3"));
    enqueue("default", "slow", "a b c d e f");
    expect_claim("a b c");
    keep_tokens();
    must(turns_rate("slow", "1/1000000/1"));
    turns_check();
    must(turns_settle_done("w", "slow", tokens, 1, &stale));
    turns_check();
    must(turns_rate("slow", "concurrency:2"));
    expect_claim("");
    must(turns_rate("slow", ""));
    must(turns_settle_done("w", "slow", tokens + 1, 1, &stale));
    must(turns_rate("slow", "concurrency:2"));
    expect_claim("d");
    must(turns_settle_done("w", "slow", tokens + 2, 1, &stale));
    expect_claim("e");
}

/* a of t runs; b of t waits first, c of slow behind it. */
static void wait_in_line(const char *rules)
{
    scene_begin(NULL);
    start("w");
    must(turns_rate("acct", rules));
    use("t", "acct");
    use("slow", "acct");
    enqueue_with("t", "a b", KEY("k"));
    enqueue_with("slow", "c", KEY("k"));
    expect_claim("a");
    keep_tokens();
}

static void test_who_no_longer_uses_a_limit_does_not_wait_for_it(void **state)
{
    static const char *const rules[] = {"concurrency:1", "concurrency:1,by=key", CLOSED_RULE,
                                        CLOSED_RULE ",by=key"};
    const char *limit = "acct";

    (void)state;
    for (size_t i = 0; i < COUNT(rules); i++) {
        wait_in_line(rules[i]);
        must(turns_use("slow", "unuse", "", &limit, 1));
        turns_check();
        expect_claim("c");
        expect_claim("");
    }
}

static void test_a_limit_that_came_holds_what_is_parked(void **state)
{
    int64_t stale;

    (void)state;
    wait_in_line("concurrency:1");
    must(turns_rate("slow", CLOSED_RULE));
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    expect_claim("b");
    keep_tokens();
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    expect_claim("c");
    expect_token(0, "@1795000000000000/default/slow/~acct#0");
    expect_text("slow=gcra:1/86400000000/1|acct=concurrency:1", "ECHO",
                turns.reply->element[6]->element[1]->str);
    keep_tokens();
    must(turns_settle_done("w", "slow", tokens, 1, &stale));
    enqueue("default", "slow", "d");
    expect_claim("");
    expect_text("slow#0", "ZRANGE", WAKE, "0", "-1");
}

/* ---- Costs */

static void test_a_job_takes_as_many_slots_as_it_costs(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "10/1000000/5"));
    must(turns_use("slow", "use", "2", NULL, 0));
    enqueue_with("slow", "three", "\"cost\":3");
    enqueue("default", "slow", "two");
    enqueue_with("slow", "five", "\"key\":\"k\",\"cost\":5");
    enqueue_with("slow", "one", "\"args\":{},\"cost\":1");
    expect_claim("three two");
    expect_token(0, "@1795000000000000*3/default/slow/");
    expect_token(1, "@1795000000000000*2/default/slow/");
    assert_int_equal(turns.claim.leases[0].cost, 3);
    expect_next(5 * 100000 - LEAD_US);
    turns.now_us += 5 * 100000;
    expect_claim("five");
    expect_next(100000 - LEAD_US);
    turns.now_us += 100000;
    expect_claim("one");
    expect_token(0, "@1795000000600000/default/slow/");
    assert_int_equal(turns.claim.leases[0].cost, 1);
}

/* One that waits for several slots keeps its turn against jobs of other keys, which need less. */
static void test_a_cheap_job_of_another_key_does_not_pass(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "gcra:10/1000000/5 gcra:1000/1000000/1000,by=key"));
    enqueue_with("slow", "a", KEY("a") ",\"cost\":3");
    enqueue_with("slow", "b", KEY("b") ",\"cost\":5");
    enqueue_with("slow", "c", KEY("c"));
    enqueue_with("slow", "d", KEY("d") ",\"cost\":2");
    expect_claim("a");
    expect_next(3 * 100000 - LEAD_US);
    enqueue_with("slow", "e", KEY("e"));
    turns.now_us += 2 * 100000;
    expect_claim("");
    turns.now_us += 100000;
    expect_in_turn("b c d e");
}

/* Several jobs of one lane, which the gate of its key lets start at once: as many as their costs fit there. */
static void test_alike_jobs_of_a_key_fit_its_gate(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "gcra:1000/1000000/1000 gcra:10/1000000/5,by=key"));
    must(turns_use("slow", "use", "2", NULL, 0));
    enqueue_with("slow", "a b c d e f g", KEY("k"));
    expect_claim("a b");
    turns.now_us += 5 * 100000;
    expect_claim("c d");
    turns.now_us += 5 * 100000;
    expect_claim("e f");
}

/* What stopped an earlier job in the same claim does not park one that only lacks an executor. */
static void test_a_job_without_an_executor_stays_in_the_queue(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    must(turns_rate("t", "10/1000000/5"));
    enqueue("default", "slow", "s0 s1");
    enqueue("default", "t", "a b");
    claim("w", 2, 5);
    expect_leases("s0 a");
    expect_list(LANE("slow"), "s1");
    expect_list(QUEUE, "b");
    expect_list(LANE("t"), "");
}

/* Jobs that are alike are leased without a question for each, as far as nothing else stands between them. */
static void test_alike_jobs_keep_their_order_among_others(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "10/1000000/10"));
    enqueue("default", "slow", "a b");
    enqueue_with("slow", "c", "\"cost\":3");
    enqueue("default", "slow", "d e");
    enqueue("default", "t", "f g");
    enqueue("default", "slow", "h i j k");
    claim("w", 20, 0);
    expect_leases("a b c d e f g h i j");
    expect_token(2, "@1795000000000000*3/default/slow/");
    expect_token(4, "@1795000000000000/default/slow/");
    expect_list(LANE("slow"), "k");
    expect_next(100000 - LEAD_US);
    enqueue("default", "slow", "l m");
    enqueue_with("slow", "n", "\"cost\":3");
    enqueue("default", "slow", "o p q r s");
    claim("w", 20, 0);
    expect_leases("");
    turns.now_us += 10 * 100000;
    claim("w", 20, 0);
    expect_leases("k l m n o p q r");
    expect_token(3, "@1795000001000000*3/default/slow/");
    expect_token(7, "@1795000001000000/default/slow/");
    expect_list(LANE("slow"), "s");
    expect_next(100000 - LEAD_US);
    expect_counters("slow", "pulled 8, parked 9, served 8");
    expect_text("costs=own", "HGET", PREFIX "types", "slow");
}

/* The same where their slots come one after the other. */
static void test_alike_jobs_start_when_their_slots_come(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "1000/1000000/2"));
    enqueue("default", "slow", "1 2 3 4 5 6 7 a b");
    enqueue_with("slow", "c", "\"cost\":2");
    enqueue("default", "slow", "d e f g");
    claim("w", 20, 0);
    expect_leases("1 2 3 4 5 6 7");
    turns.now_us += 100000;
    claim("w", 4, 0);
    expect_leases("a b c d");
    expect_token(1, "@1795000000100000/default/slow/");
    expect_token(2, "@1795000000102000*2/default/slow/");
    expect_token(3, "@1795000000103000/default/slow/");
    claim("w", 20, 0);
    expect_leases("e f");
    expect_token(0, "@1795000000104000/default/slow/");
    expect_token(1, "@1795000000105000/default/slow/");
    expect_list(LANE("slow"), "g");
    expect_next(6000 - LEAD_US + 1000);
    turns.now_us += 6000;
    enqueue("default", "slow", "h i j k");
    claim("w", 20, 0);
    expect_leases("g h i j k");
    expect_token(0, "@1795000000106000/default/slow/");
    expect_token(4, "@1795000000110000/default/slow/");
}

/* Where slots come fast and a burst makes up for a late look there is no need to look early. */
static void test_a_look_is_early_as_far_as_slots_would_be_lost(void **state)
{
    static const struct {
        const char *rule;
        int64_t opens_us, early_us;
    } cases[] = {
        {"gcra:100/1000000/1", 10000, LEAD_US},
        {"gcra:1000/1000000/2", 6000, LEAD_US - 1000},
        {"gcra:1000/1000000/3", 6000, LEAD_US - 2000},
        {"gcra:1000/1000000/4", 6000, 0},
        {"gcra:200/1000000/2", 10000, 0},
        {"gcra:100/1000000/2", 10000, LEAD_US},
        {"token-bucket:1000/1000000/4", 6000, 0},
        {"fixed-window:100/1000000/0", SECOND_US, LEAD_US},
        {"sliding-log:100/1000000", SECOND_US, LEAD_US},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        scene_begin(state);
        start("w");
        must(turns_rate("slow", cases[i].rule));
        enqueue_many("slow", 101);
        claim("w", 200, 0);
        expect_next(cases[i].opens_us - cases[i].early_us);
        turns.now_us = turns.claim.next_us;
        assert_true(claim("w", 1, 0) == 1);
        assert_int_equal(turns.claim.leases[0].slot_us, BEGIN_US + cases[i].opens_us);
    }
    /* A job that takes the whole burst loses by being late. */
    scene_begin(state);
    start("w");
    must(turns_rate("slow", "1000/1000000/9"));
    enqueue_with("slow", "a b", "\"cost\":9");
    expect_claim("a");
    expect_next(9000 - LEAD_US);
}

static void test_a_job_in_flight_is_one_whatever_it_costs(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "concurrency:2"));
    enqueue_with("slow", "a b c", "\"cost\":100");
    expect_claim("a b");
    expect_token(0, "@1795000000000000*100/default/slow/~slow#0");
}

/* A worker that has not heard the answer says once more what has ended. */
static void test_an_end_that_is_repeated_makes_room_once(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    must(turns_rate("slow", "concurrency:2"));
    enqueue("default", "slow", "a b c d");
    expect_claim("a b");
    keep_tokens();
    for (int i = 0; i < 2; i++) {
        must(turns_settle_done("w", "slow", tokens, 1, &stale));
        assert_int_equal(stale, i);
    }
    expect_claim("c");
}

static void test_a_cost_that_never_fits_is_dead(void **state)
{
    static const char *const dear[] = {
        "default", "slow", "dear", "1000", "tag", "",
        "",        "6",    "",     "",     "",    "{\"id\":\"dear\",\"type\":\"slow\",\"cost\":6}"};
    char *dead;

    (void)state;
    start("w");
    must(turns_rate("slow", "10/1000000/5"));
    assert_int_equal(turns_script("enqueue", dear, COUNT(dear)), WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "a job costs 6 and limit slow never lets more than 5 start"));
    enqueue_with("slow", "fits", "\"cost\":5");
    enqueue_with("slow", "r", "\"cost\":1");
    enqueue_with("slow", "q", "\"cost\":6"); /* its sender did not say so */
    expect_claim("fits");
    turns.now_us += 5 * 100000;
    expect_claim("r");
    enqueue_with("slow", "s", "\"cost\":7");
    expect_claim("");
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_non_null(strstr(dead, " default/slow/ its cost of 6 can never fit limit slow: gcra:10/1000000/5\n"
                                 "{\"id\":\"q\""));
    assert_non_null(strstr(dead, "its cost of 7 can never fit limit slow: gcra:10/1000000/5\n{\"id\":\"s\""));
    free(dead);
    expect_counters("slow", "enqueued 4, pulled 2, parked 2, served 2, dead 2");
    assert_int_equal(turns_check().parked, 0);
}

static void test_the_true_cost_is_taken_or_given_back(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    must(turns_rate("slow", "10/1000000/5"));
    enqueue_with("slow", "a", "\"cost\":5");
    enqueue_with("slow", "b c d", "\"cost\":2");
    expect_claim("a");
    expect_next(2 * 100000 - LEAD_US);
    keep_tokens();
    must(turns_settle_cost("w", tokens[0], 2, &stale));
    assert_int_equal(stale, 0);
    expect_claim("b"); /* three were given back, and b takes two */
    expect_next(100000 - LEAD_US);
    keep_tokens();
    must(turns_settle_cost("w", tokens[0], 4, &stale));
    settle("w", SETTLE_DEAD, tokens[0], 0, "x");
    must(turns_settle_cost("w", tokens[0], 1, &stale)); /* no lease of its own: changes nothing */
    turns.now_us += 100000;
    expect_claim("");
    expect_next(2 * 100000 - LEAD_US);
    turns.now_us += 2 * 100000;
    expect_claim("c");
}

/* Lanes at a key's gate are not noted to be woken until a job of the type has said what it cost. */
static void test_the_first_true_cost_of_a_type_wakes_its_key(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    must(turns_rate("slow", "gcra:10/1000000/5,by=key"));
    enqueue_with("slow", "a", KEY("k") ",\"cost\":5");
    enqueue_with("slow", "b", KEY("k") ",\"cost\":2");
    expect_claim("a");
    keep_tokens();
    must(turns_settle_cost("w", tokens[0], 1, &stale));
    expect_claim("b");
}

/* Of the last claim's lease number i. */
static int64_t slot_of(size_t i)
{
    return turns.claim.leases[i].slot_us;
}

static void settle_unstarted(size_t first, size_t end)
{
    struct args a;
    int64_t stale;

    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, "w");
    for (size_t i = first; i < end; i++)
        settle_end(&a, SETTLE_BACK, tokens[i], 1, NULL);
    must(turns_send(&a));
    must(settle_reply(turns.reply, &stale, &turns.error));
    assert_int_equal(stale, 0);
}

/* Granted ahead and given back before they start, jobs leave no trace at their gates: they get the same slots again.
 */
static void test_what_has_not_started_gives_its_slots_back(void **state)
{
    static const char *const rules[] = {"gcra:100/1000000/1",         "gcra:10000/7000000/1",
                                        "token-bucket:100/1000000/1", "gcra:100/1000000/1,by=key",
                                        "fixed-window:3/10000/0",     "sliding-log:3/10000"};

    for (size_t r = 0; r < COUNT(rules); r++) {
        size_t first = 3;
        int64_t slots[6];

        scene_begin(state);
        start("w");
        must(turns_rate("slow", rules[r]));
        enqueue("default", "slow", "a b c d e f");
        ask.ahead_us = 50000;
        ask.far = 10;
        expect_claim("a b c d e f");
        keep_tokens();
        for (size_t i = 0; i < COUNT(slots); i++)
            slots[i] = slot_of(i);
        turns.now_us += 1000;
        settle_unstarted(first, COUNT(slots));
        expect_claim("d e f");
        for (size_t i = first; i < COUNT(slots); i++)
            assert_int_equal(slot_of(i - first), slots[i]);
    }
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 16) % below;
}

/* A worker claims; some answers come too late, and those jobs have not started. Returns how many have; *lost_us: what being late may have
 * cost a bucket, which drains meanwhile. */
static int start_some_late(const char *worker, uint32_t *seed, int64_t *lost_us)
{
    int64_t passed = 50000 + draw(seed, 800000), stale;
    size_t count = claim(worker, 1 + (int)draw(seed, 5), 0);
    int started = 0;
    struct args a;

    keep_tokens();
    turns.now_us += passed;
    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, worker);
    for (size_t i = 0; i < count; i++) {
        bool late = draw(seed, 3) > 0;

        settle_end(&a, late ? SETTLE_BACK : SETTLE_RETRY, tokens[i], late ? 1 : 10 * SECOND_US * 86400, NULL);
        started += !late;
        *lost_us += late ? passed : 0;
    }
    if (count > 0) {
        must(turns_send(&a));
        must(settle_reply(turns.reply, &stale, &turns.error));
        assert_int_equal(stale, 0);
    } else {
        args_free(&a);
    }
    return started;
}

/* Five a day, of which some come too late again and again, to either of two workers: five start. */
static void test_a_quota_of_a_day_is_used_whole_however_late(void **state)
{
    static const char *const rules[] = {"gcra:5/86400000000/5",         "token-bucket:5/86400000000/5",
                                        "fixed-window:5/86400000000/0", "sliding-log:5/86400000000",
                                        "sliding-window:5/86400000000", "gcra:5/86400000000/5,by=key"};

    for (uint32_t run = 0; run < 10 * COUNT(rules); run++) {
        const char *rule = rules[run % COUNT(rules)];
        uint32_t seed = run;
        int64_t lost_us = 0;
        int started = 0;

        scene_begin(state);
        start("w");
        start("v");
        must(turns_rate("slow", rule));
        enqueue("default", "slow", "a b c d e f g");
        for (int round = 0; round < 10; round++)
            started += start_some_late(round % 2 ? "w" : "v", &seed, &lost_us);
        turns.now_us += lost_us;
        started += (int)claim("w", 10, 0);
        if (started != 5)
            fail_msg("%s, run %u: %d of 5 have started", rule, run, started);
    }
}

/* A slot from before the clock was set back lies far ahead, and stands for no start of now. */
static void test_a_slot_before_a_clock_step_stays_used(void **state)
{
    char tat[32], *gate;

    (void)state;
    start("w");
    must(turns_rate("slow", "100/1000000/3"));
    enqueue("default", "slow", "a");
    expect_claim("a");
    keep_tokens();
    turns.now_us -= 10000000;
    settle_unstarted(0, 1);
    gate = redis_text("GET", PREFIX "gate:slow#0");
    snprintf(tat, sizeof tat, " %lld ", (long long)turns.now_us + 10000); /* one slot is in use */
    if (!strstr(gate, tat))
        fail_msg("%s", gate);
    free(gate);
}

/* Under other rules nobody knows what they still stand for. */
static void test_slots_of_other_rules_stay_used(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "100/1000000/1"));
    enqueue("default", "slow", "a b c");
    ask.ahead_us = 50000;
    ask.far = 10;
    expect_claim("a b c");
    keep_tokens();
    must(turns_rate("slow", "10/1000000/1"));
    settle_unstarted(1, 3);
    expect_claim("");
    turns.now_us += 20000 + 100000;
    expect_claim("b");
}

/* A job that was cancelled while it waited for its start has ended, and its slot is free. */
static void test_a_cancelled_job_that_has_not_started_gives_its_slot_back(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "100/1000000/1"));
    enqueue("default", "slow", "a b c");
    ask.ahead_us = 15000;
    ask.far = 1;
    expect_claim("a b");
    keep_tokens();
    must(turns_script("cancel", (const char *[]){"b", "tell", "w", token_texts[1]}, 4));
    settle_unstarted(1, 2);
    expect_claim("c");
    assert_int_equal(slot_of(0), BEGIN_US + 10000);
    expect_counters("slow", "enqueued 3, pulled 2, parked 1, served 1, back 1, cancelled 1");
}

/* Others may wait for it whom no list names: in another queue, or of another type that shares the limit. */
static void test_a_slot_of_a_key_that_is_given_back_wakes_all(void **state)
{
    static const char *const all[] = {"all"}, *const high[] = {"high"};
    const struct names usual = ask.queues;
    int64_t stale;

    for (int spends = 0; spends < 2; spends++) {
        scene_begin(state);
        must(turns_rate("all", "1/1000000/1,by=key"));
        must(turns_use("t", "use", "", all, 1));
        must(turns_use("slow", "use", "", all, 1));
        start("w");
        start("v");
        enqueue_with("t", "a", "\"key\":\"k\"");
        ask.queues = usual;
        assert_int_equal(claim("w", 1, 0), 1);
        keep_tokens();
        if (spends)
            must(turns_settle_cost("w", tokens[0], 1, &stale));
        push("high", "{\"id\":\"b\",\"type\":\"slow\",\"key\":\"k\"}");
        ask.queues = (struct names){high, 1};
        assert_int_equal(claim("v", 1, 0), 0);
        settle_unstarted(0, 1);
        assert_int_equal(claim("v", 1, 0), 1);
        expect_leases("b");
        turns_check();
    }
}

/* The last word of a fixed window's state: the slots that are used. */
static int used_of(const char *gate)
{
    char *state = redis_text("GET", gate), *last = strrchr(state, ' ');
    int used = last ? atoi(last + 1) : -1;

    free(state);
    return used;
}

/* To a limit that did not hold it as it started, or had other rules, a job gives nothing back. */
static void test_nothing_is_given_back_to_other_rules(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    must(turns_rate("slow", "10/1000000/5"));
    must(turns_rate("acct", "fixed-window:9/60000000/0"));
    use("t", "acct");
    enqueue_with("slow", "a", "\"cost\":3");
    enqueue_with("t", "b", "\"cost\":3");
    expect_claim("a b");
    keep_tokens();
    use("slow", "acct");
    must(turns_settle_cost("w", tokens[0], 1, &stale));
    assert_int_equal(used_of(STATE("acct#0")), 3);
    must(turns_rate("acct", "fixed-window:8/60000000/0"));
    must(turns_settle_cost("w", tokens[1], 1, &stale));
    assert_int_equal(used_of(STATE("acct#0")), 3);
    must(turns_rate("acct", "fixed-window:9/60000000/0")); /* as it was */
    must(turns_settle_cost("w", tokens[1], 1, &stale));
    assert_int_equal(used_of(STATE("acct#0")), 1);
}

#define RUNNING_MOST 50

/* What runs, in the order of its slots. */
static struct {
    char token[200];
    int64_t end_us;
} running[RUNNING_MOST];
static int running_count;

static void run_claimed(int64_t takes_us)
{
    for (size_t i = 0; i < turns.claim.lease_count; i++) {
        const struct lease *lease = &turns.claim.leases[i];

        snprintf(running[running_count].token, sizeof running->token, "%.*s", (int)lease->token.len,
                 lease->token.at);
        running[running_count++].end_us = lease->slot_us + takes_us;
    }
}

/* Settles those that have ended by now, each by what it spent. */
static void end_due(const char *spent)
{
    struct args a;
    int64_t stale;
    int n = 0;

    while (n < running_count && running[n].end_us <= turns.now_us)
        n++;
    if (n == 0)
        return;
    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, "w");
    for (int i = 0; i < n; i++)
        settle_cost(&a, span_str(running[i].token), atoi(spent));
    for (int i = 0; i < n; i++)
        settle_end(&a, SETTLE_FINISH, span_str(running[i].token), 0, NULL);
    must(turns_send(&a));
    must(settle_reply(turns.reply, &stale, &turns.error));
    assert_int_equal(stale, 0);
    running_count -= n;
    memmove(running, running + n, (size_t)running_count * sizeof *running);
}

/* How many jobs of cost 5 start in two seconds, after one, when each spends 1 and takes that long. */
static int starts_of_cheap_jobs(const char *rule, int64_t takes_us)
{
    int64_t next_us = 0;
    int starts = 0;

    scene_begin(NULL);
    start("w");
    must(turns_rate("slow", rule));
    free(redis_text("EVAL",
                    "for i = 1, 1000 do redis.call('RPUSH', KEYS[1], '{\"id\":\"' .. i .. "
                    "'\",\"type\":\"slow\",\"cost\":5}') end",
                    "1", QUEUE));
    running_count = 0;
    for (; turns.now_us < BEGIN_US + 3 * SECOND_US; turns.now_us += 1000) {
        bool ended = running_count > 0 && running[0].end_us <= turns.now_us;

        end_due("1");
        if (running_count == RUNNING_MOST || (!ended && turns.now_us < next_us))
            continue;
        claim("w", RUNNING_MOST - running_count, 0);
        next_us = turns.claim.next_us;
        if (turns.now_us > BEGIN_US + SECOND_US)
            starts += (int)turns.claim.lease_count;
        run_claimed(takes_us);
    }
    turns_check();
    return starts;
}

/* However long they run: what they did not spend lets others start. The windows count a job's slots while its
 * start stands in them. */
static void test_what_was_not_spent_lets_others_start(void **state)
{
    static const struct {
        const char *rule;
        int64_t takes_us;
        int least;
    } cases[] = {
        {"gcra:100/1000000/100", 20000, 195},         {"gcra:100/1000000/100", 100000, 195},
        {"token-bucket:100/1000000/100", 20000, 195}, {"gcra:100/1000000/5", 2000, 170},
        {"gcra:1000/7000000/50", 60000, 270},         {"fixed-window:100/1000000/0", 20000, 180},
        {"sliding-log:100/1000000", 20000, 180},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int starts = starts_of_cheap_jobs(cases[i].rule, cases[i].takes_us);

        print_message("%s, %lld ms: %d starts in 2 s\n", cases[i].rule, (long long)cases[i].takes_us / 1000,
                      starts);
        assert_in_range(starts, cases[i].least, 1000);
    }
}

/* ---- Throttled */

static void test_a_throttled_job_pauses_its_limits(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "100/1000000/100"));
    must(turns_rate("acct", "100/1000000/100"));
    use("slow", "acct");
    use("t", "acct");
    enqueue("default", "slow", "a b c");
    claim("w", 2, 0);
    expect_leases("a b");
    keep_tokens();
    settle("w", SETTLE_THROTTLED, tokens[0], 3 * SECOND_US, NULL);
    expect_list(LANE("slow"), "a");
    enqueue("default", "t", "x");
    expect_claim("");
    expect_next(3 * SECOND_US - LEAD_US);
    expect_list(LANE("slow"), "a c");
    settle("w", SETTLE_THROTTLED, tokens[1], SECOND_US, NULL); /* the later of two holds */
    expect_claim("");
    expect_next(3 * SECOND_US - LEAD_US);
    expect_counters("slow", "pulled 2, parked 1, returned 2, back 2, scheduled 0");
    turns.now_us += 3 * SECOND_US;
    claim("w", 10, 0);
    expect_leases("x b a c");
    assert_int_equal(turns.claim.leases[1].throttled, 1);
    assert_int_equal(turns.claim.leases[1].attempts, 0);
    turns_check();
}

static void test_a_throttled_job_of_a_key_pauses_that_key_only(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "gcra:1000/1000000/1000 gcra:100/1000000/100,by=key"));
    enqueue_with("slow", "a1 a2", KEY("a"));
    enqueue_with("slow", "b1 b2", KEY("b"));
    claim("w", 1, 0);
    expect_leases("a1");
    keep_tokens();
    settle("w", SETTLE_THROTTLED, tokens[0], 3 * SECOND_US, NULL);
    expect_claim("b1 b2");
    expect_list(LANE("slow") "a", "a1 a2");
    expect_next(3 * SECOND_US - LEAD_US);
    expect_text("slow#1/a\n1795000003000000", "ZRANGE", SLEEP, "0", "-1", "WITHSCORES");
    turns.now_us += 3 * SECOND_US;
    expect_claim("a1 a2");
}

static void test_without_a_time_the_pause_doubles(void **state)
{
    static const int seconds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    int64_t stale;

    (void)state;
    start("w");
    must(turns_rate("slow", "100/1000000/100"));
    enqueue("default", "slow", "a b");
    for (size_t i = 0; i < COUNT(seconds); i++) {
        claim("w", 2, 0);
        expect_leases(i % 2 ? "b a" : "a b");
        keep_tokens();
        settle("w", SETTLE_THROTTLED, tokens[0], SETTLE_NO_TIME, NULL);
        turns.now_us += 400000;
        settle("w", SETTLE_THROTTLED, tokens[1], SETTLE_NO_TIME, NULL); /* one stop, not two */
        expect_claim("");
        expect_next(seconds[i] * SECOND_US - 400000 - LEAD_US);
        turns.now_us = turns.claim.next_us + LEAD_US;
    }
    claim("w", 1, 0);
    keep_tokens();
    must(turns_settle_done("w", "slow", tokens, 1, &stale));
    claim("w", 1, 0);
    keep_tokens();
    settle("w", SETTLE_THROTTLED, tokens[0], SETTLE_NO_TIME, NULL);
    expect_claim("");
    expect_next(SECOND_US - LEAD_US);
}

/* "At once" is a pause all the same, for all that were running; one that is asked for is kept. */
static void test_a_pause_has_a_floor(void **state)
{
    static const int tenths[] = {1, 2, 4, 8, 16, 32, 64, 100, 100};
    static const int64_t asked_us[] = {0, 1000};
    struct paused paused;

    (void)state;
    start("w");
    must(turns_rate("slow", "100/1000000/100"));
    enqueue("default", "slow", "a b");
    for (size_t i = 0; i < COUNT(tenths); i++) {
        claim("w", 2, 0);
        keep_tokens();
        settle("w", SETTLE_THROTTLED, tokens[0], asked_us[i % 2], NULL);
        assert_true(settle_paused(turns.reply, 0, &paused));
        assert_int_equal(paused.pause_us, tenths[i] * 100000);
        assert_int_equal(paused.times, i + 1);
        assert_memory_equal(paused.token.at, tokens[0].at, tokens[0].len);
        assert_false(settle_paused(turns.reply, 1, &paused));
        turns.now_us += 40000;
        settle("w", SETTLE_THROTTLED, tokens[1], 0, NULL);
        assert_false(settle_paused(turns.reply, 0, &paused));
        expect_claim("");
        expect_next(tenths[i] * 100000 - 40000 - LEAD_US);
        turns.now_us = turns.claim.next_us + LEAD_US;
    }
    claim("w", 1, 0);
    keep_tokens();
    settle("w", SETTLE_THROTTLED, tokens[0], 60 * SECOND_US, NULL);
    expect_claim("");
    expect_next(60 * SECOND_US - LEAD_US);
}

static void test_throttled_for_a_day_counts_as_attempts(void **state)
{
    int64_t since_us = turns.now_us;
    int counted = 0;
    char *dead;

    (void)state;
    start("w");
    must(turns_rate("slow", "100/1000000/100"));
    enqueue_with("slow", "a", "\"max_attempts\":3");
    while (claim("w", 1, 0) == 1) {
        bool counts = turns.now_us - since_us >= DAY_US;

        assert_int_equal(turns.claim.leases[0].attempts, counted);
        keep_tokens();
        settle("w", SETTLE_THROTTLED, tokens[0], SETTLE_NO_TIME, NULL);
        counted += counts;
        if (claim("w", 1, 0) == 0 && turns.claim.next_us > 0)
            turns.now_us = turns.claim.next_us + LEAD_US;
    }
    assert_int_equal(counted, 3);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_non_null(strstr(dead, " default/slow/ throttled for a day, and its attempts are used up\n@3,0,"));
    free(dead);
    expect_counters("slow", "dead 1, retried 0");
    turns_check();
}

static void test_a_type_without_limits_waits_in_later(void **state)
{
    (void)state;
    start("w");
    enqueue("default", "t", "a");
    for (int second = 1; second <= 4; second *= 2) {
        assert_int_equal(claim("w", 1, 0), 1);
        keep_tokens();
        settle("w", SETTLE_THROTTLED, tokens[0], SETTLE_NO_TIME, NULL);
        assert_int_equal(claim("w", 1, 0), 0);
        assert_int_equal(turns.claim.later_us, turns.now_us + second * SECOND_US);
        turns.now_us = turns.claim.later_us;
        promote(1);
        turns_check();
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(test_##name, scene_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_type_that_names_its_own_limit),
        TEST(types_take_turns_at_a_shared_limit),
        TEST(a_job_takes_a_slot_of_all_its_limits_or_of_none),
        TEST(an_older_waiter_holds_what_is_open_for_one_slot),
        TEST(keyed_lanes_sleep_until_their_gates_open),
        TEST(keys_take_turns_at_a_limit_for_all),
        TEST(a_weight_is_a_share),
        TEST(keys_come_from_a_path),
        TEST(why_reads_long_numbers),
        TEST(jobs_are_sorted_when_their_type_gets_keys),
        TEST(jobs_are_sorted_when_their_path_changes),
        TEST(lanes_that_sleep_are_sorted_when_their_path_changes),
        TEST(new_keys_do_not_wait_for_a_crowd_that_sleeps),
        TEST(large_jobs_that_sleep_are_read_up_to_a_bound),
        TEST(a_resume_reaches_lanes_that_are_to_be_sorted),
        TEST(jobs_in_flight_are_counted_by_their_leases),
        TEST(who_dies_or_leaves_frees_what_it_had_in_flight),
        TEST(what_is_in_flight_outlives_a_change_of_the_limit),
        TEST(who_no_longer_uses_a_limit_does_not_wait_for_it),
        TEST(a_limit_that_came_holds_what_is_parked),
        TEST(a_job_takes_as_many_slots_as_it_costs),
        TEST(a_cheap_job_of_another_key_does_not_pass),
        TEST(alike_jobs_of_a_key_fit_its_gate),
        TEST(a_job_without_an_executor_stays_in_the_queue),
        TEST(alike_jobs_keep_their_order_among_others),
        TEST(alike_jobs_start_when_their_slots_come),
        TEST(a_look_is_early_as_far_as_slots_would_be_lost),
        TEST(a_job_in_flight_is_one_whatever_it_costs),
        TEST(an_end_that_is_repeated_makes_room_once),
        TEST(a_cost_that_never_fits_is_dead),
        TEST(a_job_without_a_key_counts_once),
        TEST(the_true_cost_is_taken_or_given_back),
        TEST(the_first_true_cost_of_a_type_wakes_its_key),
        TEST(nothing_is_given_back_to_other_rules),
        TEST(what_was_not_spent_lets_others_start),
        TEST(what_has_not_started_gives_its_slots_back),
        TEST(a_quota_of_a_day_is_used_whole_however_late),
        TEST(a_slot_before_a_clock_step_stays_used),
        TEST(slots_of_other_rules_stay_used),
        TEST(a_cancelled_job_that_has_not_started_gives_its_slot_back),
        TEST(a_slot_of_a_key_that_is_given_back_wakes_all),
        TEST(a_throttled_job_pauses_its_limits),
        TEST(a_throttled_job_of_a_key_pauses_that_key_only),
        TEST(without_a_time_the_pause_doubles),
        TEST(a_pause_has_a_floor),
        TEST(throttled_for_a_day_counts_as_attempts),
        TEST(a_type_without_limits_waits_in_later),
    };

    return cmocka_run_group_tests_name("claim under limits", tests, turns_start, turns_stop);
}
