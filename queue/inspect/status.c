#include "queue/inspect/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/answer.h"
#include "core/script/script.h"
#include "queue/inspect/waits.h"
#include "queue/job/job.h"
#include "queue/limits/limits.h"

static void copy(char *out, size_t size, const char *text)
{
    strncpy(out, text, size - 1);
    out[size - 1] = '\0';
}

static int64_t positive(int64_t n)
{
    return n > 0 ? n : 0;
}

/* Starts a second since the mark before last, which is one to two seconds old while the type runs. */
static double rate_now(const json_t *stats, int64_t started, int64_t now_us)
{
    int64_t mark_us = answer_int(stats, "mark_us"), last_us = answer_int(stats, "last_us");
    bool lively = now_us - mark_us < 2000000 && last_us > 0 && now_us - last_us < 10000000;
    int64_t since_us = lively ? last_us : mark_us;
    int64_t before = answer_int(stats, lively ? "last" : "mark");

    if (mark_us == 0 || now_us <= since_us)
        return 0;
    return (double)positive(started - before) / ((double)(now_us - since_us) / 1e6);
}

static void read_type(struct type_status *t, const char *name, const json_t *type, int64_t now_us)
{
    const json_t *stats = json_object_get(type, "stats");
    int64_t pulled = answer_int(stats, "pulled"), served = answer_int(stats, "served"),
            back = answer_int(stats, "back");

    copy(t->name, sizeof t->name, name);
    t->done = answer_int(stats, "done");
    t->retried = answer_int(stats, "retried");
    t->dead = answer_int(stats, "dead");
    t->cancelled = answer_int(stats, "cancelled");
    t->scheduled = positive(answer_int(stats, "scheduled"));
    t->waiting = positive(answer_int(stats, "enqueued") - pulled - answer_int(stats, "parked") -
                          answer_int(stats, "dropped"));
    t->running = positive(pulled + served - t->done - t->retried - t->dead - back);
    t->aside = positive(answer_int(stats, "set_aside"));
    t->rate_now = rate_now(stats, pulled + served - answer_int(stats, "unstarted"), now_us);
    keyless_read(json_object_get(type, "keyless"), &t->keyless);
    t->own_costs = json_is_true(json_object_get(type, "own_costs"));
    t->next_start_us = t->finish_us = -1;
    *(json_is_true(json_object_get(type, "held")) ? &t->held : &t->parked) = answer_int(type, "parked");
    t->in_pause = json_is_true(json_object_get(type, "in_pause"));
}

static void read_worker(struct worker_status *row, const char *name, const json_t *worker)
{
    const char *text = answer_text(worker, "info");
    json_t *info = answer_parse(text, strlen(text));

    copy(row->name, sizeof row->name, name);
    copy(row->host, sizeof row->host, answer_text(info, "host"));
    row->pid = answer_int(info, "pid");
    row->running = answer_int(worker, "running");
    row->seen_us =
        answer_int(worker, "until") - (int64_t)(json_number_value(json_object_get(info, "lease")) * 1e6);
    json_decref(info);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b); /* each row begins with its name */
}

/* ---- What workers take */

static bool has_name(const json_t *names, const char *name)
{
    for (size_t i = 0; i < json_array_size(names); i++)
        if (json_string_length(json_array_get(names, i)) > 0 &&
            strcmp(json_string_value(json_array_get(names, i)), name) == 0)
            return true;
    return false;
}

static struct type_status *find_type(struct status *s, const char *name)
{
    return name && s->type_count ? bsearch(name, s->types, s->type_count, sizeof *s->types, by_name) : NULL;
}

/* A worker that is alive, and runs so many jobs. */
static void add_worker(struct status *s, const json_t *info, int64_t running)
{
    const json_t *types = json_object_get(info, "types");
    int64_t free_now = positive(answer_int(info, "executors") - running);

    for (size_t i = 0; i < json_array_size(types); i++) {
        struct type_status *t = find_type(s, json_string_value(json_array_get(types, i)));

        if (t) {
            t->served = true;
            t->free += free_now;
        }
    }
}

/* By these names and patterns. */
static bool is_served(const json_t *words, const char *queue)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));

        if (word && pattern_serves(word, span_str(queue)))
            return true;
    }
    return false;
}

/* Does a worker that is alive take that type from that queue? */
static bool is_taken(json_t *workers, const char *type, const char *queue, int64_t now_us)
{
    const char *id;
    json_t *worker;

    json_object_foreach(workers, id, worker)
    {
        json_t *info = json_object_get(worker, "read");

        if (answer_int(worker, "until") > now_us && has_name(json_object_get(info, "types"), type) &&
            is_served(json_object_get(info, "queues"), queue))
            return true;
    }
    return false;
}

/* Which types are served: by a worker, and from each queue where jobs of them were seen. */
static void read_serving(struct status *s, json_t *root)
{
    json_t *workers = json_object_get(root, "workers"), *worker;
    const char *id;

    json_object_foreach(workers, id, worker)
    {
        const char *text = answer_text(worker, "info");
        json_t *info = answer_parse(text, strlen(text));

        if (info && answer_int(worker, "until") > s->now_us)
            add_worker(s, info, answer_int(worker, "running"));
        if (info)
            json_object_set_new(worker, "read", info);
    }
    for (size_t i = 0; i < s->type_count; i++) {
        struct type_status *t = &s->types[i];
        json_t *queues = json_object_get(json_object_get(json_object_get(root, "types"), t->name), "queues");

        for (size_t q = 0; t->served && q < json_array_size(queues); q++)
            t->served = is_taken(workers, t->name, json_string_value(json_array_get(queues, q)), s->now_us);
    }
}

