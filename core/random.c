#include "core/random.h"

#include <stdint.h>
#include <sys/random.h>

#include "core/clock.h"

double random_fraction(void)
{
    uint32_t r = 0;

    if (getrandom(&r, sizeof r, GRND_NONBLOCK) < 0)
        r = (uint32_t)clock_mono_us();
    return r / 4294967296.0;
}
