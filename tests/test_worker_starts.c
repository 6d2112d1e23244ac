/* When a worker starts jobs: as soon as their rate allows, when they come, when others end, when they are due; and whose turn it is. */
#include <inttypes.h>
#include <signal.h>

#include "core/clock.h"
#include "core/number.h"
#include "tests/slots.h"
#include "tests/stage.h"

/* ---- When another ends */

/* What waits 10 ms does so each time: of many tries one is short, however busy the machine is. */
static void expect_one_short(const int64_t *us, int n, int64_t most_us)
{
    int64_t least_us = us[0];

    for (int i = 1; i < n; i++)
        least_us = min_i64(least_us, us[i]);
    if (least_us >= most_us)
        fail_msg("the shortest of %d took %lld us", n, (long long)least_us);
}

/* However many executors are idle: what waits for an end does not wait for a turn that is due anyway. */
STAGE_TEST(an_end_that_others_wait_for_is_settled_at_once)
{
    enum { JOBS = 200 };
    struct history h;
    int64_t gaps[JOBS - 1];
    pid_t worker;

    stage_rate(s, "mark", "concurrency=1");
    stage_enqueue(s, "mark", "{\"sleep\":0.001}", 0, JOBS);
    worker = stage_actor(s, "worker", "executors=10", NULL);
    await(stage_stat(s, "mark", "done") == JOBS);
    assert_int_equal(stage_end(worker), 0);
    h = history_read(s);
    assert_int_equal(h.count, 2 * JOBS);
    for (int i = 0; i < JOBS - 1; i++) /* from the end of each to the begin of the next */
        gaps[i] = h.events[2 * i + 2].at_us - h.events[2 * i + 1].at_us;
    expect_one_short(gaps, JOBS - 1, 10 * MS);
    history_free(&h);
}

/* Batches of one job each, one after the other. */
STAGE_TEST(what_follows_a_batch_starts_at_once)
{
    enum { BATCHES = 20 };
    struct history h;
    int64_t gaps[BATCHES];
    pid_t worker = stage_actor(s, "worker", "executors=10", NULL);

    stage_await_workers(s, 1);
    for (int i = 0; i < BATCHES; i++) {
        const char *id = textf("j%d", i);
        const char *batch = textf("j%d", 1000 + i);
        struct weir_job_spec job = {.type = "mark", .id = id, .args = "{\"sleep\":0.1}", .batch = batch};

        assert_int_equal(weir_enqueue(s->client, &job, NULL), 0);
        assert_int_equal(weir_batch_seal(s->client, batch, "mark"), 0);
        await(history_count(s, "begin", 1000 + i) == 1);
    }
    assert_int_equal(stage_end(worker), 0);
    h = history_read(s);
    for (int i = 0; i < BATCHES; i++)
        gaps[i] = history_nth(&h, "begin", 1000 + i, 0)->at_us - history_nth(&h, "effect", i, 0)->at_us;
    expect_one_short(gaps, BATCHES, 10 * MS);
    history_free(&h);
}

/* ---- Limits */

/* By the slots that Redis granted: no start is too early, and none passes another. How much of a rate is used is judged in worlds of
 * virtual time (bench/scale/worlds.c). */
STAGE_TEST(two_workers_keep_one_rate)
{
    enum { JOBS = 150, BURST = 5, T_US = 20 * MS };
    struct slots slots;
    struct history h;
    pid_t one, two;

    stage_rate(s, "mark", "50/s,burst=5");
    stage_enqueue(s, "mark", NULL, 0, JOBS);
    one = stage_actor(s, "one", "executors=3", "trace=trace", NULL);
    two = stage_actor(s, "two", "executors=3", "trace=trace", NULL);
    assert_int_equal(stage_await_done(s, JOBS).twice, 0);
    assert_int_equal(stage_end(one), 0);
    assert_int_equal(stage_end(two), 0);
    slots = slots_read(s, "trace");
    assert_int_equal(slots.count, JOBS);
    assert_in_range(slots_most_in_a_second(&slots, "m", 0), 5, 50 + BURST);
    assert_in_range(slots_overtaken(&slots), 0, stage_stat(s, "mark", "back")); /* in order, but for those */
    slots_free(&slots);
    stage_must(s, "verify trace");

    h = history_read(s); /* by the handlers' own clock, if the first one began late */
    assert_true(h.events[h.count - 1].at_us - h.events[0].at_us > (JOBS - BURST) * T_US - SECOND);
    history_free(&h);
}

