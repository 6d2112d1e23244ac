/* Why the scheduler (turn.c) runs. A file that changes what it decides by leaves a reason here, which wakes
 * it. All functions are for the loop's thread. */
#pragma once

#include <ev.h>
#include <stdbool.h>

struct partition;
struct worker;

struct reasons {
    struct ev_watcher event;               /* partition_wake() feeds it */
    void (*schedule)(struct partition *p); /* the scheduler */
    bool recall;                           /* what was granted far ahead may not hold any more */
};

/* Opens the reasons; no other function is called before. */
void reasons_open(struct partition *p, void (*schedule)(struct partition *p));
/* Runs the scheduler when the callback that calls this returns: once, however often this is called. */
void partition_wake(struct partition *p);
/* Wakes all partitions. */
void worker_wake(struct worker *w);
/* Wakes a partition to claim; held: types that are held are checked, too. */
void partition_claim_soon(struct partition *p, bool held);
/* Wakes a partition to give back what was granted far ahead, also by claims that are under way. */
void partition_recall_soon(struct partition *p);
/* True when a recall was asked for; then it is no longer. */
bool reasons_take_recall(struct partition *p);
