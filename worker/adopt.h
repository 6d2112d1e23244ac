/* Joining: registers the worker with Redis. */
#ifndef WORKER_ADOPT_H
#define WORKER_ADOPT_H

#include "core/redis/link.h"
#include "worker/session.h"

struct weir_worker;

struct adoption {
    char next_id[WORKER_ID_SIZE]; /* asked for; "": none is */
    char group[24];               /* of workers with the same queues and types */
    char *info;                   /* what others may know of this worker, JSON */
};

/* Writes group and info, when queues and types are known. */
WEIR_CHECKED int worker_describe(struct weir_worker *w, struct error *e);
void worker_free_adoption(struct weir_worker *w);
void worker_adopt(struct weir_worker *w);
extern const struct link_events worker_link_events;

#endif
