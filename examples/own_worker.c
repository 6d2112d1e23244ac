/* own_worker: a program of one's own that is producer, handler and worker in one, written against weir.h
 * alone.
 *
 *   own_worker [REDIS_URL]
 *
 * Enqueues 100 jobs under a limit of 50 a second, runs them, and ends when none is left. Build your own with
 *   cc -Iinclude own.c build/libweir.a -lhiredis -lev -ljansson -lglib-2.0 -ldl -lm -pthread */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "weir.h"

#define TYPE "greeting"
#define JOBS 100

static atomic_int greeted;
static struct weir_worker *worker;

static int greet(struct weir_job *job, void *arg)
{
    (void)arg;
    printf("%s: hello, number %s\n", weir_job_id(job), weir_job_args(job));
    atomic_fetch_add(&greeted, 1);
    return WEIR_DONE;
}

static int enqueue(const char *redis_url)
{
    struct weir *w = weir_new(redis_url, NULL);
    int status = w ? weir_rate_set(w, TYPE, "50/s,burst=10") : WEIR_EINTERNAL;

    for (int i = 0; status == 0 && i < JOBS; i++) {
        char args[16];

        snprintf(args, sizeof args, "%d", i);
        status = weir_enqueue(w, &(struct weir_job_spec){.type = TYPE, .args = args}, NULL);
    }
    if (status < 0)
        fprintf(stderr, "own_worker: %s\n", w ? weir_message(w) : "out of memory");
    weir_free(w);
    return status;
}

static void on_stop(int signal_number)
{
    (void)signal_number;
    weir_worker_stop(worker);
}

static int run(const char *redis_url)
{
    int status;

    worker =
        weir_worker_new(&(struct weir_worker_options){.redis_url = redis_url, .executors = 4, .drain = 1});
    if (!worker)
        return WEIR_EINTERNAL;
    signal(SIGTERM, on_stop);
    signal(SIGINT, on_stop);
    signal(SIGPIPE, SIG_IGN);
    status = weir_worker_handle(worker, TYPE, greet, NULL);
    if (status == 0)
        status = weir_worker_run(worker);
    if (status < 0)
        fprintf(stderr, "own_worker: %s\n", weir_worker_message(worker));
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    weir_worker_free(worker);
    return status;
}

int main(int argc, char **argv)
{
    const char *redis_url = argc > 1 ? argv[1] : NULL;
    int status = enqueue(redis_url);

    if (status == 0)
        status = run(redis_url);
    printf("%d greeted\n", atomic_load(&greeted));
    return -status;
}
