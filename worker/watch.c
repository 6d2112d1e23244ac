/* Watching what runs: jobs over their time, jobs that were cancelled, and the lease itself.
 *
 * Commands and children get TERM, and KILL when they have not ended some seconds later. A C handler can only
 * be asked to end. One on the loop that is over its time is given up: its job failed, whatever it returns
 * later. So is one on a thread that has not ended some seconds after it was asked, and then the worker stops:
 * its executor is gone, and only the end of the process stops the function.
 *
 * Past the end of its lease, which is one lease after the last heartbeat that Redis answered was sent,
 * another worker may run what runs here. Then everything is ended and nothing of it settled; a function on a
 * thread can only be ended with the process. What had ended before is still settled, if Redis takes it. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/worker.h"

/* Jobs that take longer can be cancelled: then the worker listens. */
#define LISTEN_US (300 * MS)
#define KILL_AFTER_US 2000000 /* from TERM to KILL for commands that are over the grace */

int worker_open_watch(struct weir_worker *w)
{
    w->watch.running = calloc((size_t)w->options.executors, sizeof(struct task *));
    return w->watch.running ? 0 : -1;
}

void worker_free_watch(struct weir_worker *w)
{
    free(w->watch.running);
}

static void end(struct weir_worker *w, struct task *task, bool force)
{
    if (task->handler->way->end && pool_is_running(w->pool, task))
        task->handler->way->end(task, force);
}

static void ask(struct weir_worker *w, struct task *task, enum task_asked why, int64_t now)
{
    if (why != ASKED_STOP || atomic_load(&task->asked) == ASKED_NOTHING)
        atomic_store(&task->asked, why);
    if (task->asked_us == 0)
        task->asked_us = now;
    if (task->asked_us != NEVER)
        end(w, task, false);
}

static bool is_function(const struct task *task)
{
    return task->handler->way->run && !task->handler->way->end;
}

/* ---- Over its time */

/* Its handler holds the task on; the job goes on without it. */
static void give_up(struct weir_worker *w, struct task *task, int64_t now)
{
    bool cancelled = atomic_load(&task->asked) == ASKED_CANCELLED, stop = is_function(task);
    struct task *job = task_copy(task);
    struct error why;

    if (!job)
        return; /* tried again at the next watch */
    task_log(
        LOG_LEVEL_ERROR, task, "over its time of %g s%s", (double)task->timeout_us / 1e6,
        stop ? ", and its function cannot be stopped: the worker takes no more jobs, and ends with 70 when "
               "the others have ended"
             : "");
    if (stop)
        error_set(&why, WEIR_EINTERNAL,
                  "worker: %s %.*s ran over its time of %g s, and a C function cannot be stopped; start the "
                  "worker again",
                  task->handler->type, (int)task->view.id.len, task->view.id.at,
                  (double)task->timeout_us / 1e6);
    job->timeout_us = task->timeout_us;
    atomic_store(&job->asked, cancelled ? ASKED_CANCELLED : ASKED_OVER_TIME);
    atomic_store(&task->asked, ASKED_OVER_TIME);
    if (!pool_give_up(w->pool, task)) {
        task_free(job);
        return;
    }
    job->finished_us = now;
    job->end = END_RETRY;
    worker_finished_without(w, task, job);
    if (stop)
        worker_fail_and_stop(w, &why);
}

static void over_time(struct weir_worker *w, struct task *task, int64_t now)
{
    if (task->handler->way->start && !task->handler->way->end) {
        give_up(w, task, now);
        return;
    }
    task_log(LOG_LEVEL_WARN, task, "over its time of %g s: asked to end", (double)task->timeout_us / 1e6);
    ask(w, task, ASKED_OVER_TIME, now);
}

/* It was not asked to end, or it was, and nothing else can be done. */
static bool is_timed(const struct task *task)
{
    int asked = atomic_load(&task->asked);

    return task->timeout_us &&
           (asked == ASKED_NOTHING || (asked == ASKED_CANCELLED && !task->handler->way->end));
}

static void watch_one(struct weir_worker *w, struct task *task, int64_t now)
{
    int64_t begun_us = atomic_load(&task->begun_us);

    if (!begun_us)
        return;
    if (now - begun_us > LISTEN_US)
        waking_listen(w->waking);
    if (is_timed(task)) {
        if (now - begun_us >= task->timeout_us)
            over_time(w, task, now);
    } else if (atomic_load(&task->asked) != ASKED_NOTHING && task->asked_us != NEVER &&
               now - task->asked_us >= w->options.kill_after_us) {
        if (is_function(task) && atomic_load(&task->asked) == ASKED_OVER_TIME) {
            give_up(w, task, now);
        } else {
            task->asked_us = NEVER;
            end(w, task, true);
        }
    }
}

/* ---- The lease is over */

static void end_at_once(struct weir_worker *w, const struct task *task)
{
    struct error why;

    error_set(
        &why, WEIR_EINTERNAL,
        "worker: silent for longer than its lease while %s %.*s ran, and a C function cannot be stopped; "
        "start the worker again",
        task->handler->type, (int)task->view.id.len, task->view.id.at);
    worker_end_now(w, &why);
}

