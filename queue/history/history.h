/* What has happened to a type or at a limit, as workers have recorded it: history.lua's answer. doc/design-operations.md says what is counted,
 * and what is approximate. */
#pragma once

#include <stdbool.h>

#include "core/client/answer.h"
#include "queue/turn/record.h"

#define HISTORY_MINUTES 120
#define HISTORY_HOURS 72

struct history_call {
    const char *name;
    bool of_limit; /* else of a type */
    bool by_hours; /* else by minutes */
    int slots;     /* the last ones, at most HISTORY_MINUTES or HISTORY_HOURS */
};

/* now_us < 0: Redis's time. Fills w->error on failure. *history is the caller's, NULL after a failure: "now" and "at" are microseconds; "slots",
 * "starts_now" and "wasted_now" are lists, the latter two of a limit alone. What is 0 is left out. A name that was never recorded has no slots. */
WEIR_CHECKED int history_ask(struct weir *w, int64_t now_us, const struct history_call *call,
                             json_t **history);

#define HISTORY_AT_ONCE 32
/* Reads the history of several, HISTORY_AT_ONCE at most, in one round trip of each partition that has some. histories[i] is the caller's;
 * NULL: that one cannot be read. Not 0: Redis is not reachable, and all are NULL. */
WEIR_CHECKED int history_ask_each(struct weir *w, int64_t now_us, const struct history_call *calls,
                                  size_t count, json_t **histories);

#define TOTALS_MOST 200
/* All that was ever recorded of some types, or limits (at most TOTALS_MOST): of totals.lua's answer. *rows is the caller's, NULL after a failure: a
 * list with an object for each name, in their order; an empty one of what was never recorded. */
WEIR_CHECKED int history_totals(struct weir *w, bool of_limits, const char *const *names, size_t count,
                                json_t **rows);

/* Sums say what the slots of a limit say in all. back: slots that were given back, by why. */
struct history_sum {
    int64_t granted, no_job, no_executor, held, late, throttled, back[BACKS];
};
extern const char *const history_backs[BACKS];
struct history_sum history_sum(const json_t *history);
