/* A worker whose Redis is late, locked, full, forgetful or a replica, or has keys of others. */
#include <signal.h>

#include "core/clock.h"
#include "core/script/script.h"
#include "tests/stage.h"

STAGE_TEST(waits_for_redis)
{
    pid_t idle;

    server_kill(&s->server);
    stage_weir(s, "worker", "--exec", "mark=/bin/true", NULL);
    idle = stage_weir(s, "idle", "--exec", "mark=/bin/true", NULL);
    await_text(s->server.folder, "worker.err", "connecting again until it answers");
    await_text(s->server.folder, "idle.err", "connecting again until it answers");
    assert_int_equal(stage_end(idle), 0); /* it has nothing to give back */
    server_restart(&s->server);
    stage_push(s, "mark", NULL, 0, 1);
    await(stage_stat(s, "mark", "done") == 1);
    await_text(s->server.folder, "worker.err", "Redis is back after");
}

/* While claims are refused, nobody looks at the queue again and again. */
STAGE_TEST(nobody_peeks_while_claims_are_refused)
{
    stage_actor(s, "worker", "executors=2", "lease=1", NULL);
    await(stage_peeks(s) > 0);
    stage_do(s, "DEL", stage_key(s, "types"));
    stage_do(s, "SET", stage_key(s, "types"), "mine");
    stage_push(s, "mark", NULL, 0, 3);
    await_text(s->server.folder, "worker.err", "weir:{0}:types is a string, not a hash");
    stage_await_heartbeats(s, 4);
    assert_in_range(stage_peeks(s), 1, 50);
    stage_do(s, "DEL", stage_key(s, "types"));
    stage_await_done(s, 3);
}

/* A key that a type needs: it is named once, and the other types go on. */
STAGE_TEST(a_fault_is_named)
{
    stage_actor(s, "worker", "types=mark,odd", "lease=1", NULL);
    stage_rate(s, "odd", "10/s");
    stage_do(s, "RPUSH", stage_key(s, "gate:odd#0"), "mine");
    stage_enqueue(s, "odd", NULL, 0, 1);
    await_text(s->server.folder, "worker.err",
               "weir:{0}:gate:odd#0 is a list, not a string: what needs it stands still");
    stage_enqueue(s, "mark", NULL, 1, 3);
    await(stage_stat(s, "mark", "done") == 3);
    assert_int_equal(stage_stat(s, "odd", "done"), 0);
    stage_do(s, "DEL", stage_key(s, "gate:odd#0"));
    await(stage_stat(s, "odd", "done") == 1);
}

/* Somebody else's key where a retried job must go: the worker keeps the job and its lease, and says which
 * key. */
STAGE_TEST(foreign_key)
{
    stage_actor(s, "worker", "executors=2", "lease=1", NULL);
    stage_do(s, "SET", stage_key(s, "later"), "mine");
    stage_push(s, "mark", "{\"fail\":1,\"after\":0}", 0, 1);
    await_text(s->server.folder, "worker.err", "weir:{0}:later is a string, not a zset");
    stage_await_heartbeats(s, 8);
    stage_do(s, "DEL", stage_key(s, "later"));
    stage_await_done(s, 1);
    assert_int_equal(history_count(s, "begin", 0), 2);
    assert_int_equal(stage_stat(s, "mark", "back"), 0);
}

STAGE_TEST(functions_flushed_under_load)
{
    stage_actor(s, "worker", "executors=3", NULL);
    stage_rate(s, "mark", "1000/s,burst=10");
    stage_enqueue(s, "mark", NULL, 0, 1000);
    stage_enqueue(s, "mark", "{\"fail\":1,\"after\":0}", 1000, 200);
    for (int flushes = 0; flushes < 30; flushes++) {
        await(history_count(s, "effect", -1) >= flushes * 40);
        stage_do(s, "FUNCTION", "FLUSH");
    }
    assert_int_equal(stage_await_done(s, 1200).twice, 0);
}

