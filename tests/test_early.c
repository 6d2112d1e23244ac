/* Early jobs: slots are granted up to 50 ms ahead to a worker with idle executors. Their jobs hold no executor
 * until shortly before their time, and go back, with their slots, when anything stands against them. */
#include "core/clock.h"
#include "tests/stage.h"
#include "throttle/gate.h"
#include "worker/partition/partition.h"
#include "worker/parts/pool.h"
#include "worker/way/way.h"

/* ---- The pool */

enum { EXECUTORS = 8 };

static void on_finished(void *arg)
{
    (void)arg;
}

static void start(struct task *task)
{
    (void)task;
}

static const struct way way = {.name = "test", .start = start};
static struct runner runner = {.way = &way};
static struct handler handler = {.runner = &runner, .type = "t"};
static struct conditions conditions;

/* slot_us 0: a job without a limit. */
static void add(struct pool *pool, int number, int64_t slot_us)
{
    struct lease lease = {.body = {"{}", 2}, .slot_us = slot_us, .cost = 1};
    struct task_list list = {0};
    struct task *task;
    const char *token = textf("1.%d/default/t/", number);

    lease.token = (struct span){token, strlen(token)};
    lease.type = (struct span){token + strlen(token) - 2, 1};
    lease.key = lease.attrs = (struct span){"", 0};
    task = task_new(&lease, &handler, &conditions, (struct span){"", 0});
    assert_non_null(task);
    task->start_us = slot_us;
    task->early = slot_us > 0;
    task_list_push(&list, task);
    pool_add(pool, &list);
}

/* Begins what may begin; how many do. */
static int begin(struct pool *pool, int64_t now_us, struct task *begun[EXECUTORS])
{
    int64_t next_us;
    int n = 0;

    for (struct task *task; (task = pool_begin(pool, now_us, &next_us)); n++)
        begun[n] = task;
    return n;
}

static struct pool *pool_with(int early, int64_t first_us)
{
    struct pool *pool = pool_new(EXECUTORS, 0, on_finished, NULL);

    assert_non_null(pool);
    for (int i = early - 1; i >= 0; i--)
        add(pool, i, first_us + i * 10 * MS);
    return pool;
}

TEST(test_early_jobs_hold_no_executor)
{
    struct pool *pool = pool_with(4, 100 * MS);
    struct task *begun[EXECUTORS];
    struct task_list crowded = {0};

    for (int i = 0; i < EXECUTORS; i++)
        add(pool, 10 + i, 0);
    assert_int_equal(pool_draw_near(pool, 60 * MS, &crowded), 97500);
    assert_int_equal(begin(pool, 60 * MS, begun), EXECUTORS);
    assert_int_equal(pool_load(pool).early, 4);
    /* The first finds none, the second has that of a job which has ended. */
    assert_int_equal(pool_draw_near(pool, 96 * MS, &crowded), 107500);
    assert_int_equal(crowded.count, 1);
    assert_int_equal(crowded.head->start_us, 100 * MS);
    pool_end(pool, begun[0]);
    pool_draw_near(pool, 106 * MS, &crowded);
    assert_int_equal(crowded.count, 1);
    assert_int_equal(begin(pool, 109 * MS, begun), 0);
    assert_int_equal(begin(pool, 110 * MS, begun), 1);
    assert_int_equal(begun[0]->start_us, 110 * MS);
    assert_int_equal(pool_load(pool).early, 2);
    task_list_free(&crowded);
    pool_free(pool);
}

TEST(test_early_jobs_are_recalled)
{
    struct pool *pool = pool_with(4, 100 * MS);
    struct task_list back = {0};
    struct task *second;

    pool_recall(pool, &conditions, NULL, &back);
    assert_int_equal(back.count, 4);
    second = back.head->next;
    for (struct task *task = back.head; task; task = task->next) {
        assert_false(task->early);
        task->early = true;
    }
    pool_add(pool, &back);
    pool_recall(pool, &conditions, second, &back);
    assert_int_equal(back.count, 1);
    assert_ptr_equal(back.head, second);
    assert_int_equal(pool_load(pool).early, 3);
    assert_int_equal(pool_load(pool).queued, 3);
    pool_withdraw_all(pool, NULL, &back);
    assert_int_equal(back.count, 4);
    task_list_free(&back);
    pool_free(pool);
}

