/* How the worker ends: who asks for it, and what weir_worker_run returns. stop.c does what is asked for. */
#pragma once

#include <ev.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/error.h"

struct worker;

struct ending {
    ev_async async; /* wakes the loop, from any thread */
    struct ev_watcher
        check;             /* when fed, the loop checks whether to stop, and how many partitions there are */
    atomic_int stop_calls; /* of weir_worker_stop. 1: what runs may end, 2: now */
    atomic_bool quiet;     /* claim no more */
    bool wanted;           /* quiet by its own wish, as it can run no more jobs, or by an operator's */
    bool ended;            /* the loop ends: the schedulers do nothing any more */
    bool hurried;          /* the process must end at once */
    struct error error;    /* why it ends, with the result of weir_worker_run; status 0: all is well */
};

/* Claims no more jobs, or claims again; from any thread. */
void worker_quiet(struct worker *w, bool quiet);
/* Calls the loop, from any thread. */
void worker_call_loop(struct worker *w);
/* Feeds check, which is called when the callback that runs returns: once, however often this is called. */
void worker_check_soon(struct worker *w);
/* Notes what weir_worker_run returns, and weir_worker_message. */
void worker_fail(struct worker *w, const struct error *why);
/* True when somebody has asked it to stop; on the loop. */
bool worker_is_told_to_stop(const struct worker *w);
/* Does what the first weir_worker_stop does; on the loop. */
void worker_stop(struct worker *w);
/* Stops as weir_worker_stop does, with a failure. */
void worker_fail_and_stop(struct worker *w, const struct error *why);
/* Ends the loop. */
void worker_end_loop(struct worker *w);
/* Ends the loop with a failure; the process must end at once. */
void worker_end_now(struct worker *w, const struct error *why);
