/* What there is, in numbers: of status.lua's answer, with what follows from it: rates and finishing times. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/client/client.h"
#include "queue/status/forecast.h"

struct queue_status {
    char name[129];
    int64_t waiting;
    int64_t oldest_us;    /* when its first job was enqueued; 0: unknown, or there is none */
    int64_t paused_us;    /* since when; 0: it is not; -1: it is, and nobody knows since when */
    struct json_t *pause; /* as queue/state/reasons.lua describes it; NULL: it is not paused */
};

/* What is counted of a type, for all who show it: its jobs by where they are now, their ends by outcome, and leases that were lost. */
enum jobs_kind { JOBS_NOW, JOBS_ENDED, JOBS_LOST };
struct jobs_count {
    const char *name;
    enum jobs_kind kind;
    size_t at; /* in struct type_status */
};
extern const struct jobs_count jobs_counts[]; /* in the order of documents; the last has no name */
/* Returns a number of a type by its place. */
int64_t type_number(const struct type_status *type, size_t at);

struct worker_status {
    char name[129], host[256], version[32];
    char instance[129]; /* the process; "": it does not say */
    char order[8];      /* "quiet", "stop": what an operator has ordered; "" */
    bool heard;         /* that, by one of its heartbeats */
    int64_t ordered_us; /* when; 0: unknown */
    int64_t pid, executors, running, type_count;
    int64_t lease_us, seen_us; /* seen: its last heartbeat */
    bool silent;               /* for longer than its lease */
    struct json_t *queues;     /* that it serves, names and patterns; NULL: it does not say */
    struct json_t *patterns;   /* those of its types, which type_count counts too; NULL: it has none */
};

struct status {
    int64_t now_us, dead, later;
    int64_t dead_bytes; /* -1: not all counted yet */
    /* the last claim that leased something or took the duty, of the partitions the earliest; 0: never */
    int64_t claimed_us;
    struct queue_status *queues;
    struct type_status *types;
    struct worker_status *workers;
    size_t queue_count, type_count, worker_count;
    /* of limits, the first of them, as queue/state/key_pauses.lua has their rows; NULL */
    struct json_t *paused_keys;
    int64_t paused_key_count; /* all */
    struct json_t *stopped;   /* queue -> what is wrong with the key that stops its claims */
};

/* These are the limits of each partition. */
struct all_limits {
    struct limits *at;
    int count;
};

/* Asks Redis, all partitions. A process that works on several of them is one worker. status_free frees what *status holds, also after a failure. Sorted by name. */
WEIR_CHECKED int status_read(struct weir *w, struct status *status);
/* Reads the status with the limits that it was made of, as status_limits has them; all_limits_free frees what *limits holds, also after a
 * failure. */
WEIR_CHECKED int status_read_with_limits(struct weir *w, struct status *status, struct all_limits *limits);
/* Reads the status where no type is foretold yet, which is a quarter of the work: who shows few of many types foretells these. */
WEIR_CHECKED int status_read_untold(struct weir *w, struct status *status, struct all_limits *limits);
/* Fills what follows from the limits of a type, once: its rate, next_start_us, finish_us, waits_for. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int status_foretell(struct type_status *type, const struct all_limits *limits, struct error *e);
void all_limits_free(struct all_limits *limits);
void status_free(struct status *status);
/* Reads the workers alone: nothing else of *status is filled but now_us. */
WEIR_CHECKED int status_workers(struct weir *w, struct status *status);
/* All limits of the partition that calls go to, with what is known of their types: costs, keys, pauses and workers, what forecasts are made of.
 * now_us < 0: Redis's time. Freed with limits_free, also after a failure. */
WEIR_CHECKED int status_limits(struct weir *w, int64_t now_us, struct limits *limits);
/* Find the row of a type or of a queue, or NULL. */
const struct type_status *status_type(const struct status *status, const char *name);
const struct queue_status *status_queue(const struct status *status, const char *name);
