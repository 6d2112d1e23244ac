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

static double our_cpu_us(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return cpu_us(&used);
}

struct stopwatch stopwatch_start(struct server *s)
{
    struct stopwatch watch = {.usage = server_usage(s)};

    watch.client_us = our_cpu_us();
    watch.start_us = clock_mono_us();
    return watch;
}

struct speed stopwatch_stop(struct server *s, const struct stopwatch *watch, size_t jobs)
{
    double n = (double)jobs, seconds = (double)(clock_mono_us() - watch->start_us) / 1e6;

    return (struct speed){n / seconds, (server_usage(s).cpu_us - watch->usage.cpu_us) / n,
                          (our_cpu_us() - watch->client_us) / n};
}

static int compare_speeds(const void *a, const void *b)
{
    const struct speed *x = a, *y = b;

    return (x->a_second > y->a_second) - (x->a_second < y->a_second);
}

static void report_speed(const struct trial *t, struct speed speeds[ROUNDS])
{
    double redis_us = speeds[0].redis_us, client_us = speeds[0].client_us;

    qsort(speeds, ROUNDS, sizeof *speeds, compare_speeds);
    for (int i = 1; i < ROUNDS; i++) {
        redis_us = speeds[i].redis_us < redis_us ? speeds[i].redis_us : redis_us;
        client_us = speeds[i].client_us < client_us ? speeds[i].client_us : client_us;
    }
    report(t->figure, speeds[ROUNDS / 2].a_second, t->base == FIGURES ? 0 : bench.results[t->base].value,
           "best %.0f; CPU of each: Redis %.2f us, client %.2f us%s", speeds[ROUNDS - 1].a_second, redis_us,
           client_us, t->note);
}

void measure_trials(const struct trial *trials, int count, size_t jobs)
{
    struct speed speeds[TRIALS_MOST][ROUNDS];
    bool known[TRIALS_MOST];

    for (int t = 0; t < count; t++)
        known[t] = bench.results[trials[t].figure].known;
    for (int round = 0; round < ROUNDS; round++)
        for (int t = 0; t < count; t++)
            if (!known[t])
                speeds[t][round] = trials[t].run(jobs, trials[t].arg);
    for (int t = 0; t < count; t++)
        if (!known[t])
            report_speed(&trials[t], speeds[t]);
}

static void measure(const struct trial *trials, int count)
{
    measure_trials(trials, count, bench_size(JOBS));
}

/* ---- In */

void empty(void)
{
    server_ask(&bench.server, "FLUSHALL", NULL);
}

void fill_keys(const char *url, const char *type, size_t n, size_t body_bytes, size_t keys)
{
    const char *around = keys ? "{\"id\":\"0123456789abcdef\",\"type\":\"\",\"key\":\"0000000\",\"args\":}"
                              : "{\"id\":\"0123456789abcdef\",\"type\":\"\",\"args\":}";
    int pad = (int)(body_bytes - strlen(around) - strlen(type) - strlen("{\"pad\":\"\"}"));
    char args[512], key[24];
    struct weir_job_spec job = {.type = type, .args = args, .key = keys ? key : NULL};
    struct weir *w = client_open(url);
    struct weir_bulk *bulk = NULL;

    snprintf(args, sizeof args, "{\"pad\":\"%0*d\"}", pad, 0);
    client_must(w, weir_bulk_open(w, NULL, &bulk));
    for (size_t i = 0; i < n; i++) {
        if (keys)
            snprintf(key, sizeof key, "%07zu", i % keys);
        client_must(w, weir_bulk_add(bulk, &job));
        if (i % 10000 == 0)
            bench_check();
    }
    client_must(w, weir_bulk_close(bulk, NULL));
    weir_free(w);
}

void fill(const char *url, const char *type, size_t n, size_t body_bytes)
{
    fill_keys(url, type, n, body_bytes, 0);
}

void prepare(struct server *s, const char *type, const char *rule, size_t n)
{
    struct weir *w = client_open(s->url);

    server_ask(s, "FLUSHALL", NULL);
    if (rule)
        client_must(w, weir_rate_set(w, type, rule));
    weir_free(w);
    fill(s->url, type, n, BODY_BYTES);
}

static struct speed run_bulk(size_t jobs, int arg)
{
    struct stopwatch watch;

    (void)arg;
    empty();
    watch = stopwatch_start(&bench.server);
    fill(bench.server.url, "noop", jobs, BODY_BYTES);
    return stopwatch_stop(&bench.server, &watch, jobs);
}

void bench_bulk(void)
{
    static const struct trial trials[] = {{CEILING_PUSH, FIGURES, ceiling_push, 0, ""},
                                          {BULK_RATE, CEILING_PUSH, run_bulk, 0, ""}};

    measure(trials, 2);
}

/* ---- In, from a file */

