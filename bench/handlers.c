/* Handlers of other kinds than functions: a Python program behind --pipe, and the same program by itself,
 * which is the most that can be had of it; --exec beside a bare loop that spawns; and what a job in flight
 * takes of memory when its handler is asynchronous. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"

#define JOBS 100000
#define IN_FLIGHT 100
#define COMMANDS 5000
#define AFLOAT 10000

static const char program[] = "import json, sys\n"
                              "for line in sys.stdin.buffer:\n"
                              "    job = json.loads(line)\n"
                              "    print(json.dumps({'id': job['id'], 'status': 'done'}), flush=True)\n";

static int write_file(struct bench *b, const char *name, const char *text, size_t times)
{
    char path[160];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", b->server.folder, name);
    if (!(f = fopen(path, "w")))
        return error_set(&b->error, WEIR_ECONFIG, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < times; i++)
        fputs(text, f);
    return fclose(f) ? error_set(&b->error, WEIR_ECONFIG, "%s: cannot be written", path) : 0;
}

static void remove_file(struct bench *b, const char *name)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", b->server.folder, name);
    unlink(path);
}

static int run_alone(struct bench *b, size_t jobs, struct speed *speed)
{
    struct stopwatch watch;
    char line[BODY_BYTES + 2], command[512];
    int rc;

    snprintf(line, sizeof line,
             "{\"id\":\"0123456789abcdef\",\"type\":\"noop\",\"args\":{\"pad\":\"%060d\"}}\n", 0);
    snprintf(command, sizeof command, "cd '%s' && cat lines | python3 handler.py >answers", b->server.folder);
    rc = write_file(b, "handler.py", program, 1);
    if (rc == 0)
        rc = write_file(b, "lines", line, jobs);
    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    if (rc == 0 && system(command) != 0)
        rc = error_set(&b->error, WEIR_ECONFIG, "python3 does not run; install it");
    if (rc == 0)
        rc = stopwatch_stop(b, &b->server, &watch, jobs, speed);
    remove_file(b, "handler.py");
    remove_file(b, "lines");
    remove_file(b, "answers");
    return rc;
}

static int run_pipe(struct bench *b, size_t jobs, struct speed *speed)
{
    char command[160];
    struct crew_plan plan = {.url = b->server.url,
                             .workers = 1,
                             .executors = IN_FLIGHT,
                             .drain = true,
                             .types = {{.name = "noop"}},
                             .pipe = command,
                             .in_flight = IN_FLIGHT};
    int rc = prepare(b, &b->server, "noop", NULL, jobs);

    snprintf(command, sizeof command, "python3 %s/handler.py", b->server.folder);
    if (rc == 0)
        rc = write_file(b, "handler.py", program, 1);
    if (rc == 0)
        rc = time_crew(b, &b->server, &plan, jobs, speed);
    remove_file(b, "handler.py");
    return rc;
}

int bench_pipe(struct bench *b)
{
    static const struct trial trials[] = {{PIPE_ALONE, FIGURES, run_alone, ""},
                                          {PIPE_RATE, PIPE_ALONE, run_pipe, ", Python's included"}};

    return measure_trials(b, trials, 2, bench_size(b, JOBS));
}

/* ---- Commands */

extern char **environ;

static int spawn_alone(struct bench *b, size_t jobs, struct speed *speed)
{
    char *argv[] = {"/bin/true", NULL};
    struct stopwatch watch;
    int rc = stopwatch_start(b, &b->server, &watch);

    for (size_t i = 0; rc == 0 && i < jobs; i++) {
        pid_t pid;

        if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(pid, NULL, 0) != pid)
            rc = error_set(&b->error, WEIR_EINTERNAL, "cannot run /bin/true");
    }
    return rc ? rc : stopwatch_stop(b, &b->server, &watch, jobs, speed);
}

static int run_exec(struct bench *b, size_t jobs, struct speed *speed)
{
    struct crew_plan plan = {.url = b->server.url,
                             .workers = 1,
                             .executors = 1,
                             .drain = true,
                             .types = {{.name = "noop"}},
                             .exec = "/bin/true"};
    int rc = prepare(b, &b->server, "noop", NULL, jobs);

    return rc ? rc : time_crew(b, &b->server, &plan, jobs, speed);
}

int bench_exec(struct bench *b)
{
    static const struct trial trials[] = {{EXEC_ALONE, FIGURES, spawn_alone, ""},
                                          {EXEC_RATE, EXEC_ALONE, run_exec, ""}};
    int rc = measure_trials(b, trials, 2, bench_size(b, COMMANDS));

    if (rc == 0)
        report(b, EXEC_RATIO, b->results[EXEC_RATE].value / b->results[EXEC_ALONE].value, 0, "%s", "");
    return rc;
}

/* ---- In flight */

static struct weir_job *afloat[AFLOAT];
static int afloat_count;

/* None ends before all have begun. */
static void wait_for_all(struct weir_job *job, void *arg)
{
    (void)arg;
    afloat[afloat_count++] = job;
    if (afloat_count == AFLOAT)
        while (afloat_count > 0)
            weir_job_end(afloat[--afloat_count], WEIR_DONE);
}

int bench_async(struct bench *b)
{
    struct crew_plan plan = {.url = b->server.url,
                             .workers = 1,
                             .executors = AFLOAT,
                             .drain = true,
                             .types = {{.name = "noop", .async = wait_for_all}}};
    struct crew crew = {0};
    int rc = prepare(b, &b->server, "noop", NULL, AFLOAT);

    if (rc == 0)
        rc = crew_start(&crew, &plan, &b->error);
    if (rc == 0)
        rc = crew_wait(&crew, &b->error);
    if (rc == 0)
        report(b, ASYNC_MEMORY, (double)crew.memory_kb / 1024, 0, "bodies of %d bytes", BODY_BYTES);
    return rc;
}
