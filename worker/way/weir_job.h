/* What a C handler sees of its job: behind the functions weir_job_*() of weir.h. */
#pragma once

#include "worker/way/task.h"

struct weir_job {
    struct task *task;
    unsigned forks;
    char id[129], key[129];
    char *args, *traceparent; /* made when asked for */
};

/* Makes the job that a handler gets of a task whose body was read. */
void weir_job_init(struct weir_job *job, struct task *task);
/* Frees what job owns, not job itself. */
void weir_job_clear(struct weir_job *job);
/* Called where a handler comes back, with forks_count() of its call: a child that it has forked ends here,
 * since the worker and the job are the parent's. */
void weir_job_check_fork(const struct handler *handler, unsigned forks);
/* Makes what a handler has returned the end of its task. A child that it has forked ends here. */
void weir_job_finish(struct weir_job *job, int result);

#define ENQUEUED_SIZE 32
/* Writes when the job was enqueued, in seconds since 1970, as JSON has numbers; "": unknown. */
void task_enqueued(const struct task *task, char text[ENQUEUED_SIZE]);

#define FRONT_SIZE 80
/* Writes a job as JSON with what Weir knows of it: front is the beginning, "{" and members, and the rest of the body is returned. A member
 * that the body has itself is left out; when nothing is to be said, front is "". */
struct span task_front(const struct task *task, char front[FRONT_SIZE]);
