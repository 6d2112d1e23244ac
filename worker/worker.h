/* The inside of a worker: one event loop that talks to Redis in turns, a pool of executors that run the jobs.
 *
 *   worker.c   made, run, freed; options.c
 *   precheck.c before joining: Redis's settings, once, and the user's rights
 *   adopt.c    joining, under a new id after each connect; limits.c: what it knows of its types' limits
 *   stop.c     finishing and leaving; exit.c: exit() by a handler; guard.c: a loop that stands still
 *   turn.c     one turn: what goes into it, and when the next one is
 *   settle.c   what has ended, batches.c: and of which batches there is more; claim.c: what to run next;
 *              alone.c: jobs that run alone; schedule.c: schedules that are due
 *   waking.c   what an idle worker waits for
 *   pool.c     executors; begin.c: those on the loop; watch.c: time, cancelled jobs, a lease that is over
 *   handler.c  running one job, in its way (way.h): function.c, command.c, async.c, pipe.c, http.c; trace.c
 *
 * Everything but the pool's threads and the guard runs on the loop. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/redis/client.h"
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
#include "worker/log_once.h"
#include "worker/match.h"
#include "worker/pool.h"
#include "worker/precheck.h"
#include "worker/reasons.h"
#include "worker/request.h"
#include "worker/room.h"
#include "worker/session.h"
#include "worker/settle.h"
#include "worker/stop.h"
#include "worker/waking.h"
#include "worker/watch.h"
#include "worker/way/handler.h"
#include "worker/way/trace.h"
#include "worker/way/way.h"
#include "worker/wide.h"

#define QUEUES_MOST 1000 /* names and patterns of queues */
#define INTERRUPTED_MOST 3
#define THREADS_MOST 1024
#define REQUEST_TIMEOUT_S 5.0
#define MS INT64_C(1000)
#define NEVER INT64_MAX

/* Of a type that may have no handler yet. */
struct type_options {
    char type[129];
    struct weir_type_options options;
};

struct weir_worker {
    /* Made before the loop runs, freed after it: worker.c. */
    unsigned forks;
    struct error error, setup; /* of the last call; of wrong options, which run reports */
    struct handlers handlers;
    int opened; /* handlers whose way was opened */
    struct ev_loop *loop;
    ev_async finished_async; /* executors have finished something */
    struct link *link;
    struct waking *waking;
    struct pool *pool;
    struct trace *trace;
    struct conditions conditions;
    int64_t started_us;
    bool abandoned; /* a C function runs on: nothing that it uses may be freed */

    /* options.c */
    struct redis_address address;
    char prefix[PREFIX_SIZE];
    char *queue_names; /* owns what queues points to */
    const char *queues[QUEUES_MOST];
    int weights[QUEUES_MOST]; /* of queues; all 0: strict order */
    int queue_count;
    bool weighted;
    struct wide *wide; /* those that it serves, where one claim cannot name them; NULL: it can */
    int executors;
    int64_t lease_us, grace_us, drain_max_us, kill_after_us;
    int64_t dead_most, dead_age_us;
    int64_t pause_most_us; /* that a handler may ask for */
    bool drain, unknown_dead;
    struct type_options *types; /* to be given to the handlers */
    int type_count;
    char *trace_file;

    /* Each is written by the file of its name. */
    struct log_once logged;
    struct reasons reasons;
    struct ending ending;
    struct session session;
    struct requests requests; /* request.c */
    struct settling settling; /* settle.c */
    struct limits_here limits;
    struct watch watch;
    struct begin begin;
    struct alone alone;
    struct capacity capacity; /* room.c */
    struct due due;
    struct heartbeat heartbeat;
    struct precheck precheck;
    struct matching matching; /* match.c */
    struct draining draining; /* drained.c */
    struct adoption adoption; /* adopt.c */
    struct stop stop;
    struct guard guard;
    struct at_exit at_exit; /* exit.c */

    /* claim.c. What the last claim said; times by this machine's monotonic clock, 0: unknown or never. */
    struct claim claim;
    bool more, starved;
    int64_t next_us, duty_until_redis_us, duty_until_us;
    int64_t second_us; /* it is the second, and claims then after the worker on duty */
    int64_t looked_us, hungry_us, mark_us;
    int64_t turn;
    int claimed_free;  /* executors that the last claim could use */
    double body_bytes; /* of a job, as a rule */

    /* turn.c */
    ev_timer timer; /* the next decision of the scheduler */
};

/* options.c: 0, or w->error. */
int worker_read_options(struct weir_worker *w, const struct weir_worker_options *options);
/* Gives each handler the options of its type. */
WEIR_CHECKED int worker_spread_options(struct weir_worker *w);
void worker_free_options(struct weir_worker *w);

/* turn.c: the scheduler's watchers, before and after the loop runs. */
void worker_open_turns(struct weir_worker *w);
void worker_close_turns(struct weir_worker *w);

#endif
