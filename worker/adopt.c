/* Joining: a worker tells Redis that it is there, under a new id after each connect, and adopts what it had
 * under its old one. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/redis/script.h"
#include "worker/worker.h"

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
    info = json_pack("{s:s, s:i, s:i, s:f, s:s, s:o, s:o}", "host", host, "pid", (int)getpid(), "executors",
                     w->executors, "lease", (double)w->lease_us / 1e6, "library", script_digest, "queues",
                     queues, "types", types);
    text = info ? json_dumps(info, JSON_COMPACT) : NULL;
    json_decref(info);
    w->info = text;
    return text ? 0 : error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
}

int worker_describe(struct weir_worker *w)
{
    make_group(w);
    return make_info(w);
}

bool worker_is_hopeless(struct weir_worker *w, const struct error *why)
{
    bool unreadable = turn_is_of_another_format(why);

    if (!unreadable && (w->id[0] || (why->status != WEIR_EREFUSED && why->status != WEIR_ECONFIG)))
        return false;
    w->error = *why;
    w->result = unreadable ? WEIR_ECONFIG : why->status;
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
            atomic_store(&task->asked, ASKED_LOST);
            lost->count++;
        }
    }
}

/* Hears of the birth of the data; true: it is another one than before, so all was lost. */
static bool is_data_lost(struct weir_worker *w, struct span birth)
{
    bool lost = *w->birth && !(strlen(w->birth) == birth.len && memcmp(w->birth, birth.at, birth.len) == 0);

    snprintf(w->birth, sizeof w->birth, "%.*s", (int)birth.len, birth.at);
    return lost;
}

void worker_seen(struct weir_worker *w, int64_t mark_us)
{
    if (mark_us > w->seen_us)
        w->seen_us = mark_us;
}

static const char *time_of(int64_t us, char text[40])
{
    time_t s = (time_t)(us / 1000000);
    struct tm tm;
    size_t len;

    gmtime_r(&s, &tm);
    len = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, 40 - len, ".%03dZ", (int)(us / 1000 % 1000));
    return text;
}

void worker_hear_back(struct weir_worker *w, const struct went_back *back)
{
    char from[40], to[40];

    if (back->at_us == w->back_us)
        return;
    w->back_us = back->at_us;
    w->limits_due = true;
    if (back->at_us)
        log_line(
            LOG_LEVEL_WARN,
            "Redis went back: what it wrote from %s to %s at least (%.3f s) is lost: jobs that came then are "
            "gone, those that ended then run again, and slots of then are granted again",
            time_of(back->from_us, from), time_of(back->to_us, to),
            (double)(back->to_us - back->from_us) / 1e6);
}

/* Of the first answer nothing is said: what was lost before it was others'. */
static void hear_past(struct weir_worker *w, const struct adopt *adopt, bool lost)
{
    if (!*w->id || lost) {
        w->back_us = adopt->back.at_us;
        w->seen_us = adopt->now_us;
    }
    worker_seen(w, adopt->now_us);
    worker_hear_back(w, &adopt->back);
}

static void tell_lost(struct weir_worker *w, const struct lost *lost)
{
    bool all = is_data_lost(w, lost->adopt->birth);

    hear_past(w, lost->adopt, all);
    if (all)
        log_line(LOG_LEVEL_WARN,
                 "Redis has lost all of Weir's data: jobs (%d of them run here), schedules, batches and "
                 "unique locks; enqueue and schedule again what is missing. This worker knows %zu limits and "
                 "types, which it writes again",
                 lost->count, w->known.records.count);
    else if (lost->count > 0)
        log_line(LOG_LEVEL_WARN,
                 "%d jobs that run here were given to others while this worker was away, or Redis has lost "
                 "them",
                 lost->count);
}

static void tell_back(struct weir_worker *w)
{
    if (w->down_since_us)
        log_line(LOG_LEVEL_INFO, "Redis is back after %.1f s",
                 (double)(clock_mono_us() - w->down_since_us) / 1e6);
    w->down_since_us = 0;
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

    w->awaited--;
    if (!reply)
        return;
    if (adopt_reply(reply, w->queue_count, &adopt, &e) != 0) {
        if (worker_is_hopeless(w, &e))
            return;
        worker_refused(w, &e);
    } else {
        distance_hear(&w->distance, w->turn_us, adopt.now_us, now);
        pool_each(w->pool, mark_lost, &lost);
        tell_back(w);
        tell_lost(w, &lost);
        if (lost.count > 0) {
            trace_lost(w);
            worker_end_lost(w);
        }
        if (adopt.left > 0) {
            adopt_free(&adopt);
            adopt_rest(w);
            return;
        }
        strcpy(w->id, w->next_id);
        w->next_id[0] = '\0';
        waking_name(w->waking, &adopt);
        w->adopted = !w->adopt_again;
        worker_lives(w);
        w->look_now = w->look_held = w->limits_due = true;
        wide_look_at_all(w->wide);
        w->match_us = 0;
        w->duty_until_us = w->duty_until_redis_us = w->second_us = w->pause_until_us = 0;
        w->tick_us = now + w->lease_us / 4;
    }
    adopt_free(&adopt);
    worker_look(w);
}

static void add_token(struct task *task, void *arg)
{
    if (atomic_load(&task->asked) != ASKED_LOST)
        settle_token(arg, task->token);
}

/* The request, without the jobs that run. */
static void ask_adopt(struct weir_worker *w, struct args *a)
{
    struct adopt_call call = {.worker = w->next_id,
                              .old_worker = w->id,
                              .group = w->group,
                              .lease_us = w->lease_us,
                              .info = w->info,
                              .birth = w->birth,
                              .seen_us = w->seen_us,
                              .queues = {w->queues, w->queue_count}};

    args_init(a);
    w->awaited++; /* nothing else until the answer */
    w->turn_us = clock_mono_us();
    w->beat_us = clock_boot_us();
    adopt_request(a, w->prefix, -1, &call);
}

static void adopt_rest(struct weir_worker *w)
{
    struct args a;

    ask_adopt(w, &a);
    link_send(w->link, &a, REQUEST_TIMEOUT_S, on_adopted, w);
    args_free(&a);
}

/* What has ended comes along and is settled under the new id: an answer to adopt may be lost, and then nobody
 * knows which of the two ids holds the leases. */
void worker_adopt(struct weir_worker *w)
{
    struct args a;

    if (!w->next_id[0]) { /* a repeated adopt keeps its id */
        char random[17];

        job_make_id(random);
        snprintf(w->next_id, sizeof w->next_id, "w%s", random);
    }
    w->adopt_again = false;
    ask_adopt(w, &a);
    pool_each(w->pool, add_token, &a);
    for (struct task *task = w->finished.head; task; task = task->next)
        add_token(task, &a);
    link_send(w->link, &a, REQUEST_TIMEOUT_S, on_adopted, w);
    args_free(&a);
}

/* A connection alone is not enough: a full Redis without its functions is down again at the first call. */
static void on_up(void *arg)
{
    struct weir_worker *w = arg;

    w->permitted = false;
    worker_look(w);
}

static void on_down(void *arg, const struct error *why)
{
    struct weir_worker *w = arg;

    w->adopted = false;
    if (worker_is_hopeless(w, why))
        return;
    if (!w->down_since_us) {
        log_line(LOG_LEVEL_WARN, "%s; running jobs go on, connecting again until it answers", why->text);
        w->down_since_us = clock_mono_us();
    }
}
const struct link_events worker_link_events = {.on_up = on_up, .on_down = on_down};
