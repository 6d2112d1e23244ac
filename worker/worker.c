/* A worker's life: options; connect; adopt (again after each reconnect, under a new id); turns (turn.c);
 * stop. */
#include "worker/worker.h"

#include <ctype.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

#define EXECUTORS_DEFAULT 10
#define EXECUTORS_MOST 1024
#define LEASE_S 30.0
#define LEASE_LEAST_S 1.0
#define GRACE_S 25.0
#define KILL_AFTER_US 2000000 /* from TERM to KILL for commands that are over the grace */
#define STOP_TICK_S 0.1

/* ---- Options */

static int read_queue(struct weir_worker *w, char *word)
{
    char *weight = strchr(word, '=');
    int i = w->queue_count;

    if (weight) {
        char *end;
        long n;

        *weight++ = '\0';
        n = strtol(weight, &end, 10);
        if (*end || !isdigit((unsigned char)*weight) || n < 1 || n > 1000000)
            return error_set(&w->error, WEIR_EUSAGE, "worker: queue %s has the weight '%s'; use 1 to 1000000",
                             word, weight);
        w->weighted = true;
        w->weights[i] = (int)n;
    }
    if (!name_is_valid(word, strlen(word)))
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: '%.64s' is no queue; use 1 to 128 of A-Z a-z 0-9 _ . -", word);
    for (int k = 0; k < i; k++)
        if (strcmp(w->queues[k], word) == 0)
            return error_set(&w->error, WEIR_EUSAGE, "worker: queue %s is named twice", word);
    w->queues[w->queue_count++] = word;
    return 0;
}

/* "a,b" or "a=3,b": without any weight a strict order, else by weight, 1 where missing. */
static int read_queues(struct weir_worker *w, const char *text)
{
    char *rest, *word;
    int rc = 0;

    if (!(rest = w->queue_names = strdup(text)))
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    while (rc == 0 && (word = strsep(&rest, ","))) {
        if (w->queue_count == QUEUES_MOST)
            return error_set(&w->error, WEIR_EUSAGE, "worker: more than %d queues", QUEUES_MOST);
        rc = read_queue(w, word);
    }
    for (int i = 0; i < w->queue_count; i++)
        if (w->weights[i] == 0)
            w->weights[i] = 1;
    return rc;
}

static int read_options(struct weir_worker *w, const struct weir_worker_options *o)
{
    double lease_s = o->lease_s > 0 ? o->lease_s : LEASE_S;
    int rc;

    w->executors = o->executors ? o->executors : EXECUTORS_DEFAULT;
    if (w->executors < 1 || w->executors > EXECUTORS_MOST)
        return error_set(&w->error, WEIR_EUSAGE, "worker: %d executors; use 1 to %d", o->executors,
                         EXECUTORS_MOST);
    if (lease_s < LEASE_LEAST_S)
        return error_set(&w->error, WEIR_EUSAGE, "worker: a lease of %g s; use at least %g s", lease_s,
                         LEASE_LEAST_S);
    w->lease_us = (int64_t)(lease_s * 1e6);
    w->grace_us = (int64_t)((o->grace_s > 0 ? o->grace_s : GRACE_S) * 1e6);
    w->drain_max_us = (int64_t)(o->drain_max_s * 1e6);
    w->drain = o->drain;
    w->unknown_dead = o->unknown_dead;
    if (o->trace_file && !(w->trace_file = strdup(o->trace_file)))
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    if ((rc = client_address(o->redis_url, &w->address, &w->error)) != 0)
        return rc;
    if ((rc = client_prefix(o->ns, w->prefix, &w->error)) != 0)
        return rc;
    return read_queues(w, o->queues ? o->queues : "default");
}

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

