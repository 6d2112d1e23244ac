/* weir queue list, pause, resume and purge, from outside; what a real worker does then; strict order and
 * weights. */
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
    char *n;
    int64_t done;

    n = redis_text("HGET", textf(PREFIX "stats:%s", type), "done");
    done = strtoll(n, NULL, 10);
    free(n);
    return done;
}

/* ---- The commands */

TEST_WITH(test_list_and_pause, begin_now, NULL)
{
    json_t *doc;

    must_say("queue list", "no queues yet");
    start("w");
    redis_do("HSET", ACTIVE "w", "@", "{\"host\":\"h\",\"pid\":1,\"queues\":[\"default\"],\"types\":[]}");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b c");
    enqueue("other", "t", "d");
    claim("w", 1, 0);
    claim("w", 1, 0);
    must_say("queue pause other --reason deploy", ": deploy; weir queue resume other ends that\n");
    must_say("queue pause other", "ends that; before, it was paused since ");
    must_say("queue list --json",
             "{\"name\":\"default\",\"waiting\":0,\"parked\":2,\"paused_since\":null,\"worker_count\":1}\n");
    doc = json_loads(strchr(said.out, '\n') + 1, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(doc, "name")), "other");
    assert_int_equal(json_integer_value(json_object_get(doc, "waiting")), 1);
    assert_true(json_is_real(json_object_get(doc, "paused_since")));
    json_decref(doc);
    must_say("queue list", "paused since");
    must_say("status", "paused since\n");
    must_say("status --json", "\"other\":{\"waiting\":1,\"oldest_at\":1");
    must_say("why d", "; weir queue resume other\n");
    must_say("queue resume other --json", "\"paused\":null");
    must_say("queue resume other", "queue other was not paused\n");
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
}

/* All queues have one job that waits and so many that are parked, but q<other>. */
static void expect_rows(size_t expected, int64_t parked, const char *other, int64_t other_parked)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    json_t *rows, *row;
    size_t i;

    assert_int_equal(queues_read(w, &rows), 0);
    assert_int_equal(json_array_size(rows), expected);
    json_array_foreach(rows, i, row)
    {
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

TEST_WITH(test_paused_since_an_unknown_time, begin_now, NULL)
{
    static const char *const times[] = {"garbage", "", "-1", "1e300"};

    enqueue("default", "t", "a");
    for (size_t i = 0; i < COUNT(times); i++) {
        redis_do("HSET", PREFIX "halted", "q/default", times[i]);
        must_say("queue list", "an unknown time");
        must_say("queue list --json", "\"paused_since\":0.0,");
        must_say("status", "at an unknown time\n");
        must_say("status --json", "\"paused_since\":0.0}");
        must_say("queue pause default", "it was paused since an unknown time\n");
        must_say("queue resume default", "queue default resumed; it was paused since an unknown time\n");
        assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
    }
}

TEST_WITH(test_counters_that_are_no_numbers_count_nothing, begin_now, NULL)
{
    static const char *const counters[] = {"1e300", "abc", "9223372036854775807", "99999999999999999999",
                                           "inf"};

    must(turns_rate("t", CLOSED_RULE));
    enqueue("default", "t", "a"); /* is seen in its queue */
    for (size_t i = 0; i < COUNT(counters); i++) {
        redis_do("HSET", PREFIX "stats:t", "enqueued", counters[i], "returned", counters[i], "pulled",
                 counters[i]);
        must_say("status --json", "\"t\":{\"waiting\":1,\"parked\":0,\"held\":0,\"running\":0,");
        must_say("rate list --json", "\"waiting\":1,\"parked\":0,");
    }
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

TEST_WITH(test_purge, begin_now, NULL)
{
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b c");
    claim("w", 1, 0);
    claim("w", 1, 0);
    enqueue("default", "t", "d e");
    must_say("queue purge default --dry-run", "queue default: 2 waiting jobs and 2 parked jobs\n");
    must_say("queue purge default --dry-run --type slow",
             "queue default of type slow: 0 waiting jobs and 2 parked jobs\n");
    must_say("queue purge default --dry-run --json", "\"dry_run\":true,\"waiting\":2,\"parked\":2,");
    assert_int_equal(redis_number("LLEN", QUEUE), 2);
    must_say("queue purge default --type t --yes",
             "queue default: 2 waiting jobs and 0 parked jobs removed\n");
    must_say("queue purge default --yes", "queue default: 0 waiting jobs and 2 parked jobs removed\n");
    assert_int_equal(redis_number("EXISTS", QUEUE, LANE("slow"), PREFIX "cancelled"), 0);
    must_say("status --json", "\"cancelled\":2,");
    turns_check();
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
        char id[40];

        snprintf(id, sizeof id, "l%d", i);
        enqueue("low", "t", id);
        snprintf(id, sizeof id, "h%d", i);
        enqueue("high", "t", id);
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
        char id[40];

        snprintf(id, sizeof id, "b%d", i);
        enqueue("big", "b", id);
        snprintf(id, sizeof id, "s%d", i);
        enqueue("small", "s", id);
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
