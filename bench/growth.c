/* Jobs of many types, in turn, through one worker: what a job costs with 10,000 types, in what it costs with 100. */
#include <stdio.h>

#include "bench/bench.h"
#include "bench/crew.h"

#define FEW 100
#define MANY 10000
#define JOBS 200000 /* several seconds: what a worker does once in five is in it as often as it should be */
#define ROUNDS 2    /* the best of each counts */

static const char set_limits[] =
    "for i = 0, ARGV[1] - 1 do redis.call('HSET', KEYS[1], 't' .. i, 'gcra:1000000/1000000/1000000') end "
    "return 0";

static int fill_types(struct bench *b, int types, size_t jobs)
{
    struct weir *w = weir_new(b->server.url, NULL);
    struct weir_bulk *bulk = NULL;
    int rc = w ? weir_bulk_open(w, NULL, &bulk) : WEIR_EINTERNAL;

    for (size_t i = 0; i < jobs && rc == 0; i++) {
        struct weir_job_spec job = {.args = "{}"};
        char type[24];

        snprintf(type, sizeof type, "t%d", (int)(i % (size_t)types));
        job.type = type;
        rc = weir_bulk_add(bulk, &job);
    }
    if (rc == 0)
        rc = weir_bulk_close(bulk, NULL);
    else
        weir_bulk_abandon(bulk);
    if (rc != 0)
        error_set(&b->error, rc, "%.400s", w ? weir_message(w) : "out of memory");
    weir_free(w);
    return rc;
}

/* Redis's CPU for a job, us. */
static int measure(struct bench *b, int types, bool limited, double *redis_us)
{
    struct crew_plan plan = {.url = b->server.url,
                             .workers = 1,
                             .executors = 10,
                             .drain = true,
                             .copies = types,
                             .types = {{.name = "t", .handler = noop_handler}}};
    size_t jobs = bench_size(b, JOBS);
    struct crew crew = {0};
    struct stopwatch watch;
    struct speed speed;
    char count[24];
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    snprintf(count, sizeof count, "%d", types);
    if (rc == 0 && limited)
        rc = server_ask(&b->server, NULL, &b->error, "EVAL", set_limits, "1", PREFIX "limits", count, NULL);
    if (rc == 0)
        rc = fill_types(b, types, jobs);
    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    if (rc == 0)
        rc = crew_start(&crew, &plan, &b->error);
    if (rc == 0)
        rc = crew_wait(&crew, &b->error);
    if (rc == 0)
        rc = stopwatch_stop(b, &b->server, &watch, jobs, &speed);
    if (rc == 0)
        *redis_us = speed.redis_us;
    return rc;
}

static int compare(struct bench *b, bool limited, enum figure few, enum figure many)
{
    double few_us = 1e9, many_us = 1e9;
    int rc = 0;

    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        double us;

        rc = measure(b, FEW, limited, &us);
        few_us = rc == 0 && us < few_us ? us : few_us;
        if (rc == 0)
            rc = measure(b, MANY, limited, &us);
        many_us = rc == 0 && us < many_us ? us : many_us;
    }
    if (rc != 0)
        return rc;
    report(b, few, few_us, 0, "%zu jobs in turn, one worker, 10 executors", bench_size(b, JOBS));
    report(b, many, many_us / few_us, 0, "%.1f us", many_us);
    return 0;
}

int bench_growth(struct bench *b)
{
    int rc = compare(b, false, GROWTH_FREE, GROWTH_FREE_MANY);

    return rc == 0 ? compare(b, true, GROWTH_LIMITED, GROWTH_LIMITED_MANY) : rc;
}
