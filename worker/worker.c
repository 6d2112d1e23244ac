/* A worker as its owner sees it: made, given handlers, run, freed. */
#include "worker/worker.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/forks.h"
#include "core/given.h"
#include "core/log/log.h"
/* ---- Events of the loop */

static void on_finished(struct ev_loop *loop, ev_async *async, int events)
{
    (void)loop, (void)events;
    worker_wake(async->data);
}

/* Hears that another thread has asked for a stop or for quiet, or has called exit(). */
static void on_call(struct ev_loop *loop, ev_async *async, int events)
{
    struct weir_worker *w = async->data;

    (void)loop, (void)events;
    worker_check_exit(w);
    if (atomic_exchange(&w->reload_asked, false) && w->reload && !w->common.stop.since_us)
        w->reload(w->reload_arg);
    worker_check_stop(&w->common);
}

/* ---- The tick */

#define IDLE_S 1.0 /* between ticks while nothing runs that they would have to end */

static void tick_every(struct weir_worker *w, double s)
{
    if (w->tick.repeat == s)
        return;
    w->tick.repeat = s;
    ev_timer_again(w->common.loop, &w->tick);
}

/* Makes the ticks fast as soon as a job runs; they are slow again only after a tick, so jobs that come and go cannot keep it from coming. */
static void on_prepare(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    struct weir_worker *w = prepare->data;

    (void)loop, (void)events;
    if (w->tick.repeat != WATCH_S && worker_must_watch(&w->common))
        tick_every(w, WATCH_S);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir_worker *w = timer->data;

    (void)loop, (void)events;
    worker_guard_tick(w);
    log_flush();
    if (w->common.stop.since_us || w->common.options.drain_max_us)
        worker_check_soon(&w->common);
    worker_watch(&w->common);
    handlers_free_ended(&w->common.retired);
    worker_report(w);
    worker_log_minute(w);
    tick_every(w, worker_must_watch(&w->common) ? WATCH_S : IDLE_S);
}

static void start_tick(struct weir_worker *w)
{
    ev_timer_init(&w->tick, on_tick, WATCH_S, WATCH_S);
    ev_set_priority(&w->tick,
                    EV_MINPRI); /* behind the answers that have come: a lease may be renewed by one */
    w->tick.data = w;
    worker_log_minute(w); /* the first minute begins: nothing has ended */
    ev_timer_start(w->common.loop, &w->tick);
    ev_prepare_init(&w->prepare, on_prepare);
    w->prepare.data = w;
    ev_prepare_start(w->common.loop, &w->prepare);
}

static void stop_tick(struct weir_worker *w)
{
    ev_timer_stop(w->common.loop, &w->tick);
    ev_prepare_stop(w->common.loop, &w->prepare);
}

/* ---- Made and freed */

static void on_check(struct ev_loop *loop, struct ev_watcher *watcher, int events);

static void open_watchers(struct weir_worker *w)
{
    struct ending *ending = &w->common.ending;

    ev_async_init(&ending->async, on_call);
    ending->async.data = w;
    ev_async_start(w->common.loop, &ending->async);
    ev_init(&ending->check, on_check);
    ev_set_priority(&ending->check, EV_MAXPRI);
    ending->check.data = &w->common;
    ev_async_init(&w->finished_async, on_finished);
    w->finished_async.data = &w->common;
    ev_async_start(w->common.loop, &w->finished_async);
}

struct weir_worker *weir_worker_new_sized(const struct weir_worker_options *options, size_t size)
{
    static const struct weir_worker_options defaults;
    struct weir_worker_options own;
    struct weir_worker *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->common.handlers = calloc(1, sizeof *w->common.handlers);
    w->common.loop = w->common.handlers ? ev_loop_new(EVFLAG_AUTO | EVFLAG_NOSIGMASK) : NULL;
    if (!w->common.loop) {
        free(w->common.handlers);
        free(w);
        return NULL;
    }
    w->forks = forks_count();
    job_make_id(w->common.instance);
    options = options ? given_struct(&w->setup, __func__, options, size, &own, sizeof own) : &defaults;
    if (!options || options_read(&w->common.options, options, &w->setup) != 0)
        w->error = w->setup;
    open_watchers(w);
    return w;
}

