/* A model of all that a namespace holds, under virtual time: jobs in queues, lanes and leases, limits and
 * their gates (tests/naive.h); and, in worlds that have them, batches, unique locks and what is paused or
 * cancelled (tests/sim_life.c). A test does something to Redis and the same to the model; then sim_look reads
 * all of Redis at once, checks the invariants and that each job is where the model has it. What a claim
 * answers is checked against the model by sim_claimed: each start, the order of each lane, that no slot is
 * left, that the next look is not too late. A failure names the seed. */
#pragma once

#include "tests/naive.h"
#include "tests/random.h"
#include "tests/turns.h"

enum {
    SIM_TYPES = 6,
    SIM_QUEUES = 3,
    SIM_LINES = 2 * SIM_QUEUES, /* of lanes: those of the queues, then of their jobs that are to run alone */
    SIM_LIMITS = SIM_TYPES + 4, /* of the types' own names, then shared ones */
    SIM_RULES = 8,
    SIM_NEEDS = 16,
    SIM_PATHS = 3,
    SIM_KEYS = 29, /* with those that are special */
    SIM_JOBS = 6000,
    SIM_IDS = 200,
    SIM_BATCHES = 2,
    SIM_LOCKS = 2,
    SIM_TOLD = 200,
    SIM_AHEAD = 5000,  /* us, as in gate.lua */
    SIM_KEPT = 1500000 /* as in claim_wait.lua */
};

enum sim_place {
    SIM_WAITING,
    SIM_LEASED,
    SIM_LATER,
    SIM_ASIDE,
    SIM_DEAD,
    SIM_DONE, /* also: not there yet */
    SIM_CANCELLED,
    SIM_REMOVED, /* from the dead jobs */
    SIM_PLACES
};

#define SIM_FAILURES 800
#define SIM_ATTRS (SIM_FAILURES + 120)

struct sim_job {
    int queue, type;
    enum sim_place place;
    int values[SIM_PATHS]; /* what stands at each path */
    int64_t cost;          /* 0: that of its type */
    int attempts, interrupted, throttled;
    int together;    /* a suspect: so many of them run together; 0: it is none */
    int owner;       /* index in ids; while leased, or the last */
    char token[500]; /* the same; with the key that it ran under, the time of its slot, what it took */
    int key;
    int64_t slot_us, taken;
    int64_t back_us; /* its slot, of one that came back from there to its lane; 0: it did not */
    int back_index;  /* which lease of its turn that was */
    uint64_t rules;  /* that held it then */
    int64_t due_us, enqueued_us,
        since_us;   /* enqueued, and waits since: as its entry says it; 0: it does not */
    bool scheduled; /* SIM_LATER: goes to the tail of its queue, not to the head of its lane */

    int batch, lock; /* -1: none */
    bool lock_until_start;
    char failure[SIM_FAILURES]; /* those that are kept, as its entry has them */
    bool marked;                /* as one that waits, in the hash `cancelled` */
    bool cancelled;             /* in its lease */
    bool ending;                /* it is done, in the settle that is being built */
    bool remembered;            /* as finished:<id> */
    bool in_order;              /* its body has id, type, key and cost first */
    bool follows;               /* it is enqueued when that batch has ended, by the call with that number */
    int batch_followed, fired_call;
};

struct sim_list {
    int *at;
    int count, capacity;
};

enum sim_halt { SIM_GOES_ON, SIM_PAUSED, SIM_HALTED };
struct sim_batch {
    char name[16];
    int follower; /* the job; its id is <batch>.then */
    bool there, sealed, ended, fired, cancelled, has_follower;
    enum sim_halt halt;
    int64_t total, ends[SIM_PLACES], failed;
    struct sim_list aside;
    uint64_t lines, sum; /* of what was appended */
    char body[200];      /* of the follower, when it has come */
};

struct sim_rule {
    char text[100]; /* as the gate's state names it: without of=, by= and adapt= */
    struct naive_rule rule;
    bool keyed, of_jobs;
    int adapt_high; /* thousandths; 0: it does not adapt */
};

