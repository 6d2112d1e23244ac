#include "worker/parts/ending.h"

#include "worker/parts/shared.h"

void worker_quiet(struct worker *w, bool quiet)
{
    atomic_store(&w->ending.quiet, quiet);
}

void worker_call_loop(struct worker *w)
{
    ev_async_send(w->loop, &w->ending.async);
}

void worker_check_soon(struct worker *w)
{
    ev_feed_event(w->loop, &w->ending.check, EV_CUSTOM);
}

void worker_fail(struct worker *w, const struct error *why)
{
    w->ending.error = *why;
}

bool worker_is_told_to_stop(const struct worker *w)
{
    return atomic_load(&w->ending.stop_calls) > 0 || w->ending.wanted;
}

void worker_stop(struct worker *w)
{
    w->ending.wanted = true;
    worker_check_soon(w);
}

void worker_fail_and_stop(struct worker *w, const struct error *why)
{
    worker_fail(w, why);
    worker_stop(w);
}

void worker_end_loop(struct worker *w)
{
    w->ending.ended = true;
    ev_break(w->loop, EVBREAK_ALL);
}

void worker_end_now(struct worker *w, const struct error *why)
{
    worker_fail(w, why);
    w->ending.hurried = true;
    worker_end_loop(w);
}
