/* Why the scheduler (turn.c) runs. A file that changes what it decides by leaves a reason here, which wakes
 * it. All functions are for the loop's thread. */
#include "worker/partition/inside.h"

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
