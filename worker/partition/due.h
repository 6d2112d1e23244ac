/* What is due in Redis: jobs with a time, and schedules. */
#ifndef WORKER_PARTITION_DUE_H
#define WORKER_PARTITION_DUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/script/args.h"

struct partition;

struct due {
    int64_t at_us;    /* the first of it, by our monotonic clock; 0: nothing, as far as is known */
    int64_t heard_us; /* when Redis said so */
    int64_t left_us;  /* schedules that are due are left to others: nothing is due before that */
    bool promotes;    /* this worker moved what was due last */
};

/* At that time by Redis's clock something is due next; -1: nothing. */
void partition_hear_due(struct partition *p, int64_t redis_us, int64_t due_us);
/* When to ask for it. */
int64_t partition_promote_time(const struct partition *p);
/* Asks, if that is now. */
void partition_promote(struct partition *p, struct args *a, int64_t now);

#endif
