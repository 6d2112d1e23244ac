/* Rules that count something else than what a job costs, under virtual time: tests/plays/dimensions.txt. And jobs that cost less in truth
 * than was said: they run at the full rate. */
#include "tests/play.h"
#include "tests/scene.h"

PLAY("dimensions")

/* Runs jobs that are said to cost 5 and cost 1 until that time. Returns how many have started. */
static int64_t run_until(int64_t end_us)
{
    int64_t started = 0;

    while (turns.now_us < end_us) {
        size_t n = claim("w", 20, 0);

        for (size_t i = 0; i < n; i++)
            spend("w", tokens[i], 1);
        if (n > 0)
            finish("w", "slow", tokens, n);
        else
            turns.now_us = turns.claim.next_us > turns.now_us ? turns.claim.next_us : turns.now_us + 500;
        started += (int64_t)n;
    }
    return started;
}

WORKER_TEST(test_true_costs_hold_the_full_rate)
{
    static const char *const rules[] = {
        "gcra:100/1000000/10",        "token-bucket:100/1000000/10",
        "fixed-window:100/1000000/0", "sliding-log:100/1000000",
        "sliding-window:100/1000000", "gcra:100/1000000/10,of=jobs gcra:100/1000000/10"};

    for (size_t i = 0; i < 2 * COUNT(rules); i++) {
        int64_t started;

        turns_flush(NULL);
        scene_begin(NULL);
        start("w");
        must(turns_rate("slow", textf("%s%s", rules[i / 2], i % 2 ? " concurrency:20" : "")));
        for (int k = 0; k < 400; k++)
            enqueue_with("slow", textf("j%d", k), "\"cost\":5");
        run_until(turns.now_us + 1 * SECOND_US);
        /* Of a window up to four slots are left, where five are asked for. */
        started = run_until(turns.now_us + 2 * SECOND_US);
        fail_if(started < 190 || started > 210, "%s%s: %lld started in 2 s", rules[i / 2],
                i % 2 ? " concurrency" : "", (long long)started);
    }
}

TESTS(turns_start, turns_stop)
