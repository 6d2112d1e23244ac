/* A worker as its owner sees it: made, given handlers, run, freed. */
#include "worker/worker.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

#define STOP_TICK_S 0.1

/* ---- Made and freed */

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    worker_look(timer->data);
}

static void on_finished(struct ev_loop *loop, ev_async *async, int events)
{
    (void)loop, (void)events;
    worker_look(async->data);
}
static void on_stop(struct ev_loop *loop, ev_async *async, int events)
{
    (void)loop, (void)events;
    worker_check_stop(async->data);
}

static void on_stop_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir_worker *w = timer->data;

    (void)loop, (void)events;
    if (w->stopping_us || w->drain_max_us)
        worker_check_stop(w);
}

struct weir_worker *weir_worker_new(const struct weir_worker_options *options)
{
    static const struct weir_worker_options defaults;
    struct weir_worker *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    if (!(w->loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOSIGMASK))) {
        free(w);
        return NULL;
    }
    task_list_init(&w->finished);
    task_list_init(&w->settling);
    w->setup_failed = worker_read_options(w, options ? options : &defaults) != 0;
    ev_init(&w->timer, on_timer);
    ev_async_init(&w->finished_async, on_finished);
    ev_async_init(&w->stop_async, on_stop);
    w->timer.data = w->finished_async.data = w->stop_async.data = w;
    ev_async_start(w->loop, &w->finished_async);
    ev_async_start(w->loop, &w->stop_async);
    return w;
}

static void free_tasks(struct task_list *list)
{
    struct task *task;

    while ((task = task_list_pop(list)))
        task_free(task);
}

void weir_worker_free(struct weir_worker *w)
{
    if (!w || w->abandoned)
        return;
    ev_loop_destroy(w->loop);
    free_tasks(&w->finished);
    free_tasks(&w->settling);
    while (w->told) {
        struct told *next = w->told->next;

        free(w->told);
        w->told = next;
    }
    claim_free(&w->claim);
    handlers_free(&w->handlers);
    free(w->queue_names);
    free(w->trace_file);
    free(w->info);
    free(w);
}

const char *weir_worker_message(const struct weir_worker *w)
{
    return w->error.text;
}

/* ---- Handlers */

int weir_worker_handle(struct weir_worker *w, const char *type, weir_handler *handler, void *arg)
{
    return handlers_add(&w->handlers, type, handler, arg, &w->error);
}

int weir_worker_exec(struct weir_worker *w, const char *type, const char *command)
{
    return handlers_add_command(&w->handlers, type, command, &w->error);
}

int weir_worker_load(struct weir_worker *w, const char *file)
{
    int (*enter)(struct weir_worker *);
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    int rc;

    if (!object)
        return error_set(&w->error, WEIR_ECONFIG, "load: %s; name a shared object by its path (./NAME.so)",
                         dlerror());
    *(void **)&enter = dlsym(object, "weir_register");
    if (!enter)
        return error_set(&w->error, WEIR_ECONFIG,
                         "load %s: it exports no weir_register(struct weir_worker *); see weir.h", file);
    w->error.text[0] = '\0';
    if ((rc = enter(w)) == 0)
        return 0;
    if (w->error.text[0])
        return rc < 0 ? rc : WEIR_ECONFIG;
    return error_set(&w->error, WEIR_ECONFIG, "load %s: its weir_register failed with %d", file, rc);
}
/* ---- Running */

/* On an executor's thread. */
static void notify_finished(void *arg)
{
    struct weir_worker *w = arg;

    ev_async_send(w->loop, &w->finished_async);
}

static bool on_wake(void *arg, enum wake why)
{
    struct weir_worker *w = arg;

    if (!worker_has_room(w) || (why == WAKE_BELL && !w->duty_until_us))
        return false;
    w->look_now = true;
    w->look_held |= why != WAKE_QUEUE;
    worker_look(w);
    return true;
}

static int prepare(struct weir_worker *w)
{
    if (w->setup_failed)
        return w->error.status;
    if (w->handlers.count == 0)
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: no handlers; add one with --load or --exec TYPE=COMMAND");
    if (worker_describe(w) != 0)
        return w->error.status;
    if (w->trace_file && !(w->trace = trace_open(w->trace_file, &w->error)))
        return w->error.status;
    w->pool = pool_new(w->executors, w->trace, notify_finished, w);
    w->waking = waking_new(w->loop, &w->address, w->queue_count, on_wake, w);
    w->link = link_new(w->loop, &w->address, &worker_link_events, w);
    if (!w->pool || !w->waking || !w->link)
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    return 0;
}

static void finish(struct weir_worker *w)
{
    if (w->waking)
        waking_free(w->waking);
    if (w->link)
        link_free(w->link);
    if (w->pool && pool_load(w->pool).running > 0)
        worker_end_running(w);
    trace_flush(w->trace);
    if (w->abandoned)
        return;
    pool_free(w->pool);
    trace_close(w->trace);
}

int weir_worker_run(struct weir_worker *w)
{
    ev_timer stop_tick;
    int rc = prepare(w);

    if (rc == 0) {
        w->started_us = w->rate_us = clock_mono_us();
        ev_timer_init(&stop_tick, on_stop_tick, STOP_TICK_S, STOP_TICK_S);
        stop_tick.data = w;
        ev_timer_start(w->loop, &stop_tick);
        link_start(w->link);
        ev_run(w->loop, 0);
        ev_timer_stop(w->loop, &stop_tick);
        ev_timer_stop(w->loop, &w->timer);
        rc = w->result;
    }
    finish(w);
    return rc;
}
