/* Before the first job: is this a Redis to run on, and does it let us? */
#ifndef WORKER_PRECHECK_H
#define WORKER_PRECHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/script/args.h"

struct weir_worker;

struct precheck {
    bool checked;     /* Redis's settings are */
    int64_t again_us; /* when to check them again */
};

/* Asks, as far as that is not known; false: the answer wakes the scheduler. */
bool worker_precheck(struct weir_worker *w);
/* Once a minute (once a lease, where that is shorter) a request that asks whether that has become wrong. */
void worker_recheck(struct weir_worker *w, struct args *a, int64_t now);

#endif
