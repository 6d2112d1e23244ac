/* Schedules: what promote names as due is fired by the worker that asked; the script sees to it that nobody
 * else has. */
#include "queue/schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "worker/worker.h"

#define LEFT_US                                                                                              \
    (1000 *                                                                                                  \
     MS) /* a schedule that this worker must leave to others is looked at again so late               \
                 */

/* What promote and the claim behind it saw is old now. */
static void on_fired(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct error e;
    bool fired;

    if (reply && schedule_fire_reply(reply, &fired, &e) != 0) {
        worker_refused(w, &e);
    } else if (reply) {
        w->later_us = w->later_heard_us = 0;
        w->look_now = true;
    }
    worker_answered(w);
}

static void tell(struct weir_worker *w, int status, const char *why)
{
    char line[600];

    snprintf(line, sizeof line, "%s; %s", why,
             status == WEIR_ECONFIG ? "it is not due any more" : "its occurrences are left to other workers");
    if (worker_remember(w, line))
        log_line(LOG_LEVEL_ERROR, "%s", line);
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
        tell(w, status, e.text);
    if (status == 0 || status == WEIR_ECONFIG) {
        schedule_fire_request(a, w->prefix, -1, due->name, due->definition, due->due_us,
                              status == 0 ? s : NULL, &plan);
        worker_send(w, a, on_fired);
    } else {
        w->left_us = clock_mono_us() + LEFT_US;
    }
}

void worker_fire(struct weir_worker *w, const struct promoted *promoted)
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
