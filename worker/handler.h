/* Handlers: which type is run by what, and running one task: a C function, or a command. */
#ifndef WORKER_HANDLER_H
#define WORKER_HANDLER_H

#include "core/error.h"
#include "worker/task.h"

struct trace;

struct handler {
    char type[129];
    weir_handler *function; /* NULL: a command */
    void *arg;
    char **argv; /* of the command, ended by NULL, owned */
};

struct handlers {
    struct handler *at;
    int count;
    const char **types; /* at[i].type, for struct names */
};

void handlers_free(struct handlers *h);
/* WEIR_EUSAGE: no valid type, a type that has a handler, an empty command. */
WEIR_CHECKED int handlers_add(struct handlers *h, const char *type, weir_handler *function, void *arg,
                              struct error *e);
WEIR_CHECKED int handlers_add_command(struct handlers *h, const char *type, const char *command,
                                      struct error *e);
const struct handler *handlers_find(const struct handlers *h, struct span type);

/* Runs a task on the calling thread until it has ended, by task_finish: checks the body, waits for the start
 * time, writes the trace (may be NULL), calls the function or runs the command. */
void handler_run(struct task *task, struct trace *trace);

/* Runs handler's command for the job (worker/command.c). */
void command_run(struct task *task, const struct job_view *view);
/* Ends the process group of a task's command; nothing if none runs. */
void command_kill(struct task *task, int signal);

#endif
