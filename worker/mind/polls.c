/* How long a worker waits until it asks Redis again, where nothing calls it. The more workers there are, the more seldom each of them
 * asks, so that together they cost Redis no more than some. Each wait is another one, so that workers which were started together
 * do not ask in step. */
#include "core/random.h"
#include "worker/mind/inside.h"

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

void polls_hear(struct mind *m, int64_t workers)
{
    m->polls.workers = workers;
}

void polls_draw(struct mind *m)
{
    m->polls.wait_us = interval_of_polls(m->polls.workers, random_draw(&m->random));
}

bool polls_is_off_duty(const struct mind *m)
{
    return m->claims.duty_until_us == 0 && m->claims.second_us == 0;
}

int64_t polls_along(const struct mind *m)
{
    return polls_is_off_duty(m) ? m->all->lease_us / 10 : 0;
}
