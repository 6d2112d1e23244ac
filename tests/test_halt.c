/* What is not to run: tests/plays/halt.txt; here many cancelled jobs, long lanes, and what a client changes. tests/test_throttle.c has all of it
 * at random. */
#include "tests/play.h"
#include "tests/scene_client.h"

#include <time.h>

#include "core/client/client.h"
#include "queue/batch/batch.h"
#include "queue/inspect/cancel.h"
#include "queue/queues/queues.h"

#define HALTED PREFIX "halted"
#define CANCELLED PREFIX "cancelled"
#define BATCH PREFIX "batch:b"

static void halt(const char *field, const char *value)
{
    redis_do("HSET", HALTED, field, value);
}

/* Jobs of a batch as Weir's producers write them, counted as enqueued. */
static void enqueue_of_batch(const char *type, const char *batch, const char *ids)
{
    char text[400], *rest = text, stats[100];

    snprintf(text, sizeof text, "%s", ids);
    snprintf(stats, sizeof stats, PREFIX "stats:%s", type);
    use_secret();
    for (char *id; (id = strsep(&rest, " "));) {
        push("default", textf("@0,0,0,s" SECRET ",b%s;{\"id\":\"%s\",\"type\":\"%s\"}", batch, id, type));
        redis_do("HINCRBY", stats, "enqueued", "1");
    }
}

static void make_batch(const char *total)
{
    redis_do("HSET", BATCH, "total", total, "sealed", "1", "then", "default after");
}

/* ---- Queues */

SCENE_TEST(test_draining_does_not_wait_for_a_paused_queue)
{
    struct drained d;
    struct args a = {0};

    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b");
    claim("w", 1, 0);
    claim("w", 1, 0);
    enqueue("default", "t", "c");
    for (int paused = 0; paused < 2; paused++) {
        drained_request(&a, PREFIX, turns.now_us, default_queue, ask.types);
        must(turns_send(&a));
        must(drained_reply(turns.reply, &d, &turns.error));
        assert_int_equal(d.waiting, !paused);
        assert_int_equal(d.parked, !paused);
        assert_int_equal(d.running, 1);
        assert_int_equal(d.paused, paused);
        assert_int_equal(d.halted, paused);
        assert_int_equal(d.aside, 0);
        halt("q/default", "1");
    }
}

SCENE_TEST(test_many_cancelled_jobs_keep_nobody_waiting)
{
    start("w");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue_many("slow", 1200);
    for (int i = 0; i < 3; i++)
        claim("w", 1, 0);
    for (int i = 1; i < 1200; i++)
        redis_do("HSET", CANCELLED, textf("slow%d", i), "waiting 1");
    turns.now_us += SECOND_US;
    enqueue_many("t", 3);
    claim("w", 5, 0);
    assert_true(turns.claim.more);
    expect_leases("t0 t1 t2"); /* in the same claim as the first of those that end */
    turns_check();
    for (int i = 0; turns.claim.more && i < 20; i++)
        assert_int_equal(claim("w", 5, 0), 0);
    assert_false(turns.claim.more);
    assert_int_equal(redis_number("EXISTS", LANE("slow"), QUEUE, CANCELLED), 0);
    expect_counters("slow", "cancelled 1199");
    turns_check();
}

/* ---- Purging */

static void expect_jobs(const struct queue_jobs *jobs, int64_t waiting, int64_t parked, int64_t marked)
{
    assert_int_equal(jobs->waiting, waiting);
    assert_int_equal(jobs->parked, parked);
    assert_int_equal(jobs->marked, marked);
}

static void purge(const char *type, struct queue_jobs *jobs)
{
    struct queue_jobs counted;

    if (queue_count(w, turns.now_us, "default", type, &counted) < 0 ||
        queue_purge(w, turns.now_us, "default", type, counted.waiting + counted.parked, jobs) < 0)
        fail_msg("%s", w->error.text);
}

SCENE_TEST(test_purging_long_lanes_page_by_page)
{
    struct queue_jobs jobs;

    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    must(turns_rate("t", "gcra:1/86400000000/1,by=key"));
    enqueue_many("slow", 1500);
    for (int i = 0; i < 300; i++)
        enqueue_with("t", textf("k%da k%db", i, i), textf("\"key\":\"k%d\"", i));
    for (int i = 0; i < 12; i++)
        claim("w", 500, 0);
    enqueue_many("u", 700);
    purge("t", &jobs);
    expect_jobs(&jobs, 0, 300, 0);
    turns_check();
    purge(NULL, &jobs);
    expect_jobs(&jobs, 700, 1499, 0);
    turns_check();
    assert_int_equal(queue_count(w, turns.now_us, "nope", NULL, &jobs), WEIR_ENOTFOUND);
}

/* ---- Who waits behind a job that is not to run, and that costs more */

#define DUTY "w 9000000000000000 default"

/* A slot a second, of which one is left. First a job of "slow", which costs sixty; behind it those of "t". */
static void park_behind_a_dear_job(const char *ids)
{
    start("w");
    must(turns_rate("L", "gcra:60/60000000/60"));
    must(turns_use("slow", "use", "60", (const char *[]){"L"}, 1));
    must(turns_use("t", "use", "", (const char *[]){"L"}, 1));
    enqueue_many("t", 60);
    assert_int_equal(claim("w", 60, 0), 60);
    use_secret();
    push("default", "@0,0,0,s" SECRET ",ukey;{\"id\":\"dear\",\"type\":\"slow\"}");
    redis_do("HINCRBY", PREFIX "stats:slow", "enqueued", "1");
    redis_do("SET", PREFIX "unique:key", "dear");
    claim("w", 9, 0);
    enqueue("default", "t", ids);
    claim("w", 9, 0);
    turns.now_us += SECOND_US;
    claim("w", 9, 0);
    expect_text("1795000060000000", "ZSCORE", WAKE, "L#0");
    redis_do("HSET", PREFIX "duty", "g", DUTY);
    redis_do("DEL", PREFIX "bell:g");
}

