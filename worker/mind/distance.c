#include "worker/mind/distance.h"

#include "core/number.h"

#define KEPT_US                                                                                              \
    2000000           /* how long an answer counts: the clocks drift apart, and the way may become another */
#define NEAR_US 500   /* a Redis that is no farther is near: slots are granted ahead as usual */
#define SLACK_US 1000 /* a clock that is back by less has only drifted */

void distance_begin(struct distance *d)
{
    d->nearest_us = d->usual_us = 0;
}

bool distance_hear(struct distance *d, int64_t sent_us, int64_t redis_us, int64_t now_us)
{
    int64_t offset_us = now_us - redis_us, trip_us = now_us - sent_us;
    int64_t nearest_us = d->nearest_us ? min_i64(d->nearest_us, trip_us) : trip_us;
    bool is_back = d->since_us && sent_us - redis_us > distance_offset(d) + SLACK_US;

    d->nearest_us = nearest_us;
    d->usual_us = d->usual_us ? d->usual_us + (trip_us - d->usual_us) / 4 : trip_us;
    if (!d->since_us || is_back) {
        *d = (struct distance){offset_us, offset_us, trip_us, trip_us, now_us, nearest_us, d->usual_us};
        return is_back;
    }
    if (now_us - d->since_us > KEPT_US) {
        d->offset_before_us = d->offset_us;
        d->trip_before_us = d->trip_us;
        d->offset_us = offset_us;
        d->trip_us = trip_us;
        d->since_us = now_us;
    }
    d->offset_us = min_i64(d->offset_us, offset_us);
    d->trip_us = min_i64(d->trip_us, trip_us);
    return false;
}

int64_t distance_offset(const struct distance *d)
{
    return min_i64(d->offset_us, d->offset_before_us);
}

int64_t distance_trip(const struct distance *d)
{
    return min_i64(d->trip_us, d->trip_before_us);
}

int64_t distance_local(const struct distance *d, int64_t redis_us)
{
    return redis_us <= 0 ? 0 : redis_us + distance_offset(d);
}

static int64_t unless_near(int64_t trip_us)
{
    return trip_us > NEAR_US ? trip_us : 0;
}

/* Returns the lead, which has the way back in the offset already. */
int64_t distance_lead(const struct distance *d)
{
    return unless_near(distance_trip(d));
}

int64_t distance_far(const struct distance *d)
{
    return unless_near(d->nearest_us);
}

int64_t distance_at_present(const struct distance *d)
{
    return unless_near(d->usual_us);
}
