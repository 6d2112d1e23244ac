/* Is anything left, of a worker that drains? */
#pragma once

#include <stdint.h>

#include "queue/turn/turn.h"

struct partition;

struct draining {
    struct drained sum;  /* the sum of the pages of an answer that have come */
    struct drained part; /* the sum of those that are for the same queues as the last one */
    int pages, came;     /* how many there are, and have come */
    int of_types;        /* how many there are for the same queues */
    int empty;           /* answers in a row, in all partitions, that nothing is left */
    int64_t logged_us;   /* when a line last said what is left */
};

/* Asks whether anything is left. If not, the worker leaves. */
void drained_ask(struct partition *p, struct args *a);
