/* Tasks of the loop begin at their start time. */
#ifndef WORKER_BEGIN_H
#define WORKER_BEGIN_H

#include <ev.h>
#include <stdint.h>

#include "core/error.h"

struct task;
struct weir_worker;

struct begin {
    ev_io io;      /* of a timerfd; -1: there are no such types */
    int64_t at_us; /* what it is set to */
};

WEIR_CHECKED int worker_begin_open(struct weir_worker *w, struct error *e);
void worker_begin_close(struct weir_worker *w);
/* Begins the tasks of the loop whose time has come, and sets the timer to the next one. */
void worker_begin(struct weir_worker *w);
/* A task of the loop has ended; on any thread. */
void worker_task_ended(struct task *task);

#endif
