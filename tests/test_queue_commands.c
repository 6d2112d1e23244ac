/* Paused queues and a real worker; a list of many; strict order and weights. What weir queue says: transcripts/queues.txt. */
#include "tests/scene_weir.h"

#include <jansson.h>
#include <signal.h>

#include "core/clock.h"
#include "queue/queues/queues.h"
#include "tests/stage.h"

static pid_t start_worker(const char *name, const char *const *more)
{
    const char *words[WORDS_MAX + 1] = {built("weir"), "worker", "--redis", turns.server.url};
    int count = 4;

    while (*more && count < WORDS_MAX)
        words[count++] = *more++;
    return program_start(turns.server.folder, name, words);
}

static int64_t done_of(const char *type)
{
    char *n = redis_text("HGET", textf(PREFIX "stats:%s", type), "done");
    int64_t done = strtoll(n, NULL, 10);

    free(n);
    return done;
}

/* All queues have one job that waits and so many that are parked, but q<other>. */
static void expect_rows(size_t expected, int64_t parked, const char *other, int64_t other_parked)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    json_t *rows, *row;
    size_t i;

    assert_int_equal(queues_read(w, &rows), 0);
    assert_int_equal(json_array_size(rows), expected);
    json_array_foreach(rows, i, row) {
        assert_int_equal(answer_int(row, "waiting"), 1);
        assert_int_equal(answer_int(row, "parked"),
                         strcmp(answer_text(row, "name"), other) ? parked : other_parked);
    }
    json_decref(rows);
    weir_free(w);
}

TEST_WITH(test_a_list_of_many_queues_takes_few_calls, begin_now, NULL)
{
    int64_t before;

    fill_queues(1000);
    before = count_calls();
    expect_rows(1000, 3, "q7", 3);
    assert_in_range(count_calls() - before, 1, 20);
    redis_do("EVAL",
             "local P = ARGV[1]\n"
             "for i = 1, 5000 do\n"
             "    redis.call('ZADD', P .. 'ring:q7/t', 1, 'k' .. i)\n"
             "    redis.call('RPUSH', P .. 'lane:q7/t/k' .. i, '{}')\n"
             "end\n"
             "return 0",
             "0", PREFIX);
    expect_rows(1000, 3, "q7", 5003);
}

TEST_WITH(test_resuming_rings_the_bell_of_those_who_serve_it, begin_now, NULL)
{
    start("w");
    claim("w", 1, 0); /* has the duty now */
    must_say("queue pause default", "is paused");
    redis_do("DEL", PREFIX "bell:g");
    must_say("queue resume default", "resumed");
    assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), 1);
}

/* ---- With workers */

/* What a worker does: nothing starts, it does not look again and again, and resuming wakes it at once. */
TEST_WITH(test_a_worker_leaves_a_paused_queue_alone, begin_now, NULL)
{
    const char *const more[] = {"-q", "default,other", "--exec", "t=/bin/true", "-c", "2", NULL};
    int64_t begun;
    pid_t worker;

    enqueue("default", "t", "a");
    worker = start_worker("worker", more);
    await(done_of("t") == 1);
    must_say("queue pause default", "is paused");
    enqueue("default", "t", "b");
    enqueue("other", "t", "c");
    await(done_of("t") == 2); /* c */
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
    redis_do("CONFIG", "RESETSTAT");
    begun = clock_mono_us();
    clock_sleep_until(begun + 500000);
    assert_in_range(count_calls(), 0, 20 * (clock_mono_us() - begun) / 500000);
    must_say("queue resume default", "resumed");
    await(done_of("t") == 3);
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 0);
}

TEST_WITH(test_draining_ends_beside_a_paused_queue, begin_now, NULL)
{
    const char *const more[] = {"-q", "default,other", "--exec", "t=/bin/true", "--drain", NULL};

    enqueue("default", "t", "a");
    enqueue("other", "t", "b c");
    must_say("queue pause default", "is paused");
    assert_int_equal(program_end(start_worker("drain", more)), 75);
    assert_int_equal(done_of("t"), 2);
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
}

/* One executor, so that starts are one after the other. */
TEST_WITH(test_strict_order_is_strict, begin_now, NULL)
{
    static const char *const names[] = {"high", "low"};

    start("w");
    ask.queues = (struct names){names, 2};
    for (int i = 0; i < 20; i++) {
        enqueue("low", "t", textf("l%d", i));
        enqueue("high", "t", textf("h%d", i));
    }
    for (int i = 0; i < 40; i++) {
        assert_int_equal(claim("w", 1, 0), 1);
        assert_non_null(strstr(turns.claim.leases[0].token.at, i < 20 ? "/high/t/" : "/low/t/"));
    }
}

/* Both are always full: 3 in 4 turns begin with the first, and the other one has its share. */
TEST_WITH(test_with_weights_no_queue_starves, begin_now, NULL)
{
    const char *const more[] = {
        "-q", "big=3,small=1", "--exec", "b=/bin/true", "--exec", "s=/bin/true", "-c", "1", NULL};
    pid_t worker;
    int64_t big, small;

    for (int i = 0; i < 600; i++) {
        enqueue("big", "b", textf("b%d", i));
        enqueue("small", "s", textf("s%d", i));
    }
    worker = start_worker("worker", more);
    await(done_of("b") + done_of("s") >= 200);
    big = done_of("b");
    small = done_of("s");
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 0);
    assert_in_range(big * 100 / (big + small), 40, 95);
    assert_in_range(small, 10, 120);
}

TESTS(turns_start, turns_stop)
