/* A Redis that went back in time is noticed: tests/plays/past.txt; here what nobody may take for that. */
#include "tests/play.h"
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

static void after(int64_t us)
{
    turns.now_us += us;
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
    assert_int_equal(back.at_us, 0);
    redis_do("FLUSHALL");
    adopt("w3", "w2", turns.now_us);
    assert_string_not_equal(turns.reply->element[2]->str, turns.birth);
    assert_int_equal(back.at_us, 0);
    turns.birth[0] = '\0';
}

PLAY("past")

TESTS(turns_start, turns_stop)
