/* How jobs of a world of the model (sim.h) end, in Redis and there: done, one by one or in runs; failed, again or for good; thrown back, cancelled,
 * interrupted. owner: the number of the worker's id. */
#pragma once

#include "tests/sim.h"

enum { INTERRUPTED_MOST = 3 };

extern long long ends_throttled; /* in all worlds */

/* Settles some of what the worker has, in any way. */
void ends_some(int owner);
/* Sees that what was reaped settles nothing. */
void ends_in_vain(int owner);
/* All that it has is done. */
void ends_all(int owner);
