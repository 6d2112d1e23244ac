/* Jobs whose worker died while they ran: each runs alone in its worker, so that only the one that kills is
 * dead; and nobody else waits for them. The scripts under a clock of the test's own, then real workers. */
#include "tests/play.h"
#include "tests/scene.h"

#include <signal.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "queue/inspect/find_job.h"
#include "queue/queues/queues.h"
#include "tests/stage.h"

/* A worker that runs these jobs dies. */
static void die_with(const char *type, const char *ids)
{
    start("dead");
    enqueue("default", type, ids);
    claim("dead", 60, 0);
    start("reaper");
    pass("reaper", LEASE_US + SECOND_US);
    must(turns_adopt("", "reaper", NULL, 0, default_queue, NULL));
    turns_check();
}

static void done(const char *worker, const char *type)
{
    int64_t stale;

    must(turns_settle_done(worker, type, tokens, turns.claim.lease_count, &stale));
    assert_int_equal(stale, 0);
}

static void expect_alone(size_t leases, bool alone)
{
    assert_int_equal(turns.claim.lease_count, leases);
    assert_int_equal(turns.claim.alone, alone);
    turns_check();
}

/* Is it among the leases of the last claim? */
static bool is_leased(const char *id)
{
    const char *text = textf("\"id\":\"%s\"", id);

    for (size_t i = 0; i < turns.claim.lease_count; i++)
        if (memmem(turns.claim.leases[i].body.at, turns.claim.leases[i].body.len, text, strlen(text)))
            return true;
    return false;
}

/* The suspects of `count` jobs run, until all have ended; whoever runs one of two jobs dies. Returns how often. */
static int run_suspects(int count, const char *killer, const char *other)
{
    int deaths = 1, ended = 0, rounds = 0;
    char worker[16];

    start("w0");
    enqueue_many("t", count);
    while (claim("w0", count, 0) > 0)
        continue;
    for (bool died = true; died; deaths += died) {
        snprintf(worker, sizeof worker, "w%d", deaths);
        start(worker);
        pass(worker, LEASE_US + SECOND_US);
        for (died = false, ask.alone = true; !died && claim(worker, count, 50) > 0; rounds++) {
            assert_true(turns.claim.alone);
            for (size_t i = 0; i < turns.claim.lease_count; i++)
                assert_in_range(turns.claim.leases[i].interrupted, 1, turns.claim.lease_count > 1 ? 1 : 2);
            died = is_leased(killer) || is_leased(other);
            if (!died) {
                ended += (int)turns.claim.lease_count;
                done(worker, "t");
            }
            turns_check();
        }
    }
    assert_int_equal(redis_number("ZCARD", PREFIX "dead") + ended, count);
    assert_in_range(rounds, 1, 2 * deaths + 2);
    assert_int_equal(turns_check().parked, 0);
    return deaths;
}

static int halvings(int count)
{
    int n = 0;

    for (; count > 1; count = (count + 1) / 2)
        n++;
    return n;
}

/* Wherever it stands: each death halves those among which it is; then it dies alone, twice. */
SCENE_TEST(test_the_one_that_kills_is_found_by_halves)
{
    static const int counts[] = {1, 2, 3, 7, 50, 64};

    for (size_t i = 0; i < COUNT(counts); i++)
        for (int at = 0; at < counts[i]; at += at == 0 ? counts[i] / 3 + 1 : counts[i] / 2 + 1) {
            char *dead;
            int deaths;

            scene_begin(state);
            deaths = run_suspects(counts[i], textf("t%d", at), "none");
            assert_in_range(deaths, 3, 3 + halvings(counts[i]));
            expect_text("1", "ZCARD", PREFIX "dead");
            dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
            if (!strstr(unstamped(dead), textf("its worker died %d times\n@0,3,0;", deaths)))
                fail_msg("%d deaths: %s", deaths, dead);
            free(dead);
        }
}

SCENE_TEST(test_two_that_kill)
{
    assert_in_range(run_suspects(50, "t9", "t40"), 5, 2 * (3 + halvings(50)));
    expect_counters("t", "done 48, dead 2");
}

