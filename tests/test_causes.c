/* What a claim answers of how jobs came to start: what let them, and which slots nobody had taken before. */
#include "tests/scene.h"

/* A claim leases these jobs, for these causes. */
static void expect_causes(const char *ids, const char *causes)
{
    claim("w", 10, 0);
    expect_leases(ids);
    assert_string_equal(textf("%.*s", (int)turns.claim.causes.len, turns.claim.causes.at), causes);
}

/* "limit thousandths since why lease, ..."; since: microseconds before now. */
static void expect_lost(const char *expected)
{
    char text[400] = "";

    for (size_t i = 0; i < turns.claim.loss_count; i++) {
        const struct loss *loss = &turns.claim.losses[i];
        size_t len = strlen(text);

        snprintf(text + len, sizeof text - len, "%s%.*s %ld %ld %c %zu", i ? ", " : "", (int)loss->limit.len,
                 loss->limit.at, (long)loss->thousandths, (long)(turns.now_us - loss->since_us), loss->why,
                 loss->lease);
    }
    assert_string_equal(text, expected);
}

static void after(int64_t us)
{
    turns.now_us += us;
}

SCENE_TEST(test_from_the_queue_and_at_a_rate)
{
    start("w");
    enqueue("default", "t", "a b");
    expect_causes("a b", "");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "c d e");
    expect_causes("c", "");
    expect_lost(""); /* never used */
    after(SECOND_US);
    enqueue("default", "t", "f");
    expect_causes("d f", "A1Q1");
    expect_lost("");
    after(SECOND_US - LEAD_US);
    expect_causes("e", "A1");
    expect_lost("");
}

/* Nobody claimed when the gate opened. */
SCENE_TEST(test_jobs_that_waited_at_an_open_gate)
{
    start("w");
    must(turns_rate("slow", "10/1000000/1"));
    enqueue("default", "slow", "a b c");
    expect_causes("a", "");
    after(100000 + 50000);
    expect_causes("b", "A1"); /* less than a slot was lost */
    expect_lost("slow 500 50000 w 0");
    after(100000 + 200000);
    expect_causes("c", "E1");
    expect_lost("slow 2000 200000 w 0");
}

SCENE_TEST(test_no_job_came)
{
    start("w");
    must(turns_rate("slow", "10/1000000/3"));
    enqueue("default", "slow", "a");
    expect_causes("a", "");
    after(100000 + 3 * SECOND_US);
    enqueue("default", "t", "x");
    enqueue("default", "slow", "b c");
    expect_causes("x b c", "");
    expect_lost("slow 30000 3000000 q 1");
    after(3600 * SECOND_US);
    enqueue("default", "slow", "d");
    expect_causes("d", "");
    expect_lost("slow 600000 60000000 q 0"); /* of one minute */
}

SCENE_TEST(test_the_gate_of_a_key)
{
    start("w");
    must(turns_rate("slow", "1/1000000/1,by=key gcra:10/1000000/1"));
    enqueue_with("slow", "a1 a2", KEY("a"));
    expect_causes("a1", "");
    after(SECOND_US);
    expect_causes("a2", "K1");
    expect_lost("slow 9000 900000 h 0");
}

SCENE_TEST(test_jobs_in_flight)
{
    start("w");
    must(turns_rate("slow", "concurrency:1 gcra:10/1000000/1"));
    enqueue("default", "slow", "a b");
    expect_causes("a", "");
    after(SECOND_US);
    expect_causes("", "");
    settle("w", SETTLE_BACK, tokens[0], 0, NULL);
    expect_causes("a", "C1");
    expect_lost("slow 9000 900000 l 0");
}

SCENE_TEST(test_pauses)
{
    start("w");
    must(turns_rate("slow", "10/1000000/1"));
    enqueue("default", "slow", "a b c");
    expect_causes("a", "");
    must(turns_pause("slow", 2 * SECOND_US));
    expect_causes("", "");
    after(2 * SECOND_US);
    expect_causes("b", "P1");
    expect_lost("slow 19000 1900000 h 0");
    settle("w", SETTLE_THROTTLED, tokens[0], SECOND_US, "429"); /* by the provider */
    after(SECOND_US / 2);
    expect_causes("", "");
    after(SECOND_US / 2);
    expect_causes("b", "P1");
    expect_lost("slow 9000 900000 h 0");
    after(100000);
    expect_causes("c", "A1");
    expect_lost("");
}

SCENE_TEST(test_the_gate_of_another_limit)
{
    start("w");
    must(turns_rate("fast", "10/1000000/1"));
    must(turns_rate("slow", "1/1000000/1"));
    use("slow", "fast");
    enqueue("default", "slow", "a b");
    expect_causes("a", "");
    after(SECOND_US);
    expect_causes("b", "A1");
    expect_lost("fast 9000 900000 h 0");
}

