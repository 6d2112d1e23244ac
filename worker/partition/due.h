/* What is due in Redis: jobs with a time, and schedules. */
#ifndef WORKER_PARTITION_DUE_H
#define WORKER_PARTITION_DUE_H

#include "core/script/args.h"

struct partition;

void due_promote(struct partition *p, struct args *a);

#endif
