/* Limits as they are: their rules and the states of their gates, of rate_list.lua's answer, and the types that they hold, of status.lua's.
 * When what waits starts: queue/status/forecast.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/client/pages.h"
#include "core/error.h"
#include "throttle/gate.h"
#include "throttle/limit.h"

struct limit {
    char name[LIMIT_NAME_SIZE];
    bool readable; /* else its rules say nothing, and no job of its types starts */
    struct rule_set set;
    struct gate *
        gates; /* of its rules; a keyed rule has many, and here one that was never used. NULL: not readable */
    int64_t factor[RULES_MAX]; /* thousandths of the rate that are granted now; 0: the rule does not adapt */
    int64_t held_until_us[RULES_MAX]; /* of its gates, for a job that waits for others too; 0: not held */
    int64_t pause_until_us;           /* of the limit as a whole; not above now_us: it is not paused */
    char *reason;   /* in the words of who has paused it, as status_limits tells it; NULL: nobody has said */
    int64_t now_us; /* Redis's time when it was read */
    int64_t own_keys; /* keys of it that have rules of their own */
    bool drops_keys;  /* as it would be, the rules that single keys have for themselves are gone */
};

/* What rates.keyless of queue/limits/rates.lua tells of a type: jobs of it that have nothing at the path by which a limit tells them apart, of so many. They share one gate. */
struct keyless {
    int64_t jobs, of;
    char path[RULE_PATH_SIZE], limit[LIMIT_NAME_SIZE];
};

/* What was seen of the jobs of a type that wait: some were read, and some lanes looked at (queue/status/backlog.lua). */
struct backlog {
    int64_t jobs,
        slots; /* those that may start when their turn comes, and what they cost, by what those cost that were read; 0: none was */
    int64_t least, most;      /* the cheapest and the dearest that was read */
    int64_t head;             /* what the one costs that has its turn first */
    struct job_cost each;     /* what one of those in lanes costs by name, on average */
    bool counted;             /* all were read */
    int64_t stopped;          /* jobs of keys that are paused until somebody resumes them, or closed, */
    int64_t stopped_until_us; /* GATE_NEVER: closed */
    /* the gate of one of these keys: [limit, index of the rule, key]; NULL: there is none */
    struct json_t *stop;
    bool closed; /* that key, until rules of its own are set again */
    /* when its key lets the first one start; GATE_NEVER: when a job ends; 0: now, or it is not known */
    int64_t opens_us;
    struct json_t *lanes; /* the longest lanes of keys: as backlog.lua has them; NULL */
    char queue
        [LIMIT_NAME_SIZE]; /* they all stand in queues that are paused, this one first; "": they do not */
    struct json_t *pause;  /* of that queue, as queue/state/reasons.lua describes it */
};

/* A row of a type. The types of limits have all that forecasts are made of, those of a status all but limits and backlog. */
struct type_status {
    char name[LIMIT_NAME_SIZE];
    int64_t cost;                /* of a job that does not name its own */
    struct job_cost costs;       /* and what that costs by name */
    int64_t waiting;             /* its jobs in queues, */
    int64_t parked;              /* in lanes, */
    int64_t held;                /* or in lanes, and no worker that looked has a handler for it */
    bool own_costs;              /* jobs of it name what they cost */
    int partition;               /* where its limits are; of some that has strays elsewhere, the first */
    struct keyless keyless;      /* of 0 jobs: none is known */
    const struct limit **limits; /* those that exist, the one of its own name first; NULL: none does */
    size_t limit_count;

    struct backlog *backlog; /* NULL: there is nothing to say */
    struct json_t *pause;    /* as queue/state/reasons.lua has it; NULL: nobody has paused it */
    int64_t pause_until_us;  /* 0: it is not paused; GATE_NEVER: until somebody resumes it */
    /* a worker that is alive and not ordered to rest takes its jobs, from the queues where some were seen */
    bool served;
    bool in_pause;      /* jobs of it may stand in a queue that is paused */
    int64_t free;       /* executors of those workers that could take one now */
    int64_t executors;  /* all of theirs */
    int64_t resting;    /* workers that run it, and were told to take no more jobs, */
    int64_t resting_us; /* the last of them at that time; 0: unknown */

