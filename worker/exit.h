/* exit() by a handler: the jobs of all workers of the process are given back first. */
#ifndef WORKER_EXIT_H
#define WORKER_EXIT_H

#include <pthread.h>
#include <stdatomic.h>

struct weir_worker;

struct at_exit {
    struct weir_worker *next; /* that runs in this process */
    pthread_t thread;         /* that runs it */
    atomic_bool gone;         /* it has given back all */
};

/* While it runs, an exit() anywhere in the process gives back its jobs. */
void worker_exit_open(struct weir_worker *w);
void worker_exit_close(struct weir_worker *w);
/* On its loop, when it was called: does not return if the process is ending. */
void worker_check_exit(struct weir_worker *w);

#endif
