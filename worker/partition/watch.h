/* Watching what runs. */
#pragma once

#include "queue/job/job.h"
#include "worker/way/task.h"

struct partition;
struct worker;

#define WATCH_S 0.1

/* Runs every WATCH_S, as long as it must watch: ends what runs over its time, what was asked to end and has not, and, when the lease of its
 * partition is over, all. */
void worker_watch(struct worker *w);
/* True when there is anything to watch, now or soon. Else it may be called more seldom. */
bool worker_must_watch(const struct worker *w);
/* Cancels the job of this lease. */
void watch_cancel(struct partition *p, struct span token);
/* Ends what runs and was asked to end because its lease is lost; C functions on threads run on. */
void watch_end_lost(struct partition *p);
/* Asks all that runs to end. */
void worker_ask_all(struct worker *w, enum task_asked why);
/* Ends, after the loop, what still runs when a stop was forced: commands by TERM, already sent, and KILL. A C function cannot be stopped:
 * its thread, and what that uses, end with the process. Returns whether one runs. */
bool worker_end_running(struct worker *w);
