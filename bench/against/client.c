/* One measurement of bench/against.sh, by weir.h alone, so that it builds against each revision's library:
 *
 *   client bulk URL JOBS              enqueues so many jobs of type noop in one bulk
 *   client run URL JOBS EXECUTORS     runs so many, which must be there, by a function that does nothing; all are done
 *   client retry, client dead         the same, and each fails, for this once or for good
 *
 * Prints the seconds it took, and the microseconds of its own processor time a job. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir.h"

static struct weir_worker *worker;
static atomic_long left;
static int outcome = WEIR_DONE;

static int fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    return 1;
}

static int enqueue(struct weir *w, long jobs)
{
    const struct weir_job_spec job = {.type = "noop", .args = "{\"pad\":\"0123456789012345678901234567\"}"};
    struct weir_bulk *bulk;
    int rc = weir_bulk_open(w, NULL, &bulk);

    for (long i = 0; rc == 0 && i < jobs; i++)
        rc = weir_bulk_add(bulk, &job);
    return rc == 0 ? weir_bulk_close(bulk, NULL) : rc;
}

static int handle(struct weir_job *job, void *arg)
{
    (void)job;
    (void)arg;
    if (atomic_fetch_sub(&left, 1) == 1)
        weir_worker_stop(worker);
    return outcome;
}

static int work(const char *url, int executors)
{
    struct weir_worker_options options = {.redis_url = url, .executors = executors};

    worker = weir_worker_new(&options);
    if (!worker)
        return fail("out of memory");
    if (weir_worker_handle(worker, "noop", handle, NULL) != 0 || weir_worker_run(worker) != 0)
        return fail(weir_worker_message(worker));
    return 0;
}

static double now_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    double begun = now_s(CLOCK_MONOTONIC);
    long jobs = argc > 3 ? atol(argv[3]) : 0;
    int rc = 64;

    atomic_init(&left, jobs);
    if (argc == 4 && strcmp(argv[1], "bulk") == 0) {
        struct weir *w = weir_new(argv[2], NULL);

        rc = !w ? fail("out of memory") : enqueue(w, jobs) != 0 ? fail(weir_message(w)) : 0;
        weir_free(w);
    } else if (argc == 5) {
        outcome = strcmp(argv[1], "retry") == 0  ? WEIR_RETRY
                  : strcmp(argv[1], "dead") == 0 ? WEIR_DEAD
                                                 : WEIR_DONE;
        rc = work(argv[2], atoi(argv[4]));
    }
    if (rc == 0)
        printf("%.6f %.3f\n", now_s(CLOCK_MONOTONIC) - begun,
               now_s(CLOCK_PROCESS_CPUTIME_ID) * 1e6 / (double)jobs);
    return rc;
}
