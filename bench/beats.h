/* Beats: what is sent at a steady pace, how long each took until it was received, and what that cost Redis. A
 * beat carries the time of its sending, by the monotonic clock that all processes of a machine share. */
#pragma once

#include <stdint.h>

#include "bench/bench.h"

struct samples; /* of those that were received; in memory that processes share */

struct beats {
    int count; /* those of the warm-up are more, in which connections are opened and the duty is taken */
    int64_t every_us;
    double p50, p99; /* in ms */
    double redis_us; /* CPU of Redis for each */
};

/* What was sent at that time has been received. */
void beats_receive(struct samples *samples, const char *sent);

/* From weir_enqueue to the first line of the handler of a worker. */
void beats_of_worker(struct beats *beats, int executors);
/* The bare way: from LPUSH to a process in BLMOVE. */
void beats_bare(struct beats *beats);
/* From send(NULL, time) to a process of its own that runs receive(samples), whose connection to Redis is its own too. */
void beats_between(struct beats *beats, void (*send)(struct weir *w, const char *time),
                   void (*receive)(struct samples *samples));
