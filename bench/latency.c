/* From enqueueing to the handler's first line, one worker idle in between. The bare way from LPUSH to a
 * process in BLMOVE is measured first. */
#include "bench/beats.h"

static struct beats fifty_a_second(void)
{
    return (struct beats){.count = bench.quick ? 100 : 500, .every_us = 20000};
}

void bench_latency(void)
{
    struct beats bare = fifty_a_second(), beats = bare;

    empty();
    beats_bare(&bare);
    report(CEILING_WAKE_P50, bare.p50, 0, "%s", "");
    report(CEILING_WAKE_P99, bare.p99, 0, "%s", "");
    beats_of_worker(&beats, EXECUTORS);
    report(LATENCY_P50, beats.p50, bare.p50, "weir_enqueue, 50 jobs/s, 1 worker, 10 executors");
    report(LATENCY_P99, beats.p99, bare.p99, "%s", "");
}
