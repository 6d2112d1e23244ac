/* What people and producers do in a world with batches, unique keys, cancels and pauses: each act is done to
 * Redis and to the model (tests/sim.h). Whoever needs several scripts for one act may stop between any two of
 * them. */
#pragma once

#include "tests/sim.h"

/* After sim_begin, once types and queues are known: names the batches. */
void acts_begin(void);
/* One act at random. */
void acts_do(bool may_add_jobs);
/* Nothing is paused any more, what was broken off is done, all batches are sealed. */
void acts_finish(void);
/* All of them, as batches that had ended may see. */
void acts_retry_dead(void);
/* All jobs have ended: so have the batches, and what was to follow has. */
void acts_check_end(void);
/* Teardown of a group. */
void acts_stop(void);

extern struct acts_totals {
    long long enqueued, refused, cancels, runs, by_search, purged, broken_off;
} acts_totals;
