/* Jobs that come one by one, one worker idle in between: from enqueueing to the handler's first line, beside the bare way from LPUSH to a
 * process in BLMOVE; and CPU of Redis. Between two jobs the processor forgets what a call needs. */
#include "bench/beats.h"

#define EXECUTORS_MANY 100

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

void bench_sparse(void)
{
    static const struct {
        int rate;
        enum figure figure;
    } rows[] = {{50, SPARSE_CPU_50}, {200, SPARSE_CPU_200}, {1000, SPARSE_CPU_1000}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int seconds = bench.quick ? 2 : 8;
        struct beats beats = {.count = seconds * rows[i].rate, .every_us = 1000000 / rows[i].rate};

        empty();
        beats_of_worker(&beats, EXECUTORS_MANY);
        report(rows[i].figure, beats.redis_us, 0, "start p50 %.3f ms, p99 %.3f", beats.p50, beats.p99);
    }
}
