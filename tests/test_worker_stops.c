/* How a worker ends: drained, stopped, stopped at once; and one that takes no more jobs. */
#include <signal.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage.h"

/* ---- Draining */

STAGE_TEST(drain_ends)
{
    char id[WEIR_ID_SIZE];

    assert_int_equal(program_end(stage_actor(s, "empty", "drain=1", NULL)), 0);
    stage_enqueue(s, "mark", NULL, 0, 100);
    stage_enqueue(s, "mark", "{\"fail\":1,\"after\":0}", 100, 10);
    stage_enqueue(s, "other", NULL, 110, 5); /* not this worker's */
    assert_int_equal(
        weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark", .args = "null", .delay_s = 3600}, id),
        0);
    stage_rate(s, "mark", "200/s,burst=10");
    assert_int_equal(program_end(stage_actor(s, "worker", "drain=1", NULL)), 0);
    assert_int_equal(stage_stat(s, "mark", "done"), 110);
    assert_int_equal(stage_stat(s, "mark", "scheduled"), 1);
    assert_int_equal(stage_number(s, "ZCARD", stage_key(s, "workers")), 0);
}

STAGE_TEST(drain_waits_for_others)
{
    pid_t drains;

    stage_actor(s, "other", "executors=1", NULL);
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    drains = stage_actor(s, "drains", "drain=1", NULL);
    await_text(s->server.folder, "drains.err", "draining: 0 waiting, 0 parked, 1 running");
    assert_int_equal(kill(drains, 0), 0);
    write_text(s->server.folder, "go", "");
    assert_int_equal(program_end(drains), 0);
    assert_int_equal(history_count(s, "effect", 0), 1);
}

/* ---- Stopping */

/* Jobs that wait in the worker go back in order, with no attempt used; the one that runs is finished. */
STAGE_TEST(term_finishes_and_gives_back)
{
    struct history h;
    int last = -1;
    pid_t worker;

    stage_enqueue(s, "mark", NULL, 0, 3000); /* fast: so that many are prefetched */
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 3000, 1);
    stage_enqueue(s, "mark", NULL, 3001, 500);
    worker = stage_actor(s, "worker", "executors=1", NULL);
    await(history_count(s, "begin", 3000) == 1);
    kill(worker, SIGTERM);
    await_text(s->server.folder, "worker.err", "stopping: 1 jobs run to their end");
    write_text(s->server.folder, "go", "");
    assert_int_equal(program_end(worker), 0);
    assert_int_equal(stage_judge(s, 3501).lost, 0);
    assert_int_equal(history_count(s, "effect", 3000), 1);
    assert_int_equal(history_count(s, "begin", -1), 3001);

    assert_int_equal(program_end(stage_actor(s, "next", "executors=1", "drain=1", NULL)), 0);
    assert_int_equal(stage_await_done(s, 3501).twice, 0);
    h = history_read(s);
    for (int i = 0; i < h.count; i++) {
        if (strcmp(h.events[i].what, "begin") != 0)
            continue;
        assert_int_equal(h.events[i].attempt, 1);
        assert_int_equal(h.events[i].job, last + 1);
        last = h.events[i].job;
    }
    history_free(&h);
}

/* The same under load, again and again: nothing is lost, nothing runs twice. */
STAGE_TEST(term_at_any_time)
{
    int end = 0;

    stage_enqueue(s, "mark", "{\"sleep\":0.001}", 0, 3000);
    for (int i = 0; i < 12; i++) {
        pid_t worker = stage_actor(s, "worker", "executors=3", NULL);

        await(history_count(s, "effect", -1) > end + 20 * (i % 5));
        assert_int_equal(stage_end(worker), 0);
        end = history_count(s, "effect", -1);
        assert_int_equal(history_count(s, "begin", -1), end);
        assert_int_equal(stage_judge(s, 3000).lost, 0);
    }
    assert_int_equal(program_end(stage_actor(s, "last", "drain=1", NULL)), 0);
    assert_int_equal(stage_await_done(s, 3000).twice, 0);
}

/* A C function cannot be ended; the program can. */
STAGE_TEST(second_term_leaves_functions)
{
    pid_t worker = stage_actor(s, "worker", "executors=2", NULL);

    stage_push(s, "mark", "{\"wait\":\"never\"}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    kill(worker, SIGTERM);
    await_text(s->server.folder, "worker.err", "stopping: 1 jobs run to their end");
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_judge(s, 1).present, 1);
    assert_int_equal(stage_stat(s, "mark", "back"), 1);
}

/* What has ended while an answer was on its way is settled before the rest is given back. */
STAGE_TEST(second_term_settles_first)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker;
    const char *url = textf("url=%s", proxy_url(p));

    stage_enqueue(s, "mark", "{\"wait\":\"first\"}", 0, 1);
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 1, 20);
    worker = stage_actor(s, "worker", url, "executors=21", NULL);
    await(history_count(s, "begin", -1) == 21);
    proxy_delay(p, PROXY_REPLIES, 400 * MS);
    write_text(s->server.folder, "first", ""); /* its end is being settled while the others end */
    await(stage_stat(s, "mark", "done") == 1);
    write_text(s->server.folder, "go", "");
    await(history_count(s, "effect", -1) == 21);
    kill(worker, SIGTERM);
    await_text(s->server.folder, "worker.err", "stopping: ");
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(p);
    assert_int_equal(stage_stat(s, "mark", "done"), 21);
    assert_int_equal(stage_stat(s, "mark", "back"), 0);
}

/* Has a worker with an order, which it need not have heard from Redis? */
static bool is_ordered(struct stage *s)
{
    char *keys = server_ask(&s->server, "KEYS", stage_key(s, "order:*"), NULL);
    bool found = *keys != '\0';

    free(keys);
    return found;
}

STAGE_TEST(quiet_takes_no_more)
{
    pid_t worker = stage_actor(s, "worker", "executors=2", "lease=1", NULL);

    stage_push(s, "mark", "{\"wait\":\"go\"}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    kill(worker, SIGTSTP);
    stage_push(s, "mark", NULL, 1, 1);
    stage_await_heartbeats(s, 3); /* it lives on */
    assert_int_equal(history_count(s, "begin", 1), 0);
    await(is_ordered(s)); /* so that all faces say why nothing starts */
    write_text(s->server.folder, "go", "");
    await(stage_stat(s, "mark", "done") == 1);
    assert_int_equal(history_count(s, "begin", 1), 0);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_judge(s, 2).present, 1);
}

/* Its next heartbeat would come after minutes. */
STAGE_TEST(quiet_is_told_at_once)
{
    pid_t worker = stage_actor(s, "worker", "executors=2", "lease=600", NULL);

    stage_push(s, "mark", NULL, 0, 1);
    await(stage_stat(s, "mark", "done") == 1);
    kill(worker, SIGTSTP);
    await(is_ordered(s));
}

STAGE_TESTS(NULL, NULL)
