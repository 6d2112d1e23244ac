/* What a C handler sees of its job: behind the functions weir_job_*() of weir.h. */
#ifndef WORKER_WEIR_JOB_H
#define WORKER_WEIR_JOB_H

#include "worker/task.h"

struct weir_job {
    struct task *task;
    char id[129], key[129];
    char *args, *traceparent; /* made when asked for */
};

/* Of a task whose body was read. */
void weir_job_init(struct weir_job *job, struct task *task);
/* Frees what job owns, not job itself. */
void weir_job_clear(struct weir_job *job);
/* What a handler has returned becomes the end of its task. */
void weir_job_finish(struct weir_job *job, int result);

/* The member traceparent of the body, without its quotes; at NULL: there is none. */
struct span task_traceparent(const struct task *task);

#endif
