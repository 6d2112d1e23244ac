/* A claim that stands in Redis behind the worker's peek at its queue: what of it may be old by the time it runs, and what becomes of what it
 * leased when nobody hears its answer. */
#include <signal.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage.h"

#define LATE_US (1500 * MS)
#define TRIES 50 /* a claim stands for a quarter of a second, and the machine may be busy */

static int sent; /* jobs so far */

static void one_more(struct stage *s)
{
    stage_push(s, "mark", NULL, sent++, 1);
}

/* Is there a connection that blocks by a peek and has sent more behind it? */
static bool stands(struct stage *s)
{
    char *list = server_ask(&s->server, "CLIENT", "LIST", NULL), *rest = list;
    bool found = false;

    for (const char *line; (line = strsep(&rest, "\n"));)
        found |= strstr(line, "cmd=blmove") && !strstr(line, " qbuf=0 ");
    free(list);
    return found;
}

/* Jobs come one by one until a claim stands. */
static void make_stand(struct stage *s)
{
    for (int64_t end_us = clock_mono_us() + AWAIT_US; !stands(s);) {
        int64_t until_us;

        if (clock_mono_us() > end_us)
            fail_msg("no claim stands");
        one_more(s);
        await(history_count(s, "effect", sent - 1) == 1);
        until_us = clock_mono_us() + 50 * MS;
        while (!stands(s) && clock_mono_us() < until_us)
            clock_sleep_until(clock_mono_us() + MS);
    }
}

static pid_t start_behind(struct stage *s, struct proxy *p)
{
    const char *url = textf("url=%s", proxy_url(p));

    return stage_actor(s, "worker", url, "executors=4", NULL);
}

static void end_well(struct stage *s, pid_t worker)
{
    struct verdict v = stage_await_done(s, sent);

    assert_int_equal(v.twice, 0);
    assert_int_equal(stage_end(worker), 0);
}

static int setup(void **state)
{
    sent = 0;
    return stage_setup(state);
}

/* Nothing that the worker sends reaches Redis, and its job starts. */
STAGE_TEST_WITH(test_no_request_lies_between_a_job_and_its_start, setup, stage_teardown)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker = start_behind(s, p);
    bool started = false;

    for (int i = 0; !started && i < TRIES; i++) {
        int64_t end_us;

        make_stand(s);
        end_us = clock_mono_us() + 400 * MS;
        proxy_stall(p, PROXY_REQUESTS, 500 * MS);
        one_more(s);
        while (!(started = history_count(s, "effect", sent - 1) == 1) && clock_mono_us() < end_us)
            clock_sleep_until(clock_mono_us() + MS);
        await(history_count(s, "effect", sent - 1) == 1);
    }
    assert_true(started);
    end_well(s, worker);
    proxy_stop(p);
}

/* The worker joins again, and what was leased comes back: nothing else would notice, as its own link is whole. */
STAGE_TEST_WITH(test_an_answer_that_is_lost, setup, stage_teardown)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker = start_behind(s, p);

    make_stand(s);
    proxy_cut_before(p, PROXY_REPLIES, 1);
    one_more(s);
    await(proxy_has_cut(p));
    end_well(s, worker);
    proxy_stop(p);
}

/* The line of that connection in CLIENT LIST says this; 0: there is none. */
static long connection(struct stage *s, const char *words)
{
    char *list = server_ask(&s->server, "CLIENT", "LIST", NULL), *rest = list;
    long id = 0;

    for (const char *line; id == 0 && (line = strsep(&rest, "\n"));)
        if (strstr(line, words))
            id = atol(line + strlen("id="));
    free(list);
    return id;
}

/* The worker joins again meanwhile, and what the answer brings is handed back: it runs once. Only when the answer has come, the worker peeks
 * again. */
