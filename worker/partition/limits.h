/* The limits of the worker's types, as they were at the last heartbeat. */
#ifndef WORKER_PARTITION_LIMITS_H
#define WORKER_PARTITION_LIMITS_H

#include "core/script/args.h"
#include "queue/limits/known.h"

struct partition;

struct limits_here {
    struct known_limits known; /* of the types that it runs */
    bool old;                  /* Redis may have older ones, or none */
};

/* Redis may have lost them, or have older ones. */
void partition_limits_are_old(struct partition *p);
/* Then, before anything else: writes again what Redis has lost, and learns what there is. */
void partition_restore_limits(struct partition *p);
/* With each heartbeat, and by a turn for each further page: when is it due? */
void partition_learn_limits(struct partition *p, struct args *a);
int64_t partition_learn_time(const struct partition *p);

#endif
