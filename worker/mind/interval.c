#include "worker/mind/interval.h"

#define POLL_MOST_US INT64_C(9000000) /* of however many workers */
#define POLL_US INT64_C(1500000)      /* few workers poll at least that often, as hints may be lost */
#define POLL_EACH_US INT64_C(200000)  /* many workers poll one after the other, so far apart */

int64_t interval_of_polls(int64_t workers, double draw)
{
    int64_t most_us = workers < POLL_MOST_US / POLL_EACH_US ? workers * POLL_EACH_US : POLL_MOST_US;

    if (most_us < POLL_US)
        most_us = POLL_US;
    return most_us - (int64_t)(draw * (double)most_us / 4);
}

int64_t interval_of_beats(int64_t lease_us, double draw)
{
    return lease_us / 4 - (int64_t)(draw * (double)lease_us / 32);
}
