/* claim and settle under limits that types share, limits of jobs in flight, and pauses after a provider said stop. Under virtual time.
 * Keys: test_claim_keys.c. Costs: test_claim_costs.c, test_claim_back.c. Random sequences: test_throttle.c. Shares and rates: test_lanes.c. */
#include "tests/scene.h"

/* ---- Limits that types share */

/* The text was written by somebody: a type is held by the limit of its own name, once. */
WORKER_TEST(test_a_type_that_names_its_own_limit)
{
    must(turns_rate("t", "10/1000000/2"));
    redis_do("HSET", PREFIX "types", "t", "use=t");
    enqueue("default", "t", "a b c");
    expect_claim("a b");
}

WORKER_TEST(test_types_take_turns_at_a_shared_limit)
{
    must(turns_rate("acct", "10/1000000/1"));
    use("t", "acct");
    use("slow", "acct");
    enqueue("default", "t", "a0 a1 a2 a3 a4");
    enqueue("default", "slow", "b0 b1");
    expect_in_turn("a0 a1 b0 a2 b1 a3 a4");
    assert_int_equal(turns.now_us, BEGIN_US + 600000); /* no slot was left */
    expect_text("acct=gcra:10/1000000/1", "ECHO", turns.claim.limits[1].at);
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

WORKER_TEST(test_a_job_takes_a_slot_of_all_its_limits_or_of_none)
{
    char *before, *after;

    must(turns_rate("t", "1/1000000/1"));
    must(turns_rate("acct", "10/1000000/1"));
    use("t", "acct");
    use("slow", "acct");
    enqueue("default", "t", "a b");
    expect_claim("a");
    expect_text("t=gcra:1/1000000/1|acct=gcra:10/1000000/1", "ECHO", turns.claim.limits[1].at);
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

WORKER_TEST(test_an_older_waiter_holds_what_is_open_for_one_slot)
{
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

/* ---- Jobs in flight */

WORKER_TEST(test_jobs_in_flight_are_counted_by_their_leases)
{
    must(turns_rate("slow", "concurrency:2"));
    enqueue("default", "slow", "a b c d e f g h");
    expect_claim("a b");
    expect_token(0, "@1795000000000000/default/slow/~slow#0");
    assert_int_equal(turns.claim.next_us, -1);
    expect_text("slow#0\ninf", "ZRANGE", WAKE, "0", "-1", "WITHSCORES");
    expect_stale("w", SETTLE_DEAD, (struct span){"1.zz@1795000000000000/default/slow/~slow#0", 42});
    finish("w", "slow", tokens, 1);
    assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), 1);
    expect_claim("c");
    for (int verb = SETTLE_RETRY; verb <= SETTLE_DEAD; verb++) {
        static const char *const next[] = {"d", "e", "e", "e"};

        settle("w", (enum settle_verb)verb, tokens[0], 3600 * SECOND_US, "x");
        expect_stale("w", (enum settle_verb)verb, tokens[0]);
        if (verb == SETTLE_THROTTLED) /* it pauses the limit too */
            must(turns_pause("slow", 0));
        expect_claim(verb == SETTLE_THROTTLED ? "d" : verb == SETTLE_BACK ? "d" : next[verb]);
    }
}

WORKER_TEST(test_who_dies_or_leaves_frees_what_it_had_in_flight)
{
    size_t lost;

    start("dead");
    must(turns_rate("slow", "concurrency:3,by=key"));
    must(turns_rate("acct", "concurrency:4"));
    use("slow", "acct");
    enqueue_with("slow", "a1 a2 a3 a4", KEY("a"));
    enqueue_with("slow", "b1 b2", KEY("b"));
    expect_leased("dead", 5, "a1 a2 a3 b1");
    expect_token(3, "@1795000000000000/default/slow/b~acct#0,slow#0/b");
    turns_check();
    expect_claim("");
    pass("w", LEASE_US + SECOND_US);
    turns_check();
    expect_claim("a4 b2"); /* the others run alone */
    /* It connects anew with what it still runs, and without the rest. */
    must(turns_adopt("w2", "w", tokens, 1, default_queue, &lost));
    turns_check();
    ask.turn = 100;
    assert_int_equal(claim("w2", 5, 0), 1);
    turns_check();
    must(turns_adopt("", "w2", NULL, 0, default_queue, NULL));
    assert_int_equal(redis_number("EXISTS", STATE("acct#0"), STATE("slow#0/a")), 2);
    assert_int_equal(turns_check().leased, 0);
}

WORKER_TEST(test_what_is_in_flight_outlives_a_change_of_the_limit)
{
    must(turns_rate("slow", "concurrency:3"));
    enqueue("default", "slow", "a b c d e f");
    expect_claim("a b c");
    must(turns_rate("slow", "1/1000000/1"));
    turns_check();
    finish("w", "slow", tokens, 1);
    turns_check();
    must(turns_rate("slow", "concurrency:2"));
    expect_claim("");
    must(turns_rate("slow", ""));
    finish("w", "slow", tokens + 1, 1);
    must(turns_rate("slow", "concurrency:2"));
    expect_claim("d");
    finish("w", "slow", tokens + 2, 1);
    expect_claim("e");
}

/* a of t runs; b of t waits first, c of slow behind it. */
static void wait_in_line(const char *rules)
{
    worker_begin(NULL);
    must(turns_rate("acct", rules));
    use("t", "acct");
    use("slow", "acct");
    enqueue_with("t", "a b", KEY("k"));
    enqueue_with("slow", "c", KEY("k"));
    expect_claim("a");
}

SCENE_TEST(test_who_no_longer_uses_a_limit_does_not_wait_for_it)
{
    static const char *const rules[] = {"concurrency:1", "concurrency:1,by=key", CLOSED_RULE,
                                        CLOSED_RULE ",by=key"};
    const char *limit = "acct";

    for (size_t i = 0; i < COUNT(rules); i++) {
        wait_in_line(rules[i]);
        must(turns_use("slow", "unuse", "", &limit, 1));
        turns_check();
        expect_claim("c");
        expect_claim("");
    }
}

SCENE_TEST(test_a_limit_that_came_holds_what_is_parked)
{
    wait_in_line("concurrency:1");
    must(turns_rate("slow", CLOSED_RULE));
    finish("w", "t", tokens, 1);
    expect_claim("b");
    finish("w", "t", tokens, 1);
    expect_claim("c");
    expect_token(0, "@1795000000000000/default/slow/~acct#0");
    expect_text("slow=gcra:1/86400000000/1|acct=concurrency:1", "ECHO", turns.claim.limits[1].at);
    finish("w", "slow", tokens, 1);
    enqueue("default", "slow", "d");
    expect_claim("");
    expect_text("slow#0", "ZRANGE", WAKE, "0", "-1");
}

/* ---- Throttled */

WORKER_TEST(test_a_throttled_job_pauses_its_limits)
{
    must(turns_rate("slow", "100/1000000/100"));
    must(turns_rate("acct", "100/1000000/100"));
    use("slow", "acct");
    use("t", "acct");
    enqueue("default", "slow", "a b c");
    expect_leased("w", 2, "a b");
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
    expect_leases("x a b c"); /* whoever came back last: as they had been taken */
    assert_int_equal(turns.claim.leases[1].throttled, 1);
    assert_int_equal(turns.claim.leases[1].attempts, 0);
    turns_check();
}

WORKER_TEST(test_a_throttled_job_of_a_key_pauses_that_key_only)
{
    must(turns_rate("slow", "gcra:1000/1000000/1000 gcra:100/1000000/100,by=key"));
    enqueue_with("slow", "a1 a2", KEY("a"));
    enqueue_with("slow", "b1 b2", KEY("b"));
    expect_leased("w", 1, "a1");
    settle("w", SETTLE_THROTTLED, tokens[0], 3 * SECOND_US, NULL);
    expect_claim("b1 b2");
    expect_list(LANE("slow") "a", "a1 a2");
    expect_next(3 * SECOND_US - LEAD_US);
    expect_text("slow#1/a\n1795000003000000", "ZRANGE", SLEEP, "0", "-1", "WITHSCORES");
    turns.now_us += 3 * SECOND_US;
    expect_claim("a1 a2");
}

WORKER_TEST(test_without_a_time_the_pause_doubles)
{
    static const int seconds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};

    must(turns_rate("slow", "100/1000000/100"));
    enqueue("default", "slow", "a b");
    for (size_t i = 0; i < COUNT(seconds); i++) {
        expect_leased("w", 2, "a b");
        settle("w", SETTLE_THROTTLED, tokens[0], SETTLE_NO_TIME, NULL);
        turns.now_us += 400000;
        settle("w", SETTLE_THROTTLED, tokens[1], SETTLE_NO_TIME, NULL); /* one stop, not two */
        expect_claim("");
        expect_next(seconds[i] * SECOND_US - 400000 - LEAD_US);
        turns.now_us = turns.claim.next_us + LEAD_US;
    }
    claim("w", 1, 0);
    finish("w", "slow", tokens, 1);
    claim("w", 1, 0);
    settle("w", SETTLE_THROTTLED, tokens[0], SETTLE_NO_TIME, NULL);
    expect_claim("");
    expect_next(SECOND_US - LEAD_US);
}