static int begun_by(struct stage *s, pid_t worker, int first_job)
{
    struct history h = history_read(s);
    int n = 0;

    for (int i = 0; i < h.count; i++)
        n += h.events[i].pid == worker && h.events[i].job >= first_job &&
             strcmp(h.events[i].what, "begin") == 0;
    history_free(&h);
    return n;
}

/* Many short jobs have a worker lease many ahead, and then come those that take long, 25 s for it alone: another one
 * gets most of them, though all the time some begin here. */
STAGE_TEST(what_was_leased_ahead_waits_for_nobody)
{
    enum { SHORT = 3000, LONG = 100 };
    pid_t two;

    stage_enqueue(s, "mark", NULL, 0, SHORT);
    stage_enqueue(s, "mark", "{\"sleep\":0.5}", SHORT, LONG);
    stage_actor(s, "one", "executors=2", NULL);
    await(stage_stat(s, "mark", "done") > SHORT);
    two = stage_actor(s, "two", "executors=50", NULL);
    assert_int_equal(stage_await_done(s, SHORT + LONG).twice, 0);
    assert_in_range(begun_by(s, two, SHORT), LONG / 2, LONG);
}

STAGE_TEST(parked_jobs_delay_nobody)
{
    stage_rate(s, "slow", "1/1d");
    stage_enqueue(s, "slow", NULL, 0, 20000);
    stage_enqueue(s, "mark", NULL, 20000, 200);
    stage_actor(s, "worker", "types=slow,mark", "executors=4", NULL);
    await(history_count(s, "effect", -1) == 201);
    assert_int_equal(stage_number(s, "LLEN", stage_key(s, "lane:default/slow/")), 19999);
    await(stage_stat(s, "mark", "done") == 200);
}

/* Jobs without a limit are prefetched and wait for each executor: some are kept from them all the same. */
STAGE_TEST(a_flood_leaves_executors_to_limits)
{
    static const char *const executors[] = {"executors=4", "executors=1"};

    stage_rate(s, "mark", "100/s,burst=1");
    stage_enqueue(s, "mark", NULL, 0, 60);
    stage_enqueue(s, "flood", "{\"sleep\":0.005}", 60, 20000);
    for (int i = 0; i < 2; i++) {
        pid_t worker = stage_actor(s, "worker", "types=mark,flood", executors[i], NULL);
        long long flooded = stage_stat(s, "flood", "done");

        await(stage_stat(s, "mark", "done") >= 30 * (i + 1)); /* several are settled at once */
        flooded = stage_stat(s, "flood", "done") - flooded;
        assert_in_range(flooded, 10, 7000); /* of 0.3 s, in which there are 250 */
        stage_end(worker);
    }
}

/* Parked for an hour, and then the rate is set faster, or the limit removed. */
STAGE_TEST(changed_rate_applies_at_once)
{
    stage_actor(s, "worker", "executors=2", NULL);
    for (int round = 0; round < 2; round++) {
        int first = round * 5;

        stage_rate(s, "mark", "1/1h,burst=1");
        stage_enqueue(s, "mark", NULL, first, 5);
        await(stage_number(s, "LLEN", stage_key(s, "lane:default/mark/")) >= 4);
        stage_await_blocked(s, 2);
        if (round == 0)
            stage_rate(s, "mark", "1000/s");
        else
            assert_int_equal(weir_rate_remove(s->client, "mark"), 0);
        stage_await_done(s, first + 5);
    }
}

/* ---- Types that no worker can run */

