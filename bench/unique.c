/* weir_enqueue, one call after the other: what unique keys and a later time cost, beside the same without in the same rounds. */
#include <stdio.h>

#include "bench/bench.h"
#include "weir.h"

#define CALLS 30000

enum kind { PLAIN, UNIQUE, LATER };

static int time_calls(struct bench *b, enum kind kind, size_t jobs, struct speed *speed)
{
    struct weir *w = weir_new(b->server.url, NULL);
    char unique[32] = "k";
    struct weir_job_spec job = {.type = "noop",
                                .args = "{\"business_id\":42}",
                                .unique = kind == UNIQUE ? unique : NULL,
                                .delay_s = kind == LATER ? 3600 : 0};
    struct stopwatch watch;
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    if (rc == 0)
        rc = weir_enqueue(w, &job, NULL);
    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    for (size_t i = 0; rc == 0 && i < jobs; i++) {
        if (kind == UNIQUE)
            snprintf(unique, sizeof unique, "k%zu", i);
        rc = weir_enqueue(w, &job, NULL);
        if (i % 1000 == 0 && rc == 0)
            rc = bench_check(b);
    }
    if (rc == 0)
        rc = stopwatch_stop(b, &b->server, &watch, jobs, speed);
    else if (bench_check(b) == 0)
        error_set(&b->error, rc, "%.400s", weir_message(w));
    weir_free(w);
    return rc;
}

static int call_plain(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_calls(b, PLAIN, jobs, speed);
}

static int call_unique(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_calls(b, UNIQUE, jobs, speed);
}

static int call_later(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_calls(b, LATER, jobs, speed);
}

int bench_unique(struct bench *b)
{
    static const struct trial calls[] = {{ENQUEUE_CALL, FIGURES, call_plain, ""},
                                         {ENQUEUE_CALL_UNIQUE, ENQUEUE_CALL, call_unique, ""},
                                         {ENQUEUE_CALL_LATER, ENQUEUE_CALL, call_later, ""}};

    return measure_trials(b, calls, 3, bench_size(b, CALLS));
}