/* True in a child of fork(), where threads, loop and children of the worker are the parent's. */
static bool is_of_parent(const struct weir_worker *w)
{
    return w->forks != forks_count();
}

void weir_worker_free(struct weir_worker *w)
{
    if (!w || w->abandoned || is_of_parent(w))
        return;
    pool_free(w->common.pool);
    for (int i = 0; i < w->common.partition_count; i++)
        partition_free(w->common.partitions[i]);
    ev_loop_destroy(w->common.loop);
    log_once_free(&w->common.logged);
    handlers_free(w->common.handlers);
    handlers_free(w->common.retired);
    free(w->common.running);
    options_free(&w->common.options);
    free(w);
}

const char *weir_worker_message(const struct weir_worker *w)
{
    return w ? w->error.text
             : "weir_worker_message: worker is NULL; give what weir_worker_new() has returned";
}

void weir_worker_stop(struct weir_worker *w)
{
    if (!w)
        return;
    atomic_fetch_add(&w->common.ending.stop_calls, 1);
    worker_call_loop(&w->common);
}

void weir_worker_quiet(struct weir_worker *w)
{
    if (!w)
        return;
    worker_quiet(&w->common, true);
    worker_call_loop(&w->common);
}

/* ---- Handlers */

int weir_worker_type_sized(struct weir_worker *w, const char *type, const struct weir_type_options *options,
                           size_t size)
{
    struct weir_type_options own;

    if (GIVEN(w, PASSED(type), PASSED(options)) < 0 || !(options = GIVEN_STRUCT(w, options, size, &own)))
        return WEIR_EUSAGE;
    return options_add_type(&w->common.options, type, options, &w->error);
}

int weir_worker_handle(struct weir_worker *w, const char *type, weir_handler *handler, void *arg)
{
    if (GIVEN(w, PASSED(type), PASSED(handler)) < 0)
        return WEIR_EUSAGE;
    return function_add(w->common.handlers, type, handler, arg, &w->error);
}

int weir_worker_handle_async(struct weir_worker *w, const char *type, weir_async_handler *handler, void *arg)
{
    if (GIVEN(w, PASSED(type), PASSED(handler)) < 0)
        return WEIR_EUSAGE;
    return async_add(w->common.handlers, type, handler, arg, &w->error);
}

int weir_worker_exec(struct weir_worker *w, const char *type, const char *command)
{
    if (GIVEN(w, PASSED(type), PASSED(command)) < 0)
        return WEIR_EUSAGE;
    return command_add(w->common.handlers, type, command, &w->error);
}

int weir_worker_pipe(struct weir_worker *w, const char *type, const char *command, int in_flight)
{
    if (GIVEN(w, PASSED(type), PASSED(command)) < 0)
        return WEIR_EUSAGE;
    return pipe_add(w->common.handlers, type, command, in_flight, &w->error);
}

int weir_worker_http(struct weir_worker *w, const char *type, const char *url)
{
    if (GIVEN(w, PASSED(type), PASSED(url)) < 0)
        return WEIR_EUSAGE;
    return http_add(w->common.handlers, type, url, &w->error);
}

int weir_worker_http_files(struct weir_worker *w, const char *headers, const char *secrets)
{
    return w ? identity_read(&w->common.handlers->identity, headers, secrets, &w->error) : WEIR_EUSAGE;
}

struct ev_loop *weir_worker_loop(struct weir_worker *w)
{
    return w ? w->common.loop : NULL;
}

