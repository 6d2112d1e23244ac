/* When what waits starts: the one forecast of all commands, by the limits as they are. It is exact where all
 * that decides is known; else it is the earliest possible time, and `because` says what may make it later. */
#pragma once

#include "queue/limits/limits.h"

/* What may make it later, the more telling first. */
enum forecast_because {
    LATER_QUEUE_PAUSED = 1, /* jobs of the type may stand in a queue that is paused */
    LATER_NO_WORKER = 2,    /* no worker that is alive takes them */
    LATER_EXECUTORS = 4,    /* all executors are busy, or they have not shown that they are enough */
    LATER_LIMIT = 8,        /* a limit cannot be read */
    LATER_KEYS = 16,        /* keys have gates of their own */
    LATER_IN_FLIGHT = 32,   /* jobs in flight must end */
    LATER_OTHERS = 64,      /* other jobs may come first at the same limits */
    LATER_COSTS = 128,      /* some name their costs */
    LATER_ADAPTS = 256,     /* the rate adapts */
    LATER_SCHEDULED = 512,  /* of a batch: some are not in their queues */
    LATER_TYPES = 1024,     /* of a batch: how many of which type are left is not counted */
    LATER_TYPE_PAUSED = 4096,
    LATER_BATCH_PAUSED = 8192,
    LATER_CLOSED = 16384, /* keys are closed until rules of their own are set again */
    LATER_STOPPED = 2048, /* keys of some are paused until somebody resumes them */
};
/* In words, of the first that holds; "" for 0. */
const char *forecast_reason(unsigned because);

struct forecast {
    int64_t from_us; /* of a type: no start is before, for now or for its pauses */
    int64_t last_us; /* of the last start; GATE_NEVER: all depends on keys or on what ends */
    unsigned because;
};

/* Forecasts all that waits of a type. Keys count as far as they are known: the longest lanes, and those that are paused until somebody resumes them;
 * these count only when there are no others. instead (may be NULL) stands in for the limit of its name, or beside the others when there is
 * none yet. */
WEIR_CHECKED int forecast_type(const struct limits *limits, const struct type_status *type,
                               const struct limit *instead, struct forecast *out, struct error *e);
/* Forecasts n jobs of a type that come next, whatever their keys. */
WEIR_CHECKED int forecast_jobs(const struct limits *limits, const struct type_status *type, int64_t n,
                               struct forecast *out, struct error *e);
/* Forecasts all that waits and is parked at a limit, whose types may have other limits too; limits: all that there are. */
WEIR_CHECKED int forecast_limit(const struct limits *limits, const struct limit *limit, struct forecast *out,
                                struct error *e);
/* When the next job of a type starts at the earliest, by its limits, and by its keys as far as they are known. GATE_NEVER: when something ends, or
 * somebody resumes its queue. */
int64_t type_next_start(const struct limits *limits, const struct type_status *type);
/* True when jobs of the limit wait, and all workers that run their types were told to take no more. */
bool limits_are_quiet(const struct limits *limits, const struct limit *limit);
/* True when all that waits for a limit waits for keys that have to be resumed, or that are closed until rules of their own are set again, and some for
 * the latter. */
bool limits_are_closed(const struct limits *limits, const struct limit *limit);
/* Returns when the next job starts that a limit holds: of jobs that wait; when none does, of any type. */
int64_t limits_next_start(const struct limits *limits, const struct limit *limit);
/* The turn of a dearer type at a limit that both share, and the gate that it waits for. */
struct type_turn {
    const struct limit *limit;
    size_t rule;
    int64_t until_us;
};
/* Says whether a type must wait for another's turn. It must when the gates are open to its jobs and executors are free, and yet these stand
 * in lanes. Where several types may have the turn, it is the one that ends first. */
bool type_awaits_turn(const struct limits *limits, const struct type_status *type, struct type_turn *out);
/* True when all jobs of a type that wait have keys that are paused until somebody resumes them. */
bool type_is_stopped(const struct type_status *type);
/* Lets each job take of a gate whose rule counts slots by name what one of the type takes, on average. */
void type_price(const struct type_status *type, struct gate *g);
/* What the one costs that comes next, as far as is known; slots that a job of it takes, on average; those that it takes of a rule. */
int64_t type_next_cost(const struct type_status *type);
double limits_cost(const struct type_status *type);
double limits_cost_at(const struct rule *rule, const struct type_status *type);

/* The rule of a type's limits that is strictest in the long run, of those that hold all of its jobs, and the starts a second that it lets through
 * now; NULL, 0: there is none. It does not depend on what waits. */
const struct rule *limits_rule(const struct type_status *type, double *rate);
/* Returns the pace of the rule that is in the way of n jobs for the longest; *rule: that one. 0, NULL: there is none. */
double limits_pace(const struct limits *limits, const struct type_status *type, int64_t n,
                   const struct rule **rule);
