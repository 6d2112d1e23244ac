/* Jobs that run alone: nothing else is in flight in this worker. */
#ifndef WORKER_PARTITION_ALONE_H
#define WORKER_PARTITION_ALONE_H

#include "queue/turn/turn.h"

struct partition;
struct task;

/* Times are monotonic. */
struct alone {
    bool on;               /* a claim said so: nothing else is taken */
    bool runs;             /* the job is here */
    bool asked;            /* for it, while nothing else was in flight */
    int64_t since_us;      /* when it was on */
    int64_t waited_us;     /* from then until the job came */
    int64_t wait_most_us;  /* until it is given up; 0: the usual */
    int64_t rest_until_us; /* until then no other job is run alone */
};

/* What a claim answered; first: the first of its jobs, NULL: it has none. False: its job is to run alone and cannot now, as jobs of other partitions are here. */
bool alone_hear(struct partition *p, const struct claim *claim, struct task *first, int64_t now);
/* Ends it when the job has ended, or has not come for too long; alone_time: when that is. */
void alone_check(struct partition *p, int64_t now);
int64_t alone_time(const struct partition *p);
/* Has the worker jobs of other partitions, or may a claim bring some? */
bool alone_is_elsewhere(const struct partition *p);
/* May a claim find one? */
bool alone_is_wanted(const struct partition *p, int64_t now);
/* Must nothing be claimed? And while it is on, when the next claim is. */
bool alone_keeps_others(struct partition *p);
int64_t alone_claim_time(struct partition *p);

#endif
