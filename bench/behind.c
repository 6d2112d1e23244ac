/* Unlimited jobs that stand behind throttled ones in the same queue, none of which any worker has looked at
 * yet. */
#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"

#define UNLIMITED 1000

int bench_behind(struct bench *b)
{
    size_t throttled = bench_size(b, 200000);
    struct crew_plan plan = {
        .url = b->server.url,
        .workers = 1,
        .executors = 10,
        .types = {{.name = "slow", .handler = noop_handler}, {.name = "fast", .handler = noop_handler}}};
    struct crew crew = {0};
    struct error ignored;
    int64_t start_us;
    double seconds = 0;
    int rc = prepare(b, &b->server, "slow", "100/s,burst=10", throttled);

    if (rc == 0)
        rc = fill(b, b->server.url, "fast", UNLIMITED, BODY_BYTES);
    start_us = clock_mono_us();
    if (rc == 0)
        rc = crew_start(&crew, &plan, &b->error);
    if (rc == 0)
        rc = wait_for_count(b, &b->server, &crew, "fast", "done", UNLIMITED);
    seconds = (double)(clock_mono_us() - start_us) / 1e6;
    if (rc == 0)
        report(b, BEHIND_ALL, seconds, 0, "behind %zu, from the worker's start, 10 executors", throttled);
    if (crew_stop(&crew, rc == 0 ? &b->error : &ignored) != 0 && rc == 0)
        rc = b->error.status;
    return rc;
}
