/* A worker as its owner sees it: made, given handlers, run, freed. */
#include "worker/worker.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/forks.h"
#include "core/log/log.h"
#include "worker/way/http.h"
#include "worker/way/pipe.h"

/* ---- Made and freed */

static void on_finished(struct ev_loop *loop, ev_async *async, int events)
{
    (void)loop, (void)events;
    worker_wake(async->data);
}

/* A stop, or exit(), on another thread. */
static void on_call(struct ev_loop *loop, ev_async *async, int events)
{
    (void)loop, (void)events;
    worker_check_exit(async->data);
    worker_stop_soon(async->data);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir_worker *w = timer->data;

    (void)loop, (void)events;
    worker_guard_tick(w);
    log_flush();
    if (w->stop.since_us || w->options.drain_max_us)
        worker_stop_soon(w);
    if (!w->stop.leaving)
        worker_watch(w);
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
    w->forks = forks_count();
    worker_open_settling(w);
    if (options_read(&w->options, options ? options : &defaults, &w->setup) != 0)
        w->error = w->setup;
    worker_open_turns(w);
    worker_open_ending(w, on_call);
    ev_async_init(&w->finished_async, on_finished);
    w->finished_async.data = w;
    ev_async_start(w->loop, &w->finished_async);
    return w;
}

/* After a fork() its threads, its loop and its children are the parent's. */
static bool is_of_parent(const struct weir_worker *w)
{
    return w->forks != forks_count();
}

void weir_worker_free(struct weir_worker *w)
{
    if (!w || w->abandoned || is_of_parent(w))
        return;
    pool_free(w->pool);
    trace_close(w->trace);
    worker_free_settling(w);
    ev_loop_destroy(w->loop);
    log_once_free(&w->logged);
    worker_free_claims(w);
    known_limits_free(&w->limits.known);
    handlers_free(&w->handlers);
    worker_free_watch(w);
    options_free(&w->options);
    wide_free(w->wide);
    worker_free_adoption(w);
    free(w);
}

const char *weir_worker_message(const struct weir_worker *w)
{
    return w->error.text;
}

/* ---- Handlers */

int weir_worker_type(struct weir_worker *w, const char *type, const struct weir_type_options *options)
{
    return options_add_type(&w->options, type, options, &w->error);
}

int weir_worker_handle(struct weir_worker *w, const char *type, weir_handler *handler, void *arg)
{
    return function_add(&w->handlers, type, handler, arg, &w->error);
}

int weir_worker_handle_async(struct weir_worker *w, const char *type, weir_async_handler *handler, void *arg)
{
    return async_add(&w->handlers, type, handler, arg, &w->error);
}

int weir_worker_exec(struct weir_worker *w, const char *type, const char *command)
{
    return command_add(&w->handlers, type, command, &w->error);
}

int weir_worker_pipe(struct weir_worker *w, const char *type, const char *command, int in_flight)
{
    return pipe_add(&w->handlers, type, command, in_flight, &w->error);
}

int weir_worker_http(struct weir_worker *w, const char *type, const char *url)
{
    return http_add(&w->handlers, type, url, &w->error);
}

struct ev_loop *weir_worker_loop(struct weir_worker *w)
{
    return w->loop;
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

static bool on_wake(void *arg, enum wake why, struct span what)
{
    struct weir_worker *w = arg;

    if (!worker_has_room(w) || (why == WAKE_BELL && !w->claims.duty_until_us))
        return false;
    if (w->wide)
        wide_ring(w->wide, what);
    worker_claim_soon(w, !w->wide && why != WAKE_QUEUE);
    return true;
}

static void on_cancelled(void *arg, struct span token, struct args *heard)
{
    struct weir_worker *w = arg;

    heard_request(heard, w->options.prefix, -1, w->session.id, token);
    if (token.len == 1 && *token.at == '*')
        worker_recall_soon(w);
    else
        worker_cancel(w, token);
}

static const struct waking_events waking_events = {.on_wake = on_wake, .on_cancelled = on_cancelled};

static int count_thread_types(const struct weir_worker *w)
{
    int n = 0;

    for (int i = 0; i < w->handlers.count; i++)
        n += w->handlers.at[i].way->run != NULL;
    return n;
}

static int make_executors(struct weir_worker *w)
{
    bool threads = count_thread_types(w) > 0;

    if (threads && w->options.executors > THREADS_MOST)
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: %d executors; use 1 to %d where functions or commands run on threads",
                         w->options.executors, THREADS_MOST);
    w->conditions.trace = w->trace;
    w->pool = pool_new(w->options.executors, threads ? w->options.executors : 0, &w->conditions,
                       notify_finished, w);
    if (!w->pool || worker_open_watch(w) != 0)
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    return worker_begin_open(w, &w->error);
}