STAGE_TEST_WITH(test_an_answer_to_an_id_that_has_ended, setup, stage_teardown)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker = start_behind(s, p);
    char turns[24];

    make_stand(s);
    snprintf(turns, sizeof turns, "%ld", connection(s, " cmd=fcall "));
    proxy_delay(p, PROXY_REPLIES, LATE_US);
    one_more(s);
    await(connection(s, " cmd=blmove ") == 0);
    proxy_delay(p, PROXY_REPLIES, 0);
    stage_do(s, "CLIENT", "KILL", "ID", turns);
    await(history_count(s, "effect", sent - 1) == 1);
    await(connection(s, " cmd=blmove ") != 0);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_await_done(s, sent).twice, 0);
    proxy_stop(p);
}

/* The answer is on its way as the worker stops: nothing stays leased. */
STAGE_TEST_WITH(test_a_stop, setup, stage_teardown)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker = start_behind(s, p);

    make_stand(s);
    proxy_stall(p, PROXY_REPLIES, 300 * MS);
    one_more(s);
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(p);
    one_more(s);
    end_well(s, stage_actor(s, "another", NULL));
}

static pid_t runner(struct stage *s, int job)
{
    struct history h = history_read(s);
    pid_t pid = 0;

    for (int i = 0; i < h.count; i++)
        if (h.events[i].job == job)
            pid = h.events[i].pid;
    history_free(&h);
    return pid;
}

/* The answer is on its way: another worker runs the job. */
STAGE_TEST_WITH(test_a_worker_that_becomes_quiet, setup, stage_teardown)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker = start_behind(s, p), another;

    make_stand(s);
    proxy_stall(p, PROXY_REPLIES, 300 * MS);
    one_more(s);
    kill(worker, SIGTSTP);
    another = stage_actor(s, "another", NULL);
    stage_await_done(s, sent);
    assert_int_equal(runner(s, sent - 1), another);
    assert_int_equal(stage_end(another), 0);
    end_well(s, worker);
    proxy_stop(p);
}

STAGE_TEST_WITH(test_redis_loses_its_functions, setup, stage_teardown)
{
    pid_t worker = stage_actor(s, "worker", "executors=4", NULL);

    make_stand(s);
    stage_do(s, "FUNCTION", "FLUSH");
    one_more(s);
    end_well(s, worker);
}

STAGE_TEST_WITH(test_redis_loses_all, setup, stage_teardown)
{
    pid_t worker = stage_actor(s, "worker", "executors=4", NULL);

    make_stand(s);
    stage_do(s, "FLUSHALL");
    one_more(s);
    end_well(s, worker);
}

/* The queue is paused, and then the type gets a limit: what stands does not start what these hold. */
STAGE_TEST_WITH(test_a_pause_and_a_limit, setup, stage_teardown)
{
    pid_t worker = stage_actor(s, "worker", "executors=4", NULL);

    make_stand(s);
    stage_must(s, "queue pause default");
    one_more(s);
    await(stage_peeks(s) > 0 && !stands(s));
    assert_int_equal(history_count(s, "begin", sent - 1), 0);
    stage_must(s, "queue resume default");
    await(history_count(s, "effect", sent - 1) == 1);
    make_stand(s);
    stage_rate(s, "mark", "1/1h,burst=1");
    for (int i = 0; i < 4; i++)
        one_more(s);
    await(history_count(s, "begin", sent - 4) == 1);
    await(!stands(s));
    assert_int_equal(history_count(s, "begin", sent - 3) + history_count(s, "begin", sent - 1), 0);
    stage_must(s, "rate remove mark --yes");
    end_well(s, worker);
}

/* It takes two jobs with it at most, until it goes on or its lease is over. */
STAGE_TEST_WITH(test_a_worker_that_hangs, setup, stage_teardown)
{
    enum { JOBS = 10, KEPT = 2 };
    pid_t worker = stage_actor(s, "worker", "executors=4", NULL), another;
    int before;

    make_stand(s);
    kill(worker, SIGSTOP);
    another = stage_actor(s, "another", "executors=4", NULL);
    before = history_count(s, "effect", -1);
    for (int i = 0; i < JOBS; i++)
        one_more(s);
    await(history_count(s, "effect", -1) >= before + JOBS - KEPT);
    kill(worker, SIGCONT);
    stage_await_done(s, sent);
    assert_int_equal(stage_end(another), 0);
    end_well(s, worker);
}

STAGE_TESTS(NULL, NULL)
