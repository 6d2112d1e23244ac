/* How many jobs go in a second into Redis, and through one worker process. On a shared machine the speed of a
 * processor changes by half within seconds: each figure is the median of three rounds, in which the ceilings
 * are measured next to it. CPU per job stands beside it, the least of the rounds: with two processors the
 * larger share is the bound. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"

#define ROUNDS 3
#define JOBS 500000 /* in one of them */
/* A job with a limit is granted against an idle executor, so they bound what one turn can take. */
#define EXECUTORS_LIMITED 512

/* ---- Speed */

static double cpu_us(const struct rusage *used)
{
    return (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1e6 +
           (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);
}

int stopwatch_start(struct bench *b, struct server *s, struct stopwatch *watch)
{
    struct rusage used;
    int rc = server_usage(s, &watch->usage, &b->error);

    getrusage(RUSAGE_SELF, &used);
    watch->client_us = cpu_us(&used);
    watch->start_us = clock_mono_us();
    return rc;
}

int stopwatch_stop(struct bench *b, struct server *s, const struct stopwatch *watch, size_t jobs,
                   struct speed *speed)
{
    double seconds = (double)(clock_mono_us() - watch->start_us) / 1e6;
    struct rusage used;
    struct usage usage;
    int rc = server_usage(s, &usage, &b->error);

    getrusage(RUSAGE_SELF, &used);
    if (rc == 0)
        *speed = (struct speed){(double)jobs / seconds, (usage.cpu_us - watch->usage.cpu_us) / (double)jobs,
                                (cpu_us(&used) - watch->client_us) / (double)jobs};
    return rc;
}

static int compare_speeds(const void *a, const void *b)
{
    const struct speed *x = a, *y = b;

    return (x->a_second > y->a_second) - (x->a_second < y->a_second);
}

static void report_speed(struct bench *b, const struct trial *t, struct speed speeds[ROUNDS])
{
    double redis_us = speeds[0].redis_us, client_us = speeds[0].client_us;

    qsort(speeds, ROUNDS, sizeof *speeds, compare_speeds);
    for (int i = 1; i < ROUNDS; i++) {
        redis_us = speeds[i].redis_us < redis_us ? speeds[i].redis_us : redis_us;
        client_us = speeds[i].client_us < client_us ? speeds[i].client_us : client_us;
    }
    report(b, t->figure, speeds[ROUNDS / 2].a_second, t->base == FIGURES ? 0 : b->results[t->base].value,
           "best %.0f; CPU of each: Redis %.2f us, client %.2f us%s", speeds[ROUNDS - 1].a_second, redis_us,
           client_us, t->note);
}

int measure_trials(struct bench *b, const struct trial *trials, int count, size_t jobs)
{
    struct speed speeds[TRIALS_MOST][ROUNDS];
    bool known[TRIALS_MOST];
    int rc = 0;

    for (int t = 0; t < count; t++)
        known[t] = b->results[trials[t].figure].known;
    for (int round = 0; rc == 0 && round < ROUNDS; round++)
        for (int t = 0; rc == 0 && t < count; t++)
            if (!known[t])
                rc = trials[t].run(b, jobs, &speeds[t][round]);
    for (int t = 0; rc == 0 && t < count; t++)
        if (!known[t])
            report_speed(b, &trials[t], speeds[t]);
    return rc;
}

static int measure(struct bench *b, const struct trial *trials, int count)
{
    return measure_trials(b, trials, count, bench_size(b, JOBS));
}

/* ---- In */

/* Jobs whose bodies have the same length; keys 0: without a key. */
static int add_all(struct bench *b, struct weir_bulk *bulk, const char *type, size_t n, size_t body_bytes,
                   size_t keys)
{
    const char *around = keys ? "{\"id\":\"0123456789abcdef\",\"type\":\"\",\"key\":\"0000000\",\"args\":}"
                              : "{\"id\":\"0123456789abcdef\",\"type\":\"\",\"args\":}";
    int pad = (int)(body_bytes - strlen(around) - strlen(type) - strlen("{\"pad\":\"\"}"));
    char args[512], key[24];
    struct weir_job_spec job = {.type = type, .args = args, .key = keys ? key : NULL};
    int rc = 0;

    snprintf(args, sizeof args, "{\"pad\":\"%0*d\"}", pad, 0);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (keys)
            snprintf(key, sizeof key, "%07zu", i % keys);
        rc = weir_bulk_add(bulk, &job);
        if (i % 10000 == 0 && rc == 0)
            rc = bench_check(b);
    }
    return rc;
}

