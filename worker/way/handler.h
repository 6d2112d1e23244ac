/* Handlers: which type is run by which runner, with which options; and running one task.
 *
 * A worker names words: types, and patterns as mail.* and *. A type that is no word gets a handler when its first job comes: a copy of that of the longest
 * pattern that stands for it. */
#pragma once

#include <stdatomic.h>

#include "core/error.h"
#include "worker/way/identity.h"
#include "worker/way/rest.h"
#include "worker/way/task.h"

struct ev_loop;
struct redis_address;
struct partition;
struct worker;
struct trace;
struct way;

struct conditions {
    struct partition *partition;
    struct trace *trace;          /* NULL: none is written */
    _Atomic int64_t lease_end_us; /* by clock_boot_us(): others may have the jobs from then on; 0: now */
    _Atomic int late;             /* jobs that came too late for their slots, not yet logged */
    _Atomic int prefetched;       /* tasks without a limit that wait in the pool; the pool alone writes it */
};

/* Counts the jobs that came too late since the last call. */
int handler_take_late(struct conditions *conditions);
/* True when no job may be begun any more, by the clock of this machine. */
bool lease_is_over(const struct conditions *conditions);

/* What a way of running jobs needs of the worker stands here. */
struct way_host {
    struct ev_loop *loop;
    int executors;
    int64_t kill_after_us;               /* from TERM to KILL */
    const struct redis_address *address; /* of its Redis */
    const char *prefix;
    struct worker *worker;
    void (*on_ended)(struct task *task); /* called by task_ended(), on any thread */
    void (*on_rest)(struct worker *w,
                    int types); /* so many types begin to rest; below 0: so many have rested (rest.h) */
};

/* A runner runs the jobs of one type or of several: a function, a command, the children of a pipe, an endpoint. */
struct runner {
    struct runner *next;
    const struct way *way;
    void *state; /* belongs to the way */
    struct way_host host;
    struct rest rest;
    int count;    /* of its words */
    char types[]; /* "mail,sms.*", as it was added */
};

struct handler {
    char type[130]; /* or a pattern, which no task has */
    int number;     /* its place among the types */
    struct runner *runner;
    int64_t timeout_us, keep_us;               /* 0: none */
    int64_t ended[END_KINDS];                  /* jobs since the worker last logged them, by the loop */
    atomic_bool left_one;                      /* a result, while no job of it is kept */
    atomic_int tasks;                          /* that it is the handler of: task.c alone counts them */
    int64_t backoff_first_us, backoff_most_us; /* 0: the usual */
};

struct handlers {
    struct handlers *next;  /* of those that were replaced */
    struct runner *runners; /* every runner once, the last one added first */
    struct handler **words; /* those that were added: of types, which are in at too, and of patterns */
    int word_count;
    /* Types: those that were added, and behind them those that patterns have taken. A task points there. */
    struct handler **at;
    int count;
    void *by_type;         /* the same, as tsearch() has them: a pattern may take very many */
    const char **types;    /* at[i]->type, for struct names */
    const char **resting;  /* has room for all words */
    const char **patterns; /* those of the words */
    int pattern_count;
    struct identity identity; /* of all endpoints */
};

/* Frees them and all that were replaced before; NULL: nothing. */
void handlers_free(struct handlers *h);
/* Keeps types whose handlers are functions as they are, before `to` replaces `from`. WEIR_EUSAGE: one has another handler in `to`. */
WEIR_CHECKED int handlers_keep(struct handlers *to, const struct handlers *from, struct error *e);
/* `from` was replaced by `to`: what is kept is that one's, and the others take no more jobs; those that run go on. Returns how many types do not rest
 * any more. */
int handlers_retire(struct handlers *from, struct handlers *to);
/* Frees those of a list of replaced ones that no task has any more, and of which nothing lives on. On the loop. */
void handlers_free_ended(struct handlers **list);
/* Adds a runner for a word, or for several with commas between, and takes over its state, which is freed after a failure. WEIR_EUSAGE: neither a type
 * nor a pattern, or one that has a handler. */
WEIR_CHECKED int handlers_add(struct handlers *h, const char *words, const struct way *way, void *state,
                              struct error *e);
/* Adds another word for a runner. NULL: out of memory. */
struct handler *handlers_add_word(struct handlers *h, struct runner *runner, struct span word);
struct names handlers_types(const struct handlers *h);
struct names handlers_patterns(const struct handlers *h);
/* Finds the handler of a type that has one so far. */
struct handler *handlers_find(const struct handlers *h, struct span type);
/* Finds the word that stands for a type: its name, else the longest pattern. NULL: none does. */
struct handler *handlers_word(const struct handlers *h, struct span type);
/* Returns the handler of a type, which gets one now if a pattern stands for it. NULL: none does, or out of memory. */
struct handler *handlers_take(struct handlers *h, struct span type);

/* Splits a command at the blanks that stand in no quotes; a NULL ends the words; to be freed, at once. NULL and *e: there is none, or one that only
 * a shell could read (WEIR_EUSAGE), no such program (WEIR_ECONFIG). */
char **command_split(const char *type, const char *command, struct error *e);

/* Writes a line to the log about the types of a runner. */
void runner_log(enum log_level level, const struct runner *runner, const char *fmt, ...) WEIR_PRINTF(3, 4);

/* Makes a runner ready for tasks. From now on what host names does not change. */
WEIR_CHECKED int runner_open(struct runner *runner, const struct way_host *host, struct error *e);
void runner_close(struct runner *runner);

/* Runs a task on the calling thread until it has ended, by task_finish. */
void handler_run(struct task *task);
/* Returns the task whose handler runs on the calling thread; NULL: none. */
struct task *handler_current(void);
/* Begins a task on the loop, at its start time. */
void handler_start(struct task *task);
/* Hears how a task has ended, on the loop: a handler that could not be called rests. */
void handler_hear_end(const struct task *task);
