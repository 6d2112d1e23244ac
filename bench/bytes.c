/* What jobs put on the link, and what a type takes of Redis's memory: unit costs of doc/scale.md. Counted by Redis. */
#include <stdio.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "weir.h"

#define JOBS 100000
#define CALLS 2000
#define TYPES 10000

struct bytes {
    double in, out; /* to Redis and from it */
};

static int count_bytes(struct bench *b, struct bytes *bytes)
{
    struct usage usage;
    int rc = server_usage(&b->server, &usage, &b->error);

    *bytes = (struct bytes){usage.bytes_in, usage.bytes_out};
    return rc;
}

/* Since before, for each of n jobs. */
static int report_bytes(struct bench *b, enum figure figure, const struct bytes *before, size_t n)
{
    struct bytes now;
    int rc = count_bytes(b, &now);
    double in = (now.in - before->in) / (double)n, out = (now.out - before->out) / (double)n;

    if (rc == 0)
        report(b, figure, in + out, 0, "%.0f to Redis, %.0f from it", in, out);
    return rc;
}

static int measure_bulk(struct bench *b, size_t n)
{
    struct bytes before = {0};
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    if (rc == 0)
        rc = count_bytes(b, &before);
    if (rc == 0)
        rc = fill(b, b->server.url, "noop", n, BODY_BYTES);
    return rc == 0 ? report_bytes(b, NET_BULK, &before, n) : rc;
}

static int measure_run(struct bench *b, enum figure figure, const char *rule, size_t n)
{
    struct bytes before = {0};
    struct speed speed;
    int rc = prepare(b, &b->server, "noop", rule, n);

    if (rc == 0)
        rc = count_bytes(b, &before);
    if (rc == 0)
        rc = time_worker(b, &b->server, EXECUTORS, n, &speed);
    return rc == 0 ? report_bytes(b, figure, &before, n) : rc;
}

static int enqueue_types(struct bench *b, struct weir *w, int calls, int types)
{
    char type[24];
    int rc = 0;

    for (int i = 0; rc == 0 && i < calls; i++) {
        snprintf(type, sizeof type, "type.%06d", i % types);
        rc = weir_enqueue(w, &(struct weir_job_spec){.type = type, .args = "{\"to\":\"somebody\"}"}, NULL);
    }
    if (rc != 0)
        error_set(&b->error, rc, "%.400s", weir_message(w));
    return rc;
}

static int measure_calls(struct bench *b, struct weir *w)
{
    struct bytes before = {0};
    int rc = enqueue_types(b, w, 1, 1);

    if (rc == 0)
        rc = count_bytes(b, &before);
    if (rc == 0)
        rc = enqueue_types(b, w, CALLS, 1);
    return rc == 0 ? report_bytes(b, NET_CALL, &before, CALLS) : rc;
}

/* The same number of jobs, of one type and of many: the difference is what the types take. */
static int measure_types(struct bench *b, struct weir *w)
{
    struct usage before, after[2];
    int rc = 0;

    for (int i = 0; rc == 0 && i < 2; i++) {
        rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);
        if (rc == 0)
            rc = server_usage(&b->server, &before, &b->error);
        if (rc == 0)
            rc = enqueue_types(b, w, TYPES, i == 0 ? 1 : TYPES);
        if (rc == 0)
            rc = server_usage(&b->server, &after[i], &b->error);
        if (rc == 0)
            after[i].memory_bytes -= before.memory_bytes;
    }
    if (rc == 0)
        report(b, MEMORY_TYPE, (after[1].memory_bytes - after[0].memory_bytes) / TYPES, 0, "%d types", TYPES);
    return rc;
}

int bench_bytes(struct bench *b)
{
    struct weir *w = weir_new(b->server.url, NULL);
    int rc = w ? measure_bulk(b, bench_size(b, JOBS)) : WEIR_EINTERNAL;

    if (rc == 0)
        rc = measure_calls(b, w);
    if (rc == 0)
        rc = measure_run(b, NET_RUN, NULL, bench_size(b, JOBS));
    if (rc == 0)
        rc = measure_run(b, NET_PACE_1000, "1000/s,burst=1", 3000);
    if (rc == 0)
        rc = measure_run(b, NET_PACE_100, "100/s,burst=10", 500);
    if (rc == 0)
        rc = measure_types(b, w);
    weir_free(w);
    return rc;
}
