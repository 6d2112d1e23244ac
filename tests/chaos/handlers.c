#include "tests/chaos/handlers.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "tests/chaos/deed.h"

static struct weir_worker *worker_of_all;

static int end_job(struct weir_job *job, const struct deed *d)
{
    switch (deed_end(d)) {
    case DEED_FAILED:
        return weir_job_retry(job, DEED_AFTER_S, "as planned");
    case DEED_THROTTLED:
        return weir_job_throttled(job, DEED_AFTER_S);
    case DEED_DEAD:
        return weir_job_dead(job, "as planned");
    }
    return WEIR_DONE;
}

static int run_on_thread(struct weir_job *job, void *arg)
{
    struct deed d;

    (void)arg;
    deed_begin(&d, weir_job_id(job), weir_job_args(job), NULL);
    deed_sleep(d.take_us);
    return end_job(job, &d);
}

/* A job that waits on the loop. Those of a worker that ends before their time are in the list still: nothing has leaked. */
struct waiting {
    ev_timer timer;
    struct weir_job *job;
    struct deed deed;
    LIST_ENTRY(waiting) link;
};
static LIST_HEAD(, waiting) all_waiting;

static void on_time(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct waiting *waiting = timer->data;

    (void)loop, (void)events;
    weir_job_end(waiting->job, end_job(waiting->job, &waiting->deed));
    LIST_REMOVE(waiting, link);
    free(waiting);
}

static void run_on_loop(struct weir_job *job, void *arg)
{
    struct waiting *waiting = malloc(sizeof *waiting);

    (void)arg;
    if (!waiting)
        abort();
    waiting->job = job;
    LIST_INSERT_HEAD(&all_waiting, waiting, link);
    deed_begin(&waiting->deed, weir_job_id(job), weir_job_args(job), NULL);
    ev_timer_init(&waiting->timer, on_time, (double)waiting->deed.take_us / 1e6, 0);
    waiting->timer.data = waiting;
    ev_timer_start(weir_worker_loop(worker_of_all), &waiting->timer);
}

/* Does so for each name in a list joined by commas. */
static int for_each(const char *list, int add(const char *type))
{
    char names[512], *rest = names, *name;
    int status = 0;

    snprintf(names, sizeof names, "%s", list ? list : "");
    while (status == 0 && (name = strsep(&rest, ",")))
        status = *name ? add(name) : 0;
    return status;
}

static int add_on_thread(const char *type)
{
    return weir_worker_handle(worker_of_all, type, run_on_thread, NULL);
}

static int add_on_loop(const char *type)
{
    return weir_worker_handle_async(worker_of_all, type, run_on_loop, NULL);
}

int weir_register(struct weir_worker *worker)
{
    int status;

    worker_of_all = worker;
    deed_open();
    status = for_each(getenv("CHAOS_THREADS"), add_on_thread);
    return status ? status : for_each(getenv("CHAOS_LOOP"), add_on_loop);
}
