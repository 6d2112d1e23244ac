/* A Redis Cluster of three masters with a replica each: all keys of Weir are in one slot. The slot moves under load, and the
 * node that has it dies. */
#include "core/client/client.h"
#include "core/clock.h"
#include "queue/queues/divide.h"
#include "queue/status/status.h"
#include "tests/both.h"
#include "tests/several.h"
#include "tests/slots.h"
#include "tests/test.h"
#include "throttle/gate.h"

#define JOBS 600
#define RATE 100

static struct several cluster;

static int start_cluster(void **state)
{
    several_start_cluster(&cluster);
    return 0;
}

static int stop_cluster(void **state)
{
    several_stop(&cluster);
    return 0;
}

static void begin_load(const char *ns, struct stage *stage, pid_t workers[2])
{
    several_stage(&cluster, ns, stage);
    stage_rate(stage, "mark", "100/s,burst=1");
    stage_enqueue(stage, "mark", NULL, 0, JOBS);
    for (int i = 0; i < 2; i++)
        workers[i] = stage_actor(stage, i ? "second" : "first", "types=mark", "executors=4", "lease=2",
                                 "trace=trace", NULL);
    await(history_count(stage, "effect", -1) > 20);
}

static void run_weir(struct stage *stage, const char *line)
{
    struct outcome o;

    if (program_weir(&o, stage->server.folder, cluster.url, stage->ns, line) != 0)
        fail_msg("weir %s: %d: %s%s", line, o.code, o.out, o.err);
}

static void end_load(struct stage *stage, const pid_t workers[2])
{
    several_follow(&cluster, stage);
    stage_await_done(stage, JOBS);
    for (int i = 0; i < 2; i++)
        assert_int_equal(stage_end(workers[i]), 0);
}

static void assert_rate_kept(struct stage *stage, int most)
{
    struct slots slots = slots_read(stage, "trace");

    assert_in_range(slots_most_in_a_second(&slots, "m", 0), 1, most);
    slots_free(&slots);
}

static bool replica_has_all(int holder)
{
    char *offset = server_ask(&cluster.redis[holder], "INFO", "replication", NULL);
    char *sent = strstr(offset, "master_repl_offset:"), *got = strstr(offset, "offset=");
    bool all = sent && got && atoll(sent + strlen("master_repl_offset:")) == atoll(got + strlen("offset="));

    free(offset);
    return all;
}

/* ---- Partitions over all masters */

#define EACH 120 /* jobs of each type */
#define RATE_OF_EACH 40

/* types[p] lives on partition p. The slots of the first four partitions lie on all three masters. */
static const char *const types[] = {"b", "c", "d", "a"};

static int64_t count_dead(struct stage *stage)
{
    struct status status;
    int64_t dead;

    if (status_read(stage->client, &status) < 0)
        fail_msg("%s", weir_message(stage->client));
    dead = status.dead;
    status_free(&status);
    return dead;
}

static void run_commands(const char *ns)
{
    static const char *const lines[] = {
        "enqueue report --queue commands --id one",
        "enqueue report --in 1h --queue commands",
        "enqueue report --batch july --queue commands",
        "enqueue mail --queue commands --id two",
        "enqueue news --queue commands",
        "rate set report 5/s",
        "rate show report",
        "rate list",
        "schedule add nightly '0 3 * * *' report",
        "schedule list",
        "batch list",
        "status",
        "queue list",
        "why one",
        "job show one",
        "job cancel one",
        "dead list",
        "take api --rule 5/s",
        "queue pause commands",
        "queue purge commands --yes",
        "doctor",
    };
    struct outcome o;

    for (size_t i = 0; i < COUNT(lines); i++) {
        const char *line = textf("%s %s --redis %s --namespace %s", built("weir"), lines[i], cluster.url, ns);

        run_in(&o, NULL, "/bin/sh", "-c", line, NULL);
        if (o.code != 0)
            fail_msg("%s: %d: %s%s", line, o.code, o.out, o.err);
    }
}

TEST(each_command_works)
{
    run_commands("commands");
}

/* Four slots, on three masters. */
TEST(each_command_works_over_partitions)
{
    struct weir *w = weir_new(cluster.url, "parted");
    bool was;

    assert_non_null(w);
    assert_int_equal(divide(w, 4, &was), 0);
    weir_free(w);
    run_commands("parted");
}

