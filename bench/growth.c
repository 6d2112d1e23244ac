/* Jobs of many types, in turn, through one worker: what a job costs with 10,000 types, in what it costs with 100. */
#include <math.h>
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

static void fill_types(int types, size_t jobs)
{
    struct weir *w = client_open(bench.server.url);
    struct weir_bulk *bulk = NULL;
    char type[24];

    client_must(w, weir_bulk_open(w, NULL, &bulk));
    for (size_t i = 0; i < jobs; i++) {
        snprintf(type, sizeof type, "t%d", (int)(i % (size_t)types));
        client_must(w, weir_bulk_add(bulk, &(struct weir_job_spec){.type = type, .args = "{}"}));
    }
    client_must(w, weir_bulk_close(bulk, NULL));
    weir_free(w);
}

/* Redis's CPU for a job, us. */
static double measure(int types, bool limited)
{
    struct crew_plan plan = {.url = bench.server.url,
                             .workers = 1,
                             .executors = 10,
                             .drain = true,
                             .copies = types,
                             .types = {{.name = "t", .handler = noop_handler}}};
    size_t jobs = bench_size(JOBS);
    struct stopwatch watch;
    struct crew crew;
    char count[24];

    empty();
    snprintf(count, sizeof count, "%d", types);
    if (limited)
        server_ask(&bench.server, "EVAL", set_limits, "1", PREFIX "limits", count, NULL);
    fill_types(types, jobs);
    watch = stopwatch_start(&bench.server);
    crew_start(&crew, &plan);
    crew_wait(&crew);
    return stopwatch_stop(&bench.server, &watch, jobs).redis_us;
}

static void compare(bool limited, enum figure few, enum figure many)
{
    double few_us = 1e9, many_us = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        few_us = fmin(few_us, measure(FEW, limited));
        many_us = fmin(many_us, measure(MANY, limited));
    }
    report(few, few_us, 0, "%zu jobs in turn, one worker, 10 executors", bench_size(JOBS));
    report(many, many_us / few_us, 0, "%.1f us", many_us);
}

void bench_growth(void)
{
    compare(false, GROWTH_FREE, GROWTH_FREE_MANY);
    compare(true, GROWTH_LIMITED, GROWTH_LIMITED_MANY);
}
