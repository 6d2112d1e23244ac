/* What the partitions of a worker share: the loop, the executors and the handlers of its process. worker.c makes
 * it, and frees it. */
#pragma once

#include <ev.h>
#include <stdatomic.h>
#include <stdint.h>

#include "core/client/partition.h"
#include "worker/mind/mind.h"
#include "worker/parts/ending.h"
#include "worker/parts/log_once.h"
#include "worker/parts/options.h"
#include "worker/parts/pool.h"
#include "worker/way/handler.h"

#define REQUEST_TIMEOUT_S 5.0

struct partition;

/* partition/begin.c alone writes these start times of tasks on the loop. */
struct begin {
    ev_io io;        /* of a timerfd; -1: not open */
    int64_t at_us;   /* the time that the timer is set to */
    int64_t near_us; /* when the scheduler is woken to draw early tasks near */
};

/* stop.c alone writes how far the worker's stop is. */
struct stop {
    int64_t since_us;  /* 0: it does not stop */
    int64_t forced_us; /* since when it does not wait for what runs; 0: it waits */
};

struct worker {
    char instance[17]; /* the process's name, in all partitions and as long as it lives */
    struct options options;
    struct handlers *handlers,
        *retired; /* those that hold; those that were replaced, whose jobs may still run */
    int resting;  /* types that rest: see way/rest.h */
    struct ev_loop *loop;
    struct pool *pool;
    struct task **running;  /* room for pool_running */
    struct log_once logged; /* lines that are logged once */
    struct begin begin;
    struct ending ending;
    struct stop stop;
    struct minds minds; /* what those of the partitions share */
    int reserved; /* executors that the pool keeps for jobs with a limit: partition/executors.c alone writes it */
    uint64_t ended; /* tasks that the pool has handed over so far */
    int64_t started_us;
    struct partition *partitions[PARTITIONS_MOST];
    atomic_int partition_count; /* written by the loop; guard.c reads it on a thread of its own */
    int partitions_found;       /* that the namespace has, as partition/adopt.c has heard */
};
