/* The executors: up to c threads that run tasks. A job with a limit was granted against an idle executor, so
 * it goes before those that were prefetched; its thread waits for the start time. Threads are started when
 * they are needed.
 *
 * All functions are for the worker's loop, but for on_finished, which a thread calls. */
#ifndef WORKER_POOL_H
#define WORKER_POOL_H

#include "worker/task.h"

struct pool;
struct trace;

/* on_finished(arg) is called on a thread when the list of finished tasks is no longer empty. NULL: out of
 * memory. */
struct pool *pool_new(int executors, struct trace *trace, void (*on_finished)(void *arg), void *arg);
/* Waits for running tasks. */
void pool_free(struct pool *pool);
/* Takes all of tasks. */
void pool_add(struct pool *pool, struct task_list *tasks);
/* Hands over what has finished. */
void pool_collect(struct pool *pool, struct task_list *finished);
/* Takes back tasks that no thread has begun: those beyond the executors that are free for them, or (all)
 * every one. */
void pool_withdraw(struct pool *pool, struct task_list *tasks, bool all);
/* Calls visit for each task that waits, runs or was not yet collected; threads are held meanwhile. */
void pool_each(struct pool *pool, void (*visit)(struct task *task, void *arg), void *arg);

struct pool_load {
    int running, queued;
    uint64_t begun; /* tasks begun so far: does it move? */
};
struct pool_load pool_load(struct pool *pool);

#endif
