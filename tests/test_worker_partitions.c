/* A worker over a namespace of several partitions: one process, one pool of executors, a connection to each. */
#include <signal.h>

#include "core/client/partition.h"
#include "core/clock.h"
#include "queue/dead/dead.h"
#include "tests/several.h"
#include "tests/stage_group.h"

#define PARTITIONS 4

/* types[p] lives on partition p. */
static const char *const types[PARTITIONS] = {"b", "c", "d", "a"};
#define TYPES "types=a,b,c,d"

/* A key of partition p. */
static const char *key_at(struct stage *s, int p, const char *name)
{
    static char keys[4][200];
    static unsigned next;
    char *key = keys[next++ % 4], prefix[PREFIX_SIZE];

    partition_prefix(stage_key(s, "%s", ""), p, prefix);
    snprintf(key, sizeof keys[0], "%s%s", prefix, name);
    return key;
}

static void split(struct stage *s)
{
    for (int p = PARTITIONS - 1; p >= 0; p--) {
        assert_int_equal(partition_crc16(types[p], 1) % PARTITIONS, p);
        stage_number(s, "HSET", key_at(s, p, "about"), "partitions", "4");
    }
}

static void branch(const char *ns, struct stage *s)
{
    stage_branch(&stage, ns, s);
    split(s);
}

static long long count_workers(struct stage *s, int p)
{
    return stage_number(s, "ZCARD", key_at(s, p, "workers"));
}

static bool are_in_all(struct stage *s, int workers)
{
    for (int p = 0; p < PARTITIONS; p++)
        if (count_workers(s, p) != workers)
            return false;
    return true;
}

static int effects(struct stage *s)
{
    return history_count(s, "effect", -1);
}

static int begins(struct stage *s)
{
    return history_count(s, "begin", -1);
}

TEST(each_type_runs_at_its_rate)
{
    struct stage s;
    struct outcome o;
    pid_t workers[2];

    branch("rates", &s);
    for (int p = 0; p < PARTITIONS; p++) {
        stage_rate(&s, types[p], "40/s,burst=1");
        stage_enqueue(&s, types[p], NULL, 100 * p, 40);
    }
    for (int i = 0; i < 2; i++)
        workers[i] = stage_actor(&s, i ? "second" : "first", TYPES, "executors=3", "trace=trace", NULL);
    await(effects(&s) == 40 * PARTITIONS);
    for (int i = 0; i < 2; i++)
        assert_int_equal(stage_end(workers[i]), 0);
    assert_true(are_in_all(&s, 0));
    assert_int_equal(program_weir(&o, s.server.folder, NULL, NULL, "verify trace"), 0);
    stage_close(&s);
}

/* Its jobs are taken back in each partition. They run alone then: one at a time in the worker, not one in each partition. */
TEST(jobs_of_a_killed_worker_run_alone)
{
    struct history h;
    struct stage s;
    pid_t first, second;
    int running = 0;

    branch("killed", &s);
    for (int p = 0; p < PARTITIONS; p++)
        stage_enqueue(&s, types[p], "{\"wait\":\"go\",\"sleep\":0.05}", 100 * p, 1);
    first = stage_actor(&s, "first", TYPES, "executors=8", "lease=1", NULL);
    await(begins(&s) == PARTITIONS);
    kill(first, SIGKILL);
    assert_int_equal(program_end(first), 1000 + SIGKILL);
    write_text(s.server.folder, "go", "");
    second = stage_actor(&s, "second", TYPES, "executors=8", "lease=1", NULL);
    await(effects(&s) == PARTITIONS);
    assert_int_equal(stage_end(second), 0);
    h = history_read(&s);
    for (int i = PARTITIONS; i < h.count; i++) {
        running += strcmp(h.events[i].what, "begin") == 0 ? 1 : -1;
        assert_in_range(running, 0, 1);
    }
    history_free(&h);
    stage_close(&s);
}

TEST(a_drained_worker_has_emptied_all)
{
    struct stage s;
    pid_t worker;

    branch("drain", &s);
    for (int p = 0; p < PARTITIONS; p++)
        stage_enqueue(&s, types[p], "{\"sleep\":0.01}", 100 * p, 10 * p + 1);
    worker = stage_actor(&s, "worker", TYPES, "executors=2", "drain=1", NULL);
    assert_int_equal(program_end(worker), 0);
    assert_int_equal(effects(&s), 64);
    assert_true(are_in_all(&s, 0));
    stage_close(&s);
}

