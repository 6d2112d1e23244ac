/* async_worker: a worker whose handlers wait instead of work, thousands of them in one process: each job is a
 * timer on the worker's event loop. Written against weir.h and libev alone; sockets go the same way, with
 * ev_io.
 *
 *   async_worker [REDIS_URL [JOBS [SECONDS]]]
 *
 * Enqueues 1000 jobs, runs all at a time, each for 1 s, and ends when none is left. Build your own with
 *   cc -Iinclude own.c build/libweir.a -lhiredis -lev -ljansson -lglib-2.0 -ldl -lm -pthread */
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "weir.h"

#define TYPE "wait"

static struct weir_worker *worker;
static int in_flight, most, ended;

/* One job under way. */
struct wait {
    ev_timer timer;
    struct weir_job *job;
};

static void on_time(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct wait *wait = timer->data;

    (void)loop, (void)events;
    weir_job_end(wait->job, WEIR_DONE);
    free(wait);
    in_flight--;
    ended++;
}

/* Starts a job. It runs on the loop and must not block. The job goes on after it has returned, until weir_job_end. */
static void on_job(struct weir_job *job, void *arg)
{
    struct wait *wait = malloc(sizeof *wait);

    if (!wait) {
        weir_job_end(job, weir_job_retry(job, 1, "out of memory"));
        return;
    }
    wait->job = job;
    ev_timer_init(&wait->timer, on_time, *(double *)arg, 0);
    wait->timer.data = wait;
    ev_timer_start(weir_worker_loop(worker), &wait->timer);
    if (++in_flight > most)
        most = in_flight;
}

static int enqueue(const char *redis_url, int jobs)
{
    struct weir *w = weir_new(redis_url, NULL);
    struct weir_bulk *bulk;
    int status = w ? weir_bulk_open(w, NULL, &bulk) : WEIR_EINTERNAL;

    if (status == 0) {
        for (int i = 0; status == 0 && i < jobs; i++)
            status = weir_bulk_add(bulk, &(struct weir_job_spec){.type = TYPE});
        if (status == 0)
            status = weir_bulk_close(bulk, NULL);
        else
            weir_bulk_abandon(bulk);
    }
    if (status < 0)
        fprintf(stderr, "async_worker: %s\n", w ? weir_message(w) : "out of memory");
    weir_free(w);
    return status;
}

static int run(const char *redis_url, int jobs, double seconds)
{
    int status;

    worker =
        weir_worker_new(&(struct weir_worker_options){.redis_url = redis_url, .executors = jobs, .drain = 1});
    if (!worker)
        return WEIR_EINTERNAL;
    status = weir_worker_handle_async(worker, TYPE, on_job, &seconds);
    if (status == 0)
        status = weir_worker_run(worker);
    if (status < 0)
        fprintf(stderr, "async_worker: %s\n", weir_worker_message(worker));
    weir_worker_free(worker);
    return status;
}

int main(int argc, char **argv)
{
    const char *redis_url = argc > 1 ? argv[1] : NULL;
    int jobs = argc > 2 ? atoi(argv[2]) : 1000;
    struct rusage usage;
    int status = enqueue(redis_url, jobs);

    if (status == 0)
        status = run(redis_url, jobs, argc > 3 ? atof(argv[3]) : 1);
    if (status < 0)
        return -status;
    getrusage(RUSAGE_SELF, &usage);
    printf("%d jobs, %d of them at a time, %ld MB\n", ended, most, usage.ru_maxrss / 1024);
    return ended == jobs ? 0 : 1;
}
