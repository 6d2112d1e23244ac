/* The judge of a chaos run: what the handlers wrote, what was answered, what was done to whom and what Redis
 * has in the end must go together.
 *
 *   Nothing is lost    every job whose enqueue was answered was done, or somebody cancelled it
 *   Nothing twice      but for a cause that doc/guarantees.md names, of the very process that had begun it
 *   Rates              every slot keeps its rule, between two steps of Redis's clock exactly; no handler
 *                      begins before its slot
 *   Concurrency        never more handlers at a time than the rule lets, by their own clocks; one that is
 *                      dead or has lost its lease does not count any more
 *   Nothing is left    every list and set is empty, counters agree with the history, weir doctor is content
 */
#pragma once

#include "tests/chaos/run.h"

/* Why a job was begun once more. */
enum cause {
    CAUSE_ASKED,  /* the handler did: failed, throttled, dead and retried by hand */
    CAUSE_DIED,   /* its worker was killed */
    CAUSE_SILENT, /* its worker was silent for longer than its lease */
    CAUSE_FORCED, /* its worker was ended, and did not wait for it */
    CAUSE_CHILD,  /* the handler's own process was killed */
    CAUSE_NONE,   /* a fault of Weir */
    CAUSES,
};
extern const char *const cause_names[CAUSES];

struct verdict {
    int accepted, maybe, held, done, cancelled, starts, lost;
    int again[CAUSES]; /* starts beyond the first of a job, by cause */
    int schedule_jobs, batches;
    int untraced;          /* starts that a killed worker had not written down yet */
    int slots;             /* starts under rates */
    int late, called_late; /* later than 50 ms after their slot, by the handler's clock and the worker's */
    int64_t latest_us, called_latest_us;
    int at_once[PLAN_LIMITS], in_period[PLAN_LIMITS]; /* the most of a limit, by the clocks of handlers */
    bool quiet;
    int wrong; /* all that must not be; each was printed, unless quiet */
};

/* While the workers still run, and nothing is left to do. */
void check_redis(struct run *run, struct verdict *v);
/* When they have ended. */
void check_history(struct run *run, struct verdict *v);
