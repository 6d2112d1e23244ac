/* C functions. One that runs on a thread returns when its job has ended, and nobody can stop it: it can ask
 * weir_job_is_cancelled(). An asynchronous one is called on the loop and returns, and its job ends by weir_job_end(). What belongs to such a
 * job lives until then, even if the worker has given it up. */
#include <pthread.h>
#include <stdlib.h>

#include "core/forks.h"
#include "worker/way/way.h"
#include "worker/way/weir_job.h"

struct function {
    union {
        weir_handler *call;
        weir_async_handler *begin;
    };
    void *arg;
};

static int add(struct handlers *h, const char *type, const struct way *way, struct function function,
               struct error *e)
{
    struct function *f = malloc(sizeof *f);

    if (!f)
        return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    *f = function;
    return handlers_add(h, type, way, f, e);
}

/* ---- On a thread */

/* Hears that a handler has ended its thread, by pthread_exit(): an executor is lost, so the process ends as if by exit(). */
static void on_thread_exit(void *arg)
{
    (void)arg;
    exit(EXIT_FAILURE);
}

static void run(struct task *task)
{
    const struct function *f = task->handler->runner->state;
    struct weir_job job;

    if (!task_call(task))
        return;
    runner_works(task->handler->runner);
    weir_job_init(&job, task);
    pthread_cleanup_push(on_thread_exit, NULL);
    weir_job_finish(&job, f->call(&job, f->arg));
    pthread_cleanup_pop(0);
    weir_job_clear(&job);
}

static const struct way function_way = {.name = "function", .inside = true, .run = run, .free = free};

int function_add(struct handlers *h, const char *type, weir_handler *call, void *arg, struct error *e)
{
    return add(h, type, &function_way, (struct function){.call = call, .arg = arg}, e);
}

/* ---- On the loop */

static void start(struct task *task)
{
    const struct handler *handler = task->handler;
    const struct function *f = handler->runner->state;
    unsigned forks = forks_count();
    struct weir_job *job = malloc(sizeof *job);

    if (!job) {
        task_unable(task, "out of memory");
        task_ended(task);
        return;
    }
    weir_job_init(job, task);
    task->state = job;
    if (!task_call(task)) {
        task_ended(task);
        return;
    }
    f->begin(job, f->arg);
    weir_job_check_fork(handler, forks);
}

static void release(struct task *task)
{
    weir_job_clear(task->state);
    free(task->state);
}

static const struct way async_way = {
    .name = "async", .inside = true, .start = start, .release = release, .free = free};

void weir_job_end(struct weir_job *job, int result)
{
    if (!job)
        return;
    weir_job_finish(job, result);
    task_ended(job->task);
}

int async_add(struct handlers *h, const char *type, weir_async_handler *call, void *arg, struct error *e)
{
    return add(h, type, &async_way, (struct function){.begin = call, .arg = arg}, e);
}
