/* Room: how many jobs a claim may bring. */
#ifndef WORKER_PARTITION_ROOM_H
#define WORKER_PARTITION_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct worker;

#define LEASE_MOST 500 /* jobs in one claim: its budget */

struct capacity {
    int reserve;          /* executors for jobs with a limit alone */
    int reserve_used;     /* the most of them that were used since */
    int64_t reserve_us;   /* when they were counted anew */
    int64_t unlimited_us; /* when a job without a limit was here last */
    bool hungry;          /* it would claim, had it room */
    int taken;        /* idle executors that the claim under way may use, and no other partition meanwhile */
    int64_t taken_us; /* since when */
};

struct room {
    int idle;           /* executors, */
    int free, prefetch; /* of these for jobs of this partition, and jobs beyond them that may wait here */
    int open;           /* of the free: not reserved for jobs with a limit */
    int early;          /* jobs that have come so far ahead that they hold no executor yet, */
    int early_more;     /* and so many more may */
    bool worth_it;      /* enough for a turn of its own when there is more to take, */
    bool worth_more;    /* or for a claim beside one */
};

/* May it claim at all? Partitions share the executors: those that want more get the same number each. */
bool partition_takes_jobs(const struct partition *p);
struct room partition_room(struct partition *p);
/* Is it one of so many that claim ahead from this Redis that each may have less in hand than one claim could bring? */
bool partition_is_in_crowd(const struct partition *p);
/* Could it run one more job? */
bool partition_has_room(struct partition *p);
/* Do all of its types rest? Then it claims nothing. */
bool worker_rests(const struct worker *w);
/* Has a claim left jobs with a limit as no executor was idle? Then more are reserved, else fewer. */
void partition_adapt_reserve(struct partition *p, bool starved, int64_t now);
/* Early jobs whose time has come near hold executors from now on. Those that find none go back: another worker
 * may have one. */
void worker_draw_near(struct worker *w);
/* All early jobs go back. */
void partition_recall(struct partition *p);
void partition_reserve_none(struct partition *p);
/* A claim is about to be sent, for those executors: no other partition takes them before its answer has come, or for a while. */
void partition_take_executors(struct partition *p, int executors, int64_t now);
/* It was answered: the others may have what it leaves. Returns how many executors there are for its jobs. */
int partition_release_executors(struct partition *p);
/* Would it claim, had it room? Then the others leave it its share of the executors that become idle. */
void partition_hunger(struct partition *p, bool hungry);
/* Those that are hungry look again. */
void worker_feed(struct worker *w);
/* How fast jobs end here. */
void worker_measure_rate(struct worker *w, int64_t now);
/* Prefetched jobs must not sit here while those before them take long: another worker may have an executor. */
void worker_give_back_stuck(struct worker *w, int64_t now);
int64_t worker_stuck_time(struct worker *w); /* when to check for that; NEVER: none waits */

#endif
