/* What a job waits for: where it is, the gates that hold it, its place in line and when it starts. Of
 * find_job.lua's, why.lua's and ahead.lua's answers and those of limits.h. */
#ifndef QUEUE_INSPECT_WHY_H
#define QUEUE_INSPECT_WHY_H

#include "queue/inspect/find_job.h"
#include "queue/inspect/forecast.h"
#include "throttle/gate.h"

#define WHY_GATES_MAX 32 /* 16 rules, and a pause of each limit */

enum why_kind {
    WHY_GATE,
    WHY_PAUSE,      /* the limit is paused as a whole */
    WHY_UNREADABLE, /* its rules cannot be read: nothing starts */
};

struct why_gate {
    enum why_kind kind;
    char limit[LIMIT_NAME_SIZE];
    struct rule rule;       /* of a gate */
    int index;              /* of the rule in its limit */
    int64_t opens_us;       /* not above now: it is open; GATE_NEVER: it does not open by time */
    bool unfit;             /* the first job of the line can never start here */
    int64_t pause_until_us; /* 0: not paused */
    int64_t held_until_us;  /* for another, who has waited longer; 0: it is not held */
};

struct why {
    struct found_job job;
    int64_t now_us;

    /* Of a job that waits in a queue or lane: */
    int64_t cost;
    bool served; /* a worker that is alive takes its type from its queue */
    int64_t
        turns; /* parked: lanes of other keys that have their turn before its own; -1: it sleeps at a gate */
    int64_t ahead; /* jobs that start before it, as far as they are known */
    bool limited;  /* its type has limits */
    struct why_gate gates[WHY_GATES_MAX];
    size_t gate_count;
    int holder;       /* the gate that opens last, of those that are closed; -1: none is */
    int64_t start_us; /* when it starts; GATE_NEVER: nobody can tell */
    unsigned because; /* what may make it later: enum forecast_because; 0: it is exact */
};

/* now_us < 0: Redis's time. WEIR_ENOTFOUND: there is no such job. Fills w->error on failure; free with
 * why_free, also then. */
WEIR_CHECKED int why_read(struct weir *w, int64_t now_us, const char *id, struct why *out);
void why_free(struct why *why);

#endif