int weir_worker_load(struct weir_worker *w, const char *file)
{
    int (*enter)(struct weir_worker *);
    void *object;
    int rc;

    if (GIVEN(w, PASSED(file)) < 0)
        return WEIR_EUSAGE;
    object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
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

/* Wakes the loop from an executor's thread. */
static void notify_finished(void *arg)
{
    struct weir_worker *w = arg;

    ev_async_send(w->common.loop, &w->finished_async);
}

static int count_thread_types(const struct weir_worker *w)
{
    int n = 0;

    for (int i = 0; i < w->common.handlers->word_count; i++)
        n += w->common.handlers->words[i]->runner->way->run != NULL;
    return n;
}

static int make_executors(struct weir_worker *w)
{
    bool threads = count_thread_types(w) > 0 || (w->reload && w->common.options.executors <= THREADS_MOST);

    w->common.pool =
        pool_new(w->common.options.executors, threads ? w->common.options.executors : 0, notify_finished, w);
    w->common.running = calloc((size_t)w->common.options.executors, sizeof(struct task *));
    if (!w->common.pool || !w->common.running)
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    return begin_open(&w->common, &w->error);
}

static void on_rest(struct worker *w, int types)
{
    w->resting += types;
    for (int i = 0; i < w->partition_count; i++)
        if (types > 0)
            claiming_pass_duty(w->partitions[i]);
        else
            claiming_serve_again(w->partitions[i]);
}

static int open_handlers(struct weir_worker *w, struct handlers *handlers, struct error *e)
{
    const struct way_host host = {w->common.loop,
                                  w->common.options.executors,
                                  w->common.options.kill_after_us,
                                  &w->common.options.address,
                                  w->common.options.prefix,
                                  &w->common,
                                  begin_task_ended,
                                  on_rest};
    int rc = 0;

    for (struct runner *r = handlers->runners; rc == 0 && r; r = r->next)
        rc = runner_open(r, &host, e);
    return rc;
}

static void close_handlers(struct handlers *handlers)
{
    for (; handlers; handlers = handlers->next)
        for (struct runner *r = handlers->runners; r; r = r->next)
            runner_close(r);
}

/* Adds a partition, which still has to connect. */
static int add_partition(struct worker *w, struct error *e)
{
    struct partition *p = partition_new(w, w->partition_count);

    if (!p)
        return error_set(e, WEIR_EINTERNAL, "worker: out of memory");
    w->partitions[w->partition_count] = p;
    w->minds.at[w->minds.count++] = &p->mind;
    w->partition_count++; /* the guard looks at it from now on */
    return partition_open(p, e);
}

/* Adds the other partitions, as the first one has answered how many there are. */
static int spread(struct worker *w, struct error *e)
{
    int first = w->partition_count, rc = 0;

    while (rc == 0 && w->partition_count < w->partitions_found)
        rc = add_partition(w, e);
    for (int i = 0; rc == 0 && i < w->partition_count; i++) {
        rc = adoption_describe(w->partitions[i], e); /* how many there are */
        if (rc == 0 && i >= first)
            rc = partition_connect(w->partitions[i], e);
    }
    if (rc == 0)
        log_line(LOG_LEVEL_INFO, "the namespace has %d partitions: a connection to each", w->partition_count);
    return rc;
}

/* Checks, on the loop, whether to stop, and how many partitions there are: worker_check_soon() asks for it. */
static void on_check(struct ev_loop *loop, struct ev_watcher *watcher, int events)
{
    struct worker *w = watcher->data;
    struct error e;

    (void)loop, (void)events;
    if (w->partition_count < w->partitions_found && !w->stop.since_us && spread(w, &e) != 0) {
        w->partitions_found = w->partition_count;
        worker_fail_and_stop(w, &e);
    }
    worker_check_stop(w);
}

static void open_minds(struct worker *w)
{
    const struct options *o = &w->options;

    w->minds = (struct minds){.executors = o->executors,
                              .queue_count = o->queue_count,
                              .type_count = w->handlers->count,
                              .lease_us = o->lease_us,
                              .wide = o->wide,
                              .weights = o->weighted ? o->weights : NULL,
                              .drain = o->drain,
                              .unknown_dead = o->unknown_dead};
}

int worker_check(struct weir_worker *w)
{
    if (w->setup.status != 0)
        return (w->error = w->setup).status;
    if (count_thread_types(w) > 0 && w->common.options.executors > THREADS_MOST)
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: %d executors; use 1 to %d where functions or commands run on threads",
                         w->common.options.executors, THREADS_MOST);
    return 0;
}

static int prepare(struct weir_worker *w)
{
    if (worker_check(w) != 0)
        return w->error.status;
    if (w->common.handlers->word_count == 0)
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: no handlers; add one with --load or --exec TYPE=COMMAND");
    open_minds(&w->common);
    if (options_spread(&w->common.options, w->common.handlers, &w->error) != 0 ||
        add_partition(&w->common, &w->error) != 0)
        return w->error.status;
    if (make_executors(w) != 0 || open_handlers(w, w->common.handlers, &w->error) != 0)
        return w->error.status;
    return partition_connect(w->common.partitions[0], &w->error);
}