static void on_serving(struct weir_worker *w)
{
    wide_claim_all(w->wide);
    worker_claim_soon(w, true);
}

static int open_handlers(struct weir_worker *w)
{
    for (int i = 0; i < w->handlers.count; i++) {
        struct handler *handler = &w->handlers.at[i];

        handler->host = (struct way_host){w->loop, w->options.executors, w->options.kill_after_us,
                                          w,       worker_task_ended,    on_serving};
        if (handler->way->open && handler->way->open(handler, &w->error) != 0)
            return w->error.status;
        w->opened++;
    }
    return 0;
}

static void close_handlers(struct weir_worker *w)
{
    for (; w->opened > 0; w->opened--) {
        struct handler *handler = &w->handlers.at[w->opened - 1];

        if (handler->way->close)
            handler->way->close(handler);
    }
}

/* Queues that are watched, each by a connection. */
static int count_peeks(const struct weir_worker *w)
{
    int names = w->wide ? wide_names(w->wide) : w->options.queue_count;

    return w->wide && names > WIDE_PEEKS ? WIDE_PEEKS : names;
}

static int prepare(struct weir_worker *w)
{
    if (w->setup.status != 0) {
        w->error = w->setup;
        return w->error.status;
    }
    if (w->handlers.count == 0)
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: no handlers; add one with --load or --exec TYPE=COMMAND");
    if (w->options.wide && !(w->wide = wide_new(w->options.queues, w->options.queue_count)))
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    worker_open_claims(w);
    if (options_spread(&w->options, &w->handlers, &w->error) != 0 || worker_describe(w, &w->error) != 0)
        return w->error.status;
    if (w->options.trace_file && !(w->trace = trace_open(w->options.trace_file, &w->error)))
        return w->error.status;
    if (make_executors(w) != 0 || open_handlers(w) != 0)
        return w->error.status;
    w->waking = waking_new(w->loop, &w->options.address, count_peeks(w), &waking_events, w);
    w->link = link_new(w->loop, &w->options.address, &worker_link_events, w);
    if (!w->waking || !w->link)
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    return 0;
}

static void finish(struct weir_worker *w)
{
    struct pool_load load = w->pool ? pool_load(w->pool) : (struct pool_load){.running = 0};

    if (w->waking)
        waking_free(w->waking);
    if (w->link)
        link_free(w->link);
    if (load.running + load.given_up > 0)
        w->abandoned = worker_end_running(w);
    close_handlers(w);
    worker_begin_close(w);
    trace_flush(w->trace);
    if (w->abandoned)
        return;
    pool_stop(w->pool);
}

int weir_worker_run(struct weir_worker *w)
{
    ev_timer tick;
    int rc;

    if (is_of_parent(w))
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: was made before fork(), by the parent process; make another one here");
    rc = prepare(w);
    if (rc == 0) {
        w->started_us = clock_mono_us();
        ev_timer_init(&tick, on_tick, WATCH_S, WATCH_S);
        ev_set_priority(&tick,
                        EV_MINPRI); /* behind the answers that have come: a lease may be renewed by one */
        tick.data = w;
        ev_timer_start(w->loop, &tick);
        link_start(w->link);
        worker_guard_open(w);
        worker_exit_open(w);
        ev_run(w->loop, 0);
        worker_exit_close(w);
        worker_guard_close(w);
        ev_timer_stop(w->loop, &tick);
        worker_close_turns(w);
        if ((rc = w->ending.error.status) != 0)
            w->error = w->ending.error;
    }
    finish(w);
    return rc;
}
