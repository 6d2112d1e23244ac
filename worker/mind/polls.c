#include "core/random.h"
#include "worker/mind/inside.h"
#include "worker/mind/interval.h"

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
