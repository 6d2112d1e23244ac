/* What batches, unique keys and schedules cost, each beside the same without it in the same rounds. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/client/client.h"
#include "queue/enqueue/enqueue.h"

#define JOBS 500000      /* of a bulk */
#define CALLS 30000      /* one after the other */
#define PIPELINED 100000 /* in windows of */
#define WINDOW 100

/* ---- Batches */

static int begin(struct bench *b)
{
    return server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);
}

static int time_fill(struct bench *b, size_t jobs, const char *batch, struct speed *speed)
{
    struct stopwatch watch;
    int rc = begin(b);

    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    if (rc == 0)
        rc = batch ? fill_batch(b, b->server.url, batch, "noop", jobs, BODY_BYTES)
                   : fill(b, b->server.url, "noop", jobs, BODY_BYTES);
    return rc == 0 ? stopwatch_stop(b, &b->server, &watch, jobs, speed) : rc;
}

static int bulk_plain(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_fill(b, jobs, NULL, speed);
}

static int bulk_batch(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_fill(b, jobs, "batch", speed);
}

/* Redis is what bounds the throughput, and its CPU time says how much of it a batch takes even on a machine
 * that others use too. The least of the rounds. */
static double plain_us, batch_us;

static int time_run(struct bench *b, size_t jobs, struct speed *speed, double *least_us)
{
    int rc = time_worker(b, &b->server, EXECUTORS, jobs, speed);

    if (rc == 0 && (*least_us == 0 || speed->redis_us < *least_us))
        *least_us = speed->redis_us;
    return rc;
}

static int run_plain(struct bench *b, size_t jobs, struct speed *speed)
{
    int rc = prepare(b, &b->server, "noop", NULL, jobs);

    return rc == 0 ? time_run(b, jobs, speed, &plain_us) : rc;
}

static int run_batch(struct bench *b, size_t jobs, struct speed *speed)
{
    long long done = 0;
    int rc = begin(b);

    if (rc == 0)
        rc = fill_batch(b, b->server.url, "batch", "noop", jobs, BODY_BYTES);
    if (rc == 0)
        rc = time_run(b, jobs, speed, &batch_us);
    if (rc == 0)
        rc = server_ask(&b->server, &done, &b->error, "HGET", PREFIX "batch:batch", "done", NULL);
    if (rc == 0 && (size_t)done != jobs)
        rc = error_set(&b->error, WEIR_EINTERNAL, "the batch counted %lld of %zu jobs", done, jobs);
    return rc;
}

int bench_batch(struct bench *b)
{
    static const struct trial trials[] = {{BATCH_BULK_PLAIN, FIGURES, bulk_plain, ""},
                                          {BATCH_BULK, BATCH_BULK_PLAIN, bulk_batch, ""},
                                          {BATCH_RUN_PLAIN, FIGURES, run_plain, "; 10 executors"},
                                          {BATCH_RUN, BATCH_RUN_PLAIN, run_batch, "; 10 executors"}};
    int rc = measure_trials(b, trials, 4, bench_size(b, JOBS));

    if (rc == 0)
        report(b, BATCH_RUN_RATIO, batch_us / plain_us, 0, "%s", "");
    return rc;
}

/* ---- One by one */

enum kind { PLAIN, UNIQUE, LATER, HELD, OF_BATCH };

