/* C functions that run on a thread. Nobody can stop one: it can ask weir_job_is_cancelled(). */
#include <pthread.h>
#include <stdlib.h>

#include "worker/way/way.h"
#include "worker/way/weir_job.h"

struct function {
    weir_handler *call;
    void *arg;
};

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
    struct function *f;

    if (!(f = malloc(sizeof *f)))
        return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    *f = (struct function){call, arg};
    return handlers_add(h, type, &function_way, f, e);
}
