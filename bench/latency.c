/* From enqueueing to the handler's first line, one worker idle in between. The bare way from LPUSH to a
 * process in BLMOVE is measured first. */
#include "bench/beats.h"

static struct beats fifty_a_second(const struct bench *b)
{
    return (struct beats){.count = b->quick ? 100 : 500, .every_us = 20000};
}

int bench_latency(struct bench *b)
{
    struct beats bare = fifty_a_second(b), beats = bare;
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    if (rc == 0)
        rc = beats_bare(b, &bare);
    if (rc != 0)
        return rc;
    report(b, CEILING_WAKE_P50, bare.p50, 0, "%s", "");
    report(b, CEILING_WAKE_P99, bare.p99, 0, "%s", "");
    rc = beats_of_worker(b, &beats, false, EXECUTORS);
    if (rc != 0)
        return rc;
    report(b, LATENCY_P50, beats.p50, bare.p50, "weir_enqueue, 50 jobs/s, 1 worker, 10 executors");
    report(b, LATENCY_P99, beats.p99, bare.p99, "%s", "");
    rc = beats_of_worker(b, &beats, true, EXECUTORS);
    if (rc != 0)
        return rc;
    report(b, LATENCY_PUSH_P50, beats.p50, bare.p50, "%s", "");
    report(b, LATENCY_PUSH_P99, beats.p99, bare.p99, "%s", "");
    return 0;
}

/* The same while jobs of another type, with a limit, wait for their slots in the same worker. */
int bench_beside(struct bench *b)
{
    static const struct {
        int executors;
        enum figure figure;
    } rows[] = {{2, BESIDE_2}, {4, BESIDE_4}, {16, BESIDE_16}};
    struct beats beats = fifty_a_second(b);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof *rows; i++) {
        rc = prepare(b, &b->server, "mail", "200/s,burst=1", 10000);
        if (rc == 0)
            rc = beats_of_worker(b, &beats, false, rows[i].executors);
        if (rc == 0)
            report(b, rows[i].figure, beats.p50, 0, "p99 %.3f ms", beats.p99);
    }
    return rc;
}
