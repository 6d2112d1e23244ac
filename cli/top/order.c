#include "cli/top/order.h"

#include "core/client/client.h"
#include "queue/limits/rate.h"
#include "queue/limits/type.h"
#include "queue/queues/queues.h"
#include "view/workers.h"

#define PAUSE_US (10 * 60 * INT64_C(1000000)) /* of a limit; another time is given as a command */
#define SAY(result, ...) snprintf((result)->said, sizeof(result)->said, __VA_ARGS__)

/* A type or a queue, until it is resumed. */
static int halt(struct weir *w, const struct order *o, struct result *r)
{
    bool type = o->kind == ORDER_PAUSE_TYPE || o->kind == ORDER_RESUME_TYPE,
         pause = o->kind == ORDER_PAUSE_TYPE || o->kind == ORDER_PAUSE_QUEUE;
    const struct pausing how = {.for_us = pause ? RATE_ENDLESS : RATE_RESUME, .create = true};
    json_t *answer = NULL;
    int status = (type ? type_pause : queue_pause)(w, o->name, &how, &answer);

    SAY(r, "%s %s %s", type ? "type" : "queue", o->name, pause ? "paused" : "resumed");
    json_decref(answer);
    return status;
}

static int halt_limit(struct weir *w, const struct order *o, struct result *r)
{
    bool pause = o->kind == ORDER_PAUSE_LIMIT;
    json_t *answer = NULL;
    int status =
        rate_pause(w, o->name, NULL, &(struct pausing){.for_us = pause ? PAUSE_US : RATE_RESUME}, &answer);

    SAY(r, "limit %s %s", o->name,
        pause                                          ? "paused for 10m"
        : json_is_true(json_object_get(answer, "was")) ? "resumed"
                                                       : "was not paused");
    json_decref(answer);
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
    static int (*const orders[])(struct weir * w, const struct order *o, struct result *r) = {
        [ORDER_PAUSE_TYPE] = halt,          [ORDER_RESUME_TYPE] = halt,
        [ORDER_PAUSE_QUEUE] = halt,         [ORDER_RESUME_QUEUE] = halt,
        [ORDER_PAUSE_LIMIT] = halt_limit,   [ORDER_RESUME_LIMIT] = halt_limit,
        [ORDER_QUIET_WORKER] = quiet_worker};

    *r = (struct result){.status = 0};
    r->status = orders[order->kind](w, order, r);
    if (r->status < 0)
        SAY(r, "%s", w->error.text);
}
