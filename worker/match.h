/* Which queues there are, of a worker that serves patterns. */
#ifndef WORKER_MATCH_H
#define WORKER_MATCH_H

#include <stdint.h>

#include "core/script/args.h"

struct weir_worker;

struct matching {
    uint64_t cursor; /* of the page that is asked for next */
    int64_t at_us;   /* and when */
};

/* On a new connection. */
void worker_match_soon(struct weir_worker *w);
/* When to ask; a page of the answer. */
int64_t worker_match_time(struct weir_worker *w);
void worker_match(struct weir_worker *w, struct args *a);

#endif