static int effects_from(struct stage *s, int first)
{
    struct history h = history_read(s);
    int n = 0;

    for (int i = 0; i < h.count; i++)
        n += h.events[i].job >= first && strcmp(h.events[i].what, "effect") == 0;
    history_free(&h);
    return n;
}

/* All executors have jobs of one partition, more of them wait; then come some of another one. From then on it has every other
 * executor that becomes free, until both have the same number. */
TEST(a_backlog_leaves_others_their_share)
{
    struct history h;
    struct stage s;
    pid_t worker;
    int behind = 0, left = 16;

    branch("share", &s);
    stage_enqueue(&s, "a", "{\"sleep\":0.1}", 0, 200);
    worker = stage_actor(&s, "worker", TYPES, "executors=4", NULL);
    await(begins(&s) >= 4);
    stage_enqueue(&s, "b", "{\"sleep\":0.1}", 1000, 16);
    await(history_count(&s, "effect", 1015) == 1);
    kill(worker, SIGKILL);
    program_end(worker);
    h = history_read(&s);
    for (int i = h.count - 1; i >= 0 && left > 0; i--) {
        bool mine = h.events[i].job >= 1000;

        if (strcmp(h.events[i].what, "begin") != 0)
            continue;
        left -= mine;
        behind += !mine;
    }
    history_free(&h);
    assert_in_range(behind, 8, 28);
    stage_close(&s);
}

/* Short jobs are leased ahead, and take each executor as it becomes free: those of other partitions, with a limit and without,
 * come in between. */
TEST(short_jobs_leave_others_their_share)
{
    int short_jobs = 0, others = 0;
    struct history h;
    struct stage s;
    pid_t worker;

    branch("short", &s);
    stage_rate(&s, "c", "100/s");
    stage_enqueue(&s, "a", "{\"sleep\":0.001}", 0, 10000);
    worker = stage_actor(&s, "worker", TYPES, "executors=4", NULL);
    await(begins(&s) >= 100);
    stage_enqueue(&s, "b", "{\"sleep\":0.001}", 10000, 40);
    stage_enqueue(&s, "c", "{\"sleep\":0.001}", 20000, 20);
    await(effects_from(&s, 10000) == 60);
    kill(worker, SIGKILL);
    program_end(worker);
    h = history_read(&s);
    for (int i = 0; i < h.count && others < 60; i++)
        if (strcmp(h.events[i].what, "effect") == 0)
            *(h.events[i].job >= 10000 ? &others : &short_jobs) += 1;
    history_free(&h);
    assert_in_range(short_jobs, 100, 9000 - 60); /* before the last of the others */
    stage_close(&s);
}

TEST(a_stopped_worker_gives_back_everywhere)
{
    struct stage s;
    pid_t worker;

    branch("stop", &s);
    for (int p = 0; p < PARTITIONS; p++)
        stage_enqueue(&s, types[p], "{\"wait\":\"go\"}", 100 * p, 2);
    worker = stage_actor(&s, "worker", TYPES, "executors=8", "grace=0.2", NULL);
    await(begins(&s) == 8);
    stage_end(worker);
    assert_true(are_in_all(&s, 0));
    write_text(s.server.folder, "go", "");
    worker = stage_actor(&s, "again", TYPES, "executors=8", "drain=1", NULL);
    assert_int_equal(program_end(worker), 0);
    assert_int_equal(effects(&s), 8);
    stage_close(&s);
}

/* exit() by a handler: the others' jobs go back in each partition. */
TEST(a_handler_that_exits_gives_back_everywhere)
{
    struct stage s;
    pid_t worker;

    branch("exit", &s);
    for (int p = 0; p < PARTITIONS; p++)
        stage_enqueue(&s, types[p], "{\"wait\":\"go\"}", 100 * p, 1);
    worker = stage_actor(&s, "worker", TYPES, "executors=8", NULL);
    await(begins(&s) == PARTITIONS);
    stage_enqueue(&s, "c", "{\"exit\":3}", 1000, 1);
    assert_int_equal(program_end(worker), 70);
    assert_true(are_in_all(&s, 0));
    for (int p = 0; p < PARTITIONS; p++)
        if (p != 1)
            assert_int_equal(stage_number(&s, "LLEN", key_at(&s, p, "queue:default")) +
                                 (long long)stage_number(&s, "EXISTS", key_at(&s, p, "wake:default")),
                             1);
    stage_close(&s);
}

