/* Rests: while the handler of a type cannot be called, its jobs stay in Redis, where other workers find them. A rest
 * begins when the program cannot be started, or when a child dies before it has answered. It is 0.1 s at first, and
 * twice as long each time until the handler works again; up to half of that is left off at random, so that workers
 * do not try together. */
#pragma once

#include <ev.h>
#include <stdatomic.h>
#include <stdbool.h>

struct runner;

#define REST_START_MOST_S 2.0  /* after a program that could not be started: a try costs little */
#define REST_CHILD_MOST_S 30.0 /* after a child that died */

/* The loop writes all members but failures, which a thread may set back. */
struct rest {
    ev_timer timer;
    atomic_bool on;
    atomic_int failures; /* rests since the handler worked */
};

/* Makes the rest of a runner. From then on runner->host is set. */
void rest_open(struct runner *runner);
void rest_close(struct runner *runner);
/* Begins a rest of most_s at most, on the loop; while there is one it goes on. */
void runner_rest(struct runner *runner, double most_s);
/* True while the runner rests. On any thread. */
bool runner_rests(const struct runner *runner);
/* Notes that the handler works: the next rest is a short one. On any thread. */
void runner_works(struct runner *runner);
