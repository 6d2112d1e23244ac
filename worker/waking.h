/* Waking: what an idle worker waits for, each in a blocking command on a connection of its own.
 *
 *   on duty:   bell:<group>   "look again": something became due earlier than the worker on duty knew
 *              queue:<queue>  a job was pushed, by anyone: BLMOVE of a queue onto itself tells without
 * popping off duty:  spare:<group>  the worker on duty has more than it can take, or gave up the duty
 *
 * All are hints: a lost one costs latency until the worker looks again by itself, never a job. */
#ifndef WORKER_WAKING_H
#define WORKER_WAKING_H

#include "core/redis.h"
#include "queue/turn.h"

struct ev_loop;
struct waking;

/* on_wake(arg, look_held): look now; look_held: types that were set aside may have come back. NULL: out of
 * memory. */
struct waking *waking_new(struct ev_loop *loop, const struct redis_address *address, int queue_count,
                          void (*on_wake)(void *arg, bool look_held), void *arg);
/* The names of the keys, after each adopt. */
void waking_name(struct waking *w, const struct adopt *adopt);
/* The worker goes idle: waits for what its duty asks. */
void waking_wait(struct waking *w, bool on_duty);
void waking_free(struct waking *w);

#endif
