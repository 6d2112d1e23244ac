/* Stopping: the end of what runs here, and leaving Redis. */
#ifndef WORKER_STOP_H
#define WORKER_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/script/args.h"

struct weir_worker;

struct stop {
    int64_t since_us;  /* 0: it does not stop */
    int64_t forced_us; /* since when it does not wait any more for what runs; 0: it does */
    bool leaving;      /* nothing is left here */
};

/* Begins to stop when it was asked to, or draining takes too long, and goes on. */
void worker_check_stop(struct weir_worker *w);
/* Everything has ended or was given back: leaves Redis and ends the loop. */
void worker_leave(struct weir_worker *w);
/* The same, if it stops and that is so. */
bool worker_leave_if_done(struct weir_worker *w);
/* The request by which it leaves: all that is leased to it goes back. */
void worker_write_leave(struct weir_worker *w, struct args *a);

#endif
