/* GCRA in exact integers: the same arithmetic as throttle/gate.lua, for finishing times, verify and tests.
 *
 * Source of the algorithm: ITU-T I.371, the generic cell rate algorithm (virtual scheduling).
 *   a start at s is allowed when s >= TAT + (cost - 1) T - tau;  then TAT = max(s, TAT) + cost T
 * A time is whole microseconds and a remainder in units of 1/count us, so 7/s does not drift. Starts happen
 * at whole microseconds: s = ceil(exact opening time), and while s <= ceil(TAT) it counts as the exact time,
 * so that rounding up loses nothing.
 */
#ifndef THROTTLE_GCRA_H
#define THROTTLE_GCRA_H

#include <stdbool.h>
#include <stdint.h>

#include "throttle/rule.h"

struct gcra {
    struct rule rule;
    int64_t tat_us, tat_rem; /* TAT = tat_us + tat_rem / rule.count */
};

/* A gate that was never used: all of the burst is there. */
void gcra_init(struct gcra *g, const struct rule *rule);
/* The earliest whole microsecond, not before now_us, at which cost slots may be taken; INT64_MAX: cost >
 * burst. */
int64_t gcra_start(const struct gcra *g, int64_t now_us, int64_t cost);
/* How many jobs of that cost may start at s_us (0 to most). */
int64_t gcra_count(const struct gcra *g, int64_t s_us, int64_t most, int64_t cost);
/* Takes k jobs' slots from s_us, which gcra_start and gcra_count allowed. */
void gcra_take(struct gcra *g, int64_t s_us, int64_t k, int64_t cost);
/* When the n-th (from 1) of a backlog starts when each start is taken as early as allowed from now_us on. */
int64_t gcra_nth_start(const struct gcra *g, int64_t now_us, int64_t n, int64_t cost);
/* The rule changes at now_us: what was used stays used, counted in slots (rounded up, at most the new burst).
 */
void gcra_change(struct gcra *g, const struct rule *rule, int64_t now_us);

#endif
