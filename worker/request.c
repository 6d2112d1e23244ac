#include "worker/request.h"

#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/worker.h"

#define PAUSE_US (1000 * MS) /* after an error answer */
#define NEAR_US (MS / 2)     /* Redis is as good as here: slots are granted ahead as usual */

void worker_begin_requests(struct weir_worker *w, int64_t now)
{
    w->requests.sent_us = now;
}

void worker_send_with(struct weir_worker *w, struct args *a, link_reply *on_reply, void *arg)
{
    w->requests.awaited++;
    link_send(w->link, a, REQUEST_TIMEOUT_S, on_reply, arg);
}

void worker_send(struct weir_worker *w, struct args *a, link_reply *on_reply)
{
    worker_send_with(w, a, on_reply, w);
}

void worker_answered(struct weir_worker *w)
{
    if (--w->requests.awaited == 0)
        worker_wake(w);
}

void worker_refused(struct weir_worker *w, const struct error *e)
{
    struct requests *r = &w->requests;

    if (turn_is_unregistered(e)) {
        worker_unregister(w);
        return;
    }
    if (turn_is_of_another_format(e) && !w->ending.wanted) {
        log_line(LOG_LEVEL_ERROR, "%s; takes no more jobs", e->text);
        worker_fail_and_stop(w, e);
        return;
    }
    if (e->status == WEIR_EREFUSED)
        worker_lose_rights(w);
    if (strcmp(r->last_error, e->text) != 0) {
        strcpy(r->last_error, e->text);
        log_line(LOG_LEVEL_ERROR, "%s; trying again every second", e->text);
    }
    r->pause_until_us =
        clock_mono_us() + (int64_t)fmin(PAUSE_US, (double)w->options.lease_us / 8); /* heartbeats wait too */
}

void worker_accepted(struct weir_worker *w)
{
    w->requests.last_error[0] = '\0';
}

void worker_resume(struct weir_worker *w)
{
    w->requests.pause_until_us = 0;
}

void worker_hear_clock(struct weir_worker *w, int64_t redis_us)
{
    int64_t now = clock_mono_us();

    if (distance_hear(&w->requests.distance, w->requests.sent_us, redis_us, now))
        worker_beat_at(w, now);
}

int64_t worker_local_time(const struct weir_worker *w, int64_t redis_us)
{
    return redis_us <= 0 ? 0 : redis_us + distance_offset(&w->requests.distance);
}

/* The offset has the way back already. */
int64_t worker_lead_time(const struct weir_worker *w)
{
    int64_t trip_us = distance_trip(&w->requests.distance);

    return trip_us > NEAR_US ? trip_us : 0;
}