    int64_t aside, running, scheduled, done, retried, dead, cancelled; /* jobs */
    int64_t dead_kept; /* of the dead those that are still there */
    int64_t oldest_us; /* when the first of its waiting jobs that were looked at was enqueued; 0: unknown */
    int64_t reaped;    /* leases taken back from workers that were silent */
    int64_t stale;     /* ends of jobs whose lease was gone by then */
    double rate_now;   /* starts a second, over the last second or two */

    bool limited;              /* a limit holds it */
    bool foretold;             /* what follows is filled */
    char rule[RATE_TEXT_SIZE]; /* of its limits the strictest in the long run, "100/1m"; "": none holds all */
    double rate;               /* starts a second that it lets through now; 0 */
    double each;               /* slots that a job of it takes, on average */
    int64_t next_start_us;     /* of a job that waits; -1: unknown, or none waits */
    int64_t finish_us;         /* when the last one that waits starts; -1: unknown, or none waits */
    struct json_t *waits_for;  /* queue/status/waits.h; NULL: nothing, none waits */
    unsigned because;          /* what may make it later: enum forecast_because; 0: it is exact */
};

/* Frees what a row holds, not the row itself. */
void type_free(struct type_status *type);
/* Counts its jobs in lanes; and with them those in queues: all that are to start as soon as they may. */
int64_t type_parked(const struct type_status *type);
int64_t type_backlog(const struct type_status *type);

/* A hold says that a limit holds a type. */
struct hold {
    const char *limit;
    struct type_status *type;
};

struct limits {
    int64_t now_us;
    int64_t asleep;   /* keyed gates at which lanes sleep, of all limits */
    struct limit *at; /* by name */
    size_t count;
    struct type_status *types; /* by name */
    size_t type_count;
    struct hold *holds; /* by limit, then by type; a type is among those of its own name, limit or not */
    size_t hold_count;
};

/* An asking reads the limits of the partition that calls go to, without their types, as a walk of pages: who also asks for types
 * (status_limits) walks both together. limits_end is called behind it; out and *asking stay where they are. limits_free also after a failure. */
struct limits_asking {
    struct weir *w;
    struct limits *out;
};
void limits_begin(struct weir *w, int64_t now_us, struct limits *out, struct limits_asking *asking,
                  struct pages *pages);
void limits_end(struct limits *limits);
#define PAUSED_ENDLESS_US                                                                                    \
    INT64_C(8000000000000000) /* until when a pause without a time is: queue/state/key_pauses.lua */
/* Notes which limit holds which type, once types, in order, and their limits are there. */
WEIR_CHECKED int limits_note_holds(struct limits *limits, struct error *e);
void limits_free(struct limits *limits);
/* Finds the limit of that name, or NULL. */
const struct limit *limits_find(const struct limits *limits, const char *name);
bool limit_holds(const struct type_status *type, const char *limit);
/* The holds of a limit: *count from the one that is returned on. */
const struct hold *limits_holds(const struct limits *limits, const char *limit, size_t *count);
/* Counts the jobs of its types in their lanes; with those in queues. */
int64_t limits_parked(const struct limits *limits, const char *limit);
int64_t limits_backlog(const struct limits *limits, const char *limit);

/* Describes the pause of a limit as a whole as queue/state/reasons.lua does; NULL: nobody has paused it. */
struct json_t *limit_pause(const struct limit *limit);
/* Returns when its gates are looked at again: now, or when its pause ends. */
int64_t limit_looked_at(const struct limit *limit);
/* Of one rule that is not keyed: the slots that are left, whether it is paused or not; when the n-th job
 * starts at the earliest as far as this rule alone goes. GATE_NEVER: when something ends. A gate that is held
 * is as good as closed: who may pass nevertheless is not known here. */
int64_t limit_slots(const struct limit *limit, size_t rule);
int64_t limit_nth_start(const struct limit *limit, size_t rule, int64_t n);
/* The limit as it would be with other rules, as rate_set leaves it. WEIR_EINTERNAL: out of memory. Freed with
 * limit_free. before NULL: there is none of that name. */
WEIR_CHECKED int limit_change(const struct limit *before, const char *name, const struct rule_set *rules,
                              int64_t now_us, struct limit *after, struct error *e);
void limit_free(struct limit *limit);

/* Finds the row of a type, or NULL. */
struct type_status *limits_type(const struct limits *limits, const char *name);
