/* Unlimited jobs that stand behind throttled ones in the same queue, none of which any worker has looked at
 * yet. */
#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"

#define UNLIMITED 1000

void bench_behind(void)
{
    size_t throttled = bench_size(200000);
    struct crew_plan plan = {
        .url = bench.server.url,
        .workers = 1,
        .executors = 10,
        .types = {{.name = "slow", .handler = noop_handler}, {.name = "fast", .handler = noop_handler}}};
    struct crew crew;
    int64_t start_us;
    double seconds;

    prepare(&bench.server, "slow", "100/s,burst=10", throttled);
    fill(bench.server.url, "fast", UNLIMITED, BODY_BYTES);
    start_us = clock_mono_us();
    crew_start(&crew, &plan);
    wait_for_count(&bench.server, &crew, "fast", "done", UNLIMITED);
    seconds = (double)(clock_mono_us() - start_us) / 1e6;
    report(BEHIND_ALL, seconds, 0, "behind %zu, from the worker's start, 10 executors", throttled);
    crew_stop(&crew);
}
