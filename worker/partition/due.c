/* What is due: jobs with a time are promoted to their queues, and the schedules that promote names are fired by
 * the worker that asked; the script sees to it that nobody else has.
 *
 * Claims say when something is due, and a worker on duty promotes then. Where no claim comes, as no executor is
 * free or Redis refuses them, a worker asks by itself: in time if nobody was faster the last time, else now and
 * then. */
#include <stdlib.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "queue/schedule/schedule.h"
#include "worker/partition/inside.h"

#define PROMOTE_MOST 200

/* ---- Schedules */

/* Hears that a schedule has fired: what promote and the claim behind it saw is old. */
static void on_fired(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct error e;
    bool fired;

    if (reply && schedule_fire_reply(reply, &fired, &e) != 0) {
        request_refused(p, &e);
    } else if (reply) {
        hear_fired(&p->mind);
    }
    request_answered(p);
}

static void log_left(struct partition *p, int status, const char *why)
{
    log_once(&p->worker->logged, LOG_LEVEL_ERROR, "%s; %s", why,
             status == WEIR_ECONFIG ? "it is not due any more" : "its occurrences are left to other workers");
}

static void fire(struct partition *p, struct args *a, const struct due_schedule *due, int64_t now_us,
                 struct schedule *s)
{
    struct schedule_plan plan;
    struct error e;
    int status = schedule_read(due->name, due->definition, s, &e);

    if (status == 0)
        schedule_make_plan(s, due->due_us, now_us, &plan);
    else
        log_left(p, status, e.text);
    if (status == 0 || status == WEIR_ECONFIG) {
        schedule_fire_request(a, p->prefix, -1, due->name, due->definition, due->due_us,
                              status == 0 ? s : NULL, &plan);
        request_send(p, a, on_fired);
    } else {
        hear_left(&p->mind, clock_mono_us());
    }
}

static void fire_all(struct partition *p, const struct promoted *promoted)
{
    struct schedule *schedules;
    struct args a = {0};

    if (promoted->due_count == 0 || !mind_takes_jobs(&p->mind) ||
        !(schedules = calloc(promoted->due_count, sizeof *schedules)))
        return;
    for (size_t i = 0; i < promoted->due_count; i++)
        fire(p, &a, &promoted->due[i], promoted->now_us, &schedules[i]);
    for (size_t i = 0; i < promoted->due_count; i++) /* not before: a zone that is in use is not read again */
        schedule_free(&schedules[i]);
    free(schedules);
}

/* ---- Jobs with a time */

static void on_promoted(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    int64_t now = clock_mono_us();
    struct promoted promoted;
    struct error e;

    if (reply && promote_reply(reply, &promoted, &e) != 0) {
        request_refused(p, &e);
    } else if (reply) {
        if (promoted.wrong.len > 0)
            request_log_fault(p, promoted.wrong);
        hear_promoted(&p->mind, promoted.moved > 0 || promoted.due_count > 0, now);
        executors_look(p);
        fire_all(p, &promoted);
        hear_due(&p->mind, promoted.now_us, promoted.later_us, now);
        promoted_free(&promoted);
    }
    request_answered(p);
}

void due_promote(struct partition *p, struct args *a)
{
    promote_request(a, p->prefix, -1, PROMOTE_MOST);
    request_send(p, a, on_promoted);
}
