/* What many idle workers cost. Claims are counted by MONITOR, which costs Redis itself, so CPU is taken without it. */
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"

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
static long long count_started(const char *type)
{
    char key[64];

    snprintf(key, sizeof key, PREFIX "stats:%s", type);
    return server_ask(&bench.server, "HGET", key, "pulled", NULL) +
           server_ask(&bench.server, "HGET", key, "served", NULL);
}

static void count_call(const char *line, struct seen *seen)
{
    bool calls = line && strstr(line, "\"FCALL\"");

    seen->calls += calls;
    seen->claims += calls && strstr(line, CLAIM);
}

/* Counts what it says until then. */
static void read_calls(redisContext *monitor, int64_t until_us, struct seen *seen)
{
    struct pollfd p = {.fd = monitor->fd, .events = POLLIN};
    struct redisReply *reply;
    int64_t left_us;

    while ((left_us = until_us - clock_mono_us()) > 0) {
        if (poll(&p, 1, (int)(left_us / 1000 + 1)) < 1)
            continue;
        if (redisBufferRead(monitor) != REDIS_OK)
            fail("MONITOR: %s", monitor->errstr);
        while (redisGetReplyFromReader(monitor, (void **)&reply) == REDIS_OK && reply) {
            count_call(reply->str, seen);
            freeReplyObject(reply);
        }
    }
}

/* w: sends lone jobs meanwhile; NULL: none. */
static struct seen watch(const char *type, struct weir *w, double seconds)
{
    struct weir_job_spec job = {.type = LONE_TYPE, .args = "{}"};
    int64_t beat_us = clock_mono_us(), end_us = beat_us + (int64_t)(seconds * 1e6);
    redisContext *monitor = redisConnectUnix(bench.server.socket);
    struct redisReply *reply = monitor ? redisCommand(monitor, "MONITOR") : NULL;
    struct seen seen = {.jobs = -count_started(type)};

    if (!reply)
        fail("MONITOR: %s", monitor ? monitor->errstr : "out of memory");
    freeReplyObject(reply);
    while ((beat_us += LONE_EVERY_US) < end_us) {
        read_calls(monitor, beat_us, &seen);
        if (w)
            client_must(w, weir_enqueue(w, &job, NULL));
        bench_check();
    }
    seen.jobs += count_started(type);
    redisFree(monitor);
    return seen;
}

static void report_cpu(double seconds, enum figure figure)
{
    int64_t before_ns = server_cpu(&bench.server), used_ns;
    struct seen seen;

    bench_rest(seconds);
    used_ns = server_cpu(&bench.server) - before_ns;
    seen = watch(LIMITED_TYPE, NULL, seconds);
    report(figure, (double)used_ns / 1e7 / seconds, 0, "%.1f claims and %.1f calls a second",
           (double)seen.claims / seconds, (double)seen.calls / seconds);
}

static void report_claims(const char *type, struct weir *w, double seconds, enum figure figure)
{
    struct seen seen = watch(type, w, seconds);
    double jobs = seen.jobs > 0 ? (double)seen.jobs : 1;

    report(figure, (double)seen.claims / jobs, 0, "%.2f calls a job; %.1f jobs a second",
           (double)seen.calls / jobs, (double)seen.jobs / seconds);
}

static void run_idle(int workers, enum figure cpu, enum figure limited, enum figure lone)
{
    struct crew_plan plan = {.url = bench.server.url,
                             .workers = workers,
                             .executors = EXECUTORS,
                             .types = {{.name = LONE_TYPE, .handler = noop_handler},
                                       {.name = LIMITED_TYPE, .handler = noop_handler}}};
    struct weir *w = client_open(bench.server.url);
    double seconds = bench.quick ? 4 : 10;
    struct crew crew;

    prepare(&bench.server, LIMITED_TYPE, "100/s,burst=10", 0);
    crew_start(&crew, &plan);
    bench_rest(SETTLED_S);
    report_cpu(seconds, cpu);
    report_claims(LONE_TYPE, w, seconds, lone);
    fill(bench.server.url, LIMITED_TYPE, (size_t)(seconds + 2 * SETTLED_S) * 100, BODY_BYTES);
    bench_rest(1);
    report_claims(LIMITED_TYPE, NULL, seconds, limited);
    crew_stop(&crew);
    weir_free(w);
}

void bench_idle(void)
{
    run_idle(16, IDLE_CPU_16, IDLE_CLAIMS_16, IDLE_LONE_16);
    run_idle(64, IDLE_CPU_64, IDLE_CLAIMS_64, IDLE_LONE_64);
}
