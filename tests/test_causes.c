/* What a claim answers of how jobs came to start: tests/plays/causes.txt; here what reaches C of it. */
#include "tests/play.h"
#include "tests/scene.h"

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
    struct args a = {0};

    args_add(&a, "EVAL");
    args_add(&a, "return {1, {'1.-0/default/t/', '{\"type\":\"t\"}'}, 'o', "
                 "{'mail 1000 -9000000000000000000 e 0', 'mail 1000 1 e 0'}}");
    args_add(&a, "0");
    must(turns_send(&a));
    must(claim_reply(turns.reply, &turns.claim, &turns.error));
    assert_int_equal(turns.claim.loss_count, 1);
    assert_int_equal(turns.claim.losses[0].since_us, 1);
}

PLAY("causes")

TESTS(turns_start, turns_stop)