struct sim_limit {
    const char *name;
    bool set, asleep;
    uint64_t text; /* a hash of it */
    struct sim_rule rules[SIM_RULES];
    int count;
    struct sim_rule was[SIM_RULES]; /* its rules before these */
    int was_count;
    int path; /* of its keyed rules; -1: none */
    int64_t pause_until_us;
    int64_t key_until_us[SIM_KEYS]; /* of a key that somebody has paused */
};

struct sim_gate {
    char name[80];
    char rule[100]; /* under which it was last written; "": never */
    struct naive naive;
    int in_flight; /* leases that name it */
    int64_t pause_until_us, hold_until_us;
    char hold_node[64];
    int64_t shadow_us; /* until when a hold that has ended early may still keep others than this waiting */
    char shadow_node[64];
    bool vague;            /* what it has in use under former rules is not known */
    bool adapts;           /* its rate may be lower than its rule says */
    int64_t slow_until_us; /* it was: until then slots that were taken at the lower rate may last longer */
};

struct sim_type {
    const char *name;
    int uses[SIM_LIMITS], use_count;
    int64_t cost;
    int64_t pause_until_us; /* of the type itself; 0: never */
};

/* A worker's name in Redis: no longer registered when it was reaped or left. */
struct sim_id {
    char name[24];
    bool registered;
    int64_t deadline_us;
    unsigned inside; /* bit t: jobs of that type may end it */
};

struct sim {
    uint64_t seed, random;
    int step;
    bool models_gates; /* false: the clock is set, which moves windows */
    bool spends;       /* jobs cost something, and often less than they took */
    int job_count, id_count, raw;
    int type_count, queue_count, limit_count, key_count;
    struct sim_type types[SIM_TYPES];
    struct sim_limit limits[SIM_LIMITS];
    struct sim_gate *gates[SIM_LIMITS][SIM_RULES][SIM_KEYS + 1]; /* the last: not keyed */
    struct sim_list queues[SIM_QUEUES], lanes[SIM_LINES][SIM_TYPES][SIM_KEYS + 1];
    bool held[SIM_LINES][SIM_TYPES];
    int64_t later_us;     /* when the first job of later is due; -1: none */
    struct snapshot *all; /* the last look */

    bool lives; /* has what follows */
    struct sim_batch batches[SIM_BATCHES];
    int locks[SIM_LOCKS]; /* the job that holds it; -1: none */
    bool paused[SIM_QUEUES];
    struct sim_told {
        int id;
        char token[500];
    } told[SIM_TOLD];
    int told_count;
    int64_t cancelled[SIM_TYPES], aside[SIM_TYPES]; /* as their counters */
};
extern struct sim sim;
extern struct sim_job sim_jobs[SIM_JOBS];
extern struct sim_id sim_ids[SIM_IDS];
extern const char *const sim_queue_names[SIM_LINES], *const sim_type_names[SIM_TYPES];
extern const char *const sim_limit_names[SIM_LIMITS], *const sim_paths[SIM_PATHS];
extern struct sim_totals {
    long long claims, starts, slots, holds;
    long long cancelled, aside, fired, revived;
    long long alone, suspects; /* starts */
} sim_totals;

void sim_begin(uint64_t seed);
void sim_end(void);
void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
#define sim_fail_if(condition, ...)                                                                          \
    do {                                                                                                     \
        if (condition)                                                                                       \
            sim_fail(__VA_ARGS__);                                                                           \
    } while (0)
