/* Stopping: no more jobs are taken, those that run end or, when the grace is over, are given back; then each
 * partition leaves Redis. */
#include "core/clock.h"
#include "core/log/log.h"
#include "worker/worker.h"

#define SETTLE_WITHIN_US                                                                                     \
    2000000 /* how long a forced stop waits for Redis: what has ended and is settled by then is not run again */

static void begin_force(struct worker *w, int64_t now)
{
    int running = pool_load(w->pool).running;

    if (running > 0)
        log_line(LOG_LEVEL_WARN, "stopping now: %d jobs are given back", running);
    w->stop.forced_us = now;
    worker_ask_all(w, ASKED_STOP);
}

/* Forces the stop, as the grace is over or a second signal has come: settles what has ended, ends commands, and gives back all other jobs. */
static void force(struct worker *w, int64_t now)
{
    if (!w->stop.forced_us)
        begin_force(w, now);
    for (int i = 0; i < w->partition_count; i++) {
        struct partition *p = w->partitions[i];

        if (!p->session.registered || !link_is_up(p->link) || now - w->stop.forced_us >= SETTLE_WITHIN_US)
            leaving_begin(p);
    }
}

static void begin_stop(struct worker *w)
{
    struct task_list waiting = {0};

    if (w->stop.since_us)
        return;
    w->stop.since_us = clock_mono_us();
    pool_withdraw_all(w->pool, NULL, &waiting);
    log_line(LOG_LEVEL_INFO, "stopping: %d jobs run to their end, %d are given back",
             pool_load(w->pool).running, waiting.count);
    tasks_give_back(&waiting);
    for (struct runner *r = w->handlers->runners; r; r = r->next)
        if (r->way->stop)
            r->way->stop(r);
}

/* Lets partitions leave that cannot tell their Redis, now or ever, and have nothing to report. */
static void leave_without_redis(struct worker *w)
{
    for (int i = 0; i < w->partition_count; i++) {
        struct partition *p = w->partitions[i];

        if (!(link_is_up(p->link) && p->session.permitted) && settling_is_idle(p))
            leaving_begin(p);
    }
}

void worker_check_stop(struct worker *w)
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
    if (worker_is_told_to_stop(w) && !w->stop.since_us)
        begin_stop(w);
    if (w->stop.since_us && (calls > 1 || now - w->stop.since_us > w->options.grace_us))
        force(w, now);
    else if (w->stop.since_us)
        leave_without_redis(w);
    worker_wake(w);
}
