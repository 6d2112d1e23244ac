/* A way: how the jobs of a type are run. There are two kinds.
 *
 *   on a thread   run() is called on an executor's thread and returns when the job has ended: a C function
 *                 (function.c), a command (command.c)
 *   on the loop   start() begins the job on the worker's loop and returns at once; it ends when task_ended()
 *                 is called: asynchronous C (function.c), a pipe (pipe.c), HTTP (http.c)
 *
 * The worker sees to all the rest: the body was read (task->view), the start time has come, the executor is
 * free. A way asks task_call() right before it calls the handler, and says how the task ended by task_finish(),
 * once or more often: the last one counts.
 *
 * Where a whole process group is told to stop, TERM reaches a program beside the worker. So a way says that TERM has ended a
 * program (task->terminated): where the worker stops, too, that is no failure, and the job is handed back.
 *
 * A slot is spent by a handler that was called, and by nothing else. task_call() decides that it is, and
 * task_uncall() that it was not; whatever the end of a task, it gives its slots back unless it was called. */
#pragma once

#include "worker/way/handler.h"

struct way {
    const char *name;
    bool inside; /* its handlers run in the worker's process, and can end it */
    /* A way has either run() or start(). start() may end the task before it returns. */
    void (*run)(struct task *task);
    void (*start)(struct task *task);
    /* Asks a running task to end (TERM), or makes it (KILL), on the loop's thread; task->asked says why. The
     * task then ends as any other: by returning from run(), or by task_ended(), now or later. It may have
     * ended meanwhile. NULL: it cannot be ended, only ask weir_job_is_cancelled(). */
    void (*end)(struct task *task, bool force);
    /* Frees task->state, which start() has set. NULL: it has none. */
    void (*release)(struct task *task);
    /* Called once for each runner, on the loop's thread: before the loop runs, when runner->host is set; and after it has run, to stop its
     * watchers and end its children (with threads of commands still running, if the stop was forced). May be NULL. */
    int (*open)(struct runner *runner, struct error *e);
    void (*rested)(struct runner *runner); /* a rest is over; may be NULL */
    void (*stop)(struct runner *runner);   /* no more tasks will come; those that run go on */
    bool (*lives)(
        const struct runner *
            runner); /* after stop(): something has not ended that close() would wait for; NULL: nothing can */
    void (*close)(struct runner *runner);
    /* Frees runner->state. */
    void (*free)(void *state);
};

/* Ends a task that runs on the loop: it leaves its executor and will be settled as task_finish() said. Called from any thread; the task is
 * not to be touched any more. */
void task_ended(struct task *task);

/* True when the handler is to be called now: the task has begun. Else it has ended, and goes back as it is: it was asked to end, its lease
 * is over, or its slot. On any thread. */
bool task_call(struct task *task);
/* Ends a task whose handler was not called, or never met the job: it goes back as it is. Called from the thread that runs it. */
void task_uncall(struct task *task);
/* Ends a task whose handler cannot be called now: the type rests. why: for the log. */
void task_unable(struct task *task, const char *why);

/* Each adds a runner of its kind for a type, or for several. Errors are those of handlers_add(), and what is wrong with the other arguments. */
WEIR_CHECKED int function_add(struct handlers *h, const char *type, weir_handler *call, void *arg,
                              struct error *e);
WEIR_CHECKED int async_add(struct handlers *h, const char *type, weir_async_handler *call, void *arg,
                           struct error *e);
WEIR_CHECKED int command_add(struct handlers *h, const char *type, const char *command, struct error *e);
#define PIPE_IN_FLIGHT_MOST 10000
/* in_flight (0: 1) jobs are in each child at a time. */
WEIR_CHECKED int pipe_add(struct handlers *h, const char *type, const char *command, int in_flight,
                          struct error *e);
/* WEIR_ECONFIG: there is no libcurl on this machine. */
WEIR_CHECKED int http_add(struct handlers *h, const char *type, const char *url, struct error *e);
