/* Joining: a worker registers with Redis, under a new id after each connect, and adopts what it had under its
 * old one. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/script/script.h"
#include "worker/worker.h"

/* The workers that are equal to Redis: same queues, same types. FNV-1a over their names, in any order. */
static void make_group(struct weir_worker *w)
{
    uint64_t sum = 0;

    for (int i = 0; i < w->options.queue_count + w->handlers.count; i++) {
        bool queue = i < w->options.queue_count;
        uint64_t hash = queue ? 0xcbf29ce484222325u : 0x84222325cbf29ce4u;

        for (const char *c = queue ? w->options.queues[i] : w->handlers.types[i - w->options.queue_count]; *c;
             c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        sum += hash;
    }
    snprintf(w->adoption.group, sizeof w->adoption.group, "%016" PRIx64, sum);
}

static int make_info(struct weir_worker *w, struct error *e)
{
    char host[256] = "", *text;
    json_t *queues = json_array(), *types = json_array(), *info;

    gethostname(host, sizeof host - 1);
    for (int i = 0; i < w->options.queue_count; i++)
        json_array_append_new(queues, json_string(w->options.queues[i]));
    for (int i = 0; i < w->handlers.count; i++)
        json_array_append_new(types, json_string(w->handlers.types[i]));
    info = json_pack("{s:s, s:i, s:i, s:f, s:s, s:s, s:i, s:o, s:o}", "host", host, "pid", (int)getpid(),
                     "executors", w->options.executors, "lease", (double)w->options.lease_us / 1e6, "library",
                     script_digest, "version", WEIR_VERSION, "format", script_format, "queues", queues,
                     "types", types);
    text = info ? json_dumps(info, JSON_COMPACT) : NULL;
    json_decref(info);
    w->adoption.info = text;
    return text ? 0 : error_set(e, WEIR_EINTERNAL, "worker: out of memory");
}

void worker_free_adoption(struct weir_worker *w)
{
    free(w->adoption.info);
}

int worker_describe(struct weir_worker *w, struct error *e)
{
    make_group(w);
    return make_info(w, e);
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
            atomic_store(&task->asked, ASKED_LOST);
            lost->count++;
        }
    }
}

static void log_lost(struct weir_worker *w, const struct lost *lost)
{
    if (worker_hear_data(w, lost->adopt))
        log_line(LOG_LEVEL_WARN,
                 "Redis has lost all of Weir's data: jobs (%d of them run here), schedules, batches and "
                 "unique locks; enqueue and schedule again what is missing. This worker knows %zu limits and "
                 "types, which it writes again",
                 lost->count, w->limits.known.records.count);
    else if (lost->count > 0)
        log_line(LOG_LEVEL_WARN,
                 "%d jobs that run here were given to others while this worker was away, or Redis has lost "
                 "them",
                 lost->count);
}

/* To a trace: the leases were over by now, or, as far as this worker knows, before. */
static void trace_lost(struct weir_worker *w)
{
    int64_t end_us = atomic_load(&w->conditions.lease_end_us), now_us = clock_boot_us();

    trace_lapsed(w->trace, end_us < now_us ? end_us : now_us);
}

static void adopt_rest(struct weir_worker *w);

static void on_adopted(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    int64_t now = clock_mono_us();
    struct adopt adopt;
    struct lost lost = {&adopt, 0};
    struct error e;

    worker_answered(w);
    if (!reply)
        return;
    if (adopt_reply(reply, w->options.queue_count, &adopt, &e) != 0) {
        if (worker_is_hopeless(w, &e))
            return;
        worker_refused(w, &e);
    } else {
        worker_hear_clock(w, adopt.now_us);
        pool_each(w->pool, mark_lost, &lost);
        worker_connection_is_back(w);
        log_lost(w, &lost);
        if (lost.count > 0) {
            trace_lost(w);
            worker_end_lost(w);
        }
        if (adopt.left > 0) {
            adopt_free(&adopt);
            adopt_rest(w);
            return;
        }
        worker_registered(w, w->adoption.next_id, now);
        w->adoption.next_id[0] = '\0';
        waking_name(w->waking, &adopt);
        worker_limits_are_old(w);
        worker_lose_duty(w);
        worker_match_soon(w);
        worker_resume(w);
        worker_claim_soon(w, true);
    }
    adopt_free(&adopt);
}

static void add_token(struct task *task, void *arg)
{
    if (atomic_load(&task->asked) != ASKED_LOST)
        settle_token(arg, task->token);
}

/* The request, without the jobs that run. */
static void ask_adopt(struct weir_worker *w, struct args *a)
{
    struct adopt_call call = {.worker = w->adoption.next_id,
                              .old_worker = w->session.id,
                              .group = w->adoption.group,
                              .lease_us = w->options.lease_us,
                              .info = w->adoption.info,
                              .birth = w->session.birth,
                              .seen_us = w->session.seen_us,
                              .queues = {w->options.queues, w->options.queue_count}};

    args_init(a);
    worker_begin_requests(w, clock_mono_us());
    worker_is_renewing(w);
    adopt_request(a, w->options.prefix, -1, &call);
}

static void adopt_rest(struct weir_worker *w)
{
    struct args a;

    ask_adopt(w, &a);
    worker_send(w, &a, on_adopted);
    args_free(&a);
}

/* What has ended comes along and is settled under the new id: an answer to adopt may be lost, and then nobody
 * knows which of the two ids holds the leases. */
void worker_adopt(struct weir_worker *w)
{
    struct args a;

    if (!w->adoption.next_id[0]) { /* a repeated adopt keeps its id */
        char random[17];

        job_make_id(random);
        snprintf(w->adoption.next_id, sizeof w->adoption.next_id, "w%s", random);
    }
    worker_is_registering(w);
    ask_adopt(w, &a);
    pool_each(w->pool, add_token, &a);
    for (struct task *task = w->settling.finished.head; task; task = task->next)
        add_token(task, &a);
    worker_send(w, &a, on_adopted);
    args_free(&a);
}

/* A connection alone is not enough: a full Redis without its functions is down again at the first call. */
static void on_up(void *arg)
{
    struct weir_worker *w = arg;

    worker_check_rights(w);
    worker_wake(w);
}

static void on_down(void *arg, const struct error *why)
{
    struct weir_worker *w = arg;

    worker_unregister(w);
    if (!worker_is_hopeless(w, why))
        worker_connection_lost(w, why);
}

const struct link_events worker_link_events = {.on_up = on_up, .on_down = on_down};
