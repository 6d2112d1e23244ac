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

#include <ev.h>

#include "core/redis/link.h"
#include "queue/limits/known.h"
#include "queue/turn/turn.h"
#include "worker/mind/mind.h"
#include "worker/parts/batches.h"
#include "worker/parts/counts.h"
#include "worker/parts/shared.h"
#include "worker/parts/waking.h"
#include "worker/way/handler.h"
#include "worker/way/trace.h"
#include "worker/way/way.h"

#define WORKER_ID_SIZE 64
#define WATCH_S 0.1
#define INTERRUPTED_MOST 3 /* makes a job dead; queue/state/ends.lua says what counts */

struct reasons {
    struct ev_watcher event; /* partition_wake() feeds it; turn.c opens it */
    bool recall;             /* what was granted far ahead may not hold any more */
};

struct session {
    char id[WORKER_ID_SIZE]; /* "": it has never registered */
    bool permitted;          /* the user has all rights, as far as we know */
    bool registered;         /* under id, on this connection */
    bool lapsed;             /* the lease has ended since the request to register was sent */
    bool dropped;    /* the lease has ended: jobs were given up that Redis may still have under our id */
    int64_t beat_us; /* when the last request was sent that renews the lease, by clock_boot_us() */
    char types_digest[48];  /* of the types that were named under id: claims name it instead of them */
    char birth[128];        /* of Redis's data; "": not known yet */
    int64_t seen_us;        /* the last mark that it answered */
    int64_t back_us;        /* when it was last found that Redis went back, as far as was logged */
    int64_t down_since_us;  /* 0: connected */
    int64_t down_logged_us; /* when the last reason for that was logged, and which */
    char down_why[sizeof((struct error *)0)->text];
};

struct settling {
    struct task_list finished; /* to be settled */
    struct task_list sent;     /* in the settle that is under way */
    struct batches batches;    /* of the jobs that have not ended */
    bool urgent;               /* somebody may wait for the end of one of the finished */
    bool soon;                 /* a task is not simply done */
    int here;                  /* jobs that were leased and have not ended */
};

struct precheck {
    bool checked;     /* Redis's settings are */
    const char *hint; /* what the log says of them, once the worker has said who it is; NULL: nothing */
    int64_t again_us; /* when to check them again */
};

struct limits_here {
    struct known_limits known; /* limits of the types that it runs */
    bool old;                  /* Redis may have older ones, or none */
    bool newer;                /* it may have newer ones */
    int types;                 /* for how many types it asked last */
};

struct heartbeat {
    int64_t taken;        /* leases taken so far from workers that have some left */
    int64_t forgotten;    /* dead jobs that were forgotten since the last line about them, */
    int64_t forgotten_us; /* and when that was */
};

struct matching {
    uint64_t cursor; /* where the page begins that is asked for next */
    int64_t at_us;   /* when that is asked for */
};

struct recording {
    struct counts counts;
    int64_t next_us; /* when counts are sent next */
    int64_t look_us; /* when running jobs are looked through for starts next */
};

struct adoption {
    char next_id[WORKER_ID_SIZE]; /* the id that was asked for; "": none was */
    char group[24];               /* names the workers with the same queues and types */
    char *info;                   /* what others may know of this worker, JSON */
    unsigned described, asked;    /* how often that was written; when next_id was made */
    bool anew;                    /* the connection is given up by our own wish */
};

struct draining {
    struct drained sum;  /* the sum of the pages of an answer that have come */
    struct drained part; /* the sum of those that are for the same queues as the last one */
    int pages, came;     /* how many there are, and have come */
    int of_types;        /* how many there are for the same queues */
    int empty;           /* answers in a row, in all partitions, that nothing is left */
    int64_t logged_us;   /* when a line last said what is left */
};

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

/* ---- leave.c */

/* Leaves Redis, as everything has ended or was given back. The last partition to leave ends the loop. */
void leaving_begin(struct partition *p);
/* Writes the request by which it leaves: all that is leased to it goes back. */
void leaving_write(struct partition *p, struct args *a);

/* ---- adopt.c */

/* Writes group and info, when queues and types are known. */
WEIR_CHECKED int adoption_describe(struct partition *p, struct error *e);
/* Joins once more by a new connection, with what adoption_describe has written. */
void adoption_begin_anew(struct partition *p);

/* ---- claim.c */

/* Passes the duty on, as a type rests: it is for who can run the type, if there is another worker in the group; else it comes back. */
void claiming_pass_duty(struct partition *p);
/* Claims again, as a type rests no more. */
void claiming_serve_again(struct partition *p);

/* ---- executors.c */

/* Lets partitions look again that would claim, had they room. */
void worker_feed(struct worker *w);

/* ---- watch.c */

/* Runs every WATCH_S, as long as it must watch: ends what runs over its time, what was asked to end and has not, and, when the lease of its
 * partition is over, all. */
void worker_watch(struct worker *w);
/* True when there is anything to watch, now or soon. Else it may be called more seldom. */
bool worker_must_watch(const struct worker *w);
/* Asks all that runs to end. */
void worker_ask_all(struct worker *w, enum task_asked why);
/* Ends, after the loop, what still runs when a stop was forced: commands by TERM, already sent, and KILL. A C function cannot be stopped:
 * its thread, and what that uses, end with the process. Returns whether one runs. */
bool worker_end_running(struct worker *w);

/* ---- settle.c */

/* Takes what has ended from the pool. */
void tasks_collect(struct worker *w);
/* Notes a task that has left the pool and will be settled. */
void task_finished(struct task *task);
/* Gives tasks back to the head of their lanes at the next turn, with no attempt used. Empties the list. */
void tasks_give_back(struct task_list *tasks);
/* Writes a settle as a request alone. False: nothing has ended. When it is answered, or when nobody knows whether it arrived: then it is
 * settled once more, with the same tokens, as a token settles once. */
bool settling_write(struct partition *p, struct args *a);
void settling_done(struct partition *p);
void settling_again(struct partition *p);
/* True when nothing of it runs, waits, is to be settled here or is on its way beside a turn; and the same of all partitions. */
bool settling_is_idle(const struct partition *p);

/* ---- record.c */

/* Other handlers hold now; what was counted of types that are still there stays. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int recording_renumber(struct partition *p, const struct handlers *before);

/* ---- reasons.c */

/* Wakes all partitions. */
void worker_wake(struct worker *w);

/* ---- begin.c */

WEIR_CHECKED int begin_open(struct worker *w, struct error *e);
void begin_close(struct worker *w);
/* Hears that a task of the loop has ended; on any thread. */
void begin_task_ended(struct task *task);
