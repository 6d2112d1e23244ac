/* Watching what runs: jobs over their time, jobs that were cancelled, and the lease itself. The queues are
 * watched in worker/parts/waking.c.
 *
 * Commands and children get TERM, and KILL when they have not ended some seconds later. A C handler can only
 * be asked to end. One on the loop that is over its time is given up: its job failed, whatever it returns
 * later. So is one on a thread that has not ended some seconds after it was asked, and then the worker stops:
 * its executor is gone, and only the end of the process stops the function.
 *
 * Past the end of its lease, which is one lease after the last heartbeat that Redis answered was sent,
 * another worker may run what runs here. Then everything is ended and nothing of it settled; a function on a
 * thread can only be ended with the process. What had ended before is still settled, if Redis takes it. */
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/partition/inside.h"

/* Jobs that take longer can be cancelled: then the worker listens. */
#define LISTEN_US (300 * MS)
#define KILL_AFTER_US 2000000 /* from TERM to KILL for commands that are over the grace */

static struct worker *worker_of(const struct task *task)
{
    return task->conditions->partition->worker;
}

static void end(struct task *task, bool force)
{
    if (task->handler->runner->way->end && pool_is_running(worker_of(task)->pool, task))
        task->handler->runner->way->end(task, force);
}

static void ask(struct task *task, enum task_asked why, int64_t now)
{
    if (why != ASKED_STOP || atomic_load(&task->asked) == ASKED_NOTHING)
        atomic_store(&task->asked, why);
    if (task->asked_us == 0)
        task->asked_us = now;
    if (task->asked_us != NEVER)
        end(task, false);
}

static bool is_function(const struct task *task)
{
    return task->handler->runner->way->run && !task->handler->runner->way->end;
}

/* ---- Over its time */

/* Gives a task up that its handler holds on; the job goes on without it. */
static void give_up(struct task *task, int64_t now)
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
    if (!pool_give_up(worker_of(task)->pool, task)) {
        task_free(job);
        return;
    }
    job->finished_us = now;
    job->end = END_RETRY;
    task_finished_without(task, job);
    if (stop)
        worker_fail_and_stop(worker_of(task), &why);
}

static void over_time(struct task *task, int64_t now)
{
    if (task->handler->runner->way->start && !task->handler->runner->way->end) {
        give_up(task, now);
        return;
    }
    task_log(LOG_LEVEL_WARN, task, "over its time of %g s: asked to end", (double)task->timeout_us / 1e6);
    ask(task, ASKED_OVER_TIME, now);
}

/* True when a task was not asked to end, or was and nothing else can be done. */
static bool is_timed(const struct task *task)
{
    int asked = atomic_load(&task->asked);

    return task->timeout_us &&
           (asked == ASKED_NOTHING || (asked == ASKED_CANCELLED && !task->handler->runner->way->end));
}

static void watch_one(struct task *task, int64_t now)
{
    int64_t begun_us = atomic_load(&task->begun_us);

    if (!begun_us)
        return;
    if (now - begun_us > LISTEN_US)
        waking_listen(task->conditions->partition->waking);
    if (is_timed(task)) {
        if (now - begun_us >= task->timeout_us)
            over_time(task, now);
    } else if (atomic_load(&task->asked) != ASKED_NOTHING && task->asked_us != NEVER &&
               now - task->asked_us >= worker_of(task)->options.kill_after_us) {
        if (is_function(task) && atomic_load(&task->asked) == ASKED_OVER_TIME) {
            give_up(task, now);
        } else {
            task->asked_us = NEVER;
            end(task, true);
        }
    }
}

/* ---- The lease is over */

static void end_at_once(const struct task *task)
{
    struct error why;

    error_set(
        &why, WEIR_EINTERNAL,
        "worker: silent for longer than its lease while %s %.*s ran, and a C function cannot be stopped; "
        "start the worker again",
        task->handler->type, (int)task->view.id.len, task->view.id.at);
    worker_end_now(worker_of(task), &why);
}

/* True: nothing else can be done but to end the process. */
static bool lose(struct task *task, int64_t now)
{
    if (is_function(task) && !atomic_load(&task->begun_us))
        return false; /* it will see that it is too late */
    ask(task, ASKED_LOST, now);
    if (is_function(task) && pool_is_running(worker_of(task)->pool, task)) {
        end_at_once(task);
        return true;
    }
    if (task->handler->runner->way->start && !task->handler->runner->way->end &&
        pool_give_up(worker_of(task)->pool, task))
        task_lost(task);
    return false;
}