/* True: nothing else can be done but to end the process. */
static bool lose(struct weir_worker *w, struct task *task, int64_t now)
{
    if (is_function(task) && !atomic_load(&task->begun_us))
        return false; /* it will see that it is too late */
    ask(w, task, ASKED_LOST, now);
    if (is_function(task) && pool_is_running(w->pool, task)) {
        end_at_once(w, task);
        return true;
    }
    if (task->handler->way->start && !task->handler->way->end)
        pool_give_up(w->pool, task);
    return false;
}

void worker_end_lost(struct weir_worker *w)
{
    size_t n = pool_running(w->pool, w->watch.running);
    int64_t now = clock_mono_us();

    for (size_t i = 0; i < n; i++)
        if (atomic_load(&w->watch.running[i]->asked) == ASKED_LOST && !is_function(w->watch.running[i]))
            lose(w, w->watch.running[i], now);
}

static void cut_off(struct weir_worker *w, int64_t now)
{
    struct task_list waiting;
    size_t n;

    trace_lapsed(w->trace, worker_lapse(w));
    task_list_init(&waiting);
    pool_withdraw(w->pool, &waiting, true);
    worker_drop(w, &waiting); /* what adopt does not name goes back to its lane */
    n = pool_running(w->pool, w->watch.running);
    if (n > 0)
        log_line(LOG_LEVEL_WARN,
                 "silent for longer than the lease of %g s: %zu jobs that run here are ended, others may run "
                 "them now",
                 (double)w->options.lease_us / 1e6, n);
    for (size_t i = 0; i < n; i++)
        if (lose(w, w->watch.running[i], now))
            return;
    worker_wake(w);
}

static void give_back_lacking(struct weir_worker *w, int64_t now)
{
    struct task_list lacking;

    task_list_init(&lacking);
    pool_retry(w->pool, now, &lacking);
    worker_give_back(w, &lacking);
}

void worker_watch(struct weir_worker *w)
{
    int64_t now = clock_mono_us();
    size_t n;

    give_back_lacking(w, now);
    if (atomic_load(&w->conditions.lease_end_us) != 0 && lease_is_over(&w->conditions))
        cut_off(w, now);
    n = pool_running(w->pool, w->watch.running);
    for (size_t i = 0; i < n; i++)
        watch_one(w, w->watch.running[i], now);
    if (w->settling.finished.head)
        worker_wake(w);
}

void worker_ask_all(struct weir_worker *w, enum task_asked why)
{
    size_t n = pool_running(w->pool, w->watch.running);
    int64_t now = clock_mono_us();

    for (size_t i = 0; i < n; i++)
        ask(w, w->watch.running[i], why, now);
}

/* ---- Cancelled */

struct search {
    struct span token;
    struct task *found;
};

static void compare(struct task *task, void *arg)
{
    struct search *s = arg;

    if (!task->ended && task->token.len == s->token.len &&
        memcmp(task->token.at, s->token.at, s->token.len) == 0)
        s->found = task;
}

/* It ends as cancelled then, and its slots are free. */
static void give_back_early(struct weir_worker *w, struct task *task)
{
    struct task_list early;

    task_list_init(&early);
    pool_recall(w->pool, task, &early);
    worker_give_back(w, &early);
    worker_wake(w);
}

void worker_cancel(struct weir_worker *w, struct span token)
{
    struct search s = {token, NULL};

    pool_each(w->pool, compare, &s);
    if (!s.found || atomic_load(&s.found->asked) != ASKED_NOTHING)
        return;
    if (s.found->early) {
        give_back_early(w, s.found);
        return;
    }
    if (!atomic_load(&s.found->begun_us)) {
        atomic_store(&s.found->asked, ASKED_CANCELLED); /* so it will not begin */
        return;
    }
    task_log(LOG_LEVEL_INFO, s.found, "cancelled: asked to end");
    ask(w, s.found, ASKED_CANCELLED, clock_mono_us());
}

/* ---- After the loop */

/* The functions on threads that still run. */
static int functions(struct weir_worker *w)
{
    size_t n = pool_running(w->pool, w->watch.running);
    int count = pool_load(w->pool).given_up;

    for (size_t i = 0; i < n; i++)
        count += w->watch.running[i]->handler->way->run && !w->watch.running[i]->handler->way->end;
    return count;
}

static void kill_all(struct weir_worker *w)
{
    size_t n = pool_running(w->pool, w->watch.running);

    for (size_t i = 0; i < n; i++)
        if (w->watch.running[i]->handler->way->end)
            w->watch.running[i]->handler->way->end(w->watch.running[i], true);
}

bool worker_end_running(struct weir_worker *w)
{
    int64_t deadline_us = clock_mono_us() + (w->ending.hurried ? 0 : KILL_AFTER_US);
    struct pool_load load = pool_load(w->pool);

    while (load.threads + load.given_up > functions(w) && clock_mono_us() < deadline_us) {
        clock_sleep_until(clock_mono_us() + 10000);
        load = pool_load(w->pool);
    }
    kill_all(w);
    return functions(w) > 0;
}
