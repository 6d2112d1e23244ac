/* What is due: jobs with a time are promoted to their queues, and the schedules that promote names are fired by
 * the worker that asked; the script sees to it that nobody else has.
 *
 * Claims say when something is due, and a worker on duty promotes then. Where no claim comes, as no executor is
 * free or Redis refuses them, a worker asks by itself: in time if nobody was faster the last time, else now and
 * then. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "queue/schedule/schedule.h"
#include "worker/worker.h"

#define PROMOTE_MOST 200
#define DUE_US (1600 * MS)        /* who promotes asks again when it has not heard for so long what is due, */
#define DUE_OTHERS_US (1800 * MS) /* the others after that: they take over. Idle workers claim before */
#define LEFT_US (1000 * MS) /* a schedule that this worker must leave to others is tried again so late */

void worker_hear_due(struct weir_worker *w, int64_t redis_us, int64_t due_us)
{
    struct due *d = &w->due;

    worker_hear_clock(w, redis_us);
    d->at_us = worker_local_time(w, due_us);
    if (d->at_us && d->left_us && d->at_us < d->left_us)
        d->at_us = d->left_us;
    d->heard_us = clock_mono_us();
}

/* Is something due, as far as is known? */
static bool is_due(const struct weir_worker *w, int64_t now)
{
    return w->due.at_us && w->due.at_us <= now;
}

/* ---- Schedules */

/* What promote and the claim behind it saw is old now. */
static void on_fired(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct error e;
    bool fired;

    if (reply && schedule_fire_reply(reply, &fired, &e) != 0) {
        worker_refused(w, &e);
    } else if (reply) {
        w->due.at_us = w->due.heard_us = 0;
        worker_claim_soon(w, false);
    }
    worker_answered(w);
}

static void log_left(struct weir_worker *w, int status, const char *why)
{
    log_once(&w->logged, LOG_LEVEL_ERROR, "%s; %s", why,
             status == WEIR_ECONFIG ? "it is not due any more" : "its occurrences are left to other workers");
}

static void fire(struct weir_worker *w, struct args *a, const struct due_schedule *due, int64_t now_us,
                 struct schedule *s)
{
    struct schedule_plan plan;
    struct error e;
    int status = schedule_read(due->name, due->definition, s, &e);

    if (status == 0)
        schedule_make_plan(s, due->due_us, now_us, &plan);
    else
        log_left(w, status, e.text);
    if (status == 0 || status == WEIR_ECONFIG) {
        schedule_fire_request(a, w->options.prefix, -1, due->name, due->definition, due->due_us,
                              status == 0 ? s : NULL, &plan);
        worker_send(w, a, on_fired);
    } else {
        w->due.left_us = clock_mono_us() + LEFT_US;
    }
}

static void fire_all(struct weir_worker *w, const struct promoted *promoted)
{
    struct schedule *schedules;
    struct args a;

    if (promoted->due_count == 0 || !worker_takes_jobs(w) ||
        !(schedules = calloc(promoted->due_count, sizeof *schedules)))
        return;
    args_init(&a);
    for (size_t i = 0; i < promoted->due_count; i++)
        fire(w, &a, &promoted->due[i], promoted->now_us, &schedules[i]);
    args_free(&a);
    for (size_t i = 0; i < promoted->due_count; i++) /* not before: a zone that is in use is not read again */
        schedule_free(&schedules[i]);
    free(schedules);
}

/* ---- Jobs with a time */

static void on_promoted(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct promoted promoted;
    struct error e;

    if (reply && promote_reply(reply, &promoted, &e) != 0) {
        worker_refused(w, &e);
    } else if (reply) {
        bool found = promoted.moved > 0 || promoted.due_count > 0;

        if (found || is_due(w, clock_mono_us()))
            w->due.promotes = found;
        fire_all(w, &promoted);
        worker_hear_due(w, promoted.now_us, promoted.later_us);
        promoted_free(&promoted);
    }
    worker_answered(w);
}

int64_t worker_promote_time(const struct weir_worker *w)
{
    const struct due *d = &w->due;
    int64_t at = d->heard_us + (d->promotes ? DUE_US : DUE_OTHERS_US);

    return d->promotes && d->at_us && d->at_us < at ? d->at_us : at;
}

void worker_promote(struct weir_worker *w, struct args *a, int64_t now)
{
    if (!worker_takes_jobs(w) || (!is_due(w, now) && worker_promote_time(w) > now))
        return;
    promote_request(a, w->options.prefix, -1, PROMOTE_MOST);
    worker_send(w, a, on_promoted);
}
