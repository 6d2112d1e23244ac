#include "core/random.h"

#include <sys/random.h>

#include "core/clock.h"

uint64_t random_seed(void)
{
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0)
        seed = (uint64_t)clock_mono_us() << 32;
    return seed;
}

double random_fraction(void)
{
    return (double)(random_seed() >> 32) / 4294967296.0;
}
