/* The inside of a worker: one event loop that talks to Redis in turns, a pool of executors that run the jobs.
 *
 *   worker.c   options, start, adopt, stop
 *   turn.c     one turn: what goes into it, what its answers mean, and when the next one is
 *   waking.c   what an idle worker waits for
 *   pool.c     executor threads; handler.c, command.c: running one job; trace.c
 *
 * Everything but the pool's threads runs on the loop. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <ev.h>
#include <stdatomic.h>

#include "core/client.h"
#include "core/link.h"
#include "worker/handler.h"
#include "worker/pool.h"
#include "worker/trace.h"
#include "worker/waking.h"

#define WORKER_ID_SIZE 64
#define QUEUES_MOST 64
#define REQUEST_TIMEOUT_S 5.0

/* A text that outlives the answer it came in: rules, to which tasks point; names that were told. */
struct kept_text {
    struct kept_text *next;
    char text[];
};

struct weir_worker {
    /* Set up before the loop runs. */
    struct error error; /* of the last call; setup_failed: reported by run */
    bool setup_failed;
    struct handlers handlers;
    struct redis_address address;
    char prefix[PREFIX_SIZE];
    char *queue_names; /* owns what queues points to */
    const char *queues[QUEUES_MOST];
    int weights[QUEUES_MOST]; /* of queues; all 0: strict order */
    int queue_count;
    bool weighted;
    int executors;
    int64_t lease_us, grace_us, drain_max_us;
    bool drain, unknown_dead;
    char *trace_file, *info; /* info: what others may know of this worker, JSON */
    char group[24];

    struct ev_loop *loop;
    ev_timer timer;          /* the next look */
    ev_async finished_async; /* executors have finished something */
    ev_async stop_async;
    atomic_int stop_calls; /* 1: drain, 2: now */
    atomic_bool quiet;
    struct link *link;
    struct waking *waking;
    struct pool *pool;
    struct trace *trace;

    /* Who we are to Redis. */
    char id[WORKER_ID_SIZE], next_id[WORKER_ID_SIZE]; /* next_id: while it is being adopted */
    bool adopted, adopting;
    int64_t down_since_us; /* 0: connected */
    int64_t turn;
    int awaited;            /* answers of the turn that is under way */
    int64_t pause_until_us; /* after an error answer */
    char last_error[256];

    struct task_list finished; /* to be settled */
    struct task_list settling; /* in the turn that is under way */

    /* What the last claim said; times by this machine's monotonic clock, 0: unknown or never. */
    struct claim claim;
    bool more, look_now, look_held;
    int64_t next_us, later_us, duty_until_redis_us, duty_until_us;
    int64_t looked_us, hungry_us, tick_us, mark_us, drained_us;
    int64_t offset_us, offset_before_us, offset_since_us; /* clock_offset() */
    struct kept_text *kept;
    int kept_count;

    /* How fast jobs end here, and how large they are: for prefetching. */
    double rate; /* a second */
    int64_t rate_us;
    uint64_t ended;
    double body_bytes;
    uint64_t begun; /* pool_load at the last check for a stuck queue */
    int64_t stuck_us;

    int64_t started_us, stopping_us; /* stopping_us: since when; 0: not */
    bool leaving, forced;
    bool abandoned; /* a C function runs on: nothing that it uses may be freed */
    int result;
};

/* turn.c */
void worker_look(struct weir_worker *w);
/* Hands these back at the next turn: to the head of their lanes, with no attempt used. Empties the list. */
void worker_give_back(struct weir_worker *w, struct task_list *tasks);
/* Could it run one more job? */
bool worker_has_room(struct weir_worker *w);
/* Nothing runs, waits or is to be settled here. */
bool worker_is_idle(struct weir_worker *w);
/* An error answer: told once, and a pause. */
void worker_refused(struct weir_worker *w, const struct error *e);

/* worker.c */
void worker_adopt(struct weir_worker *w);
/* Everything has ended or was given back: leaves and ends the loop. */
void worker_leave(struct weir_worker *w);

#endif
