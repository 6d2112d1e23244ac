#include "worker/reasons.h"

#include "worker/worker.h"

static void on_wake(struct ev_loop *loop, struct ev_watcher *watcher, int events)
{
    struct weir_worker *w = watcher->data;

    (void)loop, (void)events;
    w->reasons.schedule(w);
}

void worker_open_reasons(struct weir_worker *w, void (*schedule)(struct weir_worker *w))
{
    w->reasons.schedule = schedule;
    ev_init(&w->reasons.event, on_wake);
    /* Before any other event, so that what has come starts and is answered at once. */
    ev_set_priority(&w->reasons.event, EV_MAXPRI);
    w->reasons.event.data = w;
}

void worker_wake(struct weir_worker *w)
{
    ev_feed_event(w->loop, &w->reasons.event, EV_CUSTOM);
}

void worker_claim_soon(struct weir_worker *w, bool held)
{
    w->reasons.claim = true;
    w->reasons.held |= held;
    worker_wake(w);
}

void worker_check_held(struct weir_worker *w)
{
    w->reasons.held = true;
}

bool worker_take_claim_reasons(struct weir_worker *w)
{
    bool held = w->reasons.held;

    w->reasons.claim = w->reasons.held = false;
    return held;
}

void worker_recall_soon(struct weir_worker *w)
{
    w->reasons.recall = true;
    worker_wake(w);
}

bool worker_take_recall_reason(struct weir_worker *w)
{
    bool recall = w->reasons.recall;

    w->reasons.recall = false;
    return recall;
}

void worker_stop_soon(struct weir_worker *w)
{
    w->reasons.stop = true;
    worker_wake(w);
}

bool worker_take_stop_reason(struct weir_worker *w)
{
    bool stop = w->reasons.stop;

    w->reasons.stop = false;
    return stop;
}