static void on_stop(struct ev_loop *loop, ev_async *async, int events);

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
    w->setup_failed = read_options(w, options ? options : &defaults) != 0;
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
    while (w->kept) {
        struct kept_text *next = w->kept->next;

        free(w->kept);
        w->kept = next;
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

/* ---- Connecting and adopting */

/* The workers that are equal to Redis: same queues, same types. FNV-1a over their names, in any order. */
static void make_group(struct weir_worker *w)
{
    uint64_t sum = 0;

    for (int i = 0; i < w->queue_count + w->handlers.count; i++) {
        bool queue = i < w->queue_count;
        uint64_t hash = queue ? 0xcbf29ce484222325u : 0x84222325cbf29ce4u;

        for (const char *c = queue ? w->queues[i] : w->handlers.types[i - w->queue_count]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        sum += hash;
    }
    snprintf(w->group, sizeof w->group, "%016" PRIx64, sum);
}

static int make_info(struct weir_worker *w)
{
    char host[256] = "", *text;
    json_t *queues = json_array(), *types = json_array(), *info;

    gethostname(host, sizeof host - 1);
    for (int i = 0; i < w->queue_count; i++)
        json_array_append_new(queues, json_string(w->queues[i]));
    for (int i = 0; i < w->handlers.count; i++)
        json_array_append_new(types, json_string(w->handlers.types[i]));
    info = json_pack("{s:s, s:i, s:i, s:f, s:o, s:o}", "host", host, "pid", (int)getpid(), "executors",
                     w->executors, "lease", (double)w->lease_us / 1e6, "queues", queues, "types", types);
    text = info ? json_dumps(info, JSON_COMPACT) : NULL;
    json_decref(info);
    w->info = text;
    return text ? 0 : error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
}

/* A login, permission or setting that is refused before anything has worked is not an outage but a mistake:
 * ends the worker. */
static bool is_hopeless(struct weir_worker *w, const struct error *why)
{
    if (w->id[0] || (why->status != WEIR_EREFUSED && why->status != WEIR_ECONFIG))
        return false;
    w->error = *why;
    w->result = why->status;
    ev_break(w->loop, EVBREAK_ALL);
    return true;
}

struct lost {
    const struct adopt *adopt;
    int count;
};

static void mark_lost(struct task *task, void *arg)
{
    struct lost *lost = arg;

    for (size_t i = 0; i < lost->adopt->lost_count; i++) {
        const struct span *token = &lost->adopt->lost[i];

        if (token->len == task->token.len && memcmp(token->at, task->token.at, token->len) == 0) {
            task->lost = true;
            lost->count++;
            command_kill(task, SIGTERM);
        }
    }
}

static void on_adopted(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    int64_t now = clock_mono_us();
    struct adopt adopt;
    struct lost lost = {&adopt, 0};
    struct error e;

    w->awaited--;
    if (!reply)
        return;
    if (adopt_reply(reply, w->queue_count, &adopt, &e) != 0) {
        if (is_hopeless(w, &e))
            return;
        worker_refused(w, &e);
    } else {
        pool_each(w->pool, mark_lost, &lost);
        if (lost.count > 0)
            log_line(LOG_LEVEL_WARN, "%d jobs that run here were given to others while this worker was away",
                     lost.count);
        waking_name(w->waking, &adopt);
        strcpy(w->id, w->next_id);
        w->next_id[0] = '\0';
        w->adopted = w->look_now = w->look_held = true;
        w->duty_until_us = w->duty_until_redis_us = w->pause_until_us = 0;
        w->tick_us = now + w->lease_us / 4;
    }
    adopt_free(&adopt);
    worker_look(w);
}

static void add_token(struct task *task, void *arg)
{
    if (!task->lost)
        settle_token(arg, task->token);
}

/* What has ended comes along and is settled under the new id: an answer to adopt may be lost, and then nobody
 * knows which of the two ids holds the leases. */
void worker_adopt(struct weir_worker *w)
{
    struct adopt_call call = {.worker = w->next_id,
                              .old_worker = w->id,
                              .group = w->group,
                              .lease_us = w->lease_us,
                              .info = w->info,
                              .queues = {w->queues, w->queue_count}};
    struct args a;

    if (!w->next_id[0]) { /* a repeated adopt keeps its id */
        char random[17];

        job_make_id(random);
        snprintf(w->next_id, sizeof w->next_id, "w%s", random);
    }
    args_init(&a);
    w->awaited++; /* nothing else until the answer */
    adopt_request(&a, w->prefix, -1, &call);
    pool_each(w->pool, add_token, &a);
    for (struct task *task = w->finished.head; task; task = task->next)
        add_token(task, &a);
    link_send(w->link, &a, REQUEST_TIMEOUT_S, on_adopted, w);
    args_free(&a);
}

static void on_up(void *arg)
{
    struct weir_worker *w = arg;

    if (w->down_since_us)
        log_line(LOG_LEVEL_INFO, "Redis is back after %.1f s",
                 (double)(clock_mono_us() - w->down_since_us) / 1e6);
    w->down_since_us = 0;
    worker_look(w);
}

static void on_down(void *arg, const struct error *why)
{
    struct weir_worker *w = arg;

    w->adopted = false;
    if (is_hopeless(w, why))
        return;
    if (!w->down_since_us) {
        log_line(LOG_LEVEL_WARN, "%s; running jobs go on, connecting again until it answers", why->text);
        w->down_since_us = clock_mono_us();
    }
}

/* ---- Stopping */

void weir_worker_stop(struct weir_worker *w)
{
    atomic_fetch_add(&w->stop_calls, 1);
    ev_async_send(w->loop, &w->stop_async);
}

void weir_worker_quiet(struct weir_worker *w)
{
    atomic_store(&w->quiet, true);
}

static void kill_one(struct task *task, void *arg)
{
    command_kill(task, *(int *)arg);
}

static void kill_commands(struct weir_worker *w, int signal)
{
    pool_each(w->pool, kill_one, &signal);
}

/* reply NULL: Redis is away; what is still leased returns when the lease ends. */
static void on_left(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct pool_load load = pool_load(w->pool);
    int kept = load.running + load.queued + w->finished.count + w->settling.count;
    struct adopt adopt = {0};
    struct error e = {.text = "Redis is away"};

    w->awaited--;
    if ((!reply || adopt_reply(reply, w->queue_count, &adopt, &e) != 0) && kept > 0)
        w->result =
            error_set(&w->error, WEIR_EUNREACHABLE,
                      "worker: stopped with %d jobs that could not be given back (%.200s); they return when "
                      "their lease ends",
                      kept, e.text);
    adopt_free(&adopt);
    ev_break(w->loop, EVBREAK_ALL);
}

void worker_leave(struct weir_worker *w)
{
    struct adopt_call call = {.worker = "",
                              .old_worker = w->id,
                              .group = w->group,
                              .info = "",
                              .queues = {w->queues, w->queue_count}};
    struct args a;

    if (w->leaving)
        return;
    w->leaving = true;
    if (!w->adopted || !link_is_up(w->link)) {
        on_left(w, (w->awaited++, NULL));
        return;
    }
    args_init(&a);
    w->awaited++;
    adopt_request(&a, w->prefix, -1, &call);
    link_send(w->link, &a, REQUEST_TIMEOUT_S, on_left, w);
    args_free(&a);
}

/* The grace is over, or somebody is impatient: commands are ended, their jobs given back. */
static void force(struct weir_worker *w)
{
    struct pool_load load = pool_load(w->pool);

    if (!w->forced && load.running > 0)
        log_line(LOG_LEVEL_WARN, "stopping now: %d jobs are given back", load.running);
    w->forced = true;
    kill_commands(w, SIGTERM);
    worker_leave(w);
}

static void begin_stop(struct weir_worker *w, int64_t now)
{
    struct task_list waiting;

    w->stopping_us = now;
    task_list_init(&waiting);
    pool_withdraw(w->pool, &waiting, true);
    log_line(LOG_LEVEL_INFO, "stopping: %d jobs run to their end, %d are given back",
             pool_load(w->pool).running, waiting.count);
    worker_give_back(w, &waiting);
}

static void check_stop(struct weir_worker *w)
{
    int calls = atomic_load(&w->stop_calls);
    int64_t now = clock_mono_us();

    if (w->drain_max_us && !w->stopping_us && now - w->started_us > w->drain_max_us) {
        w->result = error_set(&w->error, WEIR_ENOTNOW, "worker: not drained in %.1f s; run it again",
                              (double)w->drain_max_us / 1e6);
        begin_stop(w, now);
    }
    if (calls > 0 && !w->stopping_us)
        begin_stop(w, now);
    if (w->stopping_us && (calls > 1 || now - w->stopping_us > w->grace_us))
        force(w);
    else if (w->stopping_us && !link_is_up(w->link) && worker_is_idle(w))
        worker_leave(w);
    else
        worker_look(w);
}

static void on_stop(struct ev_loop *loop, ev_async *async, int events)
{
    (void)loop, (void)events;
    check_stop(async->data);
}

static void on_stop_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir_worker *w = timer->data;

    (void)loop, (void)events;
    if (w->stopping_us || w->drain_max_us)
        check_stop(w);
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
    static const struct link_events events = {.on_up = on_up, .on_down = on_down};

    if (w->setup_failed)
        return w->error.status;
    if (w->handlers.count == 0)
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: no handlers; add one with --load or --exec TYPE=COMMAND");
    if (make_info(w) != 0)
        return w->error.status;
    make_group(w);
    if (w->trace_file && !(w->trace = trace_open(w->trace_file, &w->error)))
        return w->error.status;
    w->pool = pool_new(w->executors, w->trace, notify_finished, w);
    w->waking = waking_new(w->loop, &w->address, w->queue_count, on_wake, w);
    w->link = link_new(w->loop, &w->address, &events, w);
    if (!w->pool || !w->waking || !w->link)
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    return 0;
}

static void count_functions(struct task *task, void *arg)
{
    *(int *)arg += task->handler->function != NULL;
}

/* Ends what still runs after a stop that was forced: commands by TERM, already sent, and KILL. A C function
 * cannot be stopped: its thread, and what that uses, end with the process. */
static void end_running(struct weir_worker *w)
{
    int64_t deadline_us = clock_mono_us() + KILL_AFTER_US;
    int functions = 0;

    pool_each(w->pool, count_functions, &functions);
    while (pool_load(w->pool).running > functions && clock_mono_us() < deadline_us)
        clock_sleep_until(clock_mono_us() + 10000);
    kill_commands(w, SIGKILL);
    w->abandoned = functions > 0;
}

static void finish(struct weir_worker *w)
{
    if (w->waking)
        waking_free(w->waking);
    if (w->link)
        link_free(w->link);
    if (w->pool && pool_load(w->pool).running > 0)
        end_running(w);
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
