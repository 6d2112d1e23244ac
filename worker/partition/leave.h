/* Leaving: nothing is left here, and Redis is told. */
#ifndef WORKER_PARTITION_LEAVE_H
#define WORKER_PARTITION_LEAVE_H

#include <stdbool.h>

#include "core/script/args.h"

struct partition;

/* Leaves Redis, as everything has ended or was given back. The last partition to leave ends the loop. */
void partition_leave(struct partition *p);
/* Leaves, if the worker stops and nothing is left. */
bool partition_leave_if_done(struct partition *p);
/* Writes the request by which it leaves: all that is leased to it goes back. */
void partition_write_leave(struct partition *p, struct args *a);

#endif