static void write_lines(const char *path, size_t lines)
{
    FILE *f = fopen(path, "w");
    bool failed;

    if (!f)
        fail("%s: %s", path, strerror(errno));
    for (size_t i = 0; i < lines; i++)
        fprintf(f,
                "{\"type\":\"noop\",\"args\":{\"business_id\":%07zu,\"week\":\"2026-W%02zu\",\"total\":%zu.5,"
                "\"pad\":\"%017d\"}}\n",
                i + 1000000, i % 52 + 1, 100 + i % 900, 0);
    failed = ferror(f);
    if (fclose(f) != 0 || failed)
        fail("%s: cannot be written", path);
}

static void run_command(const char *path)
{
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        _exit(1);
    execl(bench.command, "weir", "enqueue", "--redis", bench.server.url, "--from", path, (char *)NULL);
    _exit(127);
}

/* Returns its CPU time. */
static double enqueue_file(const char *path)
{
    pid_t pid = fork();
    struct rusage used;
    int status;

    if (pid == 0)
        run_command(path);
    if (pid < 0)
        fail("cannot fork: %s", strerror(errno));
    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    if (status != 0)
        fail("%s enqueue --from failed (wait status %#x); build it with make", bench.command, status);
    return cpu_us(&used);
}

static struct speed run_lines(size_t lines, int arg)
{
    struct stopwatch watch;
    struct speed speed;
    double client_us;
    long long waiting;
    char path[128];

    (void)arg;
    empty();
    snprintf(path, sizeof path, "%s/jobs.ndjson", bench.server.folder);
    write_lines(path, lines);
    watch = stopwatch_start(&bench.server);
    client_us = enqueue_file(path);
    speed = stopwatch_stop(&bench.server, &watch, lines);
    speed.client_us = client_us / (double)lines;
    waiting = server_ask(&bench.server, "LLEN", PREFIX "queue:default", NULL);
    if ((size_t)waiting != lines)
        fail("%lld of %zu lines arrived", waiting, lines);
    unlink(path);
    return speed;
}

void bench_lines(void)
{
    static const struct trial trials[] = {
        {CEILING_PUSH, FIGURES, ceiling_push, 0, ""},
        {LINES_RATE, CEILING_PUSH, run_lines, 0, "; from its start to its exit"}};

    measure(trials, 2);
}

/* ---- Through */

void wait_for_count(struct server *s, struct crew *crew, const char *type, const char *counter, size_t n)
{
    char key[160];

    snprintf(key, sizeof key, PREFIX "stats:%s", type);
    while ((size_t)server_ask(s, "HGET", key, counter, NULL) < n) {
        bench_rest(0.003);
        crew_check(crew);
    }
}

struct speed time_crew(struct server *s, const struct crew_plan *plan, size_t jobs)
{
    struct stopwatch watch = stopwatch_start(s);
    struct crew crew;
    struct speed speed;

    crew_start(&crew, plan);
    wait_for_count(s, &crew, "noop", "done", jobs);
    speed = stopwatch_stop(s, &watch, jobs);
    crew_wait(&crew);
    speed.client_us = crew.cpu_us / (double)jobs;
    return speed;
}

struct speed time_worker(struct server *s, int executors, size_t jobs)
{
    struct crew_plan plan = {.url = s->url,
                             .workers = 1,
                             .executors = executors,
                             .drain = true,
                             .types = {{.name = "noop", .handler = noop_handler}}};

    return time_crew(s, &plan, jobs);
}

static struct speed run(size_t jobs, int executors)
{
    prepare(&bench.server, "noop", executors == EXECUTORS_LIMITED ? NEVER_REACHED : NULL, jobs);
    return time_worker(&bench.server, executors, jobs);
}

static struct speed run_aof(size_t jobs, int executors)
{
    struct server s;
    struct speed speed;

    server_start(&s, true);
    prepare(&s, "noop", NULL, jobs);
    speed = time_worker(&s, executors, jobs);
    server_stop(&s);
    return speed;
}

void bench_run(void)
{
    static const struct trial trials[] = {{CEILING_LUA, FIGURES, ceiling_lua, 0, ""},
                                          {RUN_RATE, CEILING_LUA, run, EXECUTORS, "; 10 executors"}};

    measure(trials, 2);
}

void bench_limited(void)
{
    static const struct trial trials[] = {
        {CEILING_LUA, FIGURES, ceiling_lua, 0, ""},
        {LIMITED_RATE, CEILING_LUA, run, EXECUTORS_LIMITED, "; 512 executors"}};

    measure(trials, 2);
}

void bench_aof(void)
{
    static const struct trial trials[] = {{CEILING_LUA, FIGURES, ceiling_lua, 0, ""},
                                          {AOF_RATE, CEILING_LUA, run_aof, EXECUTORS, "; 10 executors"}};

    measure(trials, 2);
}
