/* Workers and dead jobs: types that nobody knows, and how many are kept. What weir dead says: transcripts/dead.txt; the ways to die:
 * sessions/dead.txt. */
#include "tests/stage_group.h"

#include "core/clock.h"

static long long dead_count(struct stage *s)
{
    return stage_number(s, "ZCARD", stage_key(s, "dead"));
}

BRANCH_TEST(unknown_types_are_held_for_who_knows_them, "held")
{
    stage_actor(s, "first", "types=mark", NULL);
    stage_enqueue(s, "odd", NULL, 0, 3);
    stage_enqueue(s, "mark", NULL, 3, 1);
    await(history_count(s, "effect", 3) == 1);
    await(stage_number(s, "ZCARD", stage_key(s, "held:default")) == 1);
    assert_int_equal(dead_count(s), 0);
    stage_actor(s, "second", "types=odd", NULL);
    assert_int_equal(stage_await_done(s, 4).twice, 0);
}

/* A worker that has no handler leaves them to the one that has, though that one is slow. */
BRANCH_TEST(types_of_other_workers_are_not_unknown, "others")
{
    stage_actor(s, "first", "types=mark", "unknown_dead=1", NULL);
    stage_actor(s, "second", "types=odd", "executors=1", NULL);
    await(stage_number(s, "ZCARD", stage_key(s, "runs")) == 2);
    stage_enqueue(s, "odd", NULL, 0, 2000);
    assert_int_equal(stage_await_done(s, 2000).twice, 0);
    assert_int_equal(dead_count(s), 0);
}

/* One worker would keep ten, one a day: both keep to the namespace, and say so. */
BRANCH_TEST(no_worker_decides_what_is_kept, "decides")
{
    pid_t few, many;

    few = stage_actor(s, "few", "types=mark", "executors=8", "lease=1", "dead_most=10", NULL);
    many = stage_actor(s, "many", "types=mark", "executors=8", "lease=1", "dead_age=1e5", NULL);
    await_text(s->server.folder, "few.err",
               "--dead-most: this worker was started with 10 dead jobs, and the namespace keeps 100000 dead "
               "jobs: that holds; weir dead keep --most changes it");
    await_text(s->server.folder, "many.err",
               "dead-age: this worker was started with 100000 s, and the namespace keeps 15552000 s");
    stage_enqueue(s, "mark", "{\"dead\":\"again\"}", 0, 2000);
    await(dead_count(s) == 2000);
    assert_int_equal(stage_end(few), 0);
    assert_int_equal(stage_end(many), 0);
    assert_int_equal(dead_count(s), 2000);
}

/* Workers forget the oldest, keep up with jobs that go on dying, and say so. */
BRANCH_TEST(workers_keep_the_number_of_the_dead, "number")
{
    stage_do(s, "EVAL",
             "for i = 1, 3000 do\n"
             "  redis.call('ZADD', KEYS[1], '17000000000' .. 10000 + i, 'w:' .. i .. ' default/old/ no "
             "luck\\n{\"id\":\"' .. i .. '\",\"type\":\"old\"}')\n"
             "end",
             "1", stage_key(s, "dead"));
    stage_do(s, "HSET", stage_key(s, "settings"), "dead_most", "50", "dead_age_us", "1000000000000000");
    stage_actor(s, "worker", "types=mark", "executors=8", "lease=1", NULL);
    await_text(s->server.folder, "worker.err", " oldest dead jobs were forgotten");
    stage_enqueue(s, "mark", "{\"dead\":\"again\"}", 0, 500);
    await(stage_stat(s, "mark", "dead") == 500);
    await(dead_count(s) == 50);
    assert_int_equal(stage_stat(s, "old", "forgotten"), 3000);
    assert_int_equal(stage_stat(s, "mark", "forgotten"), 450);
}

STAGE_TESTS(stage_start, stage_stop)
