/* Waking: what an idle worker waits for, each in a blocking command on a connection of its own.
 *
 *   bell:<group>   on duty: "look again", something became due earlier than the worker on duty knew
 *   queue:<queue>  on duty: a job was pushed, by anyone; BLMOVE of a queue onto itself does not pop it
 *   spare:<group>  off duty: the worker on duty has more than it can take, or gave up the duty
 *
 * Bell and spare hold one token for whoever comes first. A worker that is called and can do nothing, because
 * it has filled up or lost the duty since it went to wait, passes the token on.
 *
 * All are hints: a lost one costs latency until the worker looks again by itself, never a job. */
#ifndef WORKER_WAKING_H
#define WORKER_WAKING_H

#include "core/redis.h"
#include "queue/turn.h"

struct ev_loop;
struct waking;

enum wake { WAKE_BELL, WAKE_SPARE, WAKE_QUEUE };

/* on_wake(arg, why): look now. False: of no use here, for others. NULL: out of memory. */
struct waking *waking_new(struct ev_loop *loop, const struct redis_address *address, int queue_count,
                          bool (*on_wake)(void *arg, enum wake why), void *arg);
/* The names of the keys, after each adopt. */
void waking_name(struct waking *w, const struct adopt *adopt);
/* The worker goes idle: waits for what its duty asks. */
void waking_wait(struct waking *w, bool on_duty);
void waking_free(struct waking *w);

#endif
