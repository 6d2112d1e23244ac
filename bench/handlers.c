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

#define JOBS 100000
#define IN_FLIGHT 100
#define COMMANDS 5000
#define AFLOAT 10000

static const char program[] = "import json, sys\n"
                              "for line in sys.stdin.buffer:\n"
                              "    job = json.loads(line)\n"
                              "    print(json.dumps({'id': job['id'], 'status': 'done'}), flush=True)\n";

static void write_file(const char *name, const char *text, size_t times)
{
    char path[160];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", bench.server.folder, name);
    if (!(f = fopen(path, "w")))
        fail("%s: %s", path, strerror(errno));
    for (size_t i = 0; i < times; i++)
        fputs(text, f);
    if (fclose(f))
        fail("%s: cannot be written", path);
}

static void remove_file(const char *name)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", bench.server.folder, name);
    unlink(path);
}

static struct speed run_alone(size_t jobs, int arg)
{
    struct stopwatch watch;
    struct speed speed;
    char line[BODY_BYTES + 2], command[512];

    (void)arg;
    snprintf(line, sizeof line,
             "{\"id\":\"0123456789abcdef\",\"type\":\"noop\",\"args\":{\"pad\":\"%060d\"}}\n", 0);
    snprintf(command, sizeof command, "cd '%s' && cat lines | python3 handler.py >answers",
             bench.server.folder);
    write_file("handler.py", program, 1);
    write_file("lines", line, jobs);
    watch = stopwatch_start(&bench.server);
    if (system(command) != 0)
        fail("python3 does not run; install it");
    speed = stopwatch_stop(&bench.server, &watch, jobs);
    remove_file("lines");
    remove_file("answers");
    return speed;
}

static struct speed run_pipe(size_t jobs, int in_flight)
{
    char command[160];
    struct crew_plan plan = {.url = bench.server.url,
                             .workers = 1,
                             .executors = in_flight,
                             .drain = true,
                             .types = {{.name = "noop"}},
                             .pipe = command,
                             .in_flight = in_flight};

    prepare(&bench.server, "noop", NULL, jobs);
    snprintf(command, sizeof command, "python3 %s/handler.py", bench.server.folder);
    write_file("handler.py", program, 1);
    return time_crew(&bench.server, &plan, jobs);
}

void bench_pipe(void)
{
    static const struct trial trials[] = {
        {PIPE_ALONE, FIGURES, run_alone, 0, ""},
        {PIPE_RATE, PIPE_ALONE, run_pipe, IN_FLIGHT, ", Python's included"}};

    measure_trials(trials, 2, bench_size(JOBS));
}

/* ---- Commands */

extern char **environ;

static struct speed spawn_alone(size_t jobs, int arg)
{
    char *argv[] = {"/bin/true", NULL};
    struct stopwatch watch = stopwatch_start(&bench.server);

    (void)arg;
    for (size_t i = 0; i < jobs; i++) {
        pid_t pid;

        if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(pid, NULL, 0) != pid)
            fail("cannot run /bin/true");
    }
    return stopwatch_stop(&bench.server, &watch, jobs);
}

static struct speed run_exec(size_t jobs, int executors)
{
    struct crew_plan plan = {.url = bench.server.url,
                             .workers = 1,
                             .executors = executors,
                             .drain = true,
                             .types = {{.name = "noop"}},
                             .exec = "/bin/true"};

    prepare(&bench.server, "noop", NULL, jobs);
    return time_crew(&bench.server, &plan, jobs);
}

void bench_exec(void)
{
    static const struct trial trials[] = {{EXEC_ALONE, FIGURES, spawn_alone, 0, ""},
                                          {EXEC_RATE, EXEC_ALONE, run_exec, 1, ""}};

    measure_trials(trials, 2, bench_size(COMMANDS));
    report(EXEC_RATIO, bench.results[EXEC_RATE].value / bench.results[EXEC_ALONE].value, 0, "%s", "");
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

void bench_async(void)
{
    struct crew_plan plan = {.url = bench.server.url,
                             .workers = 1,
                             .executors = AFLOAT,
                             .drain = true,
                             .types = {{.name = "noop", .async = wait_for_all}}};
    struct crew crew;

    prepare(&bench.server, "noop", NULL, AFLOAT);
    crew_start(&crew, &plan);
    crew_wait(&crew);
    report(ASYNC_MEMORY, (double)crew.memory_kb / 1024, 0, "bodies of %d bytes", BODY_BYTES);
}
