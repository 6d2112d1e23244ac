/* Stopping: no more jobs are taken, those that run end or, when the grace is over, are given back; then the
 * worker leaves. */
#include <stdio.h>

#include "core/clock.h"
#include "core/log.h"
#include "worker/worker.h"

#define KILL_AFTER_US 2000000    /* from TERM to KILL for commands that are over the grace */
#define SETTLE_WITHIN_US 2000000 /* what has ended by then, from a forced stop on, is not run again */

void weir_worker_stop(struct weir_worker *w)
{
    atomic_fetch_add(&w->stop_calls, 1);
    ev_async_send(w->loop, &w->stop_async);
}

void weir_worker_quiet(struct weir_worker *w)
{
    atomic_store(&w->quiet, true);
}

static void ask_to_leave(struct weir_worker *w);

/* reply NULL: Redis is away; what is still leased returns when the lease ends. */
static void on_left(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct pool_load load = pool_load(w->pool);
    int kept = load.running + load.queued + w->finished.count + w->settling.count;
    struct adopt adopt = {0};
    struct error e = {.text = "Redis is away"};

    w->awaited--;
    if ((!reply || adopt_reply(reply, w->queue_count, &adopt, &e) != 0) && kept > 0 && w->result == 0)
        w->result =
            error_set(&w->error, WEIR_EUNREACHABLE,
                      "worker: stopped with %d jobs that could not be given back (%.200s); they return when "
                      "their lease ends",
                      kept, e.text);
    adopt_free(&adopt);
    if (adopt.left > 0)
        ask_to_leave(w);
    else
        ev_break(w->loop, EVBREAK_ALL);
}

void worker_write_leave(struct weir_worker *w, struct args *a)
{
    struct adopt_call call = {.worker = "",
                              .old_worker = w->id,
                              .group = w->group,
                              .info = "",
                              .birth = "",
                              .queues = {w->queues, w->queue_count}};

    adopt_request(a, w->prefix, -1, &call);
}

static void ask_to_leave(struct weir_worker *w)
{
    struct args a;

    args_init(&a);
    w->awaited++;
    worker_write_leave(w, &a);
    link_send(w->link, &a, REQUEST_TIMEOUT_S, on_left, w);
    args_free(&a);
}

void worker_leave(struct weir_worker *w)
{
    if (w->leaving)
        return;
    w->leaving = true;
    if (w->adopted && link_is_up(w->link))
        ask_to_leave(w);
    else
        on_left(w, (w->awaited++, NULL));
}

static void begin_force(struct weir_worker *w, int64_t now)
{
    int running = pool_load(w->pool).running;

    if (running > 0)
        log_line(LOG_LEVEL_WARN, "stopping now: %d jobs are given back", running);
    w->forced_us = now;
    worker_ask_all(w, ASKED_STOP);
}

/* The grace is over, or somebody is impatient: commands are ended, and jobs that have not ended are given
 * back. Those that have are settled first. */
static void force(struct weir_worker *w, int64_t now)
{
    if (!w->forced_us)
        begin_force(w, now);
    if (w->adopted && link_is_up(w->link) && now - w->forced_us < SETTLE_WITHIN_US)
        worker_look(w);
    else
        worker_leave(w);
}

void worker_begin_stop(struct weir_worker *w)
{
    struct task_list waiting;

    if (w->stopping_us)
        return;
    w->stopping_us = clock_mono_us();
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
    int calls = atomic_load(&w->stop_calls);
    int64_t now = clock_mono_us();

    if (w->drain_max_us && !w->stopping_us && now - w->started_us > w->drain_max_us) {
        w->result = error_set(&w->error, WEIR_ENOTNOW, "worker: not drained in %.1f s; run it again",
                              (double)w->drain_max_us / 1e6);
        worker_begin_stop(w);
    }
    if (calls > 0 && !w->stopping_us)
        worker_begin_stop(w);
    if (w->stopping_us && (calls > 1 || now - w->stopping_us > w->grace_us))
        force(w, now);
    else if (w->stopping_us && !(link_is_up(w->link) && w->permitted) && worker_is_idle(w))
        worker_leave(w);
    else
        worker_look(w);
}

/* The functions on threads that still run. */
static int functions(struct weir_worker *w)
{
    size_t n = pool_running(w->pool, w->watched);
    int count = pool_load(w->pool).given_up;

    for (size_t i = 0; i < n; i++)
        count += w->watched[i]->handler->way->run && !w->watched[i]->handler->way->end;
    return count;
}

static void kill_all(struct weir_worker *w)
{
    size_t n = pool_running(w->pool, w->watched);

    for (size_t i = 0; i < n; i++)
        if (w->watched[i]->handler->way->end)
            w->watched[i]->handler->way->end(w->watched[i], true);
}

void worker_end_running(struct weir_worker *w)
{
    int64_t deadline_us = clock_mono_us() + (w->hurried ? 0 : KILL_AFTER_US);
    struct pool_load load = pool_load(w->pool);

    while (load.threads + load.given_up > functions(w) && clock_mono_us() < deadline_us) {
        clock_sleep_until(clock_mono_us() + 10000);
        load = pool_load(w->pool);
    }
    kill_all(w);
    w->abandoned = functions(w) > 0;
}