/* ---- Workers */

static long long in_flight(struct stage *s)
{
    return stage_stat(s, "mark", "pulled") + stage_stat(s, "mark", "served") - stage_stat(s, "mark", "done") -
           stage_stat(s, "mark", "back");
}

/* How far ahead of its slot the job of each start in the trace was granted: the most. */
static int64_t farthest(struct stage *s)
{
    char line[700];
    int64_t most = 0;
    FILE *f;

    assert_non_null(f = fopen(textf("%s/early.trace", s->server.folder), "r"));
    while (fgets(line, sizeof line, f)) {
        const char *ahead = strstr(line, "\"ahead\":");

        if (ahead && atoll(ahead + 8) > most)
            most = atoll(ahead + 8);
    }
    fclose(f);
    return most;
}

static pid_t open_worker(struct stage *s, const char *executors, const char *rule, int jobs)
{
    pid_t worker;

    stage_open(s, false);
    stage_rate(s, "mark", rule);
    stage_enqueue(s, "mark", NULL, 0, jobs);
    worker = stage_actor(s, "early", executors, "trace=early.trace", NULL);
    stage_await_workers(s, 1);
    return worker;
}

/* Why, and to whom not: test_mind.c. */
TEST(test_with_idle_executors_slots_are_granted_far_ahead)
{
    struct stage s;
    pid_t worker = open_worker(&s, "executors=40", "200/1s,burst=1", 100);

    assert_int_equal(stage_await_done(&s, 100).twice, 0);
    assert_int_equal(stage_end(worker), 0);
    assert_in_range(farthest(&s), 20000, GATE_AHEAD_MOST_US); /* the more the later a busy machine answers */
    stage_close(&s);
}

/* A claim for five jobs, and with the next one they are settled. If their ends waited for 10 ms only, it would be four
 * calls for five jobs. */
TRIAL_WITH(test_ends_wait_for_a_claim, NULL, NULL)
{
    enum { JOBS = 150 };
    struct stage s;
    long long before;
    pid_t worker;

    (void)state;
    worker = open_worker(&s, "executors=40", "100/1s,burst=1", JOBS);
    await(stage_stat(&s, "mark", "done") > 10);
    before = server_calls(&s.server, "fcall");
    assert_int_equal(stage_await_done(&s, JOBS).twice, 0);
    before = server_calls(&s.server, "fcall") - before;
    assert_true(before > 0);
    if (before > (JOBS - 10) * 6 / 10)
        stage_late("%lld calls", before);
    assert_int_equal(stage_end(worker), 0);
    stage_close(&s);
}

/* Jobs are on their way nearly all the time. */
TEST(test_a_pause_takes_back_what_was_granted)
{
    enum { PAUSES = 10 };
    struct stage s;
    pid_t worker;
    int taken = 0;

    worker = open_worker(&s, "executors=40", "400/1s,burst=1", 3000);
    for (int i = 0; i < PAUSES; i++) {
        long long done = stage_stat(&s, "mark", "done"), back;

        await(stage_stat(&s, "mark", "done") > done + 20);
        back = stage_stat(&s, "mark", "back");
        stage_must(&s, "rate pause mark 1h");
        await(in_flight(&s) == 0);
        taken += stage_stat(&s, "mark", "back") > back;
        stage_must(&s, "rate resume mark");
    }
    if (taken < PAUSES / 2)
        fail_msg("%d of %d pauses took something back", taken, PAUSES);
    assert_int_equal(stage_end(worker), 0);
    stage_close(&s);
}

STAGE_TESTS(NULL, NULL)