/* A slot of a limit is lost only where all of its rules would have let it. */
SCENE_TEST(test_rules_of_one_limit)
{
    start("w");
    must(turns_rate("slow", "10/1000000/1 gcra:1/1000000/1"));
    enqueue("default", "slow", "a b");
    expect_causes("a", "");
    after(SECOND_US);
    expect_causes("b", "A1");
    expect_lost("");
    after(3 * SECOND_US);
    enqueue("default", "slow", "c");
    expect_causes("c", "");
    expect_lost("slow 2000 2000000 q 0");
}

/* Of types that share a limit the first says why, once. */
SCENE_TEST(test_types_of_one_limit)
{
    start("w");
    must(turns_rate("both", "10/1000000/5"));
    use("t", "both");
    use("slow", "both");
    enqueue("default", "t", "a");
    expect_causes("a", "");
    after(1100000);
    enqueue("default", "slow", "b");
    enqueue("default", "t", "c");
    expect_causes("b c", "");
    expect_lost("both 10000 1000000 q 0");
}

SCENE_TEST(test_types_that_were_held)
{
    static const char *const names[] = {"t"};

    start("w");
    must(turns_rate("slow", "10/1000000/1"));
    enqueue("default", "slow", "a b");
    expect_causes("a", "");
    ask.types = (struct names){names, 1};
    after(SECOND_US);
    expect_causes("", "");
    ask.types = (struct names){(const char *const[]){"t", "slow"}, 2};
    ask.held = true;
    after(100000);
    expect_causes("b", "E1");
    expect_lost("slow 10000 1000000 h 0");
}

SCENE_TEST(test_windows)
{
    int64_t window_us = turns.now_us / (10 * SECOND_US) * 10 * SECOND_US;

    start("w");
    must(turns_rate("slow", "fixed-window:5/10000000/0"));
    turns.now_us = window_us + SECOND_US;
    enqueue("default", "slow", "a b");
    expect_causes("a b", "");
    expect_lost("");
    enqueue("default", "slow", "c");
    expect_causes("c", "");
    expect_lost("");
    turns.now_us = window_us + 11 * SECOND_US;
    enqueue("default", "slow", "d");
    expect_causes("d", "");
    expect_lost("slow 2000 1000000 q 0");
    turns.now_us = window_us + 41 * SECOND_US;
    enqueue("default", "slow", "e");
    expect_causes("e", "");
    expect_lost("slow 14000 1000000 q 0");
    turns.now_us = window_us + 3600 * SECOND_US;
    enqueue("default", "slow", "f");
    expect_causes("f", "");
    expect_lost("slow 35000 0 q 0"); /* the windows of a minute, and the one that had just ended then */
}

/* Nothing is known of a gate whose rule was changed. */
SCENE_TEST(test_changed_rules_and_clocks)
{
    start("w");
    must(turns_rate("slow", "10/1000000/1"));
    enqueue("default", "slow", "a");
    expect_causes("a", "");
    after(SECOND_US);
    must(turns_rate("slow", "20/1000000/1"));
    enqueue("default", "slow", "b");
    expect_causes("b", "");
    expect_lost("");
    after(-10 * SECOND_US); /* all times go with it */
    enqueue("default", "slow", "c");
    expect_causes("", "");
    after(50000);
    expect_causes("c", "A1");
    expect_lost("");
}

/* What an idle gate says is kept for a minute, but for the gates of keys. */
SCENE_TEST(test_gates_are_kept_for_a_minute)
{
    turns.now_us = -1;
    start("w");
    must(turns_rate("slow", "10/1000000/1 gcra:10/1000000/1,by=key"));
    enqueue_with("slow", "a", KEY("a"));
    assert_int_equal(claim("w", 1, 0), 1);
    assert_in_range(redis_number("PTTL", PREFIX "gate:slow#0"), 50000, 60101);
    assert_in_range(redis_number("PTTL", PREFIX "gate:slow#1/a") + 2, 0, 104);
}

/* Of an answer that says so. */
SCENE_TEST(test_a_loss_from_before_all_times_is_left_out)
{
    struct args a;

    args_init(&a);
    args_add(&a, "EVAL");
    args_add(&a, "return {1, {'1.-0/default/t/', '{\"type\":\"t\"}'}, 'o', "
                 "{'mail 1000 -9000000000000000000 e 0', 'mail 1000 1 e 0'}}");
    args_add(&a, "0");
    must(turns_send(&a));
    must(claim_reply(turns.reply, &turns.claim, &turns.error));
    assert_int_equal(turns.claim.loss_count, 1);
    assert_int_equal(turns.claim.losses[0].since_us, 1);
}

TESTS(turns_start, turns_stop)
