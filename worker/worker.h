/* The inside of a worker: one event loop that talks to Redis in turns, a pool of executors that run the jobs.
 *
 *   worker.c   made, run, freed; options.c
 *   precheck.c before joining: Redis's settings, once, and the user's rights
 *   adopt.c    joining, under a new id after each connect; limits.c: what it knows of its types' limits
 *   stop.c     finishing and leaving; exit.c: exit() by a handler; guard.c: a loop that stands still
 *   turn.c     one turn: what goes into it, and when the next one is
 *   settle.c   what has ended, batches.c: and of which batches there is more; claim.c: what to run next;
 *              wide.c: in which of very many queues, match.c: and which there are; alone.c: jobs that run
 * alone; schedule.c: schedules that are due waking.c   what an idle worker waits for pool.c     executors;
 * begin.c: those on the loop; watch.c: time, cancelled jobs, a lease that is over handler.c  running one job,
 * in its way (way.h): function.c, command.c, async.c, pipe.c, http.c; trace.c
 *
 * Everything but the pool's threads and the guard runs on the loop. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/redis/client.h"
#include "core/redis/link.h"
#include "queue/limits/known.h"
#include "worker/batches.h"
#include "worker/distance.h"
#include "worker/pool.h"
#include "worker/waking.h"
#include "worker/way/handler.h"
#include "worker/way/trace.h"
#include "worker/way/way.h"
#include "worker/wide.h"

#define WORKER_ID_SIZE 64
#define QUEUES_MOST 1000 /* names and patterns of queues */
#define INTERRUPTED_MOST 3
#define THREADS_MOST 1024
#define REQUEST_TIMEOUT_S 5.0
#define MS INT64_C(1000)
#define NEVER INT64_MAX

/* A line that was logged and is not to be logged again. */
struct told {
    struct told *next;
    char line[];
};

/* Of a type that may have no handler yet. */
struct type_options {
    char type[129];
    struct weir_type_options options;
};

/* Running a job alone: see alone.c. Times are monotonic, in us. */
struct alone {
    bool on;    /* a claim said so: nothing else is taken */
    bool runs;  /* it is here */
    bool asked; /* while nothing else was in flight */
    int64_t since_us, waited_us, wait_most_us, rest_until_us;
};

struct weir_worker {
    /* Set up before the loop runs. */
    unsigned forks;
    struct error error, setup; /* of the last call; of wrong options, which run reports */
    struct handlers handlers;
    struct redis_address address;
    char prefix[PREFIX_SIZE];
    char *queue_names; /* owns what queues points to */
    const char *queues[QUEUES_MOST];
    int weights[QUEUES_MOST]; /* of queues; all 0: strict order */
    int queue_count;
    bool weighted;
    struct wide *wide;      /* those that it serves, where one claim cannot name them; NULL: it can */
    uint64_t match_cursor;  /* of the page that is asked for next */
    int64_t match_us;       /* and when */
    int claimed_free;       /* executors that the last claim could use */
    struct drained drained; /* what the pages of an answer have said so far */
    int drained_left;       /* pages */
    int executors;
    int64_t lease_us, grace_us, drain_max_us, kill_after_us;
    int64_t dead_most, dead_age_us;
    int64_t pause_most_us; /* that a handler may ask for */
    bool drain, unknown_dead;
    struct type_options *types; /* to be given to the handlers */
    int type_count;
    int opened;              /* handlers whose way was opened */
    char *trace_file, *info; /* info: what others may know of this worker, JSON */
    char group[24];

    struct ev_loop *loop;
    ev_timer timer;          /* the next look */
    ev_io begin_io;          /* a task of the loop is to begin: a timerfd, -1: there are no such types */
    int64_t begin_us;        /* what it is set to */
    ev_async finished_async; /* executors have finished something */
    ev_async stop_async;
    atomic_int stop_calls; /* 1: drain, 2: now */
    atomic_bool quiet;
    struct link *link;
    struct waking *waking;
    struct pool *pool;
    struct task **watched; /* room for pool_running */
    struct trace *trace;
    struct conditions conditions;

    /* Who we are to Redis. */
    char id[WORKER_ID_SIZE], next_id[WORKER_ID_SIZE]; /* next_id: while it is being adopted */
    char birth[128];                                  /* of Redis's data; "": not known yet */
    int64_t seen_us;                                  /* the last mark that it answered */
    int64_t back_us;           /* when it was found last that Redis went back, as far as was said */
    struct known_limits known; /* of the types that it runs */
    bool limits_due;           /* to be compared with what Redis has */
    bool checked;              /* Redis's settings are */
    int64_t recheck_us;        /* when to look at them again */
    bool permitted;            /* the user has all rights, as far as we know */
    bool adopted;
    bool adopt_again;      /* what was named to it is given up meanwhile */
    int64_t beat_us;       /* when Redis was told last that we live, by clock_boot_us() */
    int64_t down_since_us; /* 0: connected */
    int64_t turn;
    int awaited;            /* answers of the turn that is under way */
    int64_t pause_until_us; /* after an error answer */
    char last_error[sizeof((struct error *)0)->text];