/* The worker on duty is called, and a job starts every second. */
static void expect_one_a_second(const char *ids)
{
    char text[100], *rest = text;

    snprintf(text, sizeof text, "%s", ids);
    assert_int_equal(redis_number("EXISTS", PREFIX "bell:g"), 1);
    turns_check();
    for (char *id; (id = strsep(&rest, " ")); turns.now_us += SECOND_US) {
        claim("w", 9, 0);
        expect_leases(id);
        assert_int_equal(redis_number("EXISTS", PREFIX "unique:key"), 0);
    }
    turns_check();
}

/* The same at the gates of keys: purged in part, cancelled, of a batch that is paused. */
static void park_in_lanes_that_sleep(void)
{
    start("w");
    must(turns_rate("slow", "24/86400000000/24,by=key"));
    for (int i = 0; i < 24; i++) {
        const char *id = textf("x%d", i);

        enqueue_with("slow", id, "\"key\":\"k\"");
    }
    assert_int_equal(claim("w", 24, 0), 24);
    redis_do("HSET", BATCH, "total", "1");
    use_secret();
    push("default", "@0,0,0,s" SECRET ",bb;{\"id\":\"dear\",\"type\":\"slow\",\"key\":\"k\",\"cost\":24}");
    redis_do("HINCRBY", PREFIX "stats:slow", "enqueued", "1");
    enqueue_with("slow", "c d", "\"key\":\"k\"");
    claim("w", 9, 0);
    expect_list(LANE("slow") "k", "dear c d");
    assert_true(redis_number("ZSCORE", SLEEP, "slow#0/k") == turns.now_us + 24 * 3600 * SECOND_US);
}

static void expect_one_an_hour(void)
{
    turns_check();
    turns.now_us += 3600 * SECOND_US;
    claim("w", 9, 0);
    expect_leases("c");
    turns_check();
}

SCENE_TEST(test_a_batch_is_paused_whose_job_is_first_of_a_lane_that_sleeps)
{
    json_t *answer;

    turns.now_us = (int64_t)time(NULL) * SECOND_US; /* that of batch_pause */
    park_in_lanes_that_sleep();
    if (batch_pause(w, "b", &(struct pausing){.for_us = RATE_ENDLESS}, &answer) < 0)
        fail_msg("%s", w->error.text);
    json_decref(answer);
    assert_in_range(redis_number("ZSCORE", SLEEP, "slow#0/k"), turns.now_us, turns.now_us + 3601 * SECOND_US);
    expect_one_an_hour();
    expect_counters("slow", "set_aside 1");
}

/* Where jobs of a type cost the same, other lanes sleep on. */
SCENE_TEST(test_who_waits_behind_a_batch_starts)
{
    for (int i = 0; i < 2; i++) {
        scene_begin(state);
        park_behind_a_dear_job("b c");
        redis_do("DEL", PREFIX "unique:key");
        redis_do("LSET", LANE("slow"), "0", "@0,0,0,bb;{\"id\":\"dear\",\"type\":\"slow\"}");
        make_batch("1");
        redis_do("HSET", BATCH, "types", "slow 1");
        redis_do("ZADD", SLEEP, "9000000000000000", "t#0/k");
        if (i == 0)
            must(turns_ask("batch_pause", (const char *[]){"b", "", "", "1", "pause", "tests"}, 6));
        else
            must(turns_ask("batch_cancel", (const char *[]){"b", "0"}, 2));
        assert_int_equal(json_array_size(json_object_get(turns.answer, "asleep")), 0);
        redis_do("DEL", SLEEP);
        expect_one_a_second("b c");
    }
}

/* Scheduled jobs, whose locks are free then; and those of types that no worker runs, which no claim would meet. */
SCENE_TEST(test_a_cancelled_batch_ends_what_no_claim_meets)
{
    for (int run = 0; run < 2; run++) {
        struct batch_change change;

        scene_begin(state);
        turns.now_us = (int64_t)time(NULL) * SECOND_US; /* that of batch_cancel */
        start("w");
        enqueue_of_batch("t", "b", "a b");
        enqueue_of_batch("other", "c", "x");
        redis_do("ZADD", PREFIX "later", "9000000000000000",
                 "q 1 default t\n@0,0,0,bb,uk;{\"id\":\"s\",\"type\":\"t\"}");
        redis_do("HINCRBY", PREFIX "stats:t", "scheduled", "1");
        redis_do("SET", PREFIX "unique:k", "s");
        redis_do("HSET", BATCH, "total", "3", "types", "t 3");
        if (run)
            redis_do("ZADD", PREFIX "runs", "9000000000000000", "t");
        if (batch_cancel(w, "b", false, &change) < 0)
            fail_msg("%s", w->error.text);
        assert_int_equal(redis_number("EXISTS", PREFIX "later", PREFIX "unique:k", CANCELLED), 0);
        expect_text(run ? "1" : "3", "HGET", BATCH, "cancelled");
        assert_int_equal(redis_number("LLEN", QUEUE), run ? 3 : 1);
        turns_check();
        claim("w", 9, 0);
        expect_text("3", "HGET", BATCH, "cancelled");
        assert_int_equal(redis_number("EXISTS", HALTED), 0);
        turns_check();
    }
}

PLAY("halt")

TESTS(scene_start_client, scene_stop_client)
