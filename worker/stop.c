/* Stopping: no more jobs are taken, those that run end or, when the grace is over, are given back; then the
 * worker leaves. */
#include <stdio.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/worker.h"

#define SETTLE_WITHIN_US 2000000 /* what has ended by then, from a forced stop on, is not run again */

static void ask_to_leave(struct weir_worker *w);

/* reply NULL: Redis is away; what is still leased returns when the lease ends. */
static void on_left(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct pool_load load = pool_load(w->pool);
    int kept = load.running + load.queued + w->settling.finished.count + w->settling.sent.count;
    struct adopt adopt = {0};
    struct error e = {.text = "Redis is away"}, left;

    if ((!reply || adopt_reply(reply, w->options.queue_count, &adopt, &e) != 0) && kept > 0 &&
        w->ending.error.status == 0) {
        error_set(
            &left, WEIR_EUNREACHABLE,
            "worker: stopped with %d jobs that could not be given back (%.200s); they return when their "
            "lease ends",
            kept, e.text);
        worker_fail(w, &left);
    }
    adopt_free(&adopt);
    if (adopt.left > 0)
        ask_to_leave(w);
    else
        worker_end_loop(w);
}

static void on_leave_answered(void *arg, const struct redisReply *reply)
{
    worker_answered(arg);
    on_left(arg, reply);
}

void worker_write_leave(struct weir_worker *w, struct args *a)
{
    struct adopt_call call = {.worker = "",
                              .old_worker = w->session.id,
                              .group = w->adoption.group,
                              .info = "",
                              .birth = "",
                              .queues = {w->options.queues, w->options.queue_count}};

    adopt_request(a, w->options.prefix, -1, &call);
}

static void ask_to_leave(struct weir_worker *w)
{
    struct args a;

    args_init(&a);
    worker_write_leave(w, &a);
    worker_send(w, &a, on_leave_answered);
    args_free(&a);
}

void worker_leave(struct weir_worker *w)
{
    if (w->stop.leaving)
        return;
    w->stop.leaving = true;
    if (w->session.registered && link_is_up(w->link))
        ask_to_leave(w);
    else
        on_left(w, NULL);
}

bool worker_leave_if_done(struct weir_worker *w)
{
    bool done = w->stop.forced_us ? !w->settling.finished.head : w->stop.since_us && worker_is_idle(w);

    if (done)
        worker_leave(w);
    return done;
}

static void begin_force(struct weir_worker *w, int64_t now)
{
    int running = pool_load(w->pool).running;

    if (running > 0)
        log_line(LOG_LEVEL_WARN, "stopping now: %d jobs are given back", running);
    w->stop.forced_us = now;
    worker_ask_all(w, ASKED_STOP);
}

/* The grace is over, or somebody is impatient: commands are ended, and jobs that have not ended are given
 * back. Those that have are settled first. */
static void force(struct weir_worker *w, int64_t now)
{
    if (!w->stop.forced_us)
        begin_force(w, now);
    if (!w->session.registered || !link_is_up(w->link) || now - w->stop.forced_us >= SETTLE_WITHIN_US)
        worker_leave(w);
}

static void begin_stop(struct weir_worker *w)
{
    struct task_list waiting;

    if (w->stop.since_us)
        return;
    w->stop.since_us = clock_mono_us();
    task_list_init(&waiting);
    pool_withdraw(w->pool, &waiting, true);
    log_line(LOG_LEVEL_INFO, "stopping: %d jobs run to their end, %d are given back",
             pool_load(w->pool).running, waiting.count);
    worker_give_back(w, &waiting);
    for (int i = 0; i < w->handlers.count; i++)
        if (w->handlers.at[i].way->stop)
            w->handlers.at[i].way->stop(&w->handlers.at[i]);
}

void worker_check_stop(struct weir_worker *w)
{
    int calls = atomic_load(&w->ending.stop_calls);
    int64_t now = clock_mono_us();
    struct error e;

    if (w->options.drain_max_us && !w->stop.since_us && now - w->started_us > w->options.drain_max_us) {
        error_set(&e, WEIR_ENOTNOW, "worker: not drained in %.1f s; run it again",
                  (double)w->options.drain_max_us / 1e6);
        worker_fail(w, &e);
        begin_stop(w);
    }
    if ((calls > 0 || w->ending.wanted) && !w->stop.since_us)
        begin_stop(w);
    if (w->stop.since_us && (calls > 1 || now - w->stop.since_us > w->options.grace_us))
        force(w, now);
    else if (w->stop.since_us && !(link_is_up(w->link) && w->session.permitted) && worker_is_idle(w))
        worker_leave(w);
}
