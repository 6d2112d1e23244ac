/* A task: a leased job in this process, from the claim that granted it until the settle that ended it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/log/log.h"
#include "queue/job/job.h"
#include "queue/turn/record.h"
#include "queue/turn/turn.h"
#include "weir.h"

struct conditions;
struct handler;

enum task_end {
    END_RETRY, /* stands first, at 0: an end that nobody has said is no success */
    END_DONE,
    END_THROTTLED,
    END_BACK,
    END_DEAD,
    END_CANCELLED,
    END_INTERRUPTED, /* what ran it died: no attempt is used, but a job that does so too often is dead */
};
#define END_KINDS (END_INTERRUPTED + 1)

enum task_asked {
    ASKED_NOTHING,
    ASKED_OVER_TIME, /* failed, whatever it says */
    ASKED_CANCELLED, /* unless it is done: not run again */
    ASKED_STOP,      /* the worker leaves: unless it is done, given back */
    ASKED_LOST,      /* the lease is gone: nothing is settled */
};

struct task {
    struct task *next, *prev; /* in its list */
    struct handler *handler;
    struct conditions *conditions; /* its partition's */
    size_t size;                   /* bytes of the whole allocation */
    struct span token, body;       /* in bytes; NUL-terminated */
    struct span key;               /* the lane's, part of token */
    struct span batch;             /* empty: none */
    const char *limits;            /* of the type, as claim gave them, for the trace; "": none, or no trace */
    int64_t cost;
    int64_t slot_us;                      /* by Redis's clock, 0: no gate */
    int64_t ahead_us, good_us;            /* how long before slot_us it was granted; how long it is good */
    int64_t start_us;                     /* when to start, by this machine's monotonic clock; 0: at once */
    int64_t late_us;                      /* its slot is good until then, by that clock; 0: for ever */
    int64_t enqueued_us, since_us;        /* as those of its lease */
    int64_t came_us;                      /* when it came to the pool, by that clock */
    int attempts, interrupted, throttled; /* before this run */
    bool unique;                          /* it holds a lock until it ends */

    struct job_view view;     /* of the body, once it is being run; its spans point into it */
    void *state;              /* belongs to the way that runs it */
    _Atomic pid_t process;    /* of a command that runs; 0: none */
    _Atomic int64_t begun_us; /* when its handler was called, monotonic; 0: it was not */
    int64_t timeout_us;       /* how long it may run from begun_us on, 0: any time; set before begun_us */
    _Atomic int asked;        /* enum task_asked, by the loop */
    int64_t asked_us;         /* when it was asked; INT64_MAX: it was made to end */
    bool early;               /* it holds no executor yet; see pool.h, under its lock */
    bool ended, stray;        /* see pool.h; under its lock */

    enum task_end end;
    double after_s;            /* < 0: the usual */
    char *reason;              /* owned; NULL: none */
    char *result;              /* that its handler left, one line of JSON; owned; NULL: none */
    int64_t spent;             /* the true cost that the handler reported, of plain slots; -1: none */
    struct job_cost *spent_of; /* and by name; owned; NULL: none */
    int64_t finished_us;
    enum record_cause cause; /* what let it start */
    bool counted;            /* its start is counted; written by the loop */
    enum record_back back;   /* why its handler was not called, where it was not */
    bool terminated;         /* TERM has ended its program; see way.h */
    bool unable;             /* nor can it be called for another job now */
    bool written;            /* the settle that is being written has it, with others of its type and batch */

    char bytes[];
};

/* Makes a task, with copies of what it needs of the lease. NULL: out of memory. */
struct task *task_new(const struct lease *lease, struct handler *handler, struct conditions *conditions,
                      struct span limits);
/* Makes a task of the same lease, as if it had not been run. NULL: out of memory. */
struct task *task_copy(const struct task *task);
void task_free(struct task *task);
/* Sets how it ended. The reason is copied, a long one but for its middle; control characters become blanks.
 */
void task_finish(struct task *task, enum task_end end, double after_s, const char *reason);
#define RESULT_MOST (64 * 1024) /* bytes: a result is no place for data */
/* Takes what the handler leaves for who waits for the job, where its type is kept: any JSON of at most RESULT_MOST bytes, which is copied.
 * WEIR_EINPUT: it is none, or too large; it counts as left out, which is logged. */
int task_result(struct task *task, struct span json);
/* Writes a line to the log about a job, with its id (once its body was read), type and attempt. */
void task_log(enum log_level level, const struct task *task, const char *fmt, ...) WEIR_PRINTF(3, 4);

/* Takes what the handler says that the job cost in truth of that name, "plain" too; said again it counts instead. WEIR_EINPUT: it is no name, or one
 * too many; it counts as left out, which is logged. */
int task_spent(struct task *task, const char *name, size_t len, int64_t slots);
/* The same of a cost as people write it, or as JSON. */
int task_spent_text(struct task *task, const char *text);
int task_spent_json(struct task *task, struct span json);
/* Returns the true cost, as far as it was reported. */
struct job_cost;
void task_true_cost(const struct task *task, struct job_cost *spent);
/* Adds it to a settle. */
void task_settle_cost(const struct task *task, struct args *a);
/* True when its handler reported another cost than the gates gave it, as far as is known here. */
bool task_settles_up(const struct task *task);

/* A task list is first in, first out; all zero: empty. */
struct task_list {
    struct task *head, *tail;
    int count;
};
void task_list_push(struct task_list *list, struct task *task);
struct task *task_list_pop(struct task_list *list);
/* Puts a task behind another one of the list; NULL: at the head. */
void task_list_insert(struct task_list *list, struct task *before, struct task *task);
void task_list_remove(struct task_list *list, struct task *task);
/* Moves all of from to the end of to. */
void task_list_append(struct task_list *to, struct task_list *from);
void task_list_free(struct task_list *list);
