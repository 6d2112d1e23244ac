/* What many idle workers cost. Claims are counted by MONITOR, which costs Redis itself, so CPU is taken without it. */
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"
#include "weir.h"

#define SETTLED_S                                                                                            \
    10.0 /* until workers that began together have sent a heartbeat, which tells them how many they are */
#define LONE_EVERY_US 10000
#define LONE_TYPE "lone"
#define LIMITED_TYPE "mail"
#define CLAIM "_claim\""

/* In some seconds; calls: of functions. */
struct seen {
    long long calls, claims, jobs;
};

/* Jobs that have started since the last FLUSHALL. */
static int count_started(struct bench *b, const char *type, long long *started)
{
    char key[64];
    long long served = 0;
    int rc;

    snprintf(key, sizeof key, PREFIX "stats:%s", type);
    rc = server_ask(&b->server, started, &b->error, "HGET", key, "pulled", NULL);
    if (rc == 0)
        rc = server_ask(&b->server, &served, &b->error, "HGET", key, "served", NULL);
    *started += served;
    return rc;
}

static int send_lone_job(struct bench *b, struct weir *w)
{
    struct weir_job_spec job = {.type = LONE_TYPE, .args = "{}"};
    int rc = weir_enqueue(w, &job, NULL);

    return rc ? error_set(&b->error, rc, "%.400s", weir_message(w)) : bench_check(b);
}

static void count_call(const char *line, struct seen *seen)
{
    bool calls = line && strstr(line, "\"FCALL\"");

    seen->calls += calls;
    seen->claims += calls && strstr(line, CLAIM);
}

static int read_error(struct bench *b, const redisContext *monitor)
{
    return error_set(&b->error, WEIR_EUNREACHABLE, "MONITOR: %s", monitor->errstr);
}

/* Counts what it says until then. */
static int read_calls(struct bench *b, redisContext *monitor, int64_t until_us, struct seen *seen)
{
    struct pollfd p = {.fd = monitor->fd, .events = POLLIN};
    struct redisReply *reply;
    int64_t left_us;

    while ((left_us = until_us - clock_mono_us()) > 0) {
        if (poll(&p, 1, (int)(left_us / 1000 + 1)) < 1)
            continue;
        if (redisBufferRead(monitor) != REDIS_OK)
            return read_error(b, monitor);
        while (redisGetReplyFromReader(monitor, (void **)&reply) == REDIS_OK && reply) {
            count_call(reply->str, seen);
            freeReplyObject(reply);
        }
    }
    return 0;
}

/* w: sends lone jobs meanwhile; NULL: none. */
static int count_calls(struct bench *b, redisContext *monitor, struct weir *w, double seconds,
                       struct seen *seen)
{
    int64_t beat_us = clock_mono_us(), end_us = beat_us + (int64_t)(seconds * 1e6);
    struct redisReply *reply = redisCommand(monitor, "MONITOR");
    int rc = reply ? 0 : read_error(b, monitor);

    freeReplyObject(reply);
    while (rc == 0 && (beat_us += LONE_EVERY_US) < end_us) {
        rc = read_calls(b, monitor, beat_us, seen);
        if (rc == 0)
            rc = w ? send_lone_job(b, w) : bench_check(b);
    }
    return rc;
}

static int watch(struct bench *b, const char *type, struct weir *w, double seconds, struct seen *seen)
{
    redisContext *monitor = redisConnectUnix(b->server.socket);
    long long before = 0;
    int rc = monitor ? count_started(b, type, &before) : WEIR_EINTERNAL;

    *seen = (struct seen){0};
    if (rc == 0)
        rc = count_calls(b, monitor, w, seconds, seen);
    if (rc == 0)
        rc = count_started(b, type, &seen->jobs);
    seen->jobs -= before;
    if (monitor)
        redisFree(monitor);
    return rc;
}

static int report_cpu(struct bench *b, double seconds, enum figure figure)
{
    int64_t before_ns = 0, after_ns = 0;
    struct seen seen;
    int rc = server_cpu(&b->server, &before_ns, &b->error);

    if (rc == 0)
        rc = bench_rest(b, seconds);
    if (rc == 0)
        rc = server_cpu(&b->server, &after_ns, &b->error);
    if (rc == 0)
        rc = watch(b, LIMITED_TYPE, NULL, seconds, &seen);
    if (rc == 0)
        report(b, figure, (double)(after_ns - before_ns) / 1e7 / seconds, 0,
               "%.1f claims and %.1f calls a second", (double)seen.claims / seconds,
               (double)seen.calls / seconds);
    return rc;
}

static int report_claims(struct bench *b, const char *type, struct weir *w, double seconds,
                         enum figure figure)
{
    struct seen seen;
    int rc = watch(b, type, w, seconds, &seen);
    double jobs = seen.jobs > 0 ? (double)seen.jobs : 1;

    if (rc == 0)
        report(b, figure, (double)seen.claims / jobs, 0, "%.2f calls a job; %.1f jobs a second",
               (double)seen.calls / jobs, (double)seen.jobs / seconds);
    return rc;
}

struct idle_row {
    int workers;
    enum figure cpu, limited, lone;
};

static int watch_idle(struct bench *b, const struct idle_row *row, struct weir *w)
{
    double seconds = b->quick ? 4 : 10;
    int rc = bench_rest(b, SETTLED_S);

    if (rc == 0)
        rc = report_cpu(b, seconds, row->cpu);
    if (rc == 0)
        rc = report_claims(b, LONE_TYPE, w, seconds, row->lone);
    if (rc == 0)
        rc = fill(b, b->server.url, LIMITED_TYPE, (size_t)(seconds + 2 * SETTLED_S) * 100, BODY_BYTES);
    if (rc == 0)
        rc = bench_rest(b, 1);
    return rc == 0 ? report_claims(b, LIMITED_TYPE, NULL, seconds, row->limited) : rc;
}

static int run_idle(struct bench *b, const struct idle_row *row)
{
    struct crew_plan plan = {.url = b->server.url,
                             .workers = row->workers,
                             .executors = EXECUTORS,
                             .types = {{.name = LONE_TYPE, .handler = noop_handler},
                                       {.name = LIMITED_TYPE, .handler = noop_handler}}};
    struct weir *w = weir_new(b->server.url, NULL);
    struct crew crew = {0};
    struct error ignored;
    int rc = w ? prepare(b, &b->server, LIMITED_TYPE, "100/s,burst=10", 0) : WEIR_EINTERNAL;

    if (rc == 0)
        rc = crew_start(&crew, &plan, &b->error);
    if (rc == 0)
        rc = watch_idle(b, row, w);
    if (crew_stop(&crew, rc == 0 ? &b->error : &ignored) != 0 && rc == 0)
        rc = b->error.status;
    weir_free(w);
    return rc;
}

int bench_idle(struct bench *b)
{
    static const struct idle_row rows[] = {{16, IDLE_CPU_16, IDLE_CLAIMS_16, IDLE_LONE_16},
                                           {64, IDLE_CPU_64, IDLE_CLAIMS_64, IDLE_LONE_64}};
    int rc = run_idle(b, &rows[0]);

    return rc == 0 ? run_idle(b, &rows[1]) : rc;
}
