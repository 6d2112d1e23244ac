/* exit() by a handler: the jobs of all workers of the process are given back first. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

struct weir_worker;

struct at_exit {
    struct weir_worker *next; /* the next worker that runs in this process */
    pthread_t thread;         /* the thread that runs this worker */
    atomic_bool gone;         /* it has given back all */
};

/* While it runs, an exit() anywhere in the process gives back its jobs. */
void worker_exit_open(struct weir_worker *w);
void worker_exit_close(struct weir_worker *w);
/* Checks on the loop whether the process is ending. If so, gives back all jobs and does not return. */
void worker_check_exit(struct weir_worker *w);