/* "At once" is a pause all the same, for all that were running; one that is asked for is kept. */
WORKER_TEST(test_a_pause_has_a_floor)
{
    static const int tenths[] = {1, 2, 4, 8, 16, 32, 64, 100, 100};
    static const int64_t asked_us[] = {0, 1000};
    struct paused paused;

    must(turns_rate("slow", "100/1000000/100"));
    enqueue("default", "slow", "a b");
    for (size_t i = 0; i < COUNT(tenths); i++) {
        claim("w", 2, 0);
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
    settle("w", SETTLE_THROTTLED, tokens[0], 60 * SECOND_US, NULL);
    expect_claim("");
    expect_next(60 * SECOND_US - LEAD_US);
}

WORKER_TEST(test_throttled_for_a_day_counts_as_attempts)
{
    int64_t since_us = turns.now_us;
    int counted = 0;
    char *dead;

    must(turns_rate("slow", "100/1000000/100"));
    enqueue_with("slow", "a", "\"max_attempts\":3");
    while (claim("w", 1, 0) == 1) {
        bool counts = turns.now_us - since_us >= DAY_US;

        assert_int_equal(turns.claim.leases[0].attempts, counted);
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

WORKER_TEST(test_a_type_without_limits_waits_in_later)
{
    enqueue("default", "t", "a");
    for (int second = 1; second <= 4; second *= 2) {
        assert_int_equal(claim("w", 1, 0), 1);
        settle("w", SETTLE_THROTTLED, tokens[0], SETTLE_NO_TIME, NULL);
        assert_int_equal(claim("w", 1, 0), 0);
        assert_int_equal(turns.claim.later_us, turns.now_us + second * SECOND_US);
        turns.now_us = turns.claim.later_us;
        promote(1);
        turns_check();
    }
}

TESTS(turns_start, turns_stop)
