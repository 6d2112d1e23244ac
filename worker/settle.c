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
#define COSTLY_MOST 500           /* of them such as are not simply done: each takes Redis 10 to 25 us */
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

static void tell(const struct task *task, const char *what)
{
    task_log(LOG_LEVEL_INFO, task, "attempt %d: %s%s%s", task->attempts + 1, what, task->reason ? ": " : "",
             task->reason ? task->reason : "");
}

/* A doubling wait, and at random from half of it to all of it. */
static int64_t backoff_us(const struct handler *handler, int n)
{
    double wait_us = (double)handler->backoff_first_us * pow(2, fmin(n - 1, 60));

    return (int64_t)(fmin(wait_us, (double)handler->backoff_most_us) * (0.5 + 0.5 * worker_random()));
}

static int64_t next_try_us(const struct task *task)
{
    if (task->after_s >= 0)
        return asked_delay_us(task);
    if (task->handler->backoff_first_us)
        return backoff_us(task->handler, task->attempts + 1);
    return retry_delay_us(task->attempts + 1);
}

/* A failed job: again, or not any more. */
static void settle_failed(struct args *a, struct task *task)
{
    struct error e;
    char what[64];
    int64_t delay_us;
    int readable = task->view.type.at ? 0 : job_read(task->body.at, task->body.len, &task->view, &e);

    if (readable != 0 || task->end == END_DEAD) {
        tell(task, "dead");
        settle_end(a, SETTLE_DEAD, task->token, 0, task->reason ? task->reason : "failed for good");
        return;
    }
    if (task->attempts + 1 >= task->view.max_attempts) {
        char reason[1200];

        snprintf(reason, sizeof reason, "failed %d times: %s", task->attempts + 1,
                 task->reason ? task->reason : "");
        tell(task, "dead, its last attempt");
        settle_end(a, SETTLE_DEAD, task->token, 0, reason);
        return;
    }
    delay_us = next_try_us(task);
    snprintf(what, sizeof what, "failed, again in %.1f s", (double)delay_us / 1e6);
    tell(task, what);
    settle_end(a, SETTLE_RETRY, task->token, delay_us, task->reason);
}

/* Is it done, and settled with the others of its type and batch? */
static bool is_plain(const struct task *task)
{
    return task->end == END_DONE && !task->unique && task->handler->keep_us == 0;
}

static void settle_one(struct args *a, struct task *task)
{
    int64_t delay_us;

    switch (task->end) {
    case END_DONE:
        if (!is_plain(task))
            settle_end(a, SETTLE_FINISH, task->token, (task->handler->keep_us + MS - 1) / MS, NULL);
        break;
    case END_INTERRUPTED:
        tell(task, "interrupted");
        settle_end(a, SETTLE_INTERRUPTED, task->token, INTERRUPTED_MOST, task->reason);
        break;
    case END_CANCELLED:
        tell(task, "cancelled");
        settle_end(a, SETTLE_CANCELLED, task->token, 0, NULL);
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

/* The done ones of the type and batch of first, the first of them. */
static void settle_done_like(struct args *a, struct task *first)
{
    struct span batch = first->batch;
    size_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (struct task *task = first; task; task = task->next) {
            if (task->told || task->handler != first->handler || !is_plain(task) ||
                task->batch.len != batch.len || memcmp(task->batch.at, batch.at, batch.len) != 0)
                continue;
            if (pass == 0) {
                n++;
            } else {
                settle_token(a, task->token);
                task->told = true;
            }
        }
        if (pass == 0)
            settle_done(a, first->handler->type, batch, n);
    }
}

/* ---- What the handler did not decide */

void worker_take_end(struct task *task)
{
    char reason[1200];

    if (task->end == END_DONE)
        return;
    switch (atomic_load(&task->asked)) {
    case ASKED_OVER_TIME:
        snprintf(reason, sizeof reason, "over its time of %g s%s%s", (double)task->timeout_us / 1e6,
                 task->reason ? ": " : "", task->reason ? task->reason : "");
        task_finish(task, END_RETRY, -1, reason);
        break;
    case ASKED_CANCELLED:
        task->end = END_CANCELLED;
        break;
    }
}

void worker_collect(struct weir_worker *w)
{
    struct task_list ended;
    struct task *task;

    task_list_init(&ended);
    pool_collect(w->pool, &ended);
    w->ended += (uint64_t)ended.count;
    for (task = ended.head; task; task = task->next)
        worker_take_end(task);
    task_list_append(&w->finished, &ended);
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
    int costly = 0;

    while (w->settling.count < SETTLE_MOST && costly < COSTLY_MOST && (task = task_list_pop(&w->finished))) {
        task->told = false;
        if (atomic_load(&task->asked) == ASKED_LOST) {
            task_free(task);
        } else {
            task_list_push(&w->settling, task);
            costly += !is_plain(task) || task_settles_up(task);
        }
    }
    if (!w->settling.head)
        return;
    settle_request(a, w->prefix, -1, w->id);
    for (task = w->settling.head; task; task = task->next)
        if (task_settles_up(task))
            settle_cost(a, task->token, task->spent);
    for (task = w->settling.head; task; task = task->next)
        if (is_plain(task) && !task->told)
            settle_done_like(a, task);
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
