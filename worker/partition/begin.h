/* Tasks of the loop begin at their start time. */
#pragma once

#include <stdint.h>

#include "core/error.h"

struct worker;
struct task;

WEIR_CHECKED int begin_open(struct worker *w, struct error *e);
void begin_close(struct worker *w);
/* Sets when early tasks are to be drawn near next; NEVER: there are none. Called before begin_tasks(). */
void begin_near(struct worker *w, int64_t near_us);
/* Begins the tasks of the loop whose time has come, and sets the timer to the next one. */
void begin_tasks(struct worker *w);
/* Hears that a task of the loop has ended; on any thread. */
void begin_task_ended(struct task *task);
