/* What jobs put on the link, and what a type takes of Redis's memory: unit costs of doc/scale.md. Counted by Redis. */
#include <stdio.h>

#include "bench/bench.h"
#include "bench/crew.h"

#define JOBS 100000
#define CALLS 2000
#define TYPES 10000

/* What has gone to Redis and from it since before, for each of n jobs. */
static void report_bytes(enum figure figure, struct usage before, size_t n)
{
    struct usage now = server_usage(&bench.server);
    double in = (now.bytes_in - before.bytes_in) / (double)n,
           out = (now.bytes_out - before.bytes_out) / (double)n;

    report(figure, in + out, 0, "%.0f to Redis, %.0f from it", in, out);
}

static void measure_bulk(size_t n)
{
    struct usage before;

    empty();
    before = server_usage(&bench.server);
    fill(bench.server.url, "noop", n, BODY_BYTES);
    report_bytes(NET_BULK, before, n);
}

static void measure_run(enum figure figure, const char *rule, size_t n)
{
    struct usage before;

    prepare(&bench.server, "noop", rule, n);
    before = server_usage(&bench.server);
    time_worker(&bench.server, EXECUTORS, n);
    report_bytes(figure, before, n);
}

static void enqueue_types(struct weir *w, int calls, int types)
{
    char type[24];

    for (int i = 0; i < calls; i++) {
        snprintf(type, sizeof type, "type.%06d", i % types);
        client_must(
            w, weir_enqueue(w, &(struct weir_job_spec){.type = type, .args = "{\"to\":\"somebody\"}"}, NULL));
    }
}

static void measure_calls(struct weir *w)
{
    struct usage before;

    enqueue_types(w, 1, 1);
    before = server_usage(&bench.server);
    enqueue_types(w, CALLS, 1);
    report_bytes(NET_CALL, before, CALLS);
}

static double memory_of(struct weir *w, int types)
{
    double before;

    empty();
    before = server_usage(&bench.server).memory_bytes;
    enqueue_types(w, TYPES, types);
    return server_usage(&bench.server).memory_bytes - before;
}

void bench_bytes(void)
{
    struct weir *w = client_open(bench.server.url);
    double of_one;

    measure_bulk(bench_size(JOBS));
    measure_calls(w);
    measure_run(NET_RUN, NULL, bench_size(JOBS));
    measure_run(NET_PACE_1000, "1000/s,burst=1", 3000);
    measure_run(NET_PACE_100, "100/s,burst=10", 500);
    of_one = memory_of(
        w, 1); /* the same number of jobs, of one type and of many: the difference is what the types take */
    report(MEMORY_TYPE, (memory_of(w, TYPES) - of_one) / TYPES, 0, "%d types", TYPES);
    weir_free(w);
}
