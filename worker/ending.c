#include "worker/ending.h"

#include "worker/worker.h"

void worker_open_ending(struct weir_worker *w,
                        void (*on_call)(struct ev_loop *loop, ev_async *async, int events))
{
    ev_async_init(&w->ending.async, on_call);
    w->ending.async.data = w;
    ev_async_start(w->loop, &w->ending.async);
}

void worker_call_loop(struct weir_worker *w)
{
    ev_async_send(w->loop, &w->ending.async);
}

void weir_worker_stop(struct weir_worker *w)
{
    atomic_fetch_add(&w->ending.stop_calls, 1);
    worker_call_loop(w);
}

void weir_worker_quiet(struct weir_worker *w)
{
    atomic_store(&w->ending.quiet, true);
}

void worker_fail(struct weir_worker *w, const struct error *why)
{
    w->ending.error = *why;
}

void worker_fail_and_stop(struct weir_worker *w, const struct error *why)
{
    worker_fail(w, why);
    w->ending.wanted = true;
    worker_stop_soon(w);
}

void worker_end_loop(struct weir_worker *w)
{
    w->ending.ended = true;
    ev_break(w->loop, EVBREAK_ALL);
}

void worker_end_now(struct weir_worker *w, const struct error *why)
{
    worker_fail(w, why);
    w->ending.hurried = true;
    worker_end_loop(w);
}
