/* Asynchronous C: the handler is called on the loop and returns, the job ends by weir_job_end(). What belongs
 * to a job lives until then, even if the worker has given it up. */
#include <stdlib.h>

#include "core/forks.h"
#include "worker/way/way.h"
#include "worker/way/weir_job.h"

struct async {
    weir_async_handler *call;
    void *arg;
};

static void start(struct task *task)
{
    const struct handler *handler = task->handler;
    const struct async *async = handler->runner->state;
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
    async->call(job, async->arg);
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
    struct async *async;

    if (!(async = malloc(sizeof *async)))
        return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    *async = (struct async){call, arg};
    return handlers_add(h, type, &async_way, async, e);
}
