/* The executors: c of them, each runs one task at a time. A task whose way is a thread's runs on a thread,
 * which is started when it is needed; any other runs on the loop, and its executor is a mere number.
 *
 * A job with a limit was granted against an idle executor, so it goes before those that were prefetched, and
 * its executor waits for its start time.
 *
 * An early task was granted a slot so far ahead that it is not to hold an executor until shortly before its
 * time. Others may take it until then; then the task is handed back.
 *
 * A running task can be given up (pool_give_up): it is then nobody's job any more, but its handler still
 * holds it; it is freed when the handler lets go.
 *
 * All functions are for the worker's loop, but for pool_end; on_finished is called on any thread. */
#pragma once

#include "worker/way/handler.h"
#include "worker/way/task.h"

struct pool;

/* Makes a pool. on_finished(arg) is called on a thread when the list of finished tasks is no longer empty, and when a thread has left its
 * executor while tasks wait for the loop. threads: how many to run at most. NULL: out of memory. */
struct pool *pool_new(int executors, int threads, void (*on_finished)(void *arg), void *arg);
/* Waits for threads to end their tasks; starts none any more. */
void pool_stop(struct pool *pool);
/* Frees the pool and all tasks, after pool_stop. */
void pool_free(struct pool *pool);
/* Adds tasks, and empties the list. */
void pool_add(struct pool *pool, struct task_list *tasks);
/* Gives executors to early tasks whose time has come near; hands over those for which none is idle. Returns when to call it again;
 * INT64_MAX: no task is early. */
int64_t pool_draw_near(struct pool *pool, int64_t now_us, struct task_list *crowded);
/* Takes back early tasks of a partition: `only`, or all at NULL. */
void pool_recall(struct pool *pool, const struct conditions *of, struct task *only, struct task_list *tasks);
/* Begins the next task of the loop whose time has come, by taking an executor for it. NULL: there is none;
 * *next_us is then the start time of the next one, INT64_MAX: none waits for its time. */
struct task *pool_begin(struct pool *pool, int64_t now_us, int64_t *next_us);
/* Ends a task of the loop. Called from any thread. */
void pool_end(struct pool *pool, struct task *task);
/* Keeps so many executors from prefetched tasks: they are for jobs with a limit. Where there are fewer than before pool_begin is to be
 * asked again. */
void pool_reserve(struct pool *pool, int executors);
/* Hands over what has finished. */
void pool_collect(struct pool *pool, struct task_list *finished);
/* Takes back tasks that have not begun: those beyond the executors that are free for them; or every one, of a
 * partition (NULL: of all). */
void pool_withdraw(struct pool *pool, struct task_list *tasks);
void pool_withdraw_all(struct pool *pool, const struct conditions *of, struct task_list *tasks);
/* Tries again to start a thread that could not be started; it is called now and then. Tasks that have waited for it too long are handed
 * over. */
void pool_retry(struct pool *pool, int64_t now_us, struct task_list *tasks);
/* Gives a running task up. False: it has ended meanwhile. */
bool pool_give_up(struct pool *pool, struct task *task);
bool pool_is_running(struct pool *pool, const struct task *task);
/* Calls visit for each task of a partition (NULL: of all) that waits, runs or was not yet collected; threads are held meanwhile. */
void pool_each(struct pool *pool, const struct conditions *of, void (*visit)(struct task *task, void *arg),
               void *arg);
/* Fills in the tasks of a partition (NULL: of all) that run; `tasks` has room for all executors. They live until the loop collects or gives them
 * up. */
size_t pool_running(struct pool *pool, const struct conditions *of, struct task **tasks);

struct pool_load {
    int running, queued;
    int prefetched;    /* queued tasks without a limit, which may have to wait */
    int early;         /* queued tasks that hold no executor yet */
    int unlimited;     /* running tasks without a limit */
    int threads;       /* running tasks on threads */
    int given_up;      /* tasks that threads still hold */
    int64_t oldest_us; /* when the first of the prefetched came; 0: there is none */
};
struct pool_load pool_load(struct pool *pool);