    struct task_list finished; /* to be settled */
    struct task_list settling; /* in the turn that is under way */
    struct batches batches;    /* of the jobs that have not ended */
    bool awaited_ends;         /* of the finished: somebody may wait for the end of one */

    /* What the last claim said; times by this machine's monotonic clock, 0: unknown or never. */
    struct claim claim;
    bool more, starved, look_now, look_held;
    struct alone alone;
    int reserve, reserve_used; /* executors for jobs with a limit alone; the most that were used since */
    int64_t reserve_us;
    int64_t next_us, later_us, duty_until_redis_us, duty_until_us;
    int64_t second_us;      /* it is the second, and looks then after the worker on duty */
    int64_t later_heard_us; /* when Redis said so */
    int64_t turn_us;        /* when the last turn was sent */
    bool promotes;          /* what was due last was moved by this worker */
    int64_t left_us; /* schedules are due that are for others: until then, what is due is not looked at */
    int64_t looked_us, hungry_us, tick_us, mark_us, drained_us;
    int64_t reaped;                  /* leases, of workers of which some are left */
    int64_t forgotten, forgotten_us; /* dead jobs, since the last line that said so, and when that was */
    struct distance distance;        /* of Redis */
    struct told *told;
    int told_count;

    /* How fast jobs end here, and how large they are: for prefetching. */
    double rate; /* a second */
    int64_t rate_us;
    uint64_t ended;
    double body_bytes;
    uint64_t begun; /* pool_load at the last check for a stuck queue */
    int64_t stuck_us;

    int64_t started_us, stopping_us; /* stopping_us: since when; 0: not */
    int64_t forced_us;               /* since when what runs is not waited for any more; 0: it is */
    bool leaving;
    bool abandoned; /* a C function runs on: nothing that it uses may be freed */
    bool hurried;   /* the process is to end at once */
    /* Of guard.c. */
    atomic_uint ticks; /* of the loop, every WATCH_S */
    pthread_t guard;
    int guard_fd; /* -1: there is none */
    /* Of exit.c. */
    struct weir_worker *next_running;
    pthread_t thread; /* that runs it */
    atomic_bool gone; /* it has given back all */
    int result;
};

/* options.c: 0, or w->error. */
int worker_read_options(struct weir_worker *w, const struct weir_worker_options *options);
/* Gives each handler the options of its type. */
WEIR_CHECKED int worker_spread_options(struct weir_worker *w);

/* precheck.c */
/* Asks, as far as that is not known, whether Redis is one to run on and lets us; false: look again when the
 * answer has come. */
bool worker_precheck(struct weir_worker *w);
/* Once a minute (once a lease, where that is shorter) a request that asks whether that has become wrong. */
void worker_recheck(struct weir_worker *w, struct args *a, int64_t now);

/* adopt.c */
/* What Redis is told of this worker: its info and its group. */
int worker_describe(struct weir_worker *w);
/* A login, permission or setting that is refused before anything has worked is not an outage but a mistake,
 * and so are data that this version cannot read: ends the worker. */
bool worker_is_hopeless(struct weir_worker *w, const struct error *why);
void worker_adopt(struct weir_worker *w);
/* Redis has answered a mark. */
void worker_seen(struct weir_worker *w, int64_t mark_us);
/* Says once that Redis went back; what it has of limits may be older now. */
void worker_hear_back(struct weir_worker *w, const struct went_back *back);
extern const struct link_events worker_link_events;

/* limits.c */
/* After each connect, before anything else: writes again what Redis has lost, then learns what there is. */
void worker_restore_limits(struct weir_worker *w);
/* With each heartbeat. */
void worker_learn_limits(struct weir_worker *w, struct args *a);

/* turn.c */
/* Looks what is due, and sets the timer to the next look. */
void worker_look(struct weir_worker *w);
/* Nothing runs, waits or is to be settled here. */
bool worker_is_idle(struct weir_worker *w);
bool worker_takes_jobs(struct weir_worker *w);
struct names worker_queues(struct weir_worker *w);
struct names worker_types(const struct weir_worker *w);
/* Each part of a turn is sent, and its answer ends with worker_answered. */
void worker_send(struct weir_worker *w, struct args *a, link_reply *on_reply);
void worker_answered(struct weir_worker *w);
/* Redis has answered the last heartbeat: the lease goes on. */
void worker_lives(struct weir_worker *w);
/* An error answer: told once, and a pause. */
void worker_refused(struct weir_worker *w, const struct error *e);

/* begin.c */
/* Begins the tasks of the loop whose time has come, and sets a timer to the next one. */
void worker_begin(struct weir_worker *w);
int worker_begin_open(struct weir_worker *w);
/* A task of the loop has ended; on any thread. */
void worker_task_ended(struct task *task);
void worker_begin_close(struct weir_worker *w);

