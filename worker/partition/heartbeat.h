/* The heartbeat: renews the lease, and takes back what silent workers held. */
#pragma once

#include <stdint.h>

#include "core/script/args.h"

struct partition;

struct heartbeat {
    int64_t taken; /* leases taken so far from workers that have some left */
    int64_t forgotten,
        forgotten_us; /* dead jobs that were forgotten since the last line about them, and when that was */
};

void heartbeat_send(struct partition *p, struct args *a);
