/* How long a worker waits until it asks Redis again, where nothing calls it. The more workers there are, the more seldom each of them
 * asks, so that together they cost Redis no more than some. Each wait is another one, so that workers which were started together
 * do not ask in step.
 *
 * draw: at random, 0 to below 1. */
#pragma once

#include <stdint.h>

/* Returns how long it is to the next poll of one of so many workers of the namespace. */
int64_t interval_of_polls(int64_t workers, double draw);
/* Returns how long it is to the next heartbeat: at least four go in a lease. */
int64_t interval_of_beats(int64_t lease_us, double draw);