void sim_must(int rc, const char *what);
int64_t sim_pick(int64_t low, int64_t high);
bool sim_chance(int one_in);
int64_t sim_one_of(const int64_t *list, int count);
#define SIM_ONE_OF(...)                                                                                      \
    sim_one_of((const int64_t[]){__VA_ARGS__},                                                               \
               (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* ---- Jobs */

/* One that is nowhere yet. */
int sim_new_job(int queue, int type, int64_t cost);
void sim_body(int n, char *out, size_t size);
void sim_to_queue(int n);
/* Where its lane is. */
int sim_line_of(int n);
/* Does this world have that line? */
bool sim_has_line(int line);
/* What ran it died: its worker, with so many jobs, or its handler (with 0). true: it is dead by that. Else it goes back to its lane. */
bool sim_interrupt(int n, int with, int most);
/* To the heads of the lanes from which they came, in their order. */
void sim_return(const int *list, int count);
/* The same of leases, in the order of their grants: they stand among those that came back before as they were taken. */
void sim_come_back(const int *list, int count);
/* The same of one that goes to its tail. */
void sim_return_behind(int n);
/* The job's lease has ended: its concurrency gates count one less. */
void sim_unlease(int n);
/* The leases of one id, in the order in which they were granted. */
int sim_leases(int owner, int list[SIM_JOBS]);
struct span sim_token(int n);
int64_t sim_cost(int n);
/* Its cost was another. Below 0: it has not started, and gives all back. */
void sim_true_cost(int n, int64_t spent);

/* ---- What is not to run, and what is counted when a job ends: tests/sim_life.c */

void sim_life_begin(void);
void sim_life_end(void);
enum sim_stop { SIM_RUNS, SIM_STANDS_ASIDE, SIM_ENDS };
/* What becomes of it where a claim meets it. */
enum sim_stop sim_stops(int n);
/* It leaves its lease otherwise than done: true when it was cancelled meanwhile and so has ended. */
bool sim_ends_cancelled(int n);
/* Its worker is told that it was cancelled. */
void sim_tell(int n);
/* A worker has gone, under that id: it is told of nothing more. to >= 0: it is that one now, and told again
 * of what it has taken along. */
void sim_untell(int id, int to);
/* It has ended, as done, dead or cancelled: it is in that place, its batch counts it, its lock is free. */
void sim_end_job(int n, enum sim_place as);
void sim_started(int n);
/* reason: one of a few; is_attempt: one without a reason is kept too. */
const char *sim_reason(int i);
void sim_fails(int n, int reason, bool is_attempt);
void sim_to_head(int n);
void sim_seal(struct sim_batch *b);
void sim_resume(struct sim_batch *b);
/* ",b" batch and so on, as its entry has it. */
void sim_attrs(int n, char out[SIM_ATTRS]);
/* A time as an entry says it. */
int64_t sim_stamp(int64_t at_us);
/* It is enqueued now, to be due so much later, if that is above 0. */
void sim_enqueued(struct sim_job *job, int64_t delay_us);
const char *sim_id(int n, char out[24]);
/* After a claim: those that have left queues and lanes without starting; from_queue: they were in one until
 * now. sim_check_halted, once all starts are known: they were first of their lanes. */
void sim_absorb_halted(const struct snapshot *all, const struct sim_list *from_queue);
void sim_check_halted(void);
/* Is this a job that follows a batch and has come with this claim? */
bool sim_is_new_follower(int n);
/* Two that came by the same call may stand in either order. */
bool sim_may_swap(int n, int other);
void sim_check_life(const struct snapshot *all);
int sim_job_in(struct span entry);
struct sim_list *sim_lane_of(int n);
void sim_list_add(struct sim_list *list, int n);
void sim_list_remove(struct sim_list *list, int at, int count);
int sim_list_find(const struct sim_list *list, int n);

/* ---- Limits: the model's part; text as it was stored, "" removes the limit. */
void sim_limit_is(int limit, const char *text);
/* The path of a type's keyed rules; -1: none. */
int sim_path(int type);
/* The most that a job of the type may cost; INT64_MAX: it has no rates. */
int64_t sim_cost_most(int type);
/* The gates that a job of the type needs, and how many; key: SIM_KEYS for an unkeyed lane. */
struct sim_need {
    struct sim_limit *limit;
    struct sim_rule *rule;
    struct sim_gate *gate;
};
int sim_needs(int type, int key, struct sim_need needs[SIM_NEEDS]);
const char *sim_key_text(int key);

/* ---- What Redis has */

/* Reads and checks all of it. */
void sim_look(void);
/* After a claim, instead. owner: index of its id. */
void sim_claimed(const struct claim_call *call, int owner);
/* When the first lane opens of those in these queues and of these types that are not held; INT64_MAX: nobody
 * knows. */
int64_t sim_opens(const struct names *queues, const struct names *types);
