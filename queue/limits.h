/* Limits as they are: their rules, the states of their gates, the types that they hold, and when what waits
 * has started. Of rate_list.lua's answer. */
#ifndef QUEUE_LIMITS_H
#define QUEUE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/args.h"
#include "throttle/gate.h"
#include "throttle/limit.h"

struct redisReply; /* hiredis */
struct weir;

struct limit {
    char name[LIMIT_NAME_SIZE];
    bool readable; /* else its rules say nothing, and no job of its types starts */
    struct rule_set set;
    struct gate gates[RULES_MAX]; /* of its rules; a keyed rule has many, and here one that was never used */
    int64_t factor[RULES_MAX]; /* thousandths of the rate that are granted now; 0: the rule does not adapt */
    int64_t held_until_us[RULES_MAX]; /* of its gates, for a job that waits for others too; 0: not held */
    int64_t pause_until_us;           /* of the limit as a whole; not above now_us: it is not paused */
    int64_t now_us;                   /* Redis's time when it was read */
};

/* Jobs of a type that have nothing at the path by which a limit tells them apart, of so many; jobs 0: none is
 * known. They share one gate. */
struct keyless {
    int64_t jobs, of;
    char path[RULE_PATH_SIZE], limit[LIMIT_NAME_SIZE];
};

struct limit_type {
    char name[LIMIT_NAME_SIZE];
    int64_t cost, waiting, parked;
    bool held;                       /* no worker that looked has a handler for it */
    bool own_costs, may_differ;      /* as in struct type_status; status_costs tells, else false */
    struct keyless keyless;          /* the same */
    char (*limits)[LIMIT_NAME_SIZE]; /* those that exist, the one of its own name first */
    size_t limit_count;
};

struct limits {
    int64_t now_us;
    int64_t asleep;   /* keyed gates at which lanes sleep, of all limits */
    struct limit *at; /* by name */
    size_t count;
    struct limit_type *types; /* by name */
    size_t type_count;
};

/* name "": all. Reading one that is not there gives no limits. Whatever the answer, *out is to be freed. */
void limits_request(struct args *a, const char *prefix, int64_t now_us, const char *name);
WEIR_CHECKED int limits_reply(const struct redisReply *r, struct limits *out, struct error *e);
void limits_free(struct limits *limits);

/* Asks Redis. name NULL: all, and all types; else that limit and the types that it holds, WEIR_ENOTFOUND when
 * it is not there. limits_free also after a failure. */
WEIR_CHECKED int limits_read(struct weir *w, const char *name, struct limits *out);
/* The limit of that name, or NULL. */
const struct limit *limits_find(const struct limits *limits, const char *name);
bool limit_holds(const struct limit_type *type, const char *limit);
/* Jobs of its types in their lanes. */
int64_t limits_parked(const struct limits *limits, const char *limit);

/* Of one rule that is not keyed: the slots that could be taken now; when the next and the n-th of what waits
 * for it starts at the earliest. GATE_NEVER: when something ends. A gate that is held is as good as closed:
 * who may pass nevertheless is not known here. */
int64_t limit_slots(const struct limit *limit, size_t rule);
int64_t limit_nth_start(const struct limit *limit, size_t rule, int64_t n);
/* When the next job starts at the earliest, as far as the rules that are not keyed go. */
int64_t limit_next_start(const struct limit *limit);

/* The limit as it would be with other rules, as rate_set leaves it. WEIR_EINTERNAL: out of memory. Freed with
 * limit_free. before NULL: there is none of that name. */
WEIR_CHECKED int limit_change(const struct limit *before, const char *name, const struct rule_set *rules,
                              int64_t now_us, struct limit *after, struct error *e);
void limit_free(struct limit *limit);
/* The most that a job may cost to start at all under these rules. GATE_NEVER: any cost fits. */
int64_t limit_most_cost(const struct rule_set *rules);

/* When the last job of a type that waits now has started. */
struct forecast {
    int64_t last_us; /* GATE_NEVER: it cannot be said, all hangs on keys or on what ends */
    bool earliest;   /* keys, costs, jobs in flight, other types or pauses can delay it */
};
/* instead (may be NULL) stands in for the limit of its name, or beside the others when there is none yet. */
WEIR_CHECKED int limits_forecast(const struct limits *limits, const struct limit_type *type,
                                 const struct limit *instead, struct forecast *out, struct error *e);

/* Starts a second that the limits of a type allow in the long run: by the rule that is in the way of n jobs
 * for the longest. 0: no rate holds all of them. */
double limits_rate(const struct limits *limits, const struct limit_type *type, int64_t n);
/* The row of a type, or NULL. */
struct limit_type *limits_type(const struct limits *limits, const char *name);

#endif