static void set_on_all(const char *name, const char *value, const char *second, const char *second_value)
{
    for (int i = 0; i < cluster.count; i++)
        if (cluster.redis[i].pid)
            server_do(&cluster.redis[i], "CONFIG", "SET", name, value, second, second_value);
}

static bool names_itself(const char *host)
{
    char *slots = server_ask(&cluster.redis[several_holder(&cluster)], "CLUSTER", "SLOTS", NULL);
    const char *at = slots;
    int count = 0;

    for (; (at = strstr(at, host)); at++)
        count++;
    free(slots);
    return count >= 3;
}

/* By host names; by host names, which nobody has said, so each is "?"; by what the asked node was reached by. */
TEST(nodes_are_named_in_other_ways)
{
    set_on_all("cluster-preferred-endpoint-type", "hostname", "cluster-announce-hostname", "localhost");
    await(names_itself("localhost"));
    both_work(cluster.url);
    set_on_all("cluster-announce-hostname", "", NULL, NULL);
    await(names_itself("?"));
    both_work(cluster.url);
    set_on_all("cluster-preferred-endpoint-type", "unknown-endpoint", NULL, NULL);
    both_work(cluster.url);
    set_on_all("cluster-preferred-endpoint-type", "ip", NULL, NULL);
}

/* Each type at its rate, on the master of its partition. Some jobs are pushed to the wrong one, and retried. */
TEST(partitions_over_all_masters)
{
    struct stage stage;
    struct slots slots;
    pid_t workers[2];

    several_stage(&cluster, "parts", &stage);
    run_weir(&stage, "init --partitions 4");
    for (int p = 0; p < 4; p++) {
        assert_int_equal(partition_crc16(types[p], 1) % 4, p);
        stage_rate(&stage, types[p], "40/s,burst=1");
        stage_enqueue(&stage, types[p], NULL, 1000 * p, EACH);
    }
    for (int i = 0; i < 2; i++)
        workers[i] = stage_actor(&stage, i ? "second" : "first", "types=a,b,c,d", "executors=4", "lease=2",
                                 "trace=trace", NULL);
    await(history_count(&stage, "effect", -1) > EACH);
    several_follow(&cluster, &stage);
    stage_push(&stage, "d", NULL, 2000 + EACH, 20); /* to partition 0 */
    stage_enqueue(&stage, "c", NULL, 1000 + EACH, 20);
    await(count_dead(&stage) == 20);
    run_weir(&stage, "dead retry --all");
    await(history_count(&stage, "effect", -1) >= 4 * EACH + 40);
    for (int i = 0; i < 2; i++)
        assert_int_equal(stage_end(workers[i]), 0);
    for (int p = 0; p < 4; p++)
        for (int i = 0; i < EACH + (p == 1 || p == 2 ? 20 : 0); i++)
            assert_int_equal(history_count(&stage, "effect", 1000 * p + i), 1);
    run_weir(&stage, "verify trace");
    slots = slots_read(&stage, "trace");
    for (int t = 0; t < 4; t++)
        assert_in_range(slots_most_in_a_second(&slots, types[t], 0), 1, RATE_OF_EACH);
    slots_free(&slots);
    stage_close(&stage);
}

TEST(the_slot_moves)
{
    struct stage stage;
    pid_t workers[2];
    int from = several_holder(&cluster), to = (from + 1) % 3;

    begin_load("moves", &stage, workers);
    several_move_slot(&cluster, from, to);
    end_load(&stage, workers);
    assert_rate_kept(&stage, RATE);
    run_weir(&stage, "verify trace");
    stage_close(&stage);
}

/* What the replica had not yet been told runs again, and its slots are granted again: a few. */
TEST(the_node_dies)
{
    struct stage stage;
    pid_t workers[2];
    int old = several_holder(&cluster);

    begin_load("dies", &stage, workers);
    await(replica_has_all(old));
    several_kill(&cluster, old);
    several_await_holder_other_than(&cluster, old);
    end_load(&stage, workers);
    assert_rate_kept(&stage, RATE + 10);
    stage_close(&stage);
}

STAGE_TESTS(start_cluster, stop_cluster)
