/* How a job that has ended is settled: done, again and when, thrown back, or dead. */
#include <math.h>
#include <stdio.h>

#include "core/decimal.h"
#include "core/duration.h"
#include "core/log/log.h"
#include "core/random.h"
#include "worker/partition/inside.h"

#define DELAY_MOST_S (3650 * 86400.0) /* ten years: what Redis is given stays below 2^53 us */
#define LEFT_OUT (-1)                 /* a time that the handler did not give */

/* ---- When to try again */

/* Of how many waits one is drawn: jobs that fail in one settle share some of them, so that Redis finds their places together. */
#define WAITS 32

static double random_step(void)
{
    return floor(random_fraction() * WAITS) / WAITS;
}

/* Returns the wait after the n-th failed attempt: 15 s + (n - 1)^4 s and up to 10 n s more at random, so that what failed together does not
 * come back together. 25 attempts take about 17 days. */
static double retry_delay_s(int n)
{
    return 15 + pow(n - 1, 4) + random_step() * 10 * n;
}

/* A doubling wait, and at random from half of it to all of it, but not less than the first. */
static double backoff_s(const struct handler *handler, int n)
{
    double first_us = (double)handler->backoff_first_us;
    double most_us = fmin(first_us * pow(2, fmin(n - 1, 60)), (double)handler->backoff_most_us);
    double least_us = fmax(first_us, most_us / 2);

    return (least_us + (most_us - least_us) * random_step()) / 1e6;
}

static double next_try_s(const struct task *task)
{
    double delay_s = task->after_s;

    if (delay_s < 0 && task->handler->backoff_first_us)
        delay_s = backoff_s(task->handler, task->attempts + 1);
    else if (delay_s < 0)
        delay_s = retry_delay_s(task->attempts + 1);
    return fmin(delay_s, DELAY_MOST_S);
}

/* A time that no handler can mean, such as an epoch or NAN, counts as left out. */
static void check_retry_time(struct task *task)
{
    if (task->after_s <= DELAY_MOST_S)
        return;
    task_log(LOG_LEVEL_WARN, task, "a retry after %.15g s: must be ten years at most, and counts as left out",
             task->after_s);
    task->after_s = LEFT_OUT;
}

/* A pause holds all jobs of the limit. */
static void check_pause_time(struct task *task)
{
    double most_s = (double)task->handler->runner->host.worker->options.pause_most_us / 1e6;

    if (task->after_s <= most_s)
        return;
    if (isnan(task->after_s)) {
        task_log(LOG_LEVEL_WARN, task, "a pause of nan s: is not a time, and counts as left out");
        task->after_s = LEFT_OUT;
    } else {
        task_log(LOG_LEVEL_WARN, task, "a pause of %.15g s: %g s is the most (--pause-most)", task->after_s,
                 most_s);
        task->after_s = most_s;
    }
}

/* ---- How each one ended */

static void log_end(const struct task *task, const char *what)
{
    task_log(LOG_LEVEL_INFO, task, "%s%s%s", what, task->reason ? ": " : "",
             task->reason ? task->reason : "");
}

static void log_done(const struct task *task)
{
    int64_t begun_us = atomic_load(&task->begun_us);
    char took[32];

    duration_format((task->finished_us - begun_us) / MS * MS, took);
    task_log(LOG_LEVEL_INFO, task, "done in %s", took);
}

/* A failed job: again, or not any more. */
static void decide_failed(struct task *task)
{
    struct error e;
    char text[1300]; /* the longest reason, and how often it failed */
    char often[24];
    int readable = task->view.type.at ? 0 : job_read(task->body.at, task->body.len, &task->view, &e);

    if (readable != 0 || task->end == END_DEAD) {
        log_end(task, "dead");
        task->end = END_DEAD;
    } else if (task->attempts + 1 >= task->view.max_attempts) {
        log_end(task, "dead, its last attempt");
        snprintf(often, sizeof often, "%d times", task->attempts + 1);
        snprintf(text, sizeof text, "failed %s%s%s", task->attempts == 0 ? "once" : often,
                 task->reason ? ": " : "", task->reason ? task->reason : "");
        task_finish(task, END_DEAD, -1, text);
    } else {
        check_retry_time(task);
        task->after_s = next_try_s(task);
        decimal_print(text, sizeof text, "failed, again in %.1f s", task->after_s);
        log_end(task, text);
    }
}

static void decide(struct task *task)
{
    switch (task->end) {
    case END_RETRY:
    case END_DEAD:
        decide_failed(task);
        break;
    case END_INTERRUPTED:
        log_end(task, "interrupted");
        break;
    case END_CANCELLED:
        log_end(task, "cancelled");
        break;
    case END_THROTTLED:
        check_pause_time(task);
        break;
    case END_DONE:
        if (task->conditions->partition->worker->options.log_done)
            log_done(task);
        break;
    case END_BACK:
        break;
    }
}

/* ---- What the handler did not decide */

static void fail_over_time(struct task *task)
{
    char reason[1200];

    decimal_print(reason, sizeof reason, "over its time of %g s%s%s", (double)task->timeout_us / 1e6,
                  task->reason ? ": " : "", task->reason ? task->reason : "");
    task_finish(task, END_RETRY, -1, reason);
}

void outcome_decide(struct task *task)
{
    switch (atomic_load(&task->asked)) {
    case ASKED_LOST:
        return;
    case ASKED_OVER_TIME:
        fail_over_time(task);
        break;
    case ASKED_CANCELLED:
        if (task->end != END_DONE)
            task->end = END_CANCELLED;
        break;
    case ASKED_STOP:
        if (task->end != END_DONE)
            task_finish(task, END_BACK, 0, NULL);
        break;
    default:
        if (task->terminated && worker_is_told_to_stop(task->conditions->partition->worker))
            task_finish(task, END_BACK, 0, NULL);
    }
    decide(task);
}
