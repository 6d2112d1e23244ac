/* Redis at the other end of a network: the worker's connections go through a proxy that delays each byte by half of the
 * round trip, each way. The row at 0 goes through it as well, so what the proxy itself costs is in all of them. */
#include <stdio.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "tests/proxy.h"

#define JOBS 500000
#define PACE_TRIP_US 10000 /* of the row about a rate */

/* The server as it is seen over the proxy. */
static struct proxy *open_link(int64_t trip_us, struct server *far)
{
    struct proxy *proxy = proxy_open(bench.server.folder, bench.server.socket, 0);

    *far = bench.server;
    if (!proxy)
        fail("a proxy cannot be started");
    proxy_delay(proxy, PROXY_REQUESTS, trip_us / 2);
    proxy_delay(proxy, PROXY_REPLIES, trip_us / 2);
    snprintf(far->url, sizeof far->url, "%s", proxy_url(proxy));
    return proxy;
}

/* From the first tenth of the jobs to the last one: to connect takes round trips too. */
static struct speed run_far(size_t jobs, int trip_us)
{
    struct server far;
    struct proxy *proxy = open_link(trip_us, &far);
    struct crew_plan plan = {.url = far.url,
                             .workers = 1,
                             .executors = EXECUTORS,
                             .drain = true,
                             .types = {{.name = "noop", .handler = noop_handler}}};
    struct stopwatch watch;
    struct speed speed;
    struct crew crew;

    prepare(&bench.server, "noop", NULL, jobs);
    crew_start(&crew, &plan);
    wait_for_count(&far, &crew, "noop", "done", jobs / 10);
    watch = stopwatch_start(&far);
    wait_for_count(&far, &crew, "noop", "done", jobs);
    speed = stopwatch_stop(&far, &watch, jobs - jobs / 10);
    crew_wait(&crew);
    proxy_stop(proxy);
    speed.client_us = crew.cpu_us / (double)jobs;
    return speed;
}

void bench_far(void)
{
    static const struct trial trials[] = {{FAR_RUN_0, FIGURES, run_far, 0, "; 10 executors"},
                                          {FAR_RUN_1, FAR_RUN_0, run_far, 1000, ""},
                                          {FAR_RUN_2, FAR_RUN_0, run_far, 2000, ""},
                                          {FAR_RUN_10, FAR_RUN_0, run_far, 10000, ""}};
    const struct result *r = bench.results;
    struct server far;
    struct proxy *proxy;

    measure_trials(trials, 4, bench.quick ? JOBS / 5 : JOBS);
    report(FAR_RATIO_1, r[FAR_RUN_1].value / r[FAR_RUN_0].value, 0, "%s", "");
    proxy = open_link(PACE_TRIP_US, &far);
    measure_far(far.url, "5000/s,burst=1", 5000);
    proxy_stop(proxy);
}
