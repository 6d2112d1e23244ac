/* Random numbers for tests: splitmix64, seeded by $WEIR_SEED or the clock. Print the seed when a test fails.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "core/clock.h"

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t random_seed(void)
{
    const char *given = getenv("WEIR_SEED");

    return given ? strtoull(given, NULL, 10) : (uint64_t)clock_wall_us();
}

/* low to high, each as likely. */
static inline int64_t random_in(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(random_next(state) % (uint64_t)(high - low + 1));
}
