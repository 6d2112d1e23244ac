/* From enqueueing to the handler's first line, one worker idle in between. The args are the time of
 * enqueueing, by the monotonic clock that all processes of a machine share. The bare way from LPUSH to a
 * process in BLMOVE is measured first. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"

#define EVERY_US 20000 /* 50 a second */
#define WARM_UP 25     /* connections are opened, the duty is taken */
#define SAMPLES 1024

struct samples {
    atomic_int count;
    int64_t us[SAMPLES];
};

static void add_sample(struct samples *samples, const char *sent)
{
    int64_t us = clock_mono_us() - atoll(sent);
    int i = atomic_fetch_add(&samples->count, 1);

    if (i < SAMPLES)
        samples->us[i] = us;
}

/* In ms, of those after the warm-up. */
static void measure(struct samples *samples, double *p50, double *p99)
{
    size_t n = (size_t)atomic_load(&samples->count) - WARM_UP;
    int64_t *us = samples->us + WARM_UP;

    qsort(us, n, sizeof *us, bench_compare_us);
    *p50 = (double)us[(n * 50 + 99) / 100 - 1] / 1e3;
    *p99 = (double)us[(n * 99 + 99) / 100 - 1] / 1e3;
}

/* Calls send(b, arg, time) at each beat, waits for the last one. */
static int send_beats(struct bench *b, struct samples *samples,
                      int (*send)(struct bench *b, void *arg, const char *time), void *arg)
{
    int beats = WARM_UP + (b->quick ? 100 : 500), rc = 0;
    int64_t beat_us = clock_mono_us();
    char time[24];

    for (int i = 0; rc == 0 && i < beats; i++) {
        clock_sleep_until(beat_us += EVERY_US);
        snprintf(time, sizeof time, "%lld", (long long)clock_mono_us());
        rc = send(b, arg, time);
        if (rc == 0)
            rc = bench_check(b);
    }
    for (int i = 0; rc == 0 && atomic_load(&samples->count) < beats; i++)
        rc = i < 500 ? bench_rest(b, 0.01)
                     : error_set(&b->error, WEIR_EINTERNAL, "%d of %d jobs did not start in 5 s",
                                 beats - atomic_load(&samples->count), beats);
    return rc;
}

/* ---- LPUSH to BLMOVE */

static int receive_all(const struct bench *b, struct samples *samples)
{
    struct redis_address address = {0};
    struct redisReply *reply;
    struct redis *redis;
    struct error e;
    struct args a;

    snprintf(address.socket_path, sizeof address.socket_path, "%s", b->server.socket);
    redis = redis_new(&address);
    args_init(&a);
    for (const char *const *word =
             (const char *const[]){"BLMOVE", "bare", "taken", "RIGHT", "LEFT", "4", NULL};
         *word; word++)
        args_add(&a, *word);
    while (redis && redis_call(redis, &a, &reply, NULL, &e) == 0) {
        if (reply->type == REDIS_REPLY_STRING)
            add_sample(samples, reply->str);
        freeReplyObject(reply);
    }
    return 1;
}

static int send_bare(struct bench *b, void *arg, const char *time)
{
    (void)arg;
    return server_ask(&b->server, NULL, &b->error, "LPUSH", "bare", time, NULL);
}

static int measure_bare(struct bench *b, double *p50, double *p99)
{
    struct samples *samples = shared_new(sizeof *samples);
    pid_t pid = samples ? fork() : -1;
    int rc;

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        _exit(receive_all(b, samples));
    }
    if (pid < 0)
        return error_set(&b->error, WEIR_EINTERNAL, "cannot fork");
    rc = send_beats(b, samples, send_bare, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (rc == 0)
        measure(samples, p50, p99);
    shared_free(samples, sizeof *samples);
    return rc;
}

/* ---- Enqueue to start */

static int sample_handler(struct weir_job *job, void *arg)
{
    add_sample(arg, weir_job_args(job));
    return WEIR_DONE;
}

static int send_enqueue(struct bench *b, void *arg, const char *time)
{
    struct weir_job_spec job = {.type = "beat", .args = time};
    int rc = weir_enqueue(arg, &job, NULL);

    return rc ? error_set(&b->error, rc, "%.400s", weir_message(arg)) : 0;
}

static int send_push(struct bench *b, void *arg, const char *time)
{
    char body[128];

    (void)arg;
    snprintf(body, sizeof body, "{\"id\":\"p%s\",\"type\":\"beat\",\"args\":%s}", time, time);
    return server_ask(&b->server, NULL, &b->error, "RPUSH", PREFIX "queue:default", body, NULL);
}

static int measure_worker(struct bench *b, int (*send)(struct bench *b, void *arg, const char *time),
                          int executors, double *p50, double *p99)
{
    struct samples *samples = shared_new(sizeof *samples);
    struct crew_plan plan = {.url = b->server.url,
                             .workers = 1,
                             .executors = executors,
                             .types = {{.name = "beat", .handler = sample_handler, .arg = samples},
                                       {.name = "mail", .handler = noop_handler}}};
    struct weir *w = weir_new(b->server.url, NULL);
    struct crew crew = {0};
    struct error ignored;
    int rc = samples && w ? crew_start(&crew, &plan, &b->error) : WEIR_EINTERNAL;

    if (rc == 0)
        rc = send_beats(b, samples, send, w);
    if (crew_stop(&crew, rc == 0 ? &b->error : &ignored) != 0 && rc == 0)
        rc = b->error.status;
    if (rc == 0)
        measure(samples, p50, p99);
    weir_free(w);
    shared_free(samples, sizeof *samples);
    return rc;
}

int bench_latency(struct bench *b)
{
    double bare50, bare99, p50, p99;
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    if (rc == 0)
        rc = measure_bare(b, &bare50, &bare99);
    if (rc != 0)
        return rc;
    report(b, CEILING_WAKE_P50, bare50, 0, "%s", "");
    report(b, CEILING_WAKE_P99, bare99, 0, "%s", "");
    rc = measure_worker(b, send_enqueue, EXECUTORS, &p50, &p99);
    if (rc != 0)
        return rc;
    report(b, LATENCY_P50, p50, bare50, "weir_enqueue, 50 jobs/s, 1 worker, 10 executors");
    report(b, LATENCY_P99, p99, bare99, "%s", "");
    rc = measure_worker(b, send_push, EXECUTORS, &p50, &p99);
    if (rc != 0)
        return rc;
    report(b, LATENCY_PUSH_P50, p50, bare50, "%s", "");
    report(b, LATENCY_PUSH_P99, p99, bare99, "%s", "");
    return 0;
}

/* The same while jobs of another type, with a limit, wait for their slots in the same worker. */
int bench_beside(struct bench *b)
{
    static const struct {
        int executors;
        enum figure figure;
    } rows[] = {{2, BESIDE_2}, {4, BESIDE_4}, {16, BESIDE_16}};
    double p50, p99;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof *rows; i++) {
        rc = prepare(b, &b->server, "mail", "200/s,burst=1", 10000);
        if (rc == 0)
            rc = measure_worker(b, send_enqueue, rows[i].executors, &p50, &p99);
        if (rc == 0)
            report(b, rows[i].figure, p50, 0, "p99 %.3f ms", p99);
    }
    return rc;
}
