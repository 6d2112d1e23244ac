/* When a batch ends: not before the limits of its types let its last jobs start, and not before the rate at
 * which its jobs end now brings it there. A batch counts what it was given of each type, but its ends
 * together; so of a batch of several types the least that can be left of each is known. */
#include "core/client/client.h"
#include "core/number.h"
#include "queue/batch/batch.h"
#include "queue/status/forecast.h"
#include "queue/status/status.h"
#include "queue/status/waits.h"

/* Jobs of a type that have not started, at least: all that have ended or run may be of it. */
static int64_t least_left(const struct batch *b, const struct batch_type *t)
{
    return positive(t->jobs - (b->total - b->left) - positive(b->running));
}

/* True when it is known how many jobs of which type are left. */
static bool is_exact(const struct batch *b)
{
    int64_t known = 0;

    for (size_t i = 0; i < b->type_count; i++)
        known += b->types[i].jobs;
    return known == b->total && (b->type_count == 1 || b->left - positive(b->running) == b->total);
}

/* latest_us: when the type starts its last job that was said to wait for something so far. */
static void look_at_waits(const struct limits *limits, const struct type_status *type, int64_t last_us,
                          struct batch *b, int64_t *latest_us)
{
    json_t *waits = last_us > *latest_us ? waits_of_type(limits, type) : NULL;

    if (!waits)
        return;
    json_decref(b->waits_for);
    b->waits_for = waits;
    *latest_us = last_us;
}

/* Looks at the jobs of one type, which start one after the other, at best before those of others. */
static int look_at_type(struct limits *limits, struct batch *b, const struct batch_type *t,
                        int64_t *latest_us, struct error *e)
{
    const struct type_status *type = limits_type(limits, t->name);
    int64_t left = least_left(b, t), all = type ? type_backlog(type) : 0;
    struct forecast forecast;

    if (left == 0 || !type)
        return 0;
    if (forecast_jobs(limits, type, left, &forecast, e) < 0)
        return e->status;
    look_at_waits(limits, type, forecast.last_us, b, latest_us);
    if (type->limit_count == 0)
        return 0;
    b->because |= forecast.because | (left < all ? LATER_OTHERS : 0u) | (left > all ? LATER_SCHEDULED : 0u);
    if (forecast.last_us != GATE_NEVER && forecast.last_us > b->finish_us)
        b->finish_us = forecast.last_us;
    return 0;
}

static void look_at_rate(struct batch *b)
{
    double left_us = b->rate > 0 ? (double)b->left / b->rate * 1e6 : 0;

    if (left_us <= 0 || left_us >= 1e16 || b->now_us + (int64_t)left_us <= b->finish_us)
        return;
    b->finish_us = b->now_us + (int64_t)left_us;
    b->at_rate = true;
}

void batch_free(struct batch *b)
{
    json_decref(b->pause);
    json_decref(b->waits_for);
    b->pause = b->waits_for = NULL;
}

int batch_forecast(struct weir *w, struct batch *b)
{
    bool starts = b->phase == BATCH_RUNNING;
    int64_t latest_us = 0;
    struct limits limits;
    int status = 0;

    json_decref(b->waits_for);
    b->waits_for = NULL;
    b->finish_us = -1;
    b->because = 0;
    b->at_rate = false;
    if (b->left == 0 || b->phase == BATCH_PAUSED)
        return 0;
    status = status_limits(w, -1, &limits);
    for (size_t i = 0; status == 0 && starts && i < b->type_count; i++)
        status = look_at_type(&limits, b, &b->types[i], &latest_us, &w->error);
    limits_free(&limits);
    look_at_rate(b);
    b->because |= starts && !is_exact(b) ? LATER_TYPES : 0u;
    return status;
}
