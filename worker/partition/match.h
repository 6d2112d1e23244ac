/* Which queues there are, of a worker that serves patterns. */
#ifndef WORKER_PARTITION_MATCH_H
#define WORKER_PARTITION_MATCH_H

#include <stdint.h>

#include "core/script/args.h"

struct partition;

struct matching {
    uint64_t cursor; /* of the page that is asked for next */
    int64_t at_us;   /* and when */
};

/* On a new connection. */
void partition_match_soon(struct partition *p);
/* When to ask; a page of the answer. */
int64_t partition_match_time(struct partition *p);
void partition_match(struct partition *p, struct args *a);

#endif
