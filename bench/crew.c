#include "bench/crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/server.h"
#include "core/clock.h"

#define STOP_US INT64_C(15000000)
#define DRAIN_US INT64_C(120000000)

static struct weir_worker *the_worker; /* of a forked process */

int noop_handler(struct weir_job *job, void *arg)
{
    (void)job;
    (void)arg;
    return WEIR_DONE;
}

static void on_term(int signal)
{
    (void)signal;
    weir_worker_stop(the_worker);
}

static int add_handler(const struct crew_plan *plan, const struct crew_type *type)
{
    if (plan->pipe)
        return weir_worker_pipe(the_worker, type->name, plan->pipe, plan->in_flight);
    if (plan->exec)
        return weir_worker_exec(the_worker, type->name, plan->exec);
    if (type->async)
        return weir_worker_handle_async(the_worker, type->name, type->async, type->arg);
    return weir_worker_handle(the_worker, type->name, type->handler, type->arg);
}

static int add_copy(const struct crew_plan *plan, int number)
{
    struct crew_type type = plan->types[0];
    char name[64];

    snprintf(name, sizeof name, "%s%d", type.name, number);
    type.name = name;
    return add_handler(plan, &type);
}

static int run_worker(const struct crew_plan *plan, int number)
{
    char trace[128];
    struct weir_worker_options options = {.redis_url = plan->url,
                                          .queues = plan->queues,
                                          .executors = plan->executors,
                                          .drain = plan->drain,
                                          .trace_file = plan->trace ? trace : NULL};
    int rc = 0;

    if (plan->trace)
        snprintf(trace, sizeof trace, "%s.%d", plan->trace, number);
    the_worker = weir_worker_new(&options);
    if (!the_worker)
        return WEIR_EINTERNAL;
    signal(SIGTERM, on_term);
    for (int i = 0; rc == 0 && i < plan->copies; i++)
        rc = add_copy(plan, i);
    for (const struct crew_type *type = plan->types; rc == 0 && type->name && !plan->copies; type++)
        rc = add_handler(plan, type);
    if (rc == 0)
        rc = weir_worker_run(the_worker);
    if (rc != 0)
        fprintf(stderr, "weir-bench: worker: %s\n", weir_worker_message(the_worker));
    weir_worker_free(the_worker);
    return rc;
}

void crew_start(struct crew *crew, const struct crew_plan *plan)
{
    pid_t parent = getpid();

    *crew = (struct crew){0};
    for (; crew->count < plan->workers; crew->count++) {
        pid_t pid = fork();

        if (pid < 0)
            fail("cannot fork a worker: %s", strerror(errno));
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setpgid(0, 0);
            _exit(getppid() == parent ? -run_worker(plan, crew->count) : 1);
        }
        crew->pids[crew->count] = pid;
    }
}

/* Takes those that have ended; returns how many have not. */
static int collect(struct crew *crew)
{
    struct rusage used;
    int alive = 0, status;

    for (int i = 0; i < crew->count; i++) {
        if (crew->pids[i] == 0)
            continue;
        if (wait4(crew->pids[i], &status, WNOHANG, &used) == 0) {
            alive++;
            continue;
        }
        crew->pids[i] = 0;
        crew->failed += status != 0;
        if (used.ru_maxrss > crew->memory_kb)
            crew->memory_kb = used.ru_maxrss;
        crew->cpu_us += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6;
        crew->cpu_us += (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    }
    return alive;
}

void crew_check(struct crew *crew)
{
    collect(crew);
    if (crew->failed)
        fail("%d of %d workers failed", crew->failed, crew->count);
}

static void tell_all(const struct crew *crew, int signal)
{
    for (int i = 0; i < crew->count; i++)
        if (crew->pids[i] > 0)
            kill(crew->pids[i], signal);
}

/* Waits that long, then kills. */
static void wait_for_end(struct crew *crew, int64_t most_us)
{
    int64_t end_us = clock_mono_us() + most_us;

    while (collect(crew) > 0) {
        if (clock_mono_us() > end_us) {
            tell_all(crew, SIGKILL);
            end_us = INT64_MAX;
        }
        clock_sleep_until(clock_mono_us() + 2000);
    }
    crew_check(crew);
}

void crew_stop(struct crew *crew)
{
    tell_all(crew, SIGTERM);
    wait_for_end(crew, STOP_US);
}

void crew_wait(struct crew *crew)
{
    wait_for_end(crew, DRAIN_US);
}

void *shared_new(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}
