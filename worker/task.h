/* A task: a leased job in this process, from the claim that granted it until the settle that ended it. */
#ifndef WORKER_TASK_H
#define WORKER_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "queue/job.h"
#include "queue/turn.h"
#include "weir.h"

struct handler;

enum task_end { END_DONE, END_RETRY, END_THROTTLED, END_BACK, END_DEAD };

struct task {
    struct task *next;
    const struct handler *handler;
    struct span token, body; /* in bytes; NUL-terminated */
    struct span key;         /* the lane's, part of token */
    const char *limits;      /* of the type, as claim gave them, for the trace; "": none, or no trace */
    int64_t cost;
    int64_t slot_us;                      /* by Redis's clock, 0: no gate */
    int64_t start_us;                     /* when to start, by this machine's monotonic clock; 0: at once */
    int attempts, interrupted, throttled; /* before this run */
    bool lost;                            /* the lease is gone: nothing is settled */
    _Atomic pid_t process;                /* of a command that runs; 0: none */

    enum task_end end;
    double after_s; /* < 0: the usual */
    char *reason;   /* owned; NULL: none */
    int64_t spent;  /* the true cost that the handler reported; -1: none */
    int64_t finished_us;

    char bytes[];
};

/* Copies what it needs of the lease. NULL: out of memory. */
struct task *task_new(const struct lease *lease, struct span limits);
void task_free(struct task *task);
/* Sets how it ended. The reason is copied; control characters become blanks. */
void task_finish(struct task *task, enum task_end end, double after_s, const char *reason);

/* Did its handler report another cost than the gates gave it? */
bool task_settles_up(const struct task *task);

/* A list, first in first out. */
struct task_list {
    struct task *head, **tail;
    int count;
};
void task_list_init(struct task_list *list);
void task_list_push(struct task_list *list, struct task *task);
struct task *task_list_pop(struct task_list *list);
/* Moves all of from to the end of to. */
void task_list_append(struct task_list *to, struct task_list *from);

#endif
