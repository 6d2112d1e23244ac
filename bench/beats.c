#include "bench/beats.h"

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

/* How long beats took that were received; in memory that processes share. */
struct samples {
    atomic_int count;
    int64_t us[SAMPLES];
};

/* Notes that what was sent at that time has been received. */
static void receive_beat(struct samples *samples, const char *sent)
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

static void wait_for_all(const struct samples *samples, int beats)
{
    for (int i = 0; atomic_load(&samples->count) < beats; i++) {
        if (i == 500)
            fail("%d of %d jobs did not start in 5 s", beats - atomic_load(&samples->count), beats);
        bench_rest(0.01);
    }
}

static struct samples *new_samples(const struct beats *beats)
{
    struct samples *samples = shared_new(sizeof *samples);

    if (!samples || WARM_UP + beats->count > SAMPLES)
        fail("out of memory, or more than %d beats", SAMPLES - WARM_UP);
    return samples;
}

/* Calls send(w, time) at each beat, waits for the last one. */
static void send_beats(struct beats *beats, struct samples *samples,
                       void (*send)(struct weir *w, const char *time), struct weir *w)
{
    int all = WARM_UP + beats->count;
    int64_t beat_us = clock_mono_us(), before_ns = 0;
    char time[24];

    for (int i = 0; i < all; i++) {
        clock_sleep_until(beat_us += beats->every_us);
        if (i == WARM_UP)
            before_ns = server_cpu(&bench.server);
        snprintf(time, sizeof time, "%lld", (long long)clock_mono_us());
        send(w, time);
        bench_check();
    }
    wait_for_all(samples, all);
    beats->redis_us = (double)(server_cpu(&bench.server) - before_ns) / 1e3 / beats->count;
    measure(samples, beats);
}

/* ---- To a process of its own */

static void receive_bare(struct samples *samples)
{
    for (;;) {
        struct redisReply *reply =
            server_reply(&bench.server, "BLMOVE", "bare", "taken", "RIGHT", "LEFT", "4", NULL);

        if (reply->type == REDIS_REPLY_STRING)
            receive_beat(samples, reply->str);
        freeReplyObject(reply);
    }
}

static void send_bare(struct weir *w, const char *time)
{
    (void)w;
    server_ask(&bench.server, "LPUSH", "bare", time, NULL);
}

void beats_bare(struct beats *beats)
{
    struct samples *samples = new_samples(beats);
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        receive_bare(samples);
        _exit(1);
    }
    if (pid < 0)
        fail("cannot fork");
    send_beats(beats, samples, send_bare, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- To a worker */

static int handle(struct weir_job *job, void *arg)
{
    receive_beat(arg, weir_job_args(job));
    return WEIR_DONE;
}

static void send_enqueue(struct weir *w, const char *time)
{
    client_must(w, weir_enqueue(w, &(struct weir_job_spec){.type = "beat", .args = time}, NULL));
}

void beats_of_worker(struct beats *beats, int executors)
{
    struct samples *samples = new_samples(beats);
    struct crew_plan plan = {.url = bench.server.url,
                             .workers = 1,
                             .executors = executors,
                             .types = {{.name = "beat", .handler = handle, .arg = samples}}};
    struct weir *w = client_open(bench.server.url);
    struct crew crew;

    crew_start(&crew, &plan);
    send_beats(beats, samples, send_enqueue, w);
    crew_stop(&crew);
    weir_free(w);
}
