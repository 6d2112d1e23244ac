/* What a worker is and does in one partition of the namespace: it talks to Redis in turns, under an id and a lease
 * of its own. What it decides stands in worker/mind/: it has the facts there, hears the answers, and does what the plan says. The executors, the handlers and the loop are those of the process (parts/shared.h).
 *
 * Each file below owns the member of struct partition that stands beside it: it alone writes it, the others
 * read it and call its functions. A file calls those that stand below it, so calls go down only; what goes up
 * is a reason that wakes the scheduler.
 *
 *   partition.c   link, waking    makes a partition with all its members, and frees them
 *   turn.c        timer           the scheduler: asks the mind what to do, and when again
 *   drained.c     draining        is anything left, of a worker that drains?
 *   leave.c       leaving         leaving Redis
 *   adopt.c       adoption        joining, under a new id after each connect
 *   match.c       matching        which queues there are, of a worker that serves patterns
 *   beside.c      claims          claims that no turn makes
 *   claim.c       claims          asking for jobs; mind/wide.c: in which of very many queues
 *   due.c         due             what is due: jobs with a time, schedules
 *   heartbeat.c   heartbeat       the lease goes on, silent workers are reaped
 *   limits.c      limits          what it knows of the limits of its types
 *   precheck.c    precheck        is this a Redis to run on, and does it let us?
 *   executors.c                   facts for the mind; jobs that go back for want of an executor
 *   watch.c                       time limits, cancelled jobs, a lease that is over
 *   outcome.c                     how each job that has ended is settled
 *   settle.c      settling        what has ended is reported; parts/batches.c: the last job of a batch here
 *   request.c     requests        requests and answers, in all of these; mind/distance.c: how far away Redis is
 *   record.c      recording       what happens here is counted, and sent; parts/counts.c: the counts
 *   session.c     session         id, rights and lease
 *   reasons.c     reasons         why the scheduler runs
 *   begin.c                       start times of tasks on the loop, of the process
 *   parts/waking.c waking         blocking commands of an idle worker */
#pragma once

#include "core/redis/link.h"
#include "worker/mind/mind.h"
#include "worker/partition/adopt.h"
#include "worker/partition/begin.h"
#include "worker/partition/beside.h"
#include "worker/partition/claim.h"
#include "worker/partition/drained.h"
#include "worker/partition/due.h"
#include "worker/partition/executors.h"
#include "worker/partition/heartbeat.h"
#include "worker/partition/leave.h"
#include "worker/partition/limits.h"
#include "worker/partition/match.h"
#include "worker/partition/precheck.h"
#include "worker/partition/reasons.h"
#include "worker/partition/record.h"
#include "worker/partition/request.h"
#include "worker/partition/session.h"
#include "worker/partition/settle.h"
#include "worker/partition/watch.h"
#include "worker/parts/shared.h"
#include "worker/parts/waking.h"
#include "worker/way/handler.h"
#include "worker/way/trace.h"
#include "worker/way/way.h"

#define INTERRUPTED_MOST 3 /* makes a job dead; queue/state/ends.lua says what counts */

struct partition {
    struct worker *worker;
    int number;                   /* 0 to the worker's count of partitions - 1 */
    char prefix[PREFIX_SIZE];     /* of all keys */
    struct conditions conditions; /* what its tasks run under */
    struct link *link;            /* to Redis */
    struct waking *waking;

    /* Each member below is written by its owner alone: see the table above. */
    struct reasons reasons;
    struct session session;
    struct mind mind;    /* what it decides: worker/mind/mind.h */
    struct claim answer; /* to the last claim; written by claim.c and beside.c */
    int awaited;         /* answers under way: no other turn begins before the last has come */
    uint64_t turns;      /* that have ended, with all their answers */
    char last_error[sizeof((struct error *)0)
                        ->text]; /* the error that was logged last; "": an answer has been good since */
    struct settling settling;
    struct precheck precheck;
    struct limits_here limits;
    struct heartbeat heartbeat;
    struct matching matching;
    struct recording recording;
    struct adoption adoption;
    bool leaving, left; /* written by leave.c: nothing is left and Redis was told; Redis has answered */
    struct draining draining;
    ev_timer timer; /* set by turn.c to the scheduler's next decision */
};

/* Makes a partition without connections. NULL: out of memory. */
struct partition *partition_new(struct worker *w, int number);
/* Makes what it needs before the loop runs; opens its trace, if one is written. */
WEIR_CHECKED int partition_open(struct partition *p, struct error *e);
/* Begins to connect; and ends that, when the loop does not run. */
WEIR_CHECKED int partition_connect(struct partition *p, struct error *e);
void partition_disconnect(struct partition *p);
/* Returns the Redis that has its keys. */
struct redis_address partition_address(const struct partition *p);
/* Frees a partition, when the pool holds no task of it any more. */
void partition_free(struct partition *p);

/* turn.c: opens the scheduler's watchers, before the loop runs. */
void turn_open(struct partition *p);
