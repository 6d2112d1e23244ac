/* What there is, in numbers: of status.lua's answer, with what follows from it: rates and finishing times. */
#ifndef QUEUE_INSPECT_STATUS_H
#define QUEUE_INSPECT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/client/client.h"
#include "queue/inspect/forecast.h"

struct queue_status {
    char name[129];
    int64_t waiting;
    int64_t paused_us; /* since when; 0: it is not; -1: it is, and nobody knows since when */
};

struct type_status {
    char name[129];
    int64_t waiting, parked, held, aside, running, scheduled, done, retried, dead, cancelled; /* jobs */
    struct keyless keyless;
    bool limited;
    bool own_costs; /* jobs of it name what they cost */
    bool
        served; /* a worker that is alive and not ordered to rest takes its jobs, from the queues where some were seen */
    bool in_pause;             /* jobs of it may stand in a queue that is paused */
    int64_t free;              /* executors of those workers that could take one now */
    int64_t executors;         /* all of theirs */
    char rule[RULE_TEXT_SIZE]; /* of its limits the strictest in the long run, "100/1m"; "": none holds all */
    double rate;               /* starts a second that it lets through now; 0 */
    double rate_now;           /* starts a second, over the last second or two */
    int64_t next_start_us;     /* of a job that waits; -1: unknown, or none waits */
    int64_t finish_us;         /* when the last one that waits starts; -1: unknown, or none waits */
    struct json_t
        *waits_for;   /* queue/inspect/waits.h, or {"type"}: no worker takes it; NULL: nothing, none waits */
    unsigned because; /* what may make it later: enum forecast_because; 0: it is exact */
};

struct worker_status {
    char name[129], host[256], version[32];
    char instance[129]; /* the process; "": it does not say */
    char order[8];      /* "quiet", "stop": what an operator has ordered; "" */
    int64_t pid, executors, running, type_count;
    int64_t lease_us, seen_us; /* seen: its last heartbeat */
    bool silent;               /* for longer than its lease */
    struct json_t *queues;     /* that it serves, names and patterns; NULL: it does not say */
};

struct status {
    int64_t now_us, dead, later;
    int64_t dead_bytes; /* -1: not all counted yet */
    struct queue_status *queues;
    struct type_status *types;
    struct worker_status *workers;
    size_t queue_count, type_count, worker_count;
};

/* Asks Redis, all partitions. A process that works on several of them is one worker. status_free frees what *status holds, also after a failure. Sorted by name. */
WEIR_CHECKED int status_read(struct weir *w, struct status *status);
void status_free(struct status *status);
/* The same of workers alone: nothing else of *status is filled but now_us. */
WEIR_CHECKED int status_workers(struct weir *w, struct status *status);
/* All limits of the partition that calls go to, with what is known of their types: costs, keys, pauses and workers, what forecasts are made of.
 * now_us < 0: Redis's time. Freed with limits_free, also after a failure. */
WEIR_CHECKED int status_limits(struct weir *w, int64_t now_us, struct limits *limits);
/* Of two times since when a queue is paused, as queue_status has them: the earlier one, known ones before others. */
int64_t paused_earlier(int64_t a_us, int64_t b_us);
/* The row of a type, or NULL. */
const struct type_status *status_type(const struct status *status, const char *name);

#endif