static int time_calls(struct bench *b, enum kind kind, size_t jobs, struct speed *speed)
{
    struct weir *w = weir_new(b->server.url, NULL);
    char unique[32] = "k";
    struct weir_job_spec job = {.type = "noop",
                                .args = "{\"business_id\":42}",
                                .unique = kind == UNIQUE || kind == HELD ? unique : NULL,
                                .delay_s = kind == LATER ? 3600 : 0};
    struct stopwatch watch;
    int rc = begin(b);

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

/* One call into a; i: which one. */
static void add_call(struct args *a, enum kind kind, size_t i)
{
    char id[32], body[200], unique[32];
    struct enqueue job = {.queue = {"default", 7},
                          .type = {"noop", 4},
                          .keep_ms = 60000,
                          .tag = "tag",
                          .delay_us = kind == LATER ? INT64_C(3600000000) : -1,
                          .at_us = -1};

    job.id = (struct span){id, (size_t)sprintf(id, "0123456789%06zu", i)};
    job.body = (struct span){
        body, (size_t)sprintf(body, "{\"id\":\"%s\",\"type\":\"noop\",\"args\":{\"business_id\":42}}", id)};
    if (kind == UNIQUE)
        job.unique = (struct span){unique, (size_t)sprintf(unique, "k%zu", i)};
    if (kind == OF_BATCH)
        job.batch = (struct span){"batch", 5};
    enqueue_request(a, PREFIX, -1, &job);
}

/* A window of calls, and their answers. */
static int call_window(struct redis *r, struct args *calls, struct error *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < WINDOW; i++)
        rc = redis_append(r, &calls[i], e);
    for (size_t i = 0; rc == 0 && i < WINDOW; i++) {
        struct redisReply *reply = NULL;

        rc = redis_result(r, &reply, e);
        freeReplyObject(reply);
    }
    return rc;
}

static int time_pipelined(struct bench *b, enum kind kind, size_t jobs, struct speed *speed)
{
    struct weir *w = weir_new(b->server.url, NULL);
    struct args calls[WINDOW];
    struct stopwatch watch;
    int rc = begin(b);

    for (size_t i = 0; i < WINDOW; i++)
        args_init(&calls[i]);
    if (rc == 0)
        rc = weir_enqueue(w, &(struct weir_job_spec){.type = "noop"},
                          NULL); /* connects, loads the functions */
    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    for (size_t i = 0; rc == 0 && i < jobs; i += WINDOW) {
        for (size_t k = 0; k < WINDOW; k++)
            add_call(&calls[k], kind, i + k);
        rc = call_window(w->redis, calls, &b->error);
    }
    if (rc == 0)
        rc = stopwatch_stop(b, &b->server, &watch, jobs, speed);
    for (size_t i = 0; i < WINDOW; i++)
        args_free(&calls[i]);
    weir_free(w);
    return rc;
}

#define TRIAL(name_, measure_, kind_)                                                                        \
    static int name_(struct bench *b, size_t jobs, struct speed *speed)                                      \
    {                                                                                                        \
        return measure_(b, kind_, jobs, speed);                                                              \
    }
TRIAL(call_plain, time_calls, PLAIN)
TRIAL(call_unique, time_calls, UNIQUE)
TRIAL(call_later, time_calls, LATER)
TRIAL(call_held, time_calls, HELD)
TRIAL(pipelined_plain, time_pipelined, PLAIN)
TRIAL(pipelined_unique, time_pipelined, UNIQUE)
TRIAL(pipelined_later, time_pipelined, LATER)
TRIAL(pipelined_batch, time_pipelined, OF_BATCH)

int bench_unique(struct bench *b)
{
    static const struct trial calls[] = {{ENQUEUE_CALL, FIGURES, call_plain, ""},
                                         {ENQUEUE_CALL_UNIQUE, ENQUEUE_CALL, call_unique, ""},
                                         {ENQUEUE_CALL_LATER, ENQUEUE_CALL, call_later, ""},
                                         {ENQUEUE_CALL_HELD, ENQUEUE_CALL, call_held, ""}};
    static const struct trial pipelined[] = {
        {ENQUEUE_PIPELINED, FIGURES, pipelined_plain, ""},
        {ENQUEUE_PIPELINED_UNIQUE, ENQUEUE_PIPELINED, pipelined_unique, ""},
        {ENQUEUE_PIPELINED_LATER, ENQUEUE_PIPELINED, pipelined_later, ""},
        {ENQUEUE_PIPELINED_BATCH, ENQUEUE_PIPELINED, pipelined_batch, ""}};
    int rc = measure_trials(b, calls, 4, bench_size(b, CALLS));

    return rc == 0 ? measure_trials(b, pipelined, 4, bench_size(b, PIPELINED)) : rc;
}
