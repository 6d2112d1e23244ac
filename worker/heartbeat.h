/* The heartbeat: renews the lease, and takes back what silent workers held. */
#ifndef WORKER_HEARTBEAT_H
#define WORKER_HEARTBEAT_H

#include <stdint.h>

#include "core/script/args.h"

struct weir_worker;

struct heartbeat {
    int64_t taken;                   /* leases, of workers of which some are left */
    int64_t forgotten, forgotten_us; /* dead jobs, since the last line about them, and when that was */
};

void worker_beat(struct weir_worker *w, struct args *a, int64_t now);

#endif
