/* Settling: what has ended, reported to Redis all at once, each job with its end. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "worker/worker.h"

#define SETTLE_DELAY_US (10 * MS) /* what has ended waits that long for a turn that is due anyway */
#define SETTLE_MOST 2000          /* jobs in one settle */
#define SETTLE_SOON 500           /* so many do not wait */

/* ---- How each one ended */

/* After the n-th failed attempt: 15 s + (n - 1)^4 s and up to 10 n s more at random, so that what failed
 * together does not come back together. 25 attempts take about 17 days. */
static int64_t retry_delay_us(int n)
{
    return (int64_t)((15 + pow(n - 1, 4) + worker_random() * 10 * n) * 1e6);
}

/* What the handler asked for, ten years at most. */
static int64_t asked_delay_us(const struct task *task)
{
    return (int64_t)(fmin(task->after_s, 3650 * 86400.0) * 1e6);
}

static void tell(const struct task *task, const struct job_view *view, const char *what)
{
    log_line(LOG_LEVEL_INFO, "%s %.*s: attempt %d: %s%s%s", task->handler->type, (int)view->id.len,
             view->id.at ? view->id.at : "", task->attempts + 1, what, task->reason ? ": " : "",
             task->reason ? task->reason : "");
}

/* A failed job: again, or not any more. */
static void settle_failed(struct args *a, struct task *task)
{
    struct job_view view = {.max_attempts = JOB_MAX_ATTEMPTS};
    struct error e;
    char what[64];
    int64_t delay_us;

    if (job_read(task->body.at, task->body.len, &view, &e) != 0 || task->end == END_DEAD) {
        tell(task, &view, "dead");
        settle_end(a, SETTLE_DEAD, task->token, 0, task->reason ? task->reason : "failed for good");
        return;
    }
    if (task->attempts + 1 >= view.max_attempts) {
        char reason[1200];

        snprintf(reason, sizeof reason, "failed %d times: %s", task->attempts + 1,
                 task->reason ? task->reason : "");
        tell(task, &view, "dead, its last attempt");
        settle_end(a, SETTLE_DEAD, task->token, 0, reason);
        return;
    }
    delay_us = task->after_s >= 0 ? asked_delay_us(task) : retry_delay_us(task->attempts + 1);
    snprintf(what, sizeof what, "failed, again in %.1f s", (double)delay_us / 1e6);
    tell(task, &view, what);
    settle_end(a, SETTLE_RETRY, task->token, delay_us, NULL);
}

static void settle_one(struct args *a, struct task *task)
{
    int64_t delay_us;

    switch (task->end) {
    case END_DONE: /* with the others of its type */
        break;
    case END_BACK:
        settle_end(a, SETTLE_BACK, task->token, 0, NULL);
        break;
    case END_THROTTLED:
        delay_us = task->after_s >= 0 ? asked_delay_us(task) : SETTLE_NO_TIME;
        settle_end(a, SETTLE_THROTTLED, task->token, delay_us, NULL);
        break;
    case END_RETRY:
    case END_DEAD:
        settle_failed(a, task);
        break;
    }
}

static void settle_done_of(struct args *a, const struct task_list *list, const struct handler *handler)
{
    size_t n = 0;

    for (const struct task *task = list->head; task; task = task->next)
        n += task->handler == handler && task->end == END_DONE;
    if (n == 0)
        return;
    settle_done(a, handler->type, (struct span){"", 0}, n);
    for (const struct task *task = list->head; task; task = task->next)
        if (task->handler == handler && task->end == END_DONE)
            settle_token(a, task->token);
}

/* ---- All of them */

static void on_settled(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct task *task;
    struct error e;
    int64_t stale;

    if (!reply) {
        /* Nobody knows whether it was settled: again, with the same tokens; a token settles once. */
        task_list_append(&w->settling, &w->finished);
        task_list_append(&w->finished, &w->settling);
    } else if (settle_reply(reply, &stale, &e) != 0) {
        worker_refused(w, &e);
        task_list_append(&w->settling, &w->finished);
        task_list_append(&w->finished, &w->settling);
    } else {
        if (stale > 0)
            log_line(LOG_LEVEL_WARN,
                     "settle: %" PRId64
                     " leases were no longer ours: given to others, or settled just before the "
                     "connection was lost",
                     stale);
        while ((task = task_list_pop(&w->settling)))
            task_free(task);
    }
    worker_answered(w);
}

void worker_settle(struct weir_worker *w, struct args *a)
{
    struct task *task;

    while (w->settling.count < SETTLE_MOST && (task = task_list_pop(&w->finished))) {
        if (task->lost)
            task_free(task);
        else
            task_list_push(&w->settling, task);
    }
    if (!w->settling.head)
        return;
    settle_request(a, w->prefix, -1, w->id);
    for (task = w->settling.head; task; task = task->next)
        if (task_settles_up(task))
            settle_cost(a, task->token, task->spent);
    for (int i = 0; i < w->handlers.count; i++)
        settle_done_of(a, &w->settling, &w->handlers.at[i]);
    for (task = w->settling.head; task; task = task->next)
        settle_one(a, task);
    worker_send(w, a, on_settled);
}

int64_t worker_settle_time(const struct weir_worker *w)
{
    if (!w->finished.head)
        return NEVER;
    if (w->finished.count >= SETTLE_SOON || w->stopping_us)
        return 0;
    return w->finished.head->finished_us + SETTLE_DELAY_US;
}

void worker_give_back(struct weir_worker *w, struct task_list *tasks)
{
    for (struct task *task = tasks->head; task; task = task->next)
        task_finish(task, END_BACK, 0, NULL);
    task_list_append(&w->finished, tasks);
}
