/* How the worker ends: who asks for it, and what weir_worker_run returns. stop.c does what is asked for. */
#ifndef WORKER_ENDING_H
#define WORKER_ENDING_H

#include <ev.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/error.h"

struct weir_worker;

struct ending {
    ev_async async;        /* wakes the loop, from any thread */
    atomic_int stop_calls; /* of weir_worker_stop. 1: what runs may end, 2: now */
    atomic_bool quiet;     /* claim no more */
    bool wanted;           /* by the worker itself: it can run no more jobs */
    bool ended;            /* the loop ends: the scheduler does nothing any more */
    bool hurried;          /* the process must end at once */
    struct error error;    /* why it ends, with the result of weir_worker_run; status 0: all is well */
};

/* The async watcher calls on_call, on the loop. */
void worker_open_ending(struct weir_worker *w,
                        void (*on_call)(struct ev_loop *loop, ev_async *async, int events));
/* Calls the loop, from any thread. */
void worker_call_loop(struct weir_worker *w);
/* What weir_worker_run returns, and weir_worker_message. */
void worker_fail(struct weir_worker *w, const struct error *why);
/* As weir_worker_stop, and a failure. */
void worker_fail_and_stop(struct weir_worker *w, const struct error *why);
/* The loop ends. */
void worker_end_loop(struct weir_worker *w);
/* The loop ends with a failure, and the process must end at once. */
void worker_end_now(struct weir_worker *w, const struct error *why);

#endif