int fill_keys(struct bench *b, const char *url, const char *type, size_t n, size_t body_bytes, size_t keys)
{
    struct weir *w = weir_new(url, NULL);
    struct weir_bulk *bulk = NULL;
    int rc = w ? weir_bulk_open(w, NULL, &bulk) : WEIR_EINTERNAL;

    if (rc == 0)
        rc = add_all(b, bulk, type, n, body_bytes, keys);
    if (rc == 0)
        rc = weir_bulk_close(bulk, NULL);
    else
        weir_bulk_abandon(bulk);
    if (rc != 0 && bench_check(b) == 0)
        error_set(&b->error, rc, "%.400s", w ? weir_message(w) : "out of memory");
    weir_free(w);
    return rc;
}

int fill(struct bench *b, const char *url, const char *type, size_t n, size_t body_bytes)
{
    return fill_keys(b, url, type, n, body_bytes, 0);
}

int prepare(struct bench *b, struct server *s, const char *type, const char *rule, size_t n)
{
    int rc = server_ask(s, NULL, &b->error, "FLUSHALL", NULL);
    struct weir *w;

    if (rc == 0 && rule) {
        w = weir_new(s->url, NULL);
        rc = w ? weir_rate_set(w, type, rule) : WEIR_EINTERNAL;
        if (rc != 0)
            error_set(&b->error, rc, "%.400s", w ? weir_message(w) : "out of memory");
        weir_free(w);
    }
    return rc == 0 ? fill(b, s->url, type, n, BODY_BYTES) : rc;
}

static int run_bulk(struct bench *b, size_t jobs, struct speed *speed)
{
    struct stopwatch watch;
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    if (rc == 0)
        rc = fill(b, b->server.url, "noop", jobs, BODY_BYTES);
    return rc == 0 ? stopwatch_stop(b, &b->server, &watch, jobs, speed) : rc;
}

int bench_bulk(struct bench *b)
{
    static const struct trial trials[] = {{CEILING_PUSH, FIGURES, ceiling_push, ""},
                                          {CEILING_PUSH_MANY, FIGURES, ceiling_push_many, ""},
                                          {BULK_RATE, CEILING_PUSH, run_bulk, ""}};

    return measure(b, trials, 3);
}

/* ---- In, from a file */

static int write_lines(struct bench *b, const char *path, size_t lines)
{
    FILE *f = fopen(path, "w");
    bool failed;

    if (!f)
        return error_set(&b->error, WEIR_ECONFIG, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < lines; i++)
        fprintf(f,
                "{\"type\":\"noop\",\"args\":{\"business_id\":%07zu,\"week\":\"2026-W%02zu\",\"total\":%zu.5,"
                "\"pad\":\"%017d\"}}\n",
                i + 1000000, i % 52 + 1, 100 + i % 900, 0);
    failed = ferror(f);
    return fclose(f) != 0 || failed ? error_set(&b->error, WEIR_ECONFIG, "%s: cannot be written", path) : 0;
}

static void run_command(const struct bench *b, const char *path)
{
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        _exit(1);
    execl(b->command, "weir", "enqueue", "--redis", b->server.url, "--from", path, (char *)NULL);
    _exit(127);
}

/* *client_us: its CPU time. */
static int enqueue_file(struct bench *b, const char *path, double *client_us)
{
    pid_t pid = fork();
    struct rusage used;
    int status;

    if (pid == 0)
        run_command(b, path);
    if (pid < 0)
        return error_set(&b->error, WEIR_EINTERNAL, "cannot fork: %s", strerror(errno));
    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    *client_us = cpu_us(&used);
    if (status != 0)
        return error_set(&b->error, WEIR_EINTERNAL,
                         "%s enqueue --from failed (wait status %#x); build it with make", b->command,
                         status);
    return 0;
}

static int time_file(struct bench *b, const char *path, size_t lines, struct speed *speed)
{
    long long waiting = 0;
    struct stopwatch watch;
    double client_us = 0;
    int rc = stopwatch_start(b, &b->server, &watch);

    if (rc == 0)
        rc = enqueue_file(b, path, &client_us);
    if (rc == 0)
        rc = stopwatch_stop(b, &b->server, &watch, lines, speed);
    if (rc == 0)
        rc = server_ask(&b->server, &waiting, &b->error, "LLEN", PREFIX "queue:default", NULL);
    if (rc == 0 && (size_t)waiting != lines)
        rc = error_set(&b->error, WEIR_EINTERNAL, "%lld of %zu lines arrived", waiting, lines);
    speed->client_us = client_us / (double)lines;
    return rc;
}

