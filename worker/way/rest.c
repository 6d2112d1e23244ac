#include "worker/way/rest.h"

#include <math.h>

#include "core/random.h"
#include "worker/way/way.h"

#define REST_FIRST_S 0.1

static void on_rested(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct runner *runner = timer->data;

    (void)loop, (void)events;
    atomic_store(&runner->rest.on, false);
    if (runner->way->rested)
        runner->way->rested(runner);
    runner->host.on_rest(runner->host.worker, -runner->count);
}

void rest_open(struct runner *runner)
{
    ev_timer_init(&runner->rest.timer, on_rested, 0, 0);
    runner->rest.timer.data = runner;
}

void rest_close(struct runner *runner)
{
    ev_timer_stop(runner->host.loop, &runner->rest.timer);
}

void runner_rest(struct runner *runner, double most_s)
{
    double rest_s;

    if (runner_rests(runner))
        return;
    rest_s = fmin(REST_FIRST_S * pow(2, atomic_fetch_add(&runner->rest.failures, 1)), most_s);
    ev_now_update(runner->host.loop);
    ev_timer_set(&runner->rest.timer, rest_s * (0.5 + random_fraction() / 2), 0);
    ev_timer_start(runner->host.loop, &runner->rest.timer);
    atomic_store(&runner->rest.on, true);
    runner->host.on_rest(runner->host.worker, runner->count);
}

bool runner_rests(const struct runner *runner)
{
    return atomic_load(&runner->rest.on);
}

void runner_works(struct runner *runner)
{
    if (atomic_load(&runner->rest.failures) > 0)
        atomic_store(&runner->rest.failures, 0);
}
