/* weir_enqueue, one call after the other: what unique keys and a later time cost, beside the same without in the same rounds. */
#include <stdio.h>

#include "bench/bench.h"

#define CALLS 30000

enum kind { PLAIN, UNIQUE, LATER };

static struct speed time_calls(size_t jobs, int kind)
{
    struct weir *w = client_open(bench.server.url);
    char unique[32] = "k";
    struct weir_job_spec job = {.type = "noop",
                                .args = "{\"business_id\":42}",
                                .unique = kind == UNIQUE ? unique : NULL,
                                .delay_s = kind == LATER ? 3600 : 0};
    struct stopwatch watch;
    struct speed speed;

    empty();
    client_must(w, weir_enqueue(w, &job, NULL));
    watch = stopwatch_start(&bench.server);
    for (size_t i = 0; i < jobs; i++) {
        if (kind == UNIQUE)
            snprintf(unique, sizeof unique, "k%zu", i);
        client_must(w, weir_enqueue(w, &job, NULL));
        if (i % 1000 == 0)
            bench_check();
    }
    speed = stopwatch_stop(&bench.server, &watch, jobs);
    weir_free(w);
    return speed;
}

void bench_unique(void)
{
    static const struct trial calls[] = {{ENQUEUE_CALL, FIGURES, time_calls, PLAIN, ""},
                                         {ENQUEUE_CALL_UNIQUE, ENQUEUE_CALL, time_calls, UNIQUE, ""},
                                         {ENQUEUE_CALL_LATER, ENQUEUE_CALL, time_calls, LATER, ""}};

    measure_trials(calls, 3, bench_size(CALLS));
}
