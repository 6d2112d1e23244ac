/* Waking: what an idle worker waits for, each in a blocking command on a connection of its own.
 *
 *   bell:<group>   on duty: something became due earlier than the worker on duty knew
 *   queue:<queue>  on duty: a job was pushed, by anyone; BLMOVE of a queue onto itself does not pop it
 *   spare:<group>  off duty: the worker on duty has more than it can take, or gave up the duty
 *   told:<worker>  while jobs run that take long, or were granted far ahead: the token of one that was cancelled;
 *                  or * when what was granted far ahead may not hold any more. It is removed when it has come
 *
 * Bell and spare hold one token for whoever comes first. A worker that is called and can do nothing, because
 * it has filled up or lost the duty since it went to wait, passes the token on.
 *
 * A worker that serves more queues than it can watch has a bell that rings for new jobs too (wide.h).
 *
 * Where jobs come one by one, a claim stands behind the peek: both are sent at once, Redis keeps the claim as long as the peek
 * blocks, and runs it in the same round of its loop in which a job comes. So neither an answer to this worker nor a request of it
 * lies between the two. Such a peek is short: what a worker that hangs has sent is not to take jobs for long.
 *
 * A queue that is paused is not peeked at: it would answer at once, again and again. Its resuming rings the
 * bell.
 *
 * All are hints: a lost one costs latency until the worker polls, never a job. */
#pragma once

#include "queue/turn/turn.h"

struct ev_loop;
struct link;
struct partition;
struct waking;

enum wake { WAKE_BELL, WAKE_SPARE, WAKE_CANCELLED, WAKE_QUEUE };

struct waking_events {
    /* Called to claim now. what: the queue, or what stood in the bell (core/script/bell.lua). False: the wake-up is of no use here, and is for others. */
    bool (*on_wake)(struct partition *p, enum wake why, struct span what);
    /* Hears that the job of this lease was cancelled, or "*": early jobs are to go back. Makes *heard, the call that says so to Redis. */
    void (*on_cancelled)(struct partition *p, struct span token, struct args *heard);
    /* Called when a peek at a queue is about to be sent. Makes the claim that stands behind it: then its answer comes in place of on_wake.
     * False: none stands. */
    bool (*stand)(struct partition *p, struct args *claim);
    /* Hears the answer of a claim that stood; reply NULL: nobody knows whether it ran. */
    void (*on_claimed)(struct partition *p, const struct redisReply *reply);
};

/* Makes a waking whose connections go to where that of the leader is. events is borrowed. NULL: out of memory. */
struct waking *waking_new(struct ev_loop *loop, const struct redis_address *address,
                          const struct link *leader, int queue_count, const struct waking_events *events,
                          struct partition *p);
/* Names the keys, after each adopt; of the queues only the first names, as patterns are passed over. */
void waking_name(struct waking *w, const struct adopt *adopt);
/* Waits for cancelled jobs, for half a minute at least. */
void waking_listen(struct waking *w);
/* Names the queues that are paused now; no others are. */
void waking_pause(struct waking *w, const struct span *queues, size_t count);
/* Begins to wait, as the worker goes idle: on duty for the bell and the queues, else to be called as a spare. */
void waking_wait(struct waking *w, bool on_duty);
void waking_free(struct waking *w);
