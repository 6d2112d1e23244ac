/* C functions that run on a thread. Nobody can stop one: it is told, by weir_job_is_cancelled(). */
#include <stdlib.h>

#include "worker/way.h"
#include "worker/weir_job.h"

struct function {
    weir_handler *call;
    void *arg;
};

static void run(struct task *task)
{
    const struct function *f = task->handler->state;
    struct weir_job job;

    weir_job_init(&job, task);
    weir_job_finish(&job, f->call(&job, f->arg));
    weir_job_clear(&job);
}

static void free_state(struct handler *handler)
{
    free(handler->state);
}

static const struct way function_way = {.name = "function", .run = run, .free = free_state};

int function_add(struct handlers *h, const char *type, weir_handler *call, void *arg, struct error *e)
{
    struct function *f;
    int rc;

    if (!call)
        return error_set(e, WEIR_EUSAGE, "handler: no function given for type %.64s", type ? type : "");
    if (!(f = malloc(sizeof *f)))
        return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    *f = (struct function){call, arg};
    if ((rc = handlers_add(h, type, &function_way, f, e)) != 0)
        free(f);
    return rc;
}
