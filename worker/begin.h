/* Tasks of the loop begin at their start time. */
#ifndef WORKER_BEGIN_H
#define WORKER_BEGIN_H

#include <ev.h>
#include <stdint.h>

#include "core/error.h"

struct task;
struct weir_worker;

struct begin {
    ev_io io;        /* of a timerfd; -1: not open */
    int64_t at_us;   /* what it is set to */
    int64_t near_us; /* when the scheduler is woken to draw early tasks near */
};

WEIR_CHECKED int worker_begin_open(struct weir_worker *w, struct error *e);
void worker_begin_close(struct weir_worker *w);
/* When early tasks are to be drawn near next, NEVER: there are none. Before worker_begin. */
void worker_begin_near(struct weir_worker *w, int64_t near_us);
/* Begins the tasks of the loop whose time has come, and sets the timer to the next one. */
void worker_begin(struct weir_worker *w);
/* A task of the loop has ended; on any thread. */
void worker_task_ended(struct task *task);

#endif
