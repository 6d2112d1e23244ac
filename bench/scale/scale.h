/* The simulation of doc/scale.md: 1 to 10,000 workers on one Redis, as discrete events under virtual time. Redis is real: each call
 * is the script of this version, with the time of the event as its `now`, on a private redis-server. What calls cost, the link and
 * the faults are the simulation's, so a run says the same on any machine. What a worker decides is worker/mind/, as in a real one.
 *
 *   events.c   what happens next
 *   store.c    Redis: one call after the other, each with its cost; who waits for its bells
 *   agent.c    workers: an agent for each of their partitions; executors.c: their tasks; link.c: what they send and hear
 *   run.c      a run: jobs, faults
 *   worlds.c   random worlds: what always holds
 *   main.c     options, the table */
#pragma once

#include "bench/server.h"
#include "queue/turn/turn.h"
#include "worker/mind/mind.h"

#define SECOND (1000 * MS)
#define BEGIN_US INT64_C(1795000000000000) /* the virtual time is since then */
#define GROUP "sim"
#define TOKEN_SIZE 96
#define ID_SIZE 24
#define LEASE_US (30 * SECOND)
#define SPREAD_MOST 4 /* partitions of a world */

/* ---- events.c */

enum event_kind {
    EVENT_DECIDE,  /* an agent looks what to do */
    EVENT_ARRIVE,  /* a turn comes to Redis, */
    EVENT_ANSWER,  /* and its answer to the agent, */
    EVENT_BESIDE,  /* or that of a claim that went beside it */
    EVENT_STAND,   /* a peek comes to Redis, with a claim behind it, */
    EVENT_TIMEOUT, /* has waited for long enough, */
    EVENT_STOOD,   /* and its answer comes to the agent */
    EVENT_WAIT,    /* a blocking command comes to Redis, */
    EVENT_WAKE,    /* and what it waited for to the agent */
    EVENT_PASS,    /* a token that an agent does not need comes back to Redis */
    EVENT_NEAR,    /* the time of an early task is near */
    EVENT_BEGIN,   /* a task's time has come */
    EVENT_END,     /* a task has ended */
    EVENT_CONNECT, /* an agent's link is up */
    EVENT_PUSH,    /* a producer sends a job to a partition, which is the agent */
    EVENT_FAULT,   /* something fails */
};
struct event {
    int64_t at_us;
    uint64_t number; /* of two at the same time, the first one that was planned */
    enum event_kind kind;
    int agent, epoch; /* of the agent's link, or of its life */
    void *data;
};
void events_add(int64_t at_us, enum event_kind kind, int agent, int epoch, void *data);
bool events_next(struct event *event);
/* Does its data belong to it? */
bool event_has_turn(enum event_kind kind);
void events_clear(void);

/* ---- What a run is given, and what comes of it */

struct world {
    int workers, executors;
    int partitions; /* that each worker serves; what follows is of each of them, */
    int flood;      /* but of the last one where this is not 0: so many jobs without a limit wait there */
    double rate;    /* of the limit, or of the producer, in a second */
    int burst;      /* of the limit; 0: there is none */
    int jobs;       /* that wait when it begins; 0: jobs come one by one, at random */
    int64_t job_us; /* how long a handler takes */
    int64_t way_us; /* of the link, each way; up to a quarter more at random */
    bool faults;
    int64_t warm_us, run_us; /* what is measured comes after the first */
    int64_t rest_us;         /* and then nothing comes or fails any more */
    uint64_t seed;
};
struct sums {
    long long starts, claims, calls, polls, turns, early_back, lost_slots, killed, cut;
    int64_t busy_us;                  /* of Redis */
    int64_t *late_us;                 /* of each start: behind its slot, or behind the push of its job */
    size_t late_count, late_capacity; /* without those of a flood */
    long long before;                 /* starts before their slot */
    long long starts_of[SPREAD_MOST], begun_of[SPREAD_MOST]; /* begun: until what is measured ends */
    long long lost;                                          /* jobs that have not started at the end */
    double share;                                            /* agents_share() */
};
extern struct world world;
extern struct sums sums;
extern int64_t now_us; /* virtual, since BEGIN_US */
bool is_measured(void);
double random_part(void); /* from 0 up to 1, by the seed */
int64_t way(void);
bool is_flooded(int partition);

/* That job starts. When was it pushed? */
int64_t job_starts(int number);
/* Runs the world, and makes the sums. */
void world_run(void);

/* worlds.c: random worlds, that many from a seed on. Prints what is wrong in each; returns of how many something is. */
int worlds_run(uint64_t first, long count);

/* ---- store.c */

enum wait { WAIT_BELL, WAIT_SPARE, WAIT_QUEUE, WAITS };

struct task {
    struct task *next;
    char token[TOKEN_SIZE];
    int64_t slot_us, start_us;    /* 0: without a limit. start_us: by the agent's clock */
    int number;                   /* of its job */
    bool early, back, lost;       /* back: it did not start. lost: it is another's */
    int64_t finished_us, came_us; /* both by the agent's clock */
};
struct task_row {
    struct task *head, **tail;
    int count;
};
void row_init(struct task_row *row);
void row_push(struct task_row *row, struct task *task);
struct task *row_pop(struct task_row *row);
/* All of them; to is overwritten. */
void row_take(struct task_row *to, struct task_row *from);
void row_free(struct task_row *row);

/* What a worker sends at once. */
struct turn {
    char worker[ID_SIZE], old[ID_SIZE];
    int partition;
    bool adopts, promotes, beats, claims;
    bool along;  /* the claim settles */
    bool beside; /* a claim that is no turn's */
    struct claim_call claim;
    struct task_row settles; /* borrowed: the agent's, which waits for the answer */
    struct redisReply *adopted, *settled, *promoted, *beaten, *claimed;
    struct task_row held; /* of an adopt: copies of what still runs, or is about to */
};
void turn_free(struct turn *turn);
/* The answer to its claim. */
const struct redisReply *turn_claim(const struct turn *turn);

void store_open(void);
void store_close(void);
/* An empty one, with the limits of the world and what waits when it begins, numbered from 0 on. */
void store_reset(void);
/* A turn has come; returns when it is answered. */
int64_t store_turn(struct turn *turn);
void store_push(int partition, int number);
void store_wait(int agent, int epoch, enum wait wait);
/* A peek with that claim behind it; when it is answered EVENT_STOOD comes, with the turn. */
void store_stand(int agent, int epoch, struct turn *turn);
void store_timeout(int agent);
void store_pass(int agent, enum wait wait);
/* The links of that agent are gone. */
void store_forget(int agent);
/* Takes no call for so long. */
void store_stall(int64_t for_us);

/* ---- agent.c */

/* Agents i * partitions and so on are those of worker i. */
void agents_start(void);
void agents_stop(void);
void agent_event(const struct event *event);
void worker_kill(int i);
void agent_cut(int i);
/* Of all starts, the part that the busiest worker had, times the number of workers: 1 is fair. */
double agents_share(void);