static void finish(struct weir_worker *w)
{
    struct pool_load load = w->common.pool ? pool_load(w->common.pool) : (struct pool_load){.running = 0};

    for (int i = 0; i < w->common.partition_count; i++)
        partition_disconnect(w->common.partitions[i]);
    if (load.running + load.given_up > 0)
        w->abandoned = worker_end_running(&w->common);
    close_handlers(w->common.handlers);
    close_handlers(w->common.retired);
    begin_close(&w->common);
    for (int i = 0; i < w->common.partition_count; i++)
        trace_flush(w->common.partitions[i]->conditions.trace);
    if (w->abandoned)
        return;
    pool_stop(w->common.pool);
}

int weir_worker_run(struct weir_worker *w)
{
    int rc;

    if (!w)
        return WEIR_EUSAGE;
    if (is_of_parent(w))
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: was made before fork(), by the parent process; make another one here");
    rc = prepare(w);
    if (rc == 0) {
        w->common.started_us = clock_mono_us();
        start_tick(w);
        worker_guard_open(w);
        worker_exit_open(w);
        ev_run(w->common.loop, 0);
        worker_exit_close(w);
        worker_guard_close(w);
        stop_tick(w);
        if ((rc = w->common.ending.error.status) != 0)
            w->error = w->common.ending.error;
    }
    finish(w);
    return rc;
}

/* ---- Read anew */

void worker_on_reload(struct weir_worker *w, void (*reload)(void *arg), void *arg)
{
    w->reload = reload;
    w->reload_arg = arg;
}

void worker_ask_reload(struct weir_worker *w)
{
    atomic_store(&w->reload_asked, true);
    worker_call_loop(&w->common);
}

/* Sees that the handlers of next can take the place of those of w, and opens them. */
static int prepare_handlers(struct weir_worker *w, struct weir_worker *next)
{
    struct error *e = &next->error;

    if (next->setup.status != 0)
        return (*e = next->setup).status;
    if (count_thread_types(next) > 0 && w->common.options.executors > THREADS_MOST)
        return error_set(e, WEIR_EUSAGE,
                         "worker: commands run on threads, and it has %d executors; start it anew",
                         w->common.options.executors);
    if (handlers_keep(next->common.handlers, w->common.handlers, e) < 0 ||
        options_spread(&next->common.options, next->common.handlers, e) < 0)
        return e->status;
    if (open_handlers(w, next->common.handlers, e) == 0)
        return 0;
    close_handlers(next->common.handlers);
    return e->status;
}

static void take_options(struct options *o, const struct options *next)
{
    o->grace_us = next->grace_us;
    o->kill_after_us = next->kill_after_us;
    o->pause_most_us = next->pause_most_us;
    o->dead_most = next->dead_most;
    o->dead_age_us = next->dead_age_us;
    o->unknown_dead = next->unknown_dead;
}

/* Each partition says by a new connection which types this worker has now: what was under way on the old one is settled or given back as ever when
 * a connection is lost. */
static int join_again(struct worker *w, const struct handlers *before, struct error *e)
{
    int rc = 0;

    w->minds.type_count = w->handlers->count;
    w->minds.unknown_dead = w->options.unknown_dead;
    for (int i = 0; rc == 0 && i < w->partition_count; i++) {
        rc = recording_renumber(w->partitions[i], before);
        rc = rc == 0 ? adoption_describe(w->partitions[i], e) : error_no_memory(e, "worker");
        adoption_begin_anew(w->partitions[i]);
    }
    return rc;
}

int worker_take_over(struct weir_worker *w, struct weir_worker *next)
{
    struct worker *c = &w->common;
    struct handlers *before = c->handlers;
    struct task_list waiting = {0};
    struct error e;

    if (prepare_handlers(w, next) < 0)
        return next->error.status;
    pool_withdraw_all(c->pool, NULL, &waiting);
    tasks_give_back(&waiting);
    c->handlers = next->common.handlers;
    next->common.handlers = NULL;
    c->resting -= handlers_retire(before, c->handlers);
    before->next = c->retired;
    c->retired = before;
    take_options(&c->options, &next->common.options);
    if (join_again(c, before, &e) < 0)
        worker_fail_and_stop(c, &e);
    return 0;
}
