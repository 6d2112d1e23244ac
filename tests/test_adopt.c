/* adopt by itself, under virtual time: a worker comes, comes again and leaves. */
#include "tests/play.h"
#include "tests/scene.h"

/* Adopt as often as it is needed, first with that many tokens; returns how many calls that took. */
static int adopt_all(const char *new, const char *old, size_t running)
{
    int calls = 0;
    const char *active = textf("%s%s", ACTIVE, old);

    do {
        int64_t before = redis_number("HLEN", active);
        size_t lost;

        must(turns_adopt(new, old, tokens, calls ? 0 : running, default_queue, &lost));
        assert_int_equal(lost, 0);
        assert_in_range(before - redis_number("HLEN", active), 1, 120);
        assert_int_equal(redis_number("EXISTS", active), turns.left > 0);
        if (calls++ % 80 == 0)
            turns_check();
    } while (turns.left > 0 && calls < 2 * BIG_LEASES / 40 + 2);
    return calls;
}

/* A call gives back about 40 jobs: however many a worker had, Redis is not kept from the others. */
SCENE_TEST(test_a_worker_with_many_leases_comes_and_leaves_bit_by_bit)
{
    int calls;

    start_big();
    calls = adopt_all("new", "big", 2);
    assert_in_range(calls, BIG_LEASES / 40, BIG_LEASES / 40 + 2);
    assert_int_equal(redis_number("HLEN", ACTIVE "new"), 1 + 2);
    assert_int_equal(turns_check().parked, BIG_LEASES - 2);
    expect_text("new", "ZRANGE", PREFIX "workers", "0", "-1");
    calls = adopt_all("", "new", 0);
    assert_int_equal(calls, 1);
    start_big();
    calls = adopt_all("", "big", 0);
    assert_in_range(calls, 2, 2 * BIG_LEASES / 40 + 2);
    assert_int_equal(turns_check().parked, 2 * BIG_LEASES);
    assert_int_equal(redis_number("EXISTS", PREFIX "workers"), 0);
}

static void know_birth(void)
{
    snprintf(turns.birth, sizeof turns.birth, "%s", turns.reply->element[2]->str);
}

/* Whoever comes back to a Redis that has lost all hears of it, not only the first one. */
WORKER_TEST(test_adopt_after_all_data_are_lost_says_so)
{
    char before[128];
    size_t lost;

    know_birth();
    start("v");
    assert_string_equal(turns.reply->element[2]->str, turns.birth);
    snprintf(before, sizeof before, "%s", turns.birth);
    enqueue("default", "t", "a b");
    claim("w", 2, 0);
    assert_int_equal(redis_number("HEXISTS", PREFIX "about", "lost"), 0);
    redis_do("FLUSHALL");
    turns.now_us += SECOND_US;
    for (int times = 0; times < 2; times++) { /* its answer was lost */
        must(turns_adopt("w2", "w", tokens, 1, default_queue, &lost));
        assert_int_equal(lost, 1);
        assert_string_not_equal(turns.reply->element[2]->str, before);
    }
    must(turns_adopt("v2", "v", NULL, 0, default_queue, &lost));
    assert_string_not_equal(turns.reply->element[2]->str, before);
    assert_int_equal(redis_number("HGET", PREFIX "about", "lost"), turns.now_us);
    know_birth();
    turns.now_us += SECOND_US;
    must(turns_adopt("v3", "v2", NULL, 0, default_queue, &lost));
    assert_int_equal(redis_number("HGET", PREFIX "about", "lost"), turns.now_us - SECOND_US);
    turns.birth[0] = '\0';
    turns_check();
}

PLAY("adopt")

TESTS(turns_start, turns_stop)
