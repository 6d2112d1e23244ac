/* Carrying jobs to the partition where their type lives. */
#ifndef WORKER_PARTITION_CARRY_H
#define WORKER_PARTITION_CARRY_H

#include <stdbool.h>
#include <stdint.h>

struct partition;

struct carrying {
    uint64_t wanted; /* bit p: jobs for partition p wait here */
    bool under_way;  /* some are, */
    int to;          /* to that one */
};

/* An answer has named these partitions, a bit each; 0: goes on with those that could not be reached. */
void partition_carry(struct partition *p, uint64_t away);

#endif