void watch_end_lost(struct partition *p)
{
    struct task **tasks = p->worker->running;
    size_t n = pool_running(p->worker->pool, &p->conditions, tasks);
    int64_t now = clock_mono_us();

    for (size_t i = 0; i < n; i++)
        if (atomic_load(&tasks[i]->asked) == ASKED_LOST && !is_function(tasks[i]))
            lose(tasks[i], now);
}

static void cut_off(struct partition *p, int64_t now)
{
    struct task **tasks = p->worker->running;
    struct task_list waiting = {0};
    size_t n;

    trace_lapsed(p->conditions.trace, session_lapse(p));
    pool_withdraw_all(p->worker->pool, &p->conditions, &waiting);
    tasks_drop(&waiting); /* what adopt does not name goes back to its lane */
    n = pool_running(p->worker->pool, &p->conditions, tasks);
    if (n > 0)
        log_line(LOG_LEVEL_WARN,
                 "silent for longer than the lease of %g s: %zu jobs that run here are ended, others may run "
                 "them now",
                 (double)p->worker->options.lease_us / 1e6, n);
    for (size_t i = 0; i < n; i++)
        if (lose(tasks[i], now))
            return;
    partition_wake(p);
}

static void give_back_lacking(struct worker *w, int64_t now)
{
    struct task_list lacking = {0};

    pool_retry(w->pool, now, &lacking);
    for (struct task *task = lacking.head; task; task = task->next) {
        task_unable(task, "no thread");
        handler_hear_end(task);
    }
    tasks_give_back(&lacking);
}

static void watch_lease(struct partition *p, int64_t now)
{
    if (!p->leaving && atomic_load(&p->conditions.lease_end_us) != 0 && lease_is_over(&p->conditions))
        cut_off(p, now);
}

void worker_watch(struct worker *w)
{
    int64_t now = clock_mono_us();
    size_t n;

    give_back_lacking(w, now);
    worker_feed(w);
    for (int i = 0; i < w->partition_count; i++) {
        watch_lease(w->partitions[i], now);
        trace_flush(w->partitions[i]->conditions.trace);
    }
    n = pool_running(w->pool, NULL, w->running);
    for (size_t i = 0; i < n; i++)
        if (!w->running[i]->conditions->partition->leaving)
            watch_one(w->running[i], now);
    for (int i = 0; i < w->partition_count; i++)
        if (w->partitions[i]->settling.finished.head)
            partition_wake(w->partitions[i]);
}

bool worker_must_watch(const struct worker *w)
{
    struct pool_load load = pool_load(w->pool);
    bool must = load.running + load.queued + load.given_up > 0 || w->stop.since_us || w->options.drain_max_us;

    for (int i = 0; !must && i < w->partition_count; i++) {
        const struct partition *p = w->partitions[i];

        must = p->settling.finished.head || p->mind.capacity.hungry;
    }
    return must;
}

void worker_ask_all(struct worker *w, enum task_asked why)
{
    size_t n = pool_running(w->pool, NULL, w->running);
    int64_t now = clock_mono_us();

    for (size_t i = 0; i < n; i++)
        ask(w->running[i], why, now);
}

/* ---- Cancelled */

struct search {
    struct span token;
    struct task *found;
};

static void compare(struct task *task, void *arg)
{
    struct search *s = arg;

    if (!task->ended && span_is(task->token, s->token))
        s->found = task;
}

/* Gives an early task back: it ends as cancelled then, and its slots are free. */
static void give_back_early(struct partition *p, struct task *task)
{
    struct task_list early = {0};

    pool_recall(p->worker->pool, &p->conditions, task, &early);
    tasks_give_back(&early);
    partition_wake(p);
}

void watch_cancel(struct partition *p, struct span token)
{
    struct search s = {token, NULL};

    pool_each(p->worker->pool, &p->conditions, compare, &s);
    if (!s.found || atomic_load(&s.found->asked) != ASKED_NOTHING)
        return;
    if (s.found->early) {
        give_back_early(p, s.found);
        return;
    }
    if (atomic_load(&s.found->begun_us))
        task_log(LOG_LEVEL_INFO, s.found, "cancelled: asked to end");
    ask(s.found, ASKED_CANCELLED, clock_mono_us());
}

/* ---- After the loop */

/* The functions on threads that still run. */
static int functions(struct worker *w)
{
    size_t n = pool_running(w->pool, NULL, w->running);
    int count = pool_load(w->pool).given_up;

    for (size_t i = 0; i < n; i++)
        count += is_function(w->running[i]);
    return count;
}

static void kill_all(struct worker *w)
{
    size_t n = pool_running(w->pool, NULL, w->running);

    for (size_t i = 0; i < n; i++)
        if (w->running[i]->handler->runner->way->end)
            w->running[i]->handler->runner->way->end(w->running[i], true);
}

bool worker_end_running(struct worker *w)
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
