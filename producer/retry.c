#include "producer/retry.h"

#include <sys/random.h>

#include "core/clock.h"

#define FIRST_US 100000
#define LONGEST_US 5000000

void retry_sleep(int attempt)
{
    int64_t us = FIRST_US;
    uint32_t random = 0;

    if (attempt < 1)
        return;
    for (; attempt > 1 && us < LONGEST_US; attempt--)
        us *= 2;
    us = us < LONGEST_US ? us : LONGEST_US;
    if (getrandom(&random, sizeof random, 0) < 0)
        random = 0;
    clock_sleep_until(clock_mono_us() + us / 2 + random % (us / 2));
}
