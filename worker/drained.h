/* Is anything left, of a worker that drains? */
#ifndef WORKER_DRAINED_H
#define WORKER_DRAINED_H

#include <stdint.h>

#include "queue/turn/turn.h"

struct weir_worker;

struct draining {
    struct drained sum; /* of the pages of an answer that have come */
    int pages_left;     /* that have not */
    int64_t logged_us;  /* when a line last said what is left */
};

/* When to ask; NEVER: it does not drain, or has something to do. */
int64_t worker_drained_time(struct weir_worker *w);
/* Asks. If nothing is left, the worker leaves. */
void worker_ask_drained(struct weir_worker *w, struct args *a);

#endif
