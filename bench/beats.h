/* Beats: what is sent at a steady pace, how long each took until it was received, and what that cost Redis. A
 * beat carries the time of its sending, by the monotonic clock that all processes of a machine share. */
#pragma once

#include <stdint.h>

#include "bench/bench.h"

struct beats {
    int count; /* those of the warm-up are more, in which connections are opened and the duty is taken */
    int64_t every_us;
    double p50, p99; /* in ms */
    double redis_us; /* CPU of Redis for each */
};

/* From weir_enqueue to the first line of the handler of a worker. */
void beats_of_worker(struct beats *beats, int executors);
/* The bare way: from LPUSH to a process in BLMOVE. */
void beats_bare(struct beats *beats);
