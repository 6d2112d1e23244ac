/* What changes in a world of the model (sim.h), in Redis and there: limits, their rules and who uses them, costs, weights, pauses. */
#pragma once

#include "tests/sim.h"

#define ENDLESS_US INT64_C(8000000000000000) /* of key_pauses.lua */

extern long long changes_count; /* in all worlds */

/* Begins a world. */
void changes_begin(void);
void changes_make_limits(void);
/* Changes anything. */
void changes_make(void);
/* for_us: also RATE_ENDLESS and RATE_RESUME. */
void changes_pause_type(struct sim_type *t, int64_t for_us);
/* Takes all limits from all types, and away. */
void changes_end_limits(void);