/* Redis begins anew without data: the worker writes again how many partitions there are. */
TEST(a_lost_number_is_written_again)
{
    struct stage s;
    pid_t worker;

    stage_open(&s, false);
    split(&s);
    worker = stage_actor(&s, "worker", TYPES, "executors=2", NULL);
    await(are_in_all(&s, 1));
    server_kill(&s.server);
    server_restart(&s.server);
    await(are_in_all(&s, 1));
    for (int p = 0; p < PARTITIONS; p++)
        assert_int_equal(stage_number(&s, "HGET", key_at(&s, p, "about"), "partitions"), PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        stage_enqueue(&s, types[p], NULL, 100 * p, 1);
    await(effects(&s) == PARTITIONS);
    assert_int_equal(stage_end(worker), 0);
    stage_close(&s);
}

static int count_jobs(const json_t *page, void *arg)
{
    *(int64_t *)arg += answer_int(page, "jobs");
    return 0;
}

/* A foreign client does not know where a type lives: what it has pushed to a wrong partition is dead, until a retry moves it. */
TEST(strays_are_dead_until_they_are_retried)
{
    struct stage s;
    int64_t jobs = 0;

    branch("strays", &s);
    for (int i = 0; i < 320; i++) {
        stage_number(&s, "RPUSH", key_at(&s, i / PARTITIONS % PARTITIONS, "queue:default"),
                     textf("{\"id\":\"j%d\",\"type\":\"%s\"}", i, types[i % PARTITIONS]));
    }
    assert_int_equal(program_end(stage_actor(&s, "first", TYPES, "executors=4", "drain=1", NULL)), 0);
    assert_int_equal(effects(&s), 80);
    if (dead_walk(&(struct dead_walk){
            .w = s.client, .now_us = -1, .verb = "retry", .take = count_jobs, .arg = &jobs}) < 0)
        fail_msg("%s", weir_message(s.client));
    assert_int_equal(jobs, 240);
    assert_int_equal(program_end(stage_actor(&s, "second", TYPES, "executors=4", "drain=1", NULL)), 0);
    assert_int_equal(effects(&s), 320);
    stage_close(&s);
}

/* ---- A cluster: each partition lies on one of its masters */

static struct several cluster;

/* The master that has the slot of partition p. */
static struct server *master_of(int p)
{
    return &cluster.redis[partition_slot(p) * 3 / 16384];
}

static void split_cluster(struct stage *s)
{
    for (int p = PARTITIONS - 1; p >= 0; p--)
        server_number(master_of(p), "HSET", key_at(s, p, "about"), "partitions", "4", NULL);
    for (int i = 0; i < cluster.count; i++)
        server_do(&cluster.redis[i], "CONFIG", "SET", "cluster-require-full-coverage", "no");
}

/* Neither the master of one partition nor its replica answers: jobs of its types wait, the others run, though the answer to a claim
 * that keeps executors does not come. Then they run as well. */
TEST(one_partition_is_away)
{
    struct server *gone[2];
    struct stage s;
    pid_t worker;
    int before;

    several_start_cluster(&cluster);
    several_stage(&cluster, "away", &s);
    split_cluster(&s);
    assert_ptr_equal(master_of(3), &cluster.redis[0]);
    stage_rate(&s, "a", "20/s,burst=1");
    stage_enqueue(&s, "a", NULL, 0, 40);
    worker = stage_actor(&s, "worker", TYPES, "executors=2", "lease=2", NULL);
    await(effects(&s) >= 5);
    gone[0] = &cluster.redis[0];
    gone[1] = &cluster.redis[3];
    for (int i = 0; i < 2; i++)
        kill(gone[i]->pid, SIGSTOP);
    before = effects(&s);
    for (int p = 0; p < 3; p++)
        stage_enqueue(&s, types[p], "{\"sleep\":0.01}", 100 + 100 * p, 20);
    await(effects_from(&s, 100) == 60);
    assert_in_range(effects(&s) - 60, before, before + 2);
    for (int i = 0; i < 2; i++)
        kill(gone[i]->pid, SIGCONT);
    await(effects(&s) == 100);
    assert_int_equal(stage_end(worker), 0);
    stage_close(&s);
    several_stop(&cluster);
}

STAGE_TESTS(stage_start, stage_stop)