STAGE_TEST(emptied_under_load)
{
    stage_actor(s, "one", "executors=3", NULL);
    stage_actor(s, "two", "executors=3", NULL);
    for (int round = 0; round < 5; round++) {
        stage_enqueue(s, "mark", "{\"sleep\":0.001}", round * 1000, 1000);
        await(history_count(s, "effect", -1) > 0);
        stage_do(s, round % 2 ? "FLUSHDB" : "FLUSHALL");
    }
    stage_push(s, "mark", NULL, 5000, 100);
    await(stage_stat(s, "mark", "done") >= 100);
    for (int job = 5000; job < 5100; job++)
        await(history_count(s, "effect", job) == 1);
}

static void set_maxmemory(struct stage *s, const char *value)
{
    stage_do(s, "CONFIG", "SET", "maxmemory", value);
}

/* A full Redis takes no more jobs, and can still be emptied: parked, leased, retried, settled. */
STAGE_TEST(full_redis_is_worked_off)
{
    pid_t worker;

    stage_rate(s, "mark", "1000/s,burst=10");
    stage_enqueue(s, "mark", "{\"fail\":1,\"after\":0}", 0, 300);
    set_maxmemory(s, "100kb");
    assert_int_equal(weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark"}, NULL), WEIR_ENOTNOW);
    worker = stage_actor(s, "worker", "executors=3", NULL);
    assert_int_equal(stage_await_done(s, 300).twice, 0);
    assert_int_equal(stage_end(worker), 0);
    set_maxmemory(s, "0");
}

/* A failover, as seen from the old master: it takes no writes for a while. */
STAGE_TEST(replica_for_a_while)
{
    stage_actor(s, "worker", "executors=3", NULL);
    stage_enqueue(s, "mark", "{\"sleep\":0.002}", 0, 1000);
    await(history_count(s, "effect", -1) > 100);
    stage_do(s, "REPLICAOF", "127.0.0.1", "1");
    await_text(s->server.folder, "worker.err", "takes no writes");
    stage_do(s, "REPLICAOF", "NO", "ONE");
    assert_int_equal(stage_await_done(s, 1000).twice, 0);
}

/* The same, of one whose replicas take writes: what it took then would be lost. Within 100 ms it is found. */
STAGE_TEST(writable_replica_for_a_while)
{
    stage_actor(s, "worker", "executors=3", NULL);
    stage_do(s, "CONFIG", "SET", "replica-read-only", "no");
    stage_enqueue(s, "mark", "{\"sleep\":0.01}", 0, 1000);
    await(history_count(s, "effect", -1) > 100);
    stage_do(s, "REPLICAOF", "127.0.0.1", "1");
    await_text(s->server.folder, "worker.err",
               "takes no writes: READONLY a replica, which loses what is written there");
    assert_int_equal(weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark", .id = "lost"}, NULL),
                     WEIR_EUNREACHABLE);
    assert_non_null(strstr(weir_message(s->client), "takes no writes: READONLY a replica"));
    assert_in_range(history_count(s, "begin", -1), 100, 999); /* of 3 s */
    stage_do(s, "REPLICAOF", "NO", "ONE");
    assert_int_equal(stage_await_done(s, 1000).twice, 0);
}

/* Redis stood still for longer than all leases: that is no worker's fault. What ended meanwhile is settled
 * afterwards, and no job runs twice. */
STAGE_TEST(redis_stands_still)
{
    stage_actor(s, "one", "executors=2", "lease=1", NULL);
    stage_actor(s, "two", "executors=2", "lease=1", NULL);
    stage_push(s, "mark", "{\"wait\":\"go\"}", 0, 4);
    await(history_count(s, "begin", -1) == 4);
    kill(s->server.pid, SIGSTOP);
    write_text(s->server.folder, "go", "");
    clock_sleep_until(clock_mono_us() + 2500 * MS); /* the time that passes is the test */
    kill(s->server.pid, SIGCONT);
    stage_await_heartbeats(s, 8);
    assert_int_equal(stage_await_done(s, 4).twice, 0);
    assert_int_equal(history_count(s, "begin", -1), 4);
}

/* A dead worker whose job a foreign key keeps from its lane: others say so and live. */
STAGE_TEST(dead_worker_whose_job_has_no_lane)
{
    stage_do(s, "SET", stage_key(s, "lane:default!/mark/"), "foreign");
    stage_do(s, "HSET", stage_key(s, "active:gone"), "@", "{}", "1.--/default/mark/",
             "{\"id\":\"j0\",\"type\":\"mark\"}");
    stage_do(s, "ZADD", stage_key(s, "workers"), "1", "gone");
    stage_actor(s, "worker", "lease=1", NULL);
    await_text(s->server.folder, "worker.err",
               "weir:{0}:lane:default!/mark/ is a string, not a list: what needs it stands still");
    stage_await_heartbeats(s, 5); /* more than a lease */
    stage_do(s, "DEL", stage_key(s, "lane:default!/mark/"));
    assert_int_equal(stage_await_done(s, 1).twice, 0);
}

/* Permissions that were there at the start and are taken away: the worker says so and waits. */
STAGE_TEST(permission_lost_and_found)
{
    stage_do(s, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all");
    stage_actor(s, "worker", textf("url=unix://poor:pw@%s", s->server.socket), "executors=2", NULL);
    stage_push(s, "mark", "{\"sleep\":0.05}", 0, 20);
    await(history_count(s, "begin", -1) > 4);
    stage_do(s, "ACL", "SETUSER", "poor", "-fcall");
    await_text(s->server.folder, "worker.err", "the user lacks a right");
    stage_do(s, "ACL", "SETUSER", "poor", "+fcall");
    assert_int_equal(stage_await_done(s, 20).twice, 0);
}

/* One claim that is refused halfway may run its jobs twice; there is no second one. */
STAGE_TEST(right_of_scripts_lost_and_found)
{
    struct verdict verdict;

    stage_do(s, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all");
    stage_actor(s, "worker", textf("url=unix://poor:pw@%s", s->server.socket), "executors=2", NULL);
    stage_await_workers(s, 1);
    stage_do(s, "ACL", "SETUSER", "poor", "-ltrim");
    stage_push(s, "mark", NULL, 0, 20);
    await_text(s->server.folder, "worker.err", "user poor lacks rights; redis-cli ACL SETUSER poor +ltrim");
    clock_sleep_until(clock_mono_us() + 2500 * MS); /* the time that passes is the test */
    assert_int_equal(stage_number(s, "LLEN", stage_key(s, "queue:default")), 20);
    assert_int_equal(history_count(s, "begin", -1), 0);
    stage_do(s, "ACL", "SETUSER", "poor", "+ltrim");
    verdict = stage_await_done(s, 20);
    assert_in_range(verdict.twice, 1, 20);
}

/* What was leased in an answer that cannot be read is handed back: the same worker runs it once it can read the next one. */
STAGE_TEST(an_answer_that_cannot_be_read)
{
    static const char sound[] = "packed[1] = concat(runs, ' ')\n",
                      faulty[] = "packed[1] = 'no  number here'\n";
    char *text = strdup(script_library), *at = strstr(text, sound);

    assert_non_null(at);
    assert_int_equal(sizeof faulty, sizeof sound);
    memcpy(at, faulty, sizeof faulty - 1);
    stage_do(s, "FUNCTION", "LOAD", "REPLACE", text);
    stage_push(s, "mark", NULL, 0, 20);
    stage_actor(s, "worker", "executors=20", NULL);
    await_text(s->server.folder, "worker.err", "a lease that cannot be read");
    stage_do(s, "FUNCTION", "LOAD", "REPLACE", script_library);
    assert_int_equal(stage_await_done(s, 20).twice, 0);
    free(text);
}

STAGE_TESTS(NULL, NULL)