static int read_rows(struct status *s, json_t *root, struct error *e)
{
    json_t *queues = json_object_get(root, "queues"), *types = json_object_get(root, "types");
    json_t *workers = json_object_get(root, "workers"), *row;
    const char *name;

    s->queues = calloc(json_object_size(queues) + 1, sizeof *s->queues);
    s->types = calloc(json_object_size(types) + 1, sizeof *s->types);
    s->workers = calloc(json_object_size(workers) + 1, sizeof *s->workers);
    if (!s->queues || !s->types || !s->workers)
        return error_set(e, WEIR_EINTERNAL, "status: out of memory");
    s->now_us = answer_int(root, "now");
    s->dead = answer_int(root, "dead");
    s->later = answer_int(root, "later");
    s->dead_bytes = answer_int(root, "dead_bytes");
    json_object_foreach(queues, name, row)
    {
        copy(s->queues[s->queue_count].name, sizeof s->queues->name, name);
        s->queues[s->queue_count].paused_us = answer_int(json_object_get(root, "paused"), name);
        s->queues[s->queue_count++].waiting = json_integer_value(row);
    }
    json_object_foreach(types, name, row)
    {
        read_type(&s->types[s->type_count++], name, row, s->now_us);
    }
    json_object_foreach(workers, name, row)
    {
        read_worker(&s->workers[s->worker_count++], name, row);
    }
    qsort(s->queues, s->queue_count, sizeof *s->queues, by_name);
    qsort(s->types, s->type_count, sizeof *s->types, by_name);
    qsort(s->workers, s->worker_count, sizeof *s->workers, by_name);
    read_serving(s, root);
    return 0;
}

/* ---- Forecasts */

static void learn(struct limit_type *type, const struct type_status *t)
{
    type->learned = true;
    type->own_costs = t->own_costs;
    type->served = t->served;
    type->in_pause = t->in_pause;
    type->free = t->free;
    type->keyless = t->keyless;
}

static void read_rule(struct type_status *t, const struct limits *limits, const struct limit_type *type)
{
    const struct rule *rule = limits_rule(limits, type);
    char period[32];

    if (!rule)
        return;
    duration_format(rule->period_us, period);
    snprintf(t->rule, sizeof t->rule, "%" PRId64 "/%s", rule->count, period);
}

/* When what waits of a type starts. */
static int foretell(struct type_status *t, const struct limits *limits, struct error *e)
{
    struct limit_type *type = limits_type(limits, t->name);
    struct forecast next, last;

    t->limited = type && type->limit_count > 0;
    if (t->waiting + t->parked + t->held > 0 && (t->held || !t->served))
        t->waits_for = json_pack("{s:s}", "type", t->name);
    if (!t->limited)
        return 0;
    t->rate = limits_rate(limits, type);
    read_rule(t, limits, type);
    learn(type, t);
    type->parked = t->parked;
    type->waiting = t->waiting;
    if (t->waiting + t->parked == 0 || t->held)
        return 0;
    if (!t->waits_for)
        t->waits_for = waits_of_type(limits, type);
    if (forecast_type(limits, type, NULL, &last, e) < 0)
        return e->status;
    type->parked = 1;
    type->waiting = 0;
    if (forecast_type(limits, type, NULL, &next, e) < 0)
        return e->status;
    type->parked = t->parked;
    type->waiting = t->waiting;
    t->next_start_us = next.last_us == GATE_NEVER ? -1 : next.last_us;
    t->finish_us = last.last_us == GATE_NEVER ? -1 : last.last_us;
    t->because = last.because;
    return 0;
}

static int read_limits(struct weir *w, struct status *s)
{
    struct limits limits;
    int rc = limits_read(w, NULL, &limits);

    for (size_t i = 0; rc == 0 && i < s->type_count; i++)
        rc = foretell(&s->types[i], &limits, &w->error);
    limits_free(&limits);
    return rc;
}

/* All but what follows from the limits. */
static int ask(struct weir *w, int64_t now_us, struct status *status)
{
    json_t *root;
    struct args a;
    int rc;

    memset(status, 0, sizeof *status);
    args_init(&a);
    script_begin(&a, "status", w->prefix, now_us);
    rc = client_ask(w, "status", &a, &root);
    if (rc == 0)
        rc = read_rows(status, root, &w->error);
    json_decref(root);
    return rc;
}

int status_read(struct weir *w, struct status *status)
{
    int rc = ask(w, -1, status);

    return rc == 0 ? read_limits(w, status) : rc;
}

int status_learn(struct weir *w, int64_t now_us, struct limits *limits)
{
    struct status status;
    int rc = ask(w, now_us, &status);

    for (size_t i = 0; rc == 0 && i < status.type_count; i++) {
        struct limit_type *type = limits_type(limits, status.types[i].name);

        if (type)
            learn(type, &status.types[i]);
    }
    status_free(&status);
    return rc;
}

int status_limits(struct weir *w, struct limits *limits)
{
    int rc = limits_read(w, NULL, limits);

    return rc == 0 ? status_learn(w, -1, limits) : rc;
}

void status_free(struct status *status)
{
    for (size_t i = 0; i < status->type_count; i++)
        json_decref(status->types[i].waits_for);
    free(status->queues);
    free(status->types);
    free(status->workers);
    memset(status, 0, sizeof *status);
}

const struct type_status *status_type(const struct status *status, const char *name)
{
    for (size_t i = 0; i < status->type_count; i++)
        if (strcmp(status->types[i].name, name) == 0)
            return &status->types[i];
    return NULL;
}