STAGE_TEST(unknown_type_waits)
{
    int64_t us[20];

    stage_actor(s, "one", "executors=2", NULL);
    stage_push(s, "rare", NULL, 0, 3);
    await_text(s->server.folder, "one.err", "jobs of type rare wait for a worker");
    stage_push(s, "mark", NULL, 3, 1);
    await(history_count(s, "effect", 3) == 1);
    assert_int_equal(stage_number(s, "LLEN", stage_key(s, "lane:default/rare/")), 3);

    stage_actor(s, "two", "types=rare", NULL);
    await(history_count(s, "effect", -1) == 4);
    /* Whoever sees it first, who can run it is called. */
    stage_await_blocked(s, 4);
    for (int i = 0; i < 20; i++) {
        us[i] = clock_mono_us();
        stage_push(s, "rare", NULL, 4 + i, 1);
        await(history_count(s, "effect", 4 + i) == 1);
        us[i] = clock_mono_us() - us[i];
    }
    expect_one_short(us, 20, 100 * MS);
}

/* ---- Waking */

/* Pushes jobs from number first on one by one, when the one before is done, by a plain RPUSH as of any
 * client. */
static void expect_woken_at_once(struct stage *s, int first)
{
    enum { ROUNDS = 15 };
    int64_t late_us[ROUNDS];
    struct history h;

    for (int i = 0; i < ROUNDS; i++) {
        late_us[i] = clock_mono_us();
        stage_push(s, "mark", NULL, first + i, 1);
        await(history_count(s, "effect", first + i) == 1);
    }
    h = history_read(s);
    for (int i = 0; i < ROUNDS; i++)
        late_us[i] = history_nth(&h, "begin", first + i, 0)->at_us - late_us[i];
    history_free(&h);
    expect_one_short(late_us, ROUNDS, 100 * MS);
}

/* With one executor a worker gives the duty up for each job, and must have it back at once. */
STAGE_TEST(idle_worker_wakes_at_once)
{
    static const char *const executors[] = {"executors=2", "executors=1"};

    for (int i = 0; i < 2; i++) {
        pid_t worker = stage_actor(s, "worker", executors[i], NULL);

        stage_await_blocked(s, 2);
        expect_woken_at_once(s, 100 * i);
        assert_int_equal(stage_end(worker), 0);
    }
}

/* Enqueues a job for delay_s from now; returns when that is. */
static int64_t enqueue_delayed(struct stage *s, int job, double delay_s)
{
    int64_t due_us = clock_mono_us() + (int64_t)(delay_s * 1e6);
    const char *id = textf("j%d", job);

    assert_int_equal(
        weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark", .id = id, .delay_s = delay_s}, NULL),
        0);
    return due_us;
}

/* How late a job began, which was due then; it has begun. Never early. */
static int64_t lateness_us(struct stage *s, int job, int64_t due_us)
{
    struct history h = history_read(s);
    int64_t late_us = history_nth(&h, "begin", job, 0)->at_us - due_us;

    history_free(&h);
    assert_true(late_us >= 0);
    return late_us;
}

/* While others are busy for long, who has room watches the queue, whoever was called first. */
STAGE_TEST(idle_worker_among_busy_ones)
{
    enum { BUSY = 4 };
    pid_t workers[BUSY + 1];
    int64_t us[BUSY];

    for (int i = 0; i <= BUSY; i++)
        workers[i] = stage_actor(s, textf("worker%d", i), "executors=1", NULL);
    stage_await_workers(s, BUSY + 1);
    stage_await_blocked(s, 2 + BUSY);
    for (int i = 0; i < BUSY; i++) {
        stage_push(s, "mark", "{\"wait\":\"go\"}", i, 1);
        await(history_count(s, "begin", i) == 1);
    }
    for (int i = 0; i < BUSY; i++) { /* all have waited for the bell, the idle one last */
        us[i] = enqueue_delayed(s, BUSY + i, 0.2);
        await(history_count(s, "effect", BUSY + i) == 1);
        us[i] = lateness_us(s, BUSY + i, us[i]);
    }
    expect_one_short(us, BUSY, 100 * MS);
    expect_woken_at_once(s, 2 * BUSY);
    write_text(s->server.folder, "go", "");
    for (int i = 0; i < BUSY; i++)
        await(history_count(s, "effect", i) == 1);
    for (int i = 0; i <= BUSY; i++)
        assert_int_equal(stage_end(workers[i]), 0);
}

