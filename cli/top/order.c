#include "cli/top/order.h"

#include "core/client/client.h"
#include "queue/limits/rate.h"
#include "queue/queues/queues.h"
#include "view/workers.h"

#define PAUSE_US (10 * 60 * INT64_C(1000000)) /* of a limit; another time is given as a command */
#define SAY(result, ...) snprintf((result)->said, sizeof(result)->said, __VA_ARGS__)

static int halt_queue(struct weir *w, const struct order *o, struct result *r)
{
    bool pause = o->kind == ORDER_PAUSE_QUEUE;
    json_t *before;
    int status =
        queue_pause(w, o->name, &(struct pausing){.for_us = pause ? RATE_ENDLESS : RATE_RESUME}, &before);

    SAY(r, "queue %s %s", o->name, pause ? "paused" : "resumed");
    json_decref(before);
    return status;
}

static int halt_limit(struct weir *w, const struct order *o, struct result *r)
{
    bool pause = o->kind == ORDER_PAUSE_LIMIT, was = false;
    int status = rate_pause(w, o->name, NULL, pause ? PAUSE_US : RATE_RESUME, &was);

    SAY(r, "limit %s %s", o->name, pause ? "paused for 10m" : was ? "resumed" : "was not paused");
    return status;
}

static int quiet_worker(struct weir *w, const struct order *o, struct result *r)
{
    json_t *ordered;
    int status = view_worker_orders(w, o->name, "quiet", &ordered);

    SAY(r, "worker %s: hears it within its next heartbeat: quiet", o->name);
    json_decref(ordered);
    return status;
}

void order_do(struct weir *w, const struct order *order, struct result *r)
{
    static int (*const orders[])(struct weir * w, const struct order *o,
                                 struct result *r) = {[ORDER_PAUSE_QUEUE] = halt_queue,
                                                      [ORDER_RESUME_QUEUE] = halt_queue,
                                                      [ORDER_PAUSE_LIMIT] = halt_limit,
                                                      [ORDER_RESUME_LIMIT] = halt_limit,
                                                      [ORDER_QUIET_WORKER] = quiet_worker};

    *r = (struct result){.status = 0};
    r->status = orders[order->kind](w, order, r);
    if (r->status < 0)
        SAY(r, "%s", w->error.text);
}
