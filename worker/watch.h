/* Watching what runs. */
#ifndef WORKER_WATCH_H
#define WORKER_WATCH_H

#include "queue/job/job.h"
#include "worker/way/task.h"

struct weir_worker;

struct watch {
    struct task **running; /* room for pool_running */
};

#define WATCH_S 0.1

/* -1: out of memory. */
int worker_open_watch(struct weir_worker *w);
void worker_free_watch(struct weir_worker *w);
/* Every WATCH_S: ends what runs over its time, what was asked to end and has not, and, when the lease is over,
 * all. */
void worker_watch(struct weir_worker *w);
/* The job of this lease was cancelled. */
void worker_cancel(struct weir_worker *w, struct span token);
/* What runs and was asked to end because its lease is lost; C functions on threads run on. */
void worker_end_lost(struct weir_worker *w);
/* All that runs is asked to end. */
void worker_ask_all(struct weir_worker *w, enum task_asked why);
/* After the loop: ends what still runs when a stop was forced: commands by TERM, already sent, and KILL. A C
 * function cannot be stopped: its thread, and what that uses, end with the process. Returns whether one runs. */
bool worker_end_running(struct weir_worker *w);

#endif
