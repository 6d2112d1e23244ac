/* Room: how many jobs a claim may bring. */
#ifndef WORKER_PARTITION_ROOM_H
#define WORKER_PARTITION_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct partition;

struct capacity {
    int reserve;        /* executors for jobs with a limit alone */
    int reserve_used;   /* the most of them that were used since */
    int64_t reserve_us; /* when they were counted anew */
    double rate;        /* jobs that end here in a second: for prefetching */
    int64_t rate_us;    /* when it was measured last */
    uint64_t ended;     /* settling.ended then */
    uint64_t begun;     /* pool_load's at the last check for a stuck queue */
    int64_t stuck_us;   /* since when no prefetched job has begun */
    int64_t crowded_us; /* when an early job found no executor last */
};

struct room {
    int free, prefetch; /* executors for jobs, and jobs beyond them that may wait here */
    int open;           /* of the free: not reserved for jobs with a limit */
    int early;          /* jobs that have come so far ahead that they hold no executor yet, */
    int early_more;     /* and so many more may */
    bool worth_it;      /* enough for a turn of its own when there is more to take */
};

/* May it claim at all? */
bool partition_takes_jobs(const struct partition *p);
struct room partition_room(struct partition *p);
/* Could it run one more job? */
bool partition_has_room(struct partition *p);
/* Has a claim left jobs with a limit as no executor was idle? Then more are reserved, else fewer. */
void partition_adapt_reserve(struct partition *p, bool starved, int64_t now);
/* Early jobs whose time has come near hold executors from now on. Those that find none go back: another worker
 * may have one. */
void partition_draw_near(struct partition *p);
/* All early jobs go back. */
void partition_recall(struct partition *p);
void partition_reserve_none(struct partition *p);
/* How fast jobs end here. */
void partition_measure_rate(struct partition *p, int64_t now);
/* Prefetched jobs must not sit here while those before them take long. */
void partition_give_back_stuck(struct partition *p, int64_t now);
int64_t partition_stuck_time(struct partition *p); /* when to check for that; NEVER: none waits */

#endif
