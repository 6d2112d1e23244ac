/* The inside of a worker: a process with one event loop and a pool of executors that run the jobs. What it does in
 * Redis stands in partition/partition.h.
 *
 * Each file below owns the member that stands beside it: it alone writes it, the others read it and call its
 * functions. A file calls those that stand below it; what goes up is an event on the loop. partition/ and parts/ know
 * of the process what parts/shared.h says.
 *
 *   worker.c         pool, partitions ...  makes, runs and frees a worker
 *   exit.c           at_exit         exit() by a handler
 *   stop.c           stop            finishing, and leaving
 *   guard.c          guard           a loop that stands still
 *   report.c         report          what systemd hears
 *   partition/                       the worker in one partition: turns, claims, a lease
 *   parts/ending.c   ending          who asks the worker to end, and its result
 *   parts/options.c  options         read and checked; not changed afterwards
 *   parts/log_once.c logged          lines that are logged once
 *   parts/pool.c     pool            executors
 *   way/             handlers        running one job: handler.c, and a file for each way
 *
 * Everything but the pool's threads and the guard runs on the loop. */
#pragma once

#include "worker/exit.h"
#include "worker/guard.h"
#include "worker/partition/partition.h"
#include "worker/parts/shared.h"
#include "worker/report.h"
#include "worker/stop.h"

#define THREADS_MOST 1024

struct weir_worker {
    struct worker common;
    unsigned forks;            /* of the process, when it was made */
    struct error error, setup; /* setup: what is wrong with the options, which run() reports */
    ev_async finished_async;   /* executors have finished something */
    ev_timer tick;             /* at each, worker_watch() ends what runs too long */
    ev_prepare prepare;        /* makes ticks fast or slow */
    bool abandoned;            /* a C function runs on: nothing that it uses may be freed */
    struct guard guard;
    struct report report;
    struct at_exit at_exit;
    void (*reload)(void *arg); /* on the loop, as worker_ask_reload() asks; NULL: nobody asks */
    void *reload_arg;
    atomic_bool reload_asked;
};

/* Checks the values that it has been given, as when it begins to run. */
WEIR_CHECKED int worker_check(struct weir_worker *w);
/* Before it runs: reload is called on the loop when somebody asks, and may call worker_take_over(). */
void worker_on_reload(struct weir_worker *w, void (*reload)(void *arg), void *arg);
/* From any thread, and from a signal's handler. */
void worker_ask_reload(struct weir_worker *w);
/* The handlers of next, which does not run, and the options that may change while jobs run (of types, grace, kill-after, pauses, dead jobs) take the place
 * of those of w; functions in C stay. What runs goes on to its end as it was begun, what has not begun goes back, and Redis is told by
 * joining again. On failure, which is in next's message, w is as before. Next is to be freed by weir_worker_free in either case. */
WEIR_CHECKED int worker_take_over(struct weir_worker *w, struct weir_worker *next);
