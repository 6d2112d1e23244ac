/* Why the scheduler (turn.c) runs. A file that changes what it decides by leaves a reason here, which wakes
 * it. All functions are for the loop's thread. */
#ifndef WORKER_REASONS_H
#define WORKER_REASONS_H

#include <ev.h>
#include <stdbool.h>

struct weir_worker;

struct reasons {
    struct ev_watcher event;                 /* fed by worker_wake */
    void (*schedule)(struct weir_worker *w); /* the scheduler */
    bool claim;                              /* claim now: there may be jobs for this worker */
    bool held;                               /* the next claim checks types that a gate holds, too */
    bool recall;                             /* what was granted far ahead may not hold any more */
    bool stop;                               /* check whether to begin or to go on stopping */
};

/* Before any of the others. */
void worker_open_reasons(struct weir_worker *w, void (*schedule)(struct weir_worker *w));
/* The scheduler runs when the callback that calls this returns: once, however often this is called. */
void worker_wake(struct weir_worker *w);
/* Wakes it to claim; held: types that a gate holds are checked, too. */
void worker_claim_soon(struct weir_worker *w, bool held);
/* The next claim, whenever that is, checks types that a gate holds. */
void worker_check_held(struct weir_worker *w);
/* A claim is sent: both reasons for one are gone. Returns whether it checks types that a gate holds. */
bool worker_take_claim_reasons(struct weir_worker *w);
/* Wakes it to give back what was granted far ahead, by claims that are under way too. */
void worker_recall_soon(struct weir_worker *w);
/* Was that asked for? Then it is no longer. */
bool worker_take_recall_reason(struct weir_worker *w);
/* Wakes it to check whether to stop. */
void worker_stop_soon(struct weir_worker *w);
/* Was that asked for? Then it is no longer. */
bool worker_take_stop_reason(struct weir_worker *w);

#endif
