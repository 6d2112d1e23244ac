/* A crew: worker processes for one measurement, forked from this one, with handlers that are C functions of
 * the benchmark. Memory that they share with it comes from shared_new. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "core/error.h"

#define CREW_MOST 64

struct crew_type {
    const char *name; /* NULL: the end */
    weir_handler *handler;
    void *arg;
    weir_async_handler *async; /* instead of handler */
};

struct crew_plan {
    const char *url;
    const char *queues; /* NULL: the default one */
    int workers, executors;
    bool drain;
    const char *trace; /* worker n writes <trace>.<n>; NULL: no traces */
    struct crew_type types[3];
    int copies;       /* not 0: so many types instead of the first one: its name and 0, 1, 2 ... */
    const char *exec; /* not NULL: instead of their handlers, a command for each job */
    const char *pipe; /* not NULL: instead of their handlers, a command that takes in_flight jobs as lines */
    int in_flight;
};

struct crew {
    pid_t pids[CREW_MOST]; /* 0: has ended */
    int count;
    double cpu_us;  /* of those that have ended */
    long memory_kb; /* the most that one of them had */
    int failed;     /* how many ended badly */
};

void crew_start(struct crew *crew, const struct crew_plan *plan);
/* Fails when one of them has ended badly. */
void crew_check(struct crew *crew);
/* Has them all stop (or, without telling them, waits until they have drained), and takes their CPU time. */
void crew_stop(struct crew *crew);
void crew_wait(struct crew *crew);

/* Zeroed memory shared with the processes forked from now on, for good; NULL: none. */
void *shared_new(size_t size);

int noop_handler(struct weir_job *job, void *arg);