/* However often a job is beside one that kills its worker, it is only suspected. */
SCENE_TEST(test_what_counts)
{
    start("w");
    enqueue("default", "t", "a b");
    for (int i = 0; i < 5; i++) {
        start("dead");
        assert_int_equal(claim("dead", 2, 0), 2);
        assert_int_equal(turns.claim.leases[1].interrupted, i > 0);
        pass("w", LEASE_US + SECOND_US);
        expect_list(ALONE("t"), "a b");
        for (int k = 0; k < 2; k++) {
            assert_int_equal(claim("w", 1, 0), 1);
            settle("w", SETTLE_RETRY, tokens[0], 0, NULL);
        }
        promote(2);
    }
    assert_int_equal(redis_number("EXISTS", PREFIX "dead"), 0);
}

/* Those that are cancelled, or of a paused batch or queue, do not run; the purge of a queue takes them. */
SCENE_TEST(test_what_is_not_to_run)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    struct queue_jobs jobs;
    json_t *job;

    die_with("t", "a b c");
    start("w");
    must(turns_pausing("queue_pause", "default", RATE_ENDLESS));
    claim("w", 1, 0);
    expect_alone(0, false);
    must(turns_pausing("queue_pause", "default", RATE_RESUME));
    redis_do("HSET", PREFIX "cancelled", "a", "waiting 1");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("b");
    expect_counters("t", "cancelled 1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(find_job(w, turns.now_us, i ? "c" : "b", &job), 0);
        assert_true(json_is_true(json_object_get(job, "alone")));
        assert_string_equal(answer_text(job, "state"), i ? "parked" : "running");
        assert_int_equal(answer_int(job, "interrupted"), 1);
        assert_string_equal(answer_text(job, "queue"), "default");
        json_decref(job);
    }
    assert_int_equal(queue_count(w, turns.now_us, "default", NULL, &jobs), 0);
    assert_int_equal(jobs.parked, 1);
    assert_int_equal(queue_purge(w, turns.now_us, "default", NULL, 100, &jobs), 0);
    assert_int_equal(jobs.parked, 1);
    expect_list(ALONE("t"), "");
    turns_check();
    weir_free(w);
}

/* One in four, and one at least. */
SCENE_TEST(test_places)
{
    char name[16];

    die_with("t", "a b c d");
    enqueue_many("slow", 50);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "w%d", i);
        start(name);
    }
    for (int i = 0; i < 9; i++) { /* each has something in flight */
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(claim(name, 1, 0), 1);
    }
    ask.alone = true;
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "w%d", i);
        claim(name, 1, 0);
        expect_alone(i < 2 ? 0 : 1, i < 2);
    }
    must(turns_adopt("", "w0", NULL, 0, default_queue, NULL)); /* who leaves has none any more, */
    claim("w2", 1, 0);
    expect_alone(0, true);
    ask.alone = false;
    claim("w1", 1, 0); /* nor who gave it up, */
    expect_alone(1, false);
    ask.alone = true;
    claim("w3", 1, 0);
    expect_alone(0, true);
    start("w9");
    turns.now_us += LEASE_US - 1;
    pass("w9", 0);
    pass("w9", LEASE_US + SECOND_US); /* nor who died */
    claim("w9", 1, 0);
    expect_alone(1, true);
    expect_leases("a");
}

/* However often a worker is killed from outside: what does not run in its process never dies of it. */
SCENE_TEST(test_workers_of_commands_that_are_killed)
{
    start("w");
    enqueue("default", "t", "a");
    for (int i = 0; i < 5; i++) {
        turns.info = "{\"lease\":30.0,\"inside\":[]}";
        start("dead");
        turns.info = NULL;
        assert_int_equal(claim("dead", 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].interrupted, 0);
        pass("w", LEASE_US + SECOND_US);
        expect_list(LANE("t"), "a");
    }
    turns_check();
}

/* ---- Real workers */

static pid_t actor(struct stage *s, const char *name)
{
    return stage_actor(s, name, "types=mark,kills", "executors=8", "lease=1", "fragile=1", NULL);
}

/* A job that kills its worker, seven beside it, and others that come all the time; who dies is started again.
 */
