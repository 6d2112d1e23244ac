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
    rc = beats_of_worker(b, &beats, EXECUTORS);
    if (rc != 0)
        return rc;
    report(b, LATENCY_P50, beats.p50, bare.p50, "weir_enqueue, 50 jobs/s, 1 worker, 10 executors");
    report(b, LATENCY_P99, beats.p99, bare.p99, "%s", "");
    return 0;
}
