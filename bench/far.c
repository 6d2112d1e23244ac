/* Redis at the other end of a network: the worker's connections go through a proxy that delays each byte by half of the
 * round trip, each way. The row at 0 goes through it as well, so what the proxy itself costs is in all of them. */
#include <stdio.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "tests/proxy.h"

#define JOBS 500000
#define PACE_TRIP_US 10000 /* of the row about a rate */

/* The server as it is seen over the proxy; NULL: an error. */
static struct proxy *open_link(struct bench *b, int64_t trip_us, struct server *far)
{
    struct proxy *proxy = proxy_open(b->server.folder, b->server.socket, 0);

    *far = b->server;
    if (!proxy) {
        error_set(&b->error, WEIR_EINTERNAL, "a proxy cannot be started");
        return NULL;
    }
    proxy_delay(proxy, PROXY_REQUESTS, trip_us / 2);
    proxy_delay(proxy, PROXY_REPLIES, trip_us / 2);
    snprintf(far->url, sizeof far->url, "%s", proxy_url(proxy));
    return proxy;
}

/* From the first tenth of the jobs to the last one: to connect takes round trips too. */
static int time_far(struct bench *b, struct server *far, size_t jobs, struct speed *speed)
{
    struct crew_plan plan = {.url = far->url,
                             .workers = 1,
                             .executors = EXECUTORS,
                             .drain = true,
                             .types = {{.name = "noop", .handler = noop_handler}}};
    struct stopwatch watch;
    struct crew crew = {0};
    struct error ignored;
    int rc = crew_start(&crew, &plan, &b->error);

    if (rc == 0)
        rc = wait_for_count(b, far, &crew, "noop", "done", jobs / 10);
    if (rc == 0)
        rc = stopwatch_start(b, far, &watch);
    if (rc == 0)
        rc = wait_for_count(b, far, &crew, "noop", "done", jobs);
    if (rc == 0)
        rc = stopwatch_stop(b, far, &watch, jobs - jobs / 10, speed);
    if (rc == 0)
        rc = crew_wait(&crew, &b->error);
    else
        (void)!crew_stop(&crew, &ignored);
    speed->client_us = crew.cpu_us / (double)jobs;
    return rc;
}

static int run_far(struct bench *b, size_t jobs, int64_t trip_us, struct speed *speed)
{
    struct server far;
    struct proxy *proxy = open_link(b, trip_us, &far);
    int rc = proxy ? prepare(b, &b->server, "noop", NULL, jobs) : b->error.status;

    if (rc == 0)
        rc = time_far(b, &far, jobs, speed);
    proxy_stop(proxy);
    return rc;
}

static int run_0(struct bench *b, size_t jobs, struct speed *speed)
{
    return run_far(b, jobs, 0, speed);
}

static int run_1(struct bench *b, size_t jobs, struct speed *speed)
{
    return run_far(b, jobs, 1000, speed);
}

static int run_2(struct bench *b, size_t jobs, struct speed *speed)
{
    return run_far(b, jobs, 2000, speed);
}

static int run_10(struct bench *b, size_t jobs, struct speed *speed)
{
    return run_far(b, jobs, 10000, speed);
}

static int measure_runs(struct bench *b)
{
    static const struct trial trials[] = {{FAR_RUN_0, FIGURES, run_0, "; 10 executors"},
                                          {FAR_RUN_1, FAR_RUN_0, run_1, ""},
                                          {FAR_RUN_2, FAR_RUN_0, run_2, ""},
                                          {FAR_RUN_10, FAR_RUN_0, run_10, ""}};
    const struct result *r = b->results;
    int rc = measure_trials(b, trials, 4, b->quick ? JOBS / 5 : JOBS);

    if (rc == 0)
        report(b, FAR_RATIO_1, r[FAR_RUN_1].value / r[FAR_RUN_0].value, 0, "%s", "");
    return rc;
}

int bench_far(struct bench *b)
{
    struct server far;
    struct proxy *proxy;
    int rc = measure_runs(b);

    if (rc != 0)
        return rc;
    proxy = open_link(b, PACE_TRIP_US, &far);
    rc = proxy ? measure_far(b, far.url, "5000/s,burst=1", 5000) : b->error.status;
    proxy_stop(proxy);
    return rc;
}
