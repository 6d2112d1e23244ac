#include "bench/beats.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/crew.h"
#include "core/clock.h"

#define WARM_UP 25
#define SAMPLES 8192

struct samples {
    atomic_int count;
    int64_t us[SAMPLES];
};

void beats_receive(struct samples *samples, const char *sent)
{
    int64_t us = clock_mono_us() - atoll(sent);
    int i = atomic_fetch_add(&samples->count, 1);

    if (i < SAMPLES)
        samples->us[i] = us;
}

static void measure(struct samples *samples, struct beats *beats)
{
    size_t n = (size_t)beats->count;
    int64_t *us = samples->us + WARM_UP;

    qsort(us, n, sizeof *us, bench_compare_us);
    beats->p50 = (double)us[(n * 50 + 99) / 100 - 1] / 1e3;
    beats->p99 = (double)us[(n * 99 + 99) / 100 - 1] / 1e3;
}

static int wait_for_all(struct bench *b, const struct samples *samples, int beats)
{
    int rc = 0;

    for (int i = 0; rc == 0 && atomic_load(&samples->count) < beats; i++)
        rc = i < 500 ? bench_rest(b, 0.01)
                     : error_set(&b->error, WEIR_EINTERNAL, "%d of %d jobs did not start in 5 s",
                                 beats - atomic_load(&samples->count), beats);
    return rc;
}

/* Calls send(b, arg, time) at each beat, waits for the last one. */
static int send_beats(struct bench *b, struct beats *beats, struct samples *samples,
                      int (*send)(struct bench *b, void *arg, const char *time), void *arg)
{
    int all = WARM_UP + beats->count, rc = 0;
    int64_t beat_us = clock_mono_us(), before_ns = 0, after_ns = 0;
    char time[24];

    if (all > SAMPLES)
        return error_set(&b->error, WEIR_EINTERNAL, "at most %d beats", SAMPLES);
    for (int i = 0; rc == 0 && i < all; i++) {
        clock_sleep_until(beat_us += beats->every_us);
        if (i == WARM_UP)
            rc = server_cpu(&b->server, &before_ns, &b->error);
        snprintf(time, sizeof time, "%lld", (long long)clock_mono_us());
        if (rc == 0)
            rc = send(b, arg, time);
        if (rc == 0)
            rc = bench_check(b);
    }
    if (rc == 0)
        rc = wait_for_all(b, samples, all);
    if (rc == 0)
        rc = server_cpu(&b->server, &after_ns, &b->error);
    if (rc != 0)
        return rc;
    beats->redis_us = (double)(after_ns - before_ns) / 1e3 / beats->count;
    measure(samples, beats);
    return 0;
}

/* ---- To a process of its own */

struct redis *beats_connect(const struct bench *b)
{
    struct redis_address address = {0};

    snprintf(address.socket_path, sizeof address.socket_path, "%s", b->server.socket);
    return redis_new(&address);
}

int beats_between(struct bench *b, struct beats *beats,
                  int (*send)(struct bench *b, void *arg, const char *time),
                  void (*receive)(const struct bench *b, struct samples *samples))
{
    struct samples *samples = shared_new(sizeof *samples);
    pid_t pid = samples ? fork() : -1;
    int rc;

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        receive(b, samples);
        _exit(1);
    }
    if (pid < 0)
        return error_set(&b->error, WEIR_EINTERNAL, "cannot fork");
    rc = send_beats(b, beats, samples, send, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    shared_free(samples, sizeof *samples);
    return rc;
}

static void receive_bare(const struct bench *b, struct samples *samples)
{
    struct redis *redis = beats_connect(b);
    struct redisReply *reply;
    struct error e;
    struct args a;

    args_init(&a);
    for (const char *const *word =
             (const char *const[]){"BLMOVE", "bare", "taken", "RIGHT", "LEFT", "4", NULL};
         *word; word++)
        args_add(&a, *word);
    while (redis && redis_call(redis, &a, &reply, NULL, &e) == 0) {
        if (reply->type == REDIS_REPLY_STRING)
            beats_receive(samples, reply->str);
        freeReplyObject(reply);
    }
}

static int send_bare(struct bench *b, void *arg, const char *time)
{
    (void)arg;
    return server_ask(&b->server, NULL, &b->error, "LPUSH", "bare", time, NULL);
}

int beats_bare(struct bench *b, struct beats *beats)
{
    return beats_between(b, beats, send_bare, receive_bare);
}

/* ---- To a worker */

static int handle(struct weir_job *job, void *arg)
{
    beats_receive(arg, weir_job_args(job));
    return WEIR_DONE;
}

static int send_enqueue(struct bench *b, void *arg, const char *time)
{
    struct weir_job_spec job = {.type = "beat", .args = time};
    int rc = weir_enqueue(arg, &job, NULL);

    return rc ? error_set(&b->error, rc, "%.400s", weir_message(arg)) : 0;
}

int beats_of_worker(struct bench *b, struct beats *beats, int executors)
{
    struct samples *samples = shared_new(sizeof *samples);
    struct crew_plan plan = {.url = b->server.url,
                             .workers = 1,
                             .executors = executors,
                             .types = {{.name = "beat", .handler = handle, .arg = samples}}};
    struct weir *w = weir_new(b->server.url, NULL);
    struct crew crew = {0};
    struct error ignored;
    int rc = samples && w ? crew_start(&crew, &plan, &b->error) : WEIR_EINTERNAL;

    if (rc == 0)
        rc = send_beats(b, beats, samples, send_enqueue, w);
    if (crew_stop(&crew, rc == 0 ? &b->error : &ignored) != 0 && rc == 0)
        rc = b->error.status;
    weir_free(w);
    shared_free(samples, sizeof *samples);
    return rc;
}
