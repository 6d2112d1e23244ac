/* How many jobs go in a second into Redis, and through one worker process. Where a job's time goes (CPU of
 * Redis, CPU of the worker) stands beside it: with two processors the larger of them is the bound. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"

#define EXECUTORS 10
#define EXECUTORS_LIMITED                                                                                    \
    256 /* a job with a limit is granted against an idle executor, so they bound a turn */
#define NEVER_REACHED "1000000/s"

/* ---- In */

static int add_all(struct bench *b, struct weir_bulk *bulk, const char *type, size_t n, size_t body_bytes)
{
    static const char around[] = "{\"id\":\"0123456789abcdef\",\"type\":\"\",\"args\":}";
    char args[512];
    struct weir_job_spec job = {.type = type, .args = args};
    int pad = (int)(body_bytes - strlen(around) - strlen(type) - strlen("{\"pad\":\"\"}"));
    int rc = 0;

    snprintf(args, sizeof args, "{\"pad\":\"%0*d\"}", pad, 0);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = weir_bulk_add(bulk, &job);
        if (i % 10000 == 0 && rc == 0)
            rc = bench_check(b);
    }
    return rc;
}

int fill(struct bench *b, const char *url, const char *type, size_t n, size_t body_bytes, double *seconds)
{
    struct weir *w = weir_new(url, NULL);
    struct weir_bulk *bulk = NULL;
    int64_t start_us = clock_mono_us();
    int rc = w ? weir_bulk_open(w, NULL, &bulk) : WEIR_EINTERNAL;

    if (rc == 0)
        rc = add_all(b, bulk, type, n, body_bytes);
    if (rc == 0)
        rc = weir_bulk_close(bulk, NULL);
    else
        weir_bulk_abandon(bulk);
    if (seconds)
        *seconds = (double)(clock_mono_us() - start_us) / 1e6;
    if (rc != 0 && bench_check(b) == 0)
        error_set(&b->error, rc, "%.400s", w ? weir_message(w) : "out of memory");
    weir_free(w);
    return rc;
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
    return rc == 0 ? fill(b, s->url, type, n, BODY_BYTES, NULL) : rc;
}

int bench_bulk(struct bench *b)
{
    size_t jobs = bench_size(b, 1000000);
    double raw, seconds;
    int rc = ceiling_push(b, &raw);

    if (rc == 0)
        rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);
    if (rc == 0)
        rc = fill(b, b->server.url, "noop", jobs, BODY_BYTES, &seconds);
    if (rc == 0)
        report(b, BULK_RATE, (double)jobs / seconds, raw, "%zu jobs", jobs);
    return rc;
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

static int enqueue_file(struct bench *b, const char *path, double *seconds)
{
    int64_t start_us = clock_mono_us();
    pid_t pid = fork();
    int status;

    if (pid == 0)
        run_command(b, path);
    if (pid < 0)
        return error_set(&b->error, WEIR_EINTERNAL, "cannot fork: %s", strerror(errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *seconds = (double)(clock_mono_us() - start_us) / 1e6;
    if (status != 0)
        return error_set(&b->error, WEIR_EINTERNAL,
                         "%s enqueue --from failed (wait status %#x); build it with make", b->command,
                         status);
    return 0;
}

int bench_lines(struct bench *b)
{
    size_t lines = bench_size(b, 1000000);
    double raw, seconds = 0;
    long long waiting = 0;
    char path[128];
    int rc = ceiling_push(b, &raw);

    snprintf(path, sizeof path, "%s/jobs.ndjson", b->server.folder);
    if (rc == 0)
        rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);
    if (rc == 0)
        rc = write_lines(b, path, lines);
    if (rc == 0)
        rc = enqueue_file(b, path, &seconds);
    if (rc == 0)
        rc = server_ask(&b->server, &waiting, &b->error, "LLEN", PREFIX "queue:default", NULL);
    if (rc == 0 && (size_t)waiting != lines)
        rc = error_set(&b->error, WEIR_EINTERNAL, "%lld of %zu lines arrived", waiting, lines);
    if (rc == 0)
        report(b, LINES_RATE, (double)lines / seconds, raw, "%zu lines, from start to exit", lines);
    unlink(path);
    return rc;
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

/* From the worker's start until Redis has counted the last one done. */
static int run_jobs(struct bench *b, struct server *s, size_t jobs, int executors, double *seconds,
                    char *note, size_t size)
{
    struct crew_plan plan = {.url = s->url,
                             .workers = 1,
                             .executors = executors,
                             .drain = true,
                             .types = {{"noop", noop_handler, NULL}}};
    struct usage before, after;
    struct crew crew = {0};
    int64_t start_us = clock_mono_us();
    int rc = server_usage(s, &before, &b->error);
    struct error ignored;

    if (rc == 0)
        rc = crew_start(&crew, &plan, &b->error);
    if (rc == 0)
        rc = wait_for_count(b, s, &crew, "noop", "done", jobs);
    *seconds = (double)(clock_mono_us() - start_us) / 1e6;
    if (rc == 0)
        rc = server_usage(s, &after, &b->error);
    if (rc != 0) {
        (void)!crew_stop(&crew, &ignored);
        return rc;
    }
    rc = crew_wait(&crew, &b->error);
    snprintf(note, size, "%zu jobs, %d executors; CPU per job: Redis %.2f us, worker %.2f us", jobs,
             executors, (after.cpu_us - before.cpu_us) / (double)jobs, crew.cpu_us / (double)jobs);
    return rc;
}

static int measure(struct bench *b, enum figure figure, const char *rule, int executors)
{
    size_t jobs = bench_size(b, 1000000);
    double ceiling, seconds = 1;
    char note[160] = "";
    int rc = ceiling_turn(b, rule != NULL, &ceiling);

    if (rc == 0)
        rc = prepare(b, &b->server, "noop", rule, jobs);
    if (rc == 0)
        rc = run_jobs(b, &b->server, jobs, executors, &seconds, note, sizeof note);
    if (rc == 0)
        report(b, figure, (double)jobs / seconds, ceiling, "%s", note);
    return rc;
}

int bench_run(struct bench *b)
{
    return measure(b, RUN_RATE, NULL, EXECUTORS);
}

int bench_limited(struct bench *b)
{
    return measure(b, LIMITED_RATE, NEVER_REACHED, EXECUTORS_LIMITED);
}

int bench_aof(struct bench *b)
{
    size_t jobs = bench_size(b, 1000000);
    double ceiling, seconds = 1;
    char note[160] = "";
    struct server s = {0};
    int rc = ceiling_turn(b, false, &ceiling);

    if (rc == 0)
        rc = server_start(&s, true, &b->error);
    if (rc == 0)
        rc = prepare(b, &s, "noop", NULL, jobs);
    if (rc == 0)
        rc = run_jobs(b, &s, jobs, EXECUTORS, &seconds, note, sizeof note);
    if (rc == 0)
        report(b, AOF_RATE, (double)jobs / seconds, ceiling, "%s", note);
    server_stop(&s);
    return rc;
}