/* Each is due 0.2 s before the one that the worker knows of. */
STAGE_TEST(delayed_jobs_start_on_time)
{
    enum { ROUNDS = 5 };
    int64_t us[ROUNDS];

    stage_actor(s, "worker", "executors=2", NULL);
    stage_await_blocked(s, 2);
    for (int job = 0; job < ROUNDS; job++)
        us[job] = enqueue_delayed(s, job, 0.2 * (ROUNDS - job));
    await(history_count(s, "begin", -1) == ROUNDS);
    for (int job = 0; job < ROUNDS; job++)
        us[job] = lateness_us(s, job, us[job]);
    expect_one_short(us + 1, ROUNDS - 1, 100 * MS);
}

/* ---- Queues */

static void push_to(struct stage *s, const char *queue, int first, int n, const char *args)
{
    for (int i = first; i < first + n; i++) {
        stage_number(s, "RPUSH", stage_key(s, "queue:%s", queue),
                     textf("{\"id\":\"j%d\",\"type\":\"mark\",\"args\":%s}", i, args));
    }
}

STAGE_TEST(strict_queues)
{
    struct history h;

    push_to(s, "low", 0, 30, "null");
    push_to(s, "high", 30, 30, "null");
    stage_actor(s, "worker", "queues=high,low", "executors=1", NULL);
    stage_await_done(s, 60);
    h = history_read(s);
    for (int i = 0; i < 60; i++) /* begin and effect of each */
        assert_true(h.events[i].job >= 30);
    history_free(&h);
}

STAGE_TEST(weighted_queues)
{
    enum { JOBS = 200 };
    struct history h;
    int seldom = 0;

    push_to(s, "often", 0, JOBS, "{\"sleep\":0.002}");
    push_to(s, "seldom", JOBS, JOBS, "{\"sleep\":0.002}");
    stage_actor(s, "worker", "queues=often=3,seldom", "executors=1", NULL);
    stage_await_done(s, 2 * JOBS);
    h = history_read(s);
    for (int i = 0; i < 2 * JOBS; i++) /* the first half of the jobs, begin and effect of each */
        seldom += h.events[i].job >= JOBS;
    history_free(&h);
    seldom /= 2;
    if (seldom < 1 ||
        seldom > JOBS * 6 / 10) /* 50 on average; each of 30 turns or more takes a few of one queue */
        fail_msg("%d of the first %d jobs came from the queue with a quarter of the weight", seldom, JOBS);
}

/* ---- Idle */

/* How often the process has waited, on its first thread. */
static long long waits_of(pid_t pid)
{
    static const char name[] = "\nvoluntary_ctxt_switches:";
    char text[4096];
    FILE *f;

    assert_non_null(f = fopen(textf("/proc/%d/status", (int)pid), "r"));
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_non_null(strstr(text, name));
    return atoll(strstr(text, name) + strlen(name));
}

/* Claims, 2.5 a second, and heartbeats: a timer and an answer each. With a tick each 0.1 s it would wait five times a call. */
STAGE_TEST(an_idle_worker_sleeps)
{
    pid_t worker = stage_actor(s, "worker", "executors=2", NULL);
    long long calls, waits;

    stage_enqueue(s, "mark", NULL, 0, 1);
    stage_await_done(s, 1);
    calls = server_calls(&s->server, "fcall");
    await(server_calls(&s->server, "fcall") >=
          calls + 4); /* the last tick of a busy worker was before these */
    calls = server_calls(&s->server, "fcall");
    waits = waits_of(worker);
    await(server_calls(&s->server, "fcall") >= calls + 8);
    waits = waits_of(worker) - waits;
    calls = server_calls(&s->server, "fcall") - calls;
    print_message("%lld waits, %lld calls\n", waits, calls);
    assert_in_range(waits, 1, 7 * (calls + 1) / 2);
}

STAGE_TESTS(NULL, NULL)
