/* A Redis that went back in time is noticed: queue/state/data_loss.lua, at a time of the test's own. To go back is to
 * put `about` back to what it was; nothing else counts here. */
#include "tests/scene.h"

static struct went_back back; /* as the last answer said it */

/* The worker begins anew; it was answered the mark `seen` last. */
static void adopt(const char *new, const char *old, int64_t seen_us)
{
    turns.seen_us = seen_us;
    must(turns_adopt(new, old, NULL, 0, default_queue, NULL));
    back = (struct went_back){0};
    (void)!sscanf(turns.reply->element[3]->str, "%ld %ld %ld", &back.from_us, &back.to_us, &back.at_us);
}

static void expect_back(int64_t from_us, int64_t to_us, int64_t at_us)
{
    assert_int_equal(back.from_us, from_us);
    assert_int_equal(back.to_us, to_us);
    assert_int_equal(back.at_us, at_us);
}

static int64_t mark(void)
{
    return redis_number("HGET", PREFIX "about", "mark");
}

static void keep(void)
{
    redis_do("COPY", PREFIX "about", "kept", "REPLACE");
}

static void go_back(void)
{
    redis_do("COPY", "kept", PREFIX "about", "REPLACE");
}

static void after(int64_t us)
{
    turns.now_us += us;
}

SCENE_TEST(test_marks_grow_with_what_workers_do)
{
    int64_t begun_us = turns.now_us;

    adopt("w", "", 0);
    assert_int_equal(mark(), begun_us);
    after(1000);
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(mark(), turns.now_us); /* it took the duty */
    after(1000);
    ask.duty_until_us = turns.claim.duty_until_us;
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(mark(), turns.now_us - 1000);
    enqueue("default", "t", "a");
    after(1000);
    assert_int_equal(claim("w", 1, 0), 1);
    assert_int_equal(mark(), turns.now_us);
    after(1000);
    heartbeat("w");
    assert_int_equal(mark(), turns.now_us);
    turns.now_us -= 3000; /* the clock is set back: the mark is not */
    heartbeat("w");
    assert_int_equal(mark(), turns.now_us + 3000);
}

/* Whoever comes first, and whatever the others know: the span is told to each who knows of it, and to all by
 * the next heartbeat. */
SCENE_TEST(test_a_redis_that_went_back)
{
    int64_t at_us, found_us;

    adopt("idle", "", 0);
    adopt("one", "", 0);
    adopt("two", "", 0);
    at_us = turns.now_us;
    keep();
    after(SECOND_US);
    adopt("late", "", 0);
    go_back();
    after(SECOND_US);
    adopt("idle2", "idle", at_us); /* was answered nothing since */
    expect_back(0, 0, 0);
    after(1000);
    adopt("one2", "one", at_us + 300);
    found_us = turns.now_us;
    expect_back(at_us, at_us + 300, found_us);
    after(1000);
    adopt("two2", "two", at_us + SECOND_US);
    expect_back(at_us, at_us + SECOND_US, found_us);
    adopt("three2", "three", at_us + 400);
    expect_back(at_us, at_us + SECOND_US, found_us);
    heartbeat("idle2");
    assert_non_null(strstr(turns.reply->element[7]->str, " 17950000"));
    after(SECOND_US);
    adopt("one3", "one2", found_us);
    expect_back(at_us, at_us + SECOND_US, found_us); /* once */
}

/* Two of them: the last one is said. */
SCENE_TEST(test_it_goes_back_again)
{
    int64_t at_us;

    adopt("w", "", 0);
    for (int i = 0; i < 3; i++) {
        at_us = turns.now_us;
        keep();
        after(SECOND_US);
        go_back();
        after(SECOND_US);
        adopt(i % 2 ? "w" : "v", i % 2 ? "v" : "w", at_us + SECOND_US);
        expect_back(at_us, at_us + SECOND_US, turns.now_us);
    }
}

/* The replica's clock is behind the one of the master that it followed. */
SCENE_TEST(test_a_promoted_replica_with_a_clock_behind)
{
    int64_t at_us = turns.now_us;

    adopt("w", "", 0);
    adopt("v", "", 0);
    turns.now_us -= SECOND_US / 2;
    adopt("w2", "w", at_us + 200);
    expect_back(at_us, at_us + 200, turns.now_us);
    adopt("v2", "v", at_us + 100);
    expect_back(at_us, at_us + 200, turns.now_us);
}

/* No order of honest events looks like it: restarts, reconnects, silence, clocks that step. */
SCENE_TEST(test_nothing_is_found_where_nothing_was_lost)
{
    enum { WORKERS = 5, STEPS = 2000 };
    char names[WORKERS][24] = {"", "", "", "", ""};
    int64_t seen[WORKERS] = {0};
    unsigned seed = 7;
    int began = 0;

    for (int i = 0; i < STEPS; i++) {
        int w = (int)(rand_r(&seed) % WORKERS), what = (int)(rand_r(&seed) % 10);
        int64_t taken, workers;
        char name[24];

        after(rand_r(&seed) % (what == 0 ? 90 * SECOND_US : 3000));
        if (what == 1)
            turns.now_us -= rand_r(&seed) % (i % 3 ? 5 * SECOND_US : 4000 * SECOND_US);
        if (!names[w][0] || what < 4) {
            snprintf(name, sizeof name, "w%d", began++);
            adopt(name, names[w], seen[w]);
            fail_if(back.at_us, "step %d: from %ld to %ld", i, back.from_us, back.to_us);
            strcpy(names[w], name);
        } else if (turns_reap(names[w], &taken, &workers) != 0) {
            names[w][0] = '\0'; /* it was reaped */
            continue;
        }
        seen[w] = turns.now_us > seen[w] ? turns.now_us : seen[w];
    }
    assert_true(began > 500);
    assert_in_range(redis_number("HSTRLEN", PREFIX "about", "gaps"), 0, 32 * 34);
}

/* Without `about`, but with the worker: somebody deleted it. */
SCENE_TEST(test_about_alone_is_deleted)
{
    adopt("w", "", 0);
    snprintf(turns.birth, sizeof turns.birth, "%s", turns.reply->element[2]->str);
    redis_do("DEL", PREFIX "about");
    after(SECOND_US);
    adopt("w2", "w", turns.now_us - SECOND_US);
    assert_string_equal(turns.reply->element[2]->str, turns.birth);
    assert_int_equal(redis_number("HEXISTS", PREFIX "about", "lost"), 0);
    expect_back(0, 0, 0);
    redis_do("FLUSHALL");
    adopt("w3", "w2", turns.now_us);
    assert_string_not_equal(turns.reply->element[2]->str, turns.birth);
    expect_back(0, 0, 0);
    turns.birth[0] = '\0';
}

/* A claim does not fail for it. */
SCENE_TEST(test_about_is_another_key)
{
    adopt("w", "", 0);
    enqueue("default", "t", "a");
    redis_do("SET", PREFIX "about", "mine");
    assert_int_equal(claim("w", 1, 0), 1);
    heartbeat("w");
    assert_int_equal(turns_adopt("w2", "w", NULL, 0, default_queue, NULL), -78);
}

TESTS(turns_start, turns_stop)
