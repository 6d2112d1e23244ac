/* Settling: jobs that have ended are reported to Redis. */
#ifndef WORKER_SETTLE_H
#define WORKER_SETTLE_H

#include "core/script/args.h"
#include "worker/parts/batches.h"

struct weir_worker;

struct settling {
    struct task_list finished; /* to be settled */
    struct task_list sent;     /* in the settle that is under way */
    struct batches batches;    /* of the jobs that have not ended */
    bool urgent;               /* somebody may wait for the end of one of the finished */
    uint64_t ended;            /* tasks that the pool has handed over so far */
};

/* Before any of the others, and after all. */
void worker_open_settling(struct weir_worker *w);
void worker_free_settling(struct weir_worker *w);
/* A task is about to go to the pool. */
void worker_leased(struct weir_worker *w, struct task *task);
/* Takes what has ended from the pool. */
void worker_collect(struct weir_worker *w);
/* A task has left the pool and will be settled. */
void worker_finished(struct weir_worker *w, struct task *task);
/* So has a task that its handler holds on: copy is settled in its place, by what the task was asked to end for. */
void worker_finished_without(struct weir_worker *w, struct task *task, struct task *copy);
/* They go back to the head of their lanes at the next turn, with no attempt used. Empties the list. */
void worker_give_back(struct weir_worker *w, struct task_list *tasks);
/* Their leases are over: frees them. */
void worker_drop(struct weir_worker *w, struct task_list *tasks);
/* When to settle what has ended, NEVER: nothing has. */
int64_t worker_settle_time(const struct weir_worker *w);
/* Sends what has ended, if anything has. */
void worker_settle(struct weir_worker *w, struct args *a);
/* The same as a request alone. false: nothing has ended. When it is answered, or when nobody knows whether it
 * arrived: then it is settled once more, with the same tokens, as a token settles once. */
bool worker_write_settle(struct weir_worker *w, struct args *a);
void worker_settled(struct weir_worker *w);
void worker_settle_again(struct weir_worker *w);
/* Nothing runs, waits or is to be settled here. */
bool worker_is_idle(struct weir_worker *w);

#endif