static int run_lines(struct bench *b, size_t lines, struct speed *speed)
{
    char path[128];
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    snprintf(path, sizeof path, "%s/jobs.ndjson", b->server.folder);
    if (rc == 0)
        rc = write_lines(b, path, lines);
    if (rc == 0)
        rc = time_file(b, path, lines, speed);
    unlink(path);
    return rc;
}

int bench_lines(struct bench *b)
{
    static const struct trial trials[] = {
        {CEILING_PUSH, FIGURES, ceiling_push, ""},
        {LINES_RATE, CEILING_PUSH, run_lines, "; from its start to its exit"}};

    return measure(b, trials, 2);
}

/* ---- Through */

int wait_for_count(struct bench *b, struct server *s, struct crew *crew, const char *type,
                   const char *counter, size_t n)
{
    char key[160];
    long long count = 0;
    int rc = 0;

    snprintf(key, sizeof key, PREFIX "stats:%s", type);
    while (rc == 0 && (size_t)count < n) {
        rc = bench_rest(b, 0.003);
        if (rc == 0)
            rc = crew_check(crew, &b->error);
        if (rc == 0)
            rc = server_ask(s, &count, &b->error, "HGET", key, counter, NULL);
    }
    return rc;
}

int time_crew(struct bench *b, struct server *s, const struct crew_plan *plan, size_t jobs,
              struct speed *speed)
{
    struct stopwatch watch;
    struct crew crew = {0};
    struct error ignored;
    int rc = stopwatch_start(b, s, &watch);

    if (rc == 0)
        rc = crew_start(&crew, plan, &b->error);
    if (rc == 0)
        rc = wait_for_count(b, s, &crew, "noop", "done", jobs);
    if (rc == 0)
        rc = stopwatch_stop(b, s, &watch, jobs, speed);
    if (rc == 0)
        rc = crew_wait(&crew, &b->error);
    else
        (void)!crew_stop(&crew, &ignored);
    speed->client_us = crew.cpu_us / (double)jobs;
    return rc;
}

int time_worker(struct bench *b, struct server *s, int executors, size_t jobs, struct speed *speed)
{
    struct crew_plan plan = {.url = s->url,
                             .workers = 1,
                             .executors = executors,
                             .drain = true,
                             .types = {{.name = "noop", .handler = noop_handler}}};

    return time_crew(b, s, &plan, jobs, speed);
}

static int run_free(struct bench *b, size_t jobs, struct speed *speed)
{
    int rc = prepare(b, &b->server, "noop", NULL, jobs);

    return rc == 0 ? time_worker(b, &b->server, EXECUTORS, jobs, speed) : rc;
}

static int run_limited(struct bench *b, size_t jobs, struct speed *speed)
{
    int rc = prepare(b, &b->server, "noop", NEVER_REACHED, jobs);

    return rc == 0 ? time_worker(b, &b->server, EXECUTORS_LIMITED, jobs, speed) : rc;
}

static int run_aof(struct bench *b, size_t jobs, struct speed *speed)
{
    struct server s = {0};
    int rc = server_start(&s, true, &b->error);

    if (rc == 0)
        rc = prepare(b, &s, "noop", NULL, jobs);
    if (rc == 0)
        rc = time_worker(b, &s, EXECUTORS, jobs, speed);
    server_stop(&s);
    return rc;
}

int bench_run(struct bench *b)
{
    static const struct trial trials[] = {{CEILING_LUA, FIGURES, ceiling_lua, ""},
                                          {CEILING_TURN, CEILING_LUA, ceiling_turn, ""},
                                          {RUN_RATE, CEILING_TURN, run_free, "; 10 executors"}};

    return measure(b, trials, 3);
}

int bench_limited(struct bench *b)
{
    static const struct trial trials[] = {
        {CEILING_LUA, FIGURES, ceiling_lua, ""},
        {CEILING_TURN_LIMITED, CEILING_LUA, ceiling_turn_limited, ""},
        {LIMITED_RATE, CEILING_TURN_LIMITED, run_limited, "; 512 executors"}};

    return measure(b, trials, 3);
}

int bench_aof(struct bench *b)
{
    static const struct trial trials[] = {{CEILING_LUA, FIGURES, ceiling_lua, ""},
                                          {CEILING_TURN, CEILING_LUA, ceiling_turn, ""},
                                          {AOF_RATE, CEILING_TURN, run_aof, "; 10 executors"}};

    return measure(b, trials, 3);
}
