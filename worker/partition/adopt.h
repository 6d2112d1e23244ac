/* Joining: registers the worker with Redis. */
#pragma once

#include "core/redis/link.h"
#include "worker/partition/session.h"

struct partition;

struct adoption {
    char next_id[WORKER_ID_SIZE]; /* the id that was asked for; "": none was */
    char group[24];               /* names the workers with the same queues and types */
    char *info;                   /* what others may know of this worker, JSON */
    unsigned described, asked;    /* how often that was written; when next_id was made */
    bool anew;                    /* the connection is given up by our own wish */
};

/* Writes group and info, when queues and types are known. */
WEIR_CHECKED int adoption_describe(struct partition *p, struct error *e);
/* Joins once more by a new connection, with what adoption_describe has written. */
void adoption_begin_anew(struct partition *p);
void adoption_ask(struct partition *p, int64_t now);
extern const struct link_events partition_link_events;
