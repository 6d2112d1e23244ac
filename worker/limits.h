/* The limits of the worker's types, as they were at the last heartbeat. */
#ifndef WORKER_LIMITS_H
#define WORKER_LIMITS_H

#include "core/script/args.h"
#include "queue/limits/known.h"

struct weir_worker;

struct limits_here {
    struct known_limits known; /* of the types that it runs */
    bool old;                  /* Redis may have older ones, or none */
};

/* Redis may have lost them, or have older ones. */
void worker_limits_are_old(struct weir_worker *w);
/* Then, before anything else: writes again what Redis has lost, and learns what there is. */
void worker_restore_limits(struct weir_worker *w);
/* With each heartbeat. */
void worker_learn_limits(struct weir_worker *w, struct args *a);

#endif