STAGE_TEST(one_of_eight_kills)
{
    pid_t worker;
    int deaths = 0;
    char *dead;

    stage_enqueue(s, "mark", "{\"sleep\":0.2}", 1, 7);
    stage_enqueue(s, "kills", "{\"sleep\":0.05,\"kill\":\"before\"}", 0, 1);
    for (worker = actor(s, "worker"); stage_stat(s, "kills", "dead") == 0; deaths++) {
        await(!is_running(worker) || stage_stat(s, "kills", "dead") == 1);
        if (stage_stat(s, "kills", "dead") == 1)
            break;
        assert_int_equal(program_end(worker), 1000 + SIGKILL);
        stage_enqueue(s, "mark", "{\"sleep\":0.01}", 10 + 10 * deaths, 10);
        worker = actor(s, "worker");
    }
    assert_in_range(deaths, 3, 5);
    await(stage_stat(s, "mark", "done") == 7 + 10 * deaths);
    dead = stage_dead(s);
    assert_non_null(strstr(dead, textf("default/kills/ its worker died %d times\n", deaths)));
    assert_null(strstr(dead, "default/mark/"));
    free(dead);
}

/* Its functions run again half of them together; all of them wait. */
STAGE_TEST(halves_run_together)
{
    pid_t worker;

    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 1, 8);
    worker = stage_actor(s, "first", "types=mark", "executors=8", "lease=2", NULL);
    await(history_count(s, "begin", -1) == 8);
    kill(worker, SIGKILL);
    program_end(worker);
    worker = stage_actor(s, "worker", "types=mark", "executors=8", "lease=2", NULL);
    await(history_count(s, "begin", -1) == 8 + 4);
    await_text(s->server.folder, "worker.err", "4 jobs run together and nothing beside them");
    write_text(s->server.folder, "go", "");
    await(stage_stat(s, "mark", "done") == 8);
    assert_int_equal(history_count(s, "begin", -1), 8 + 8);
}

/* What does not run in its process is not to blame: all of it runs again beside each other, and none is interrupted. Types of both kinds in one worker. */
STAGE_TEST(commands_of_a_worker_that_is_killed)
{
    pid_t worker;
    char *info;

    write_text(s->server.folder, "handler",
               "#!/bin/sh\necho >>begun\nuntil [ -e go ]; do sleep 0.05; done\n");
    stage_enqueue(s, "run", NULL, 1, 8);
    for (int i = 1; i <= 2; i++) {
        worker = stage_weir(s, i == 1 ? "first" : "worker", "--exec", "run=sh handler", "-c", "8", "--lease",
                            "2s", NULL);
        await(stage_lines(s, "begun") == 8 * i);
        info = server_ask(&s->server, "EVAL",
                          "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], '-1', '-1')) do\n"
                          "  return redis.call('HGET', ARGV[1] .. id, '@')\n"
                          "end",
                          "1", stage_key(s, "workers"), stage_key(s, "active:"), NULL);
        assert_non_null(strstr(info, "\"inside\":[]"));
        free(info);
        if (i == 1) {
            kill(worker, SIGKILL);
            program_end(worker);
        }
    }
    assert_int_equal(stage_number(s, "EXISTS", stage_key(s, "alone")), 0);
    await_text(s->server.folder, "worker.err",
               "msg=\"back: its worker died, and it cannot be what killed it\" job=");
    write_text(s->server.folder, "go", "");
    await(stage_stat(s, "run", "done") == 8);
    assert_int_equal(stage_stat(s, "run", "reaped"), 8);
}

/* A worker that always has something in flight: the others go on, and in the end it has its turn. Its functions would end it (70) if the
 * machine let it stand still for a lease. */
STAGE_TEST(a_busy_worker)
{
    long long done;

    stage_do(s, "HSET", stage_key(s, "active:gone"), "@", "{}", "1.--/default/mark/",
             "{\"id\":\"j0\",\"type\":\"mark\"}");
    stage_do(s, "ZADD", stage_key(s, "workers"), "1", "gone");
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 1, 1);
    stage_actor(s, "worker", "types=mark,other", "executors=4", "lease=4", NULL);
    await(stage_number(s, "EXISTS", stage_key(s, "lane:default!/mark/")) == 1);
    stage_enqueue(s, "other", "{\"sleep\":0.05}", 100, 400);
    await(stage_stat(s, "other", "done") > 20);
    done = stage_stat(s, "other", "done");
    await(stage_stat(s, "other", "done") > done + 20);
    assert_int_equal(history_count(s, "effect", 0), 0);
    write_text(s->server.folder, "go", "");
    await(history_count(s, "effect", 0) == 1);
    await_text(s->server.folder, "worker.err", "runs alone: its worker died");
    await(stage_stat(s, "other", "done") == 400);
}

PLAY("alone")

STAGE_TESTS(turns_start, turns_stop)
