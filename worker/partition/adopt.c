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
#include "worker/partition/inside.h"

/* Names the group of workers that are equal to Redis, with the same queues and words for types: FNV-1a over the names, in any order. */
static void make_group(struct partition *p)
{
    uint64_t sum = 0;

    for (int i = 0; i < p->worker->options.queue_count + p->worker->handlers->word_count; i++) {
        bool queue = i < p->worker->options.queue_count;
        uint64_t hash = queue ? 0xcbf29ce484222325u : 0x84222325cbf29ce4u;

        for (const char *c = queue ? p->worker->options.queues[i]
                                   : p->worker->handlers->words[i - p->worker->options.queue_count]->type;
             *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        sum += hash;
    }
    snprintf(p->adoption.group, sizeof p->adoption.group, "%016" PRIx64, sum);
}

/* Lists the types whose handlers can end this process: when it dies, jobs of other types are not to blame. NULL: all can. */
static json_t *types_inside(const struct handlers *handlers)
{
    json_t *types = json_array();
    int count = 0;

    for (int i = 0; i < handlers->word_count; i++)
        if (handlers->words[i]->runner->way->inside) {
            json_array_append_new(types, json_string(handlers->words[i]->type));
            count++;
        }
    if (count < handlers->word_count)
        return types;
    json_decref(types);
    return NULL;
}

static int make_info(struct partition *p, struct error *e)
{
    char host[256] = "", *text;
    json_t *queues = json_array(), *types = json_array(), *info;

    gethostname(host, sizeof host - 1);
    for (int i = 0; i < p->worker->options.queue_count; i++)
        json_array_append_new(queues, json_string(p->worker->options.queues[i]));
    for (int i = 0; i < p->worker->handlers->word_count; i++)
        json_array_append_new(types, json_string(p->worker->handlers->words[i]->type));
    info = json_pack("{s:s, s:s, s:i, s:i, s:f, s:s, s:s, s:i, s:o, s:o*, s:o}", "instance",
                     p->worker->instance, "host", host, "pid", (int)getpid(), "executors",
                     p->worker->options.executors, "lease", (double)p->worker->options.lease_us / 1e6,
                     "library", script_digest, "version", WEIR_VERSION, "format", script_format, "queues",
                     queues, "inside", types_inside(p->worker->handlers), "types", types);
    if (info && p->worker->partition_count > 1)
        json_object_set_new(info, "partitions", json_integer(p->worker->partition_count));
    text = info ? json_dumps(info, JSON_COMPACT) : NULL;
    json_decref(info);
    free(p->adoption.info);
    p->adoption.info = text;
    return text ? 0 : error_set(e, WEIR_EINTERNAL, "worker: out of memory");
}

int adoption_describe(struct partition *p, struct error *e)
{
    make_group(p);
    p->adoption.described++;
    return make_info(p, e);
}

void adoption_begin_anew(struct partition *p)
{
    if (!p->link || !link_is_up(p->link))
        return;
    p->adoption.anew = true;
    session_unregister(p); /* no answer is heard that is still under way */
    link_drop(p->link, "joins anew");
}

struct lost {
    const struct adopt *adopt;
    int count;
};

static void mark_lost(struct task *task, void *arg)
{
    struct lost *lost = arg;

    for (size_t i = 0; i < lost->adopt->lost_count; i++)
        if (span_is(lost->adopt->lost[i], task->token)) {
            atomic_store(&task->asked, ASKED_LOST);
            lost->count++;
        }
}

static void log_lost(struct partition *p, const struct lost *lost)
{
    if (session_hear_data(p, lost->adopt))
        log_line(LOG_LEVEL_WARN,
                 "Redis has lost all of Weir's data: jobs (%d of them run here), schedules, batches and "
                 "unique locks; enqueue and schedule again what is missing. This worker knows %zu limits and "
                 "types, which it writes again",
                 lost->count, p->limits.known.records.count);
    else if (lost->count > 0)
        log_line(LOG_LEVEL_WARN,
                 "%d jobs that run here were given to others while this worker was away, or Redis has lost "
                 "them",
                 lost->count);
}

/* Tells the trace that the leases are over by now, or were over when this worker knows it of. */
static void trace_lost(struct partition *p)
{
    int64_t end_us = atomic_load(&p->conditions.lease_end_us), now_us = clock_boot_us();

    trace_lapsed(p->conditions.trace, end_us < now_us ? end_us : now_us);
}

static void adopt_rest(struct partition *p, int64_t now);

/* Hears how many partitions there are; worker.c makes the others. */
static void hear_partitions(struct worker *w, int count)
{
    if (count <= w->partitions_found || count > PARTITIONS_MOST)
        return;
    w->partitions_found = count;
    worker_check_soon(w);
}

static void on_adopted(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    int64_t now = clock_mono_us();
    struct adopt adopt;
    struct lost lost = {&adopt, 0};
    struct error e;

    request_answered(p);
    if (!reply)
        return;
    if (adopt_reply(reply, p->worker->options.queue_count, &adopt, &e) != 0) {
        if (session_is_hopeless(p, &e))
            return;
        request_refused(p, &e);
    } else {
        hear_clock(&p->mind, adopt.now_us, now);
        pool_each(p->worker->pool, &p->conditions, mark_lost, &lost);
        session_is_back(p);
        log_lost(p, &lost);
        if (lost.count > 0) {
            trace_lost(p);
            watch_end_lost(p);
        }
        if (adopt.left > 0) {
            adopt_free(&adopt);
            adopt_rest(p, now);
            return;
        }
        session_registered(p, p->adoption.next_id, adopt.types_digest, now);
        precheck_tell_settings(p);
        hear_partitions(p->worker, adopt.partitions);
        p->adoption.next_id[0] = '\0';
        waking_name(p->waking, &adopt);
        limits_are_old(p);
        match_soon(p);
        hear_adopt(&p->mind, adopt.workers);
        partition_wake(p);
        if (p->adoption.asked != p->adoption.described)
            adoption_begin_anew(p);
    }
    adopt_free(&adopt);
}

/* Adds the token of a task to a request. */
static void add_token(struct task *task, void *a)
{
    if (atomic_load(&task->asked) != ASKED_LOST)
        settle_token(a, task->token);
}

/* Writes the request, without the jobs that run. */
static void ask_adopt(struct partition *p, struct args *a, int64_t now)
{
    struct adopt_call call = {.worker = p->adoption.next_id,
                              .old_worker = p->session.id,
                              .group = p->adoption.group,
                              .lease_us = p->worker->options.lease_us,
                              .info = p->adoption.info,
                              .birth = p->session.birth,
                              .seen_us = p->session.seen_us,
                              .unheard = !p->session.dropped,
                              .queues = {p->worker->options.queues, p->worker->options.queue_count}};

    *a = (struct args){0};
    plan_sends(&p->mind, now);
    session_is_renewing(p);
    adopt_request(a, p->prefix, -1, &call);
}

static void adopt_rest(struct partition *p, int64_t now)
{
    struct args a;

    ask_adopt(p, &a, now);
    request_send(p, &a, on_adopted);
}

/* What has ended comes along and is settled under the new id: an answer to adopt may be lost, and then nobody
 * knows which of the two ids holds the leases. */
void adoption_ask(struct partition *p, int64_t now)
{
    struct args a;

    if (!p->adoption.next_id[0]) { /* a repeated adopt keeps its id */
        char random[17];

        job_make_id(random);
        p->adoption.asked = p->adoption.described;
        snprintf(p->adoption.next_id, sizeof p->adoption.next_id, "w%s", random);
    }
    session_is_registering(p);
    ask_adopt(p, &a, now);
    pool_each(p->worker->pool, &p->conditions, add_token, &a);
    for (struct task *task = p->settling.finished.head; task; task = task->next)
        add_token(task, &a);
    request_send(p, &a, on_adopted);
}

/* Hears that the connection is up. That is not enough to say so: a full Redis without its functions is down again at the first call. */
static void on_up(void *arg)
{
    struct partition *p = arg;

    distance_begin(&p->mind.distance);
    session_permit(p, false);
    partition_wake(p);
}

static void on_down(void *arg, const struct error *why)
{
    struct partition *p = arg;

    bool anew = p->adoption.anew;

    session_unregister(p);
    p->adoption.anew = false;
    if (!anew && !session_is_hopeless(p, why))
        session_lost(p, why);
}

const struct link_events partition_link_events = {.on_up = on_up, .on_down = on_down};
