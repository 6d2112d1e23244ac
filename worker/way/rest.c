#include "worker/way/rest.h"

#include <math.h>

#include "core/random.h"
#include "worker/way/way.h"

#define REST_FIRST_S 0.1

static void on_rested(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct handler *handler = timer->data;

    (void)loop, (void)events;
    atomic_store(&handler->rest.on, false);
    if (handler->way->rested)
        handler->way->rested(handler);
    handler->host.on_rest(handler->host.worker, false);
}

void rest_open(struct handler *handler)
{
    ev_timer_init(&handler->rest.timer, on_rested, 0, 0);
    handler->rest.timer.data = handler;
}

void rest_close(struct handler *handler)
{
    ev_timer_stop(handler->host.loop, &handler->rest.timer);
}

void handler_rest(struct handler *handler, double most_s)
{
    double rest_s;

    if (handler_rests(handler))
        return;
    rest_s = fmin(REST_FIRST_S * pow(2, atomic_fetch_add(&handler->rest.failures, 1)), most_s);
    ev_now_update(handler->host.loop);
    ev_timer_set(&handler->rest.timer, rest_s * (0.5 + random_fraction() / 2), 0);
    ev_timer_start(handler->host.loop, &handler->rest.timer);
    atomic_store(&handler->rest.on, true);
    handler->host.on_rest(handler->host.worker, true);
}

bool handler_rests(const struct handler *handler)
{
    return atomic_load(&handler->rest.on);
}

void handler_works(struct handler *handler)
{
    if (atomic_load(&handler->rest.failures) > 0)
        atomic_store(&handler->rest.failures, 0);
}