/* watch.c */
/* Every WATCH_S: ends what runs over its time, what was told to end and has not, and, when the lease is over,
 * all. */
#define WATCH_S 0.1
void worker_watch(struct weir_worker *w);
/* The job of this lease was cancelled. */
void worker_cancel(struct weir_worker *w, struct span token);
/* What runs and was asked to end because its lease is lost; C functions on threads run on. */
void worker_end_lost(struct weir_worker *w);
/* All that runs is asked to end. */
void worker_ask_all(struct weir_worker *w, enum task_asked why);

/* settle.c */
/* Takes what has ended from the pool. */
void worker_collect(struct weir_worker *w);
/* A task has left the pool: it is to be settled. */
void worker_finished(struct weir_worker *w, struct task *task);
/* How a task that has ended is settled, decided and told once: what it was asked to end for counts more than
 * what its handler said. */
void worker_take_end(struct task *task);
/* When to settle what has ended, NEVER: nothing has. */
int64_t worker_settle_time(const struct weir_worker *w);
/* Sends what has ended, if anything has. */
void worker_settle(struct weir_worker *w, struct args *a);
/* The same as a request alone: what it settles is then in w->settling. false: nothing has ended. */
bool worker_write_settle(struct weir_worker *w, struct args *a);
/* Hands these back at the next turn: to the head of their lanes, with no attempt used. Empties the list. */
void worker_give_back(struct weir_worker *w, struct task_list *tasks);

/* schedule.c */
/* Fires the schedules that promote named. */
void worker_fire(struct weir_worker *w, const struct promoted *promoted);

/* match.c */
/* When to ask which queues there are; a page of it. */
int64_t worker_match_time(struct weir_worker *w);
void worker_match(struct weir_worker *w, struct args *a);

/* claim.c */
/* Is it new, as a line to be logged once? */
bool worker_remember(struct weir_worker *w, const char *line);
struct room {
    int free, prefetch;
    int open;      /* of the free: not reserved for jobs with a limit */
    bool worth_it; /* enough for a turn of its own when there is more to take */
};
struct room worker_room(struct weir_worker *w);
/* Could it run one more job? */
bool worker_has_room(struct weir_worker *w);
void worker_measure_rate(struct weir_worker *w, int64_t now);
/* Prefetched jobs must not sit here while those before them take long. */
void worker_give_back_stuck(struct weir_worker *w, int64_t now);
int64_t worker_stuck_time(struct weir_worker *w); /* when to see to that; NEVER: none waits */
/* When to claim: at once when told to or with more to take, else when a gate is about to open, or too long
 * after the last look. */
int64_t worker_claim_time(struct weir_worker *w, struct room room);
void worker_claim(struct weir_worker *w, struct args *a, struct room room, int64_t now);
/* A type rests no longer: its jobs may come. */
void worker_type_serves(struct weir_worker *w);
/* How long before a time of Redis a request must leave to be there; 0: Redis is near. */
int64_t worker_way_there(const struct weir_worker *w);
/* At that time by Redis's clock the first record of `later` is due then; -1: there is none. */
void worker_hear_later(struct weir_worker *w, int64_t redis_us, int64_t later_us);

/* alone.c */
/* What a claim answered. */
void alone_hear(struct weir_worker *w, const struct claim *claim, int64_t now);
/* Ends it when the job has ended, or nothing has come of it for too long; alone_time: when that is. */
void alone_check(struct weir_worker *w, int64_t now);
int64_t alone_time(const struct weir_worker *w);
/* May a claim find one? */
bool alone_is_wanted(const struct weir_worker *w, int64_t now);
/* Must nothing be claimed? And while it is on, when the next claim is. */
bool alone_keeps_others(struct weir_worker *w);
int64_t alone_claim_time(struct weir_worker *w);

/* stop.c */
/* Begins or goes on to stop when it was asked to, or draining takes too long; else a look. */
void worker_check_stop(struct weir_worker *w);
/* Takes no more jobs, gives back those that wait, and ends when the others have ended. */
void worker_begin_stop(struct weir_worker *w);
/* Everything has ended or was given back: leaves and ends the loop. */
void worker_leave(struct weir_worker *w);
/* The request by which it leaves: all that is leased to it goes back. */
void worker_write_leave(struct weir_worker *w, struct args *a);
/* Ends what still runs after a stop that was forced: commands by TERM, already sent, and KILL. A C function
 * cannot be stopped: its thread, and what that uses, end with the process. */
void worker_end_running(struct weir_worker *w);

/* guard.c */
/* While it is open, the process ends with 70 if the loop stands still and the lease ends. Where no thread can
 * be started, a line says so. */
void worker_guard_open(struct weir_worker *w);
void worker_guard_close(struct weir_worker *w);

/* exit.c */
/* While it runs, an exit() anywhere in the process gives back its jobs. */
void worker_exit_open(struct weir_worker *w);
void worker_exit_close(struct weir_worker *w);
/* On its loop, when it was woken: does not return if the process is ending. */
void worker_check_exit(struct weir_worker *w);

#endif
