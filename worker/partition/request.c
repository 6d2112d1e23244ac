#include "worker/partition/request.h"

#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/partition/partition.h"

#define PAUSE_US (1000 * MS) /* after an error answer */
#define NEAR_US (MS / 2)     /* Redis is as good as here: slots are granted ahead as usual */

void partition_begin_requests(struct partition *p, int64_t now)
{
    p->requests.sent_us = now;
}

void partition_send_with(struct partition *p, struct args *a, link_reply *on_reply, void *arg)
{
    p->requests.awaited++;
    link_send(p->link, a, REQUEST_TIMEOUT_S, on_reply, arg);
}

void partition_send(struct partition *p, struct args *a, link_reply *on_reply)
{
    partition_send_with(p, a, on_reply, p);
}

void partition_send_beside(struct partition *p, struct args *a, link_reply *on_reply)
{
    link_send(p->link, a, REQUEST_TIMEOUT_S, on_reply, p);
}

void partition_answered(struct partition *p)
{
    if (--p->requests.awaited == 0)
        partition_wake(p);
}

void partition_refused(struct partition *p, const struct error *e)
{
    struct requests *r = &p->requests;

    if (turn_is_unregistered(e)) {
        partition_unregister(p);
        return;
    }
    if (turn_is_of_another_format(e) && !p->worker->ending.wanted) {
        log_line(LOG_LEVEL_ERROR, "%s; takes no more jobs", e->text);
        worker_fail_and_stop(p->worker, e);
        return;
    }
    if (e->status == WEIR_EREFUSED)
        partition_lose_rights(p);
    if (strcmp(r->last_error, e->text) != 0) {
        strcpy(r->last_error, e->text);
        log_line(LOG_LEVEL_ERROR, "%s; trying again every second", e->text);
    }
    r->pause_until_us = clock_mono_us() + (int64_t)fmin(PAUSE_US, (double)p->worker->options.lease_us /
                                                                      8); /* heartbeats wait too */
}

void partition_accepted(struct partition *p)
{
    p->requests.last_error[0] = '\0';
}

void partition_resume(struct partition *p)
{
    p->requests.pause_until_us = 0;
}

void partition_hear_clock(struct partition *p, int64_t redis_us)
{
    int64_t now = clock_mono_us();

    if (distance_hear(&p->requests.distance, p->requests.sent_us, redis_us, now))
        partition_beat_at(p, now);
}

int64_t partition_local_time(const struct partition *p, int64_t redis_us)
{
    return redis_us <= 0 ? 0 : redis_us + distance_offset(&p->requests.distance);
}

static int64_t unless_near(int64_t trip_us)
{
    return trip_us > NEAR_US ? trip_us : 0;
}

/* The offset has the way back already. */
int64_t partition_lead_time(const struct partition *p)
{
    return unless_near(distance_trip(&p->requests.distance));
}

int64_t partition_trip_time(const struct partition *p)
{
    return unless_near(distance_nearest(&p->requests.distance));
}

int64_t partition_usual_time(const struct partition *p)
{
    return unless_near(distance_usual(&p->requests.distance));
}
