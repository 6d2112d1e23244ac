/* The inside of a worker: one event loop that talks to Redis in turns, a pool of executors that run the jobs.
 *
 * Each file below owns the member of struct weir_worker that stands beside it: it alone writes it, the others
 * read it and call its functions. A file calls those that stand below it, so calls go down only; what goes up
 * is a reason that wakes the scheduler.
 *
 *   worker.c      pool, link ...  makes, runs and frees a worker
 *   turn.c        timer           the scheduler: what a turn does, and when the next one is
 *   drained.c     draining        is anything left, of a worker that drains?
 *   exit.c        at_exit         exit() by a handler
 *   stop.c        stop            finishing and leaving
 *   adopt.c       adoption        joining, under a new id after each connect
 *   match.c       matching        which queues there are, of a worker that serves patterns
 *   claim.c       claims          asking for jobs; parts/wide.c: in which of very many queues
 *   due.c         due             what is due: jobs with a time, schedules
 *   heartbeat.c   heartbeat       the lease goes on, silent workers are reaped
 *   limits.c      limits          what it knows of the limits of its types
 *   precheck.c    precheck        is this a Redis to run on, and does it let us?
 *   room.c        capacity        how many jobs a claim may bring
 *   alone.c       alone           jobs that run alone
 *   watch.c       watch           time limits, cancelled jobs, a lease that is over
 *   settle.c      settling        what has ended is reported; parts/batches.c: the last job of a batch here
 *   request.c     requests        requests and answers, in all of these; parts/distance.c: how far away Redis is
 *   session.c     session         id, rights and lease
 *   ending.c      ending          who asks the worker to end, and its result
 *   reasons.c     reasons         why the scheduler runs
 *   begin.c       begin           start times of tasks on the loop
 *   guard.c       guard           a loop that stands still
 *   parts/options.c options         read and checked; not changed afterwards
 *   parts/log_once.c logged          lines that are logged once
 *   parts/waking.c waking          blocking commands of an idle worker
 *   parts/pool.c  pool            executors
 *   way/          handlers        running one job: handler.c, and a file for each way
 *
 * Everything but the pool's threads and the guard runs on the loop. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/redis/link.h"
#include "worker/adopt.h"
#include "worker/alone.h"
#include "worker/begin.h"
#include "worker/claim.h"
#include "worker/drained.h"
#include "worker/due.h"
#include "worker/ending.h"
#include "worker/exit.h"
#include "worker/guard.h"
#include "worker/heartbeat.h"
#include "worker/limits.h"
#include "worker/match.h"
#include "worker/parts/log_once.h"
#include "worker/parts/options.h"
#include "worker/parts/pool.h"
#include "worker/parts/waking.h"
#include "worker/parts/wide.h"
#include "worker/precheck.h"
#include "worker/reasons.h"
#include "worker/request.h"
#include "worker/room.h"
#include "worker/session.h"
#include "worker/settle.h"
#include "worker/stop.h"
#include "worker/watch.h"
#include "worker/way/handler.h"
#include "worker/way/trace.h"
#include "worker/way/way.h"

#define INTERRUPTED_MOST 3
#define THREADS_MOST 1024
#define REQUEST_TIMEOUT_S 5.0
#define MS INT64_C(1000)
#define NEVER INT64_MAX

struct weir_worker {
    /* worker.c makes these before the loop runs, and frees them after it. */
    unsigned forks;            /* of the process, when it was made */
    struct error error, setup; /* of the last call; of wrong options, which run reports */
    struct options options;
    struct handlers handlers;
    int opened; /* handlers whose way was opened */
    struct ev_loop *loop;
    ev_async finished_async; /* executors have finished something */
    struct link *link;       /* to Redis */
    struct waking *waking;
    struct pool *pool;
    struct trace *trace;          /* NULL: none */
    struct conditions conditions; /* what tasks run under */
    struct wide *wide; /* the queues that it serves, where one claim cannot name them; NULL: it can */
    int64_t started_us;
    bool abandoned; /* a C function runs on: nothing that it uses may be freed */

    /* Each is written by its owner alone; see above. */
    struct log_once logged;
    struct begin begin;
    struct guard guard;
    struct reasons reasons;
    struct ending ending;
    struct session session;
    struct requests requests;
    struct settling settling;
    struct watch watch;
    struct alone alone;
    struct capacity capacity;
    struct precheck precheck;
    struct limits_here limits;
    struct heartbeat heartbeat;
    struct due due;
    struct claims claims;
    struct matching matching;
    struct adoption adoption;
    struct at_exit at_exit;
    struct stop stop;
    struct draining draining;
    ev_timer timer; /* of turn.c: the scheduler's next decision */
};

/* turn.c: the scheduler's watchers, before and after the loop runs. */
void worker_open_turns(struct weir_worker *w);
void worker_close_turns(struct weir_worker *w);

#endif
