#include "worker/partition/reasons.h"

#include "worker/partition/partition.h"

static void on_wake(struct ev_loop *loop, struct ev_watcher *watcher, int events)
{
    struct partition *p = watcher->data;

    (void)loop, (void)events;
    p->reasons.schedule(p);
}

void reasons_open(struct partition *p, void (*schedule)(struct partition *p))
{
    p->reasons.schedule = schedule;
    ev_init(&p->reasons.event, on_wake);
    /* It comes before any other event, so that what has come starts and is answered at once. */
    ev_set_priority(&p->reasons.event, EV_MAXPRI);
    p->reasons.event.data = p;
}

void partition_wake(struct partition *p)
{
    ev_feed_event(p->worker->loop, &p->reasons.event, EV_CUSTOM);
}

void worker_wake(struct worker *w)
{
    for (int i = 0; i < w->partition_count; i++)
        partition_wake(w->partitions[i]);
}

void partition_claim_soon(struct partition *p, bool held)
{
    ask_soon(&p->mind, held);
    partition_wake(p);
}

void partition_recall_soon(struct partition *p)
{
    p->reasons.recall = true;
    partition_wake(p);
}

bool reasons_take_recall(struct partition *p)
{
    bool recall = p->reasons.recall;

    p->reasons.recall = false;
    return recall;
}
