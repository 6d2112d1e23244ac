/* claim and settle under limits that types share, limits of jobs in flight, and pauses after a provider said stop. Under virtual time.
 * Keys: test_claim_keys.c. Costs: test_claim_costs.c, test_claim_back.c. Random sequences: test_throttle.c. Shares and rates: test_lanes.c. */
#include "tests/play.h"
#include "tests/scene.h"

PLAY("claim_limits")

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

TESTS(turns_start, turns_stop)
