/* The plan of a chaos run: its jobs, how they come in, what people do meanwhile, and the faults. All of it is
 * chosen by the seed and the time alone, so every process of the run makes the same plan for itself. What
 * happens between those choices is up to the machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_KEYS 16
#define PLAN_UNIQUES 20
#define PLAN_QUEUES 2
#define PLAN_BATCH_SIZE 24

/* ---- Types and limits */

enum chaos_type {
    TYPE_FREE,   /* no limit */
    TYPE_SLOW,   /* none either; takes so long that leases run out under it */
    TYPE_PACED,  /* a rate */
    TYPE_KEYED,  /* a rate for each key */
    TYPE_BUSY,   /* concurrency */
    TYPE_PERKEY, /* concurrency for each key */
    TYPE_BOTH,   /* a rate and concurrency */
    TYPE_STRICT, /* a sliding log */
    TYPE_LEFT,   /* two types that share a limit */
    TYPE_RIGHT,  /* at two slots a job */
    TYPE_MOVED,  /* a limit whose rules are changed */
    TYPE_TICK,   /* jobs of schedules; limited by nothing */
    TYPE_REPORT, /* what follows a batch */
    TYPE_COUNT,
};

struct type_plan {
    const char *name;
    const char *limit;     /* that holds it; NULL: none */
    int part;              /* of a thousand jobs of the plan */
    int least_us, most_us; /* how long a job takes */
};
extern const struct type_plan type_plans[TYPE_COUNT];

/* A limit, and the same in numbers for the checker; without numbers only weir verify judges it. */
struct limit_plan {
    const char *name, *rules;
    bool by_key;
    int64_t count, period_us, burst; /* count 0: no rate; burst 0: a sliding log */
    int most;                        /* in flight; 0: no such rule */
};
#define PLAN_LIMITS 8
#define PLAN_RULES 4
extern const struct limit_plan limit_plans[PLAN_LIMITS];
/* What the rules of the limit of TYPE_MOVED are changed to. */
extern const char *const moved_rules[PLAN_RULES];

struct schedule_plan {
    const char *name, *when;
    int every_s;
    int missed; /* enum weir_missed */
};
#define PLAN_SCHEDULES 3
extern const struct schedule_plan schedule_plans[PLAN_SCHEDULES];

/* ---- Workers */

#define PLAN_WORKERS 10
#define PLAN_PRODUCERS 2

enum way { WAY_THREADS, WAY_LOOP, WAY_EXEC, WAY_PIPE, WAY_HTTP, WAYS };

struct worker_plan {
    bool own;           /* a program of ours instead of weir worker */
    const char *queues; /* as --queues has them */
    int executors, lease_s;
    /* Types by how they are run (enum way), joined by commas; "*": all that are named nowhere else. */
    const char *types[WAYS];
    bool proxied; /* by a proxy of its own, so it alone can be cut off */
};
extern const struct worker_plan worker_plans[PLAN_WORKERS];

/* How it runs jobs of that type. */
enum way plan_way(const struct worker_plan *worker, int type);
extern const char *const queue_names[PLAN_QUEUES];

/* ---- Jobs and how they come in */

struct planned_job {
    uint8_t type, key, queue;
    int8_t unique; /* number of the key that it holds until it ends; -1: none */
    int32_t take_us;
    char endings[4]; /* before it is done; see tests/chaos/deed.h */
};

enum way_in {
    IN_SINGLE, /* weir_enqueue, again and again until it is answered */
    IN_LATER,  /* the same with a delay */
    IN_BULK,   /* a bulk without a name */
    IN_BATCH,  /* a bulk with a name, which is resumed until it is whole */
    IN_PUSH,   /* RPUSH, as any client may; never twice */
};

/* Jobs first to first + count - 1 come in. */
struct step {
    int64_t at_us; /* since the run began */
    enum way_in way;
    int first, count;
    int delay_ms;
    int batch; /* its number; -1: none */
};

/* ---- What people do */

enum act_kind {
    ACT_CANCEL_JOB,
    ACT_CANCEL_BATCH,
    ACT_PAUSE_BATCH,
    ACT_PAUSE_QUEUE,
    ACT_PAUSE_LIMIT,
    ACT_MOVE_LIMIT
};

struct act {
    int64_t at_us;
    enum act_kind kind;
    int what;       /* number of the job, batch, queue, limit or rules */
    int64_t for_us; /* of a pause */
};

/* ---- Faults */

enum fault_kind {
    FAULT_KILL_WORKER,
    FAULT_STOP_WORKER,  /* SIGSTOP beyond its lease */
    FAULT_TERM_WORKER,  /* a deploy */
    FAULT_FORCE_WORKER, /* TERM twice */
    FAULT_KILL_CHILD,   /* a process of a handler */
    FAULT_KILL_ENDPOINT,
    FAULT_KILL_PRODUCER,
    FAULT_CUT_PRODUCER, /* before an answer of a command that has run */
    FAULT_PARTITION,
    FAULT_SLOW_LINK,
    FAULT_STALL, /* answers come late, once */
    FAULT_CUT,   /* all connections, or one before its next request, or answer */
    FAULT_KILL_REDIS,
    FAULT_STOP_REDIS,
    FAULT_FLUSH_FUNCTIONS,
    FAULT_FULL_MEMORY,
    FAULT_STEP_CLOCK,            /* of Redis */
    FAULT_KINDS,                 /* of plans */
    FAULT_STARVED = FAULT_KINDS, /* a busy machine has not run it */
    FAULT_ALL,
};
extern const char *const fault_names[FAULT_ALL];

struct fault {
    int64_t at_us, for_us;
    enum fault_kind kind;
    int worker;        /* or producer */
    int64_t number_us; /* delay of a link; step of the clock; what a cut comes before, 0: all are cut */
};

/* ---- All of it */

struct plan {
    uint64_t seed;
    int64_t time_us; /* of load and faults; what is left is finished after it */
    struct planned_job *jobs;
    struct step *steps;
    struct act *acts;
    struct fault *faults;
    int job_count, step_count, act_count, fault_count, batch_count;
};

/* Aborts when out of memory. */
void plan_make(struct plan *p, uint64_t seed, int seconds);
void plan_free(struct plan *p);
/* One line each, for those who look for what happened. */
void plan_print(const struct plan *p, const char *file);

/* The step that job comes in by. */
const struct step *plan_step_of(const struct plan *p, int job);
/* "j<number>"; its number, or -1. */
void plan_id(int job, char id[16]);
int plan_number(const struct plan *p, const char *id);
void plan_batch_name(int batch, char name[PLAN_BATCH_SIZE]);
/* The args of a job as JSON. */
void plan_args(const struct planned_job *job, char args[40]);
