#include "queue/inspect/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/pages.h"
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

/* Where jobs of it are among the first of a queue, does one name its cost? */
static bool names_cost(const json_t *seen)
{
    const char *queue;
    json_t *names;

    json_object_foreach((json_t *)seen, queue, names)
    {
        if (json_is_true(names))
            return true;
    }
    return false;
}

/* May a job of it stand in a queue that is paused? */
static bool is_in_pause(const json_t *root, const json_t *type, const json_t *seen)
{
    const json_t *paused = json_object_get(root, "paused");
    const char *queue;
    json_t *names;

    json_object_foreach((json_t *)seen, queue, names)
    {
        if (json_object_get(paused, queue))
            return true;
    }
    return json_object_size(json_object_get(root, "unread")) > 0 ||
           json_is_true(json_object_get(type, "in_pause"));
}

static void read_type(struct type_status *t, const char *name, const json_t *type, const json_t *root,
                      int64_t now_us)
{
    const json_t *stats = json_object_get(type, "stats");
    const json_t *seen = json_object_get(json_object_get(root, "seen"), name);
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
    t->own_costs = json_is_true(json_object_get(type, "own_costs")) || names_cost(seen);
    t->next_start_us = t->finish_us = -1;
    *(json_object_get(json_object_get(root, "held"), name) ? &t->held : &t->parked) =
        positive(answer_int(type, "parked"));
    t->in_pause = is_in_pause(root, type, seen);
}

static void read_worker(struct worker_status *row, const char *name, const json_t *worker, int64_t now_us)
{
    const char *text = answer_text(worker, "info");
    json_t *info = answer_parse(text, strlen(text));

    copy(row->name, sizeof row->name, name);
    copy(row->host, sizeof row->host, answer_text(info, "host"));
    copy(row->version, sizeof row->version, answer_text(info, "version"));
    copy(row->instance, sizeof row->instance, answer_text(info, "instance"));
    copy(row->order, sizeof row->order, answer_text(worker, "order"));
    row->pid = answer_int(info, "pid");
    row->executors = answer_int(info, "executors");
    row->type_count = (int64_t)json_array_size(json_object_get(info, "types"));
    row->queues = json_incref(json_object_get(info, "queues"));
    row->silent = answer_int(worker, "until") <= now_us;
    row->running = answer_int(worker, "running");
    row->lease_us = (int64_t)(json_number_value(json_object_get(info, "lease")) * 1e6);
    row->seen_us = answer_int(worker, "until") - row->lease_us;
    json_decref(info);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b); /* each row begins with its name */
}

/* ---- What workers take */

static struct type_status *find_type(struct status *s, const char *name)
{
    return name && s->type_count ? bsearch(name, s->types, s->type_count, sizeof *s->types, by_name) : NULL;
}

/* Is it alive, and was not told to take no more jobs? */
static bool takes_jobs(const json_t *worker, int64_t now_us)
{
    return answer_int(worker, "until") > now_us && !*answer_text(worker, "order");
}

/* A worker that takes jobs, and runs so many. Its types become a set: there may be many. */
static void add_worker(struct status *s, json_t *info, int64_t running)
{
    const json_t *types = json_object_get(info, "types");
    int64_t free_now = positive(answer_int(info, "executors") - running);
    json_t *set = json_object();

    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *name = json_string_value(json_array_get(types, i));
        struct type_status *t = find_type(s, name);

        if (!t)
            continue;
        t->served = true;
        t->free += free_now;
        t->executors += answer_int(info, "executors");
        json_object_set_new(set, name, json_true());
    }
    json_object_set_new(info, "types", set);
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

        if (takes_jobs(worker, now_us) && json_object_get(json_object_get(info, "types"), type) &&
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

        if (info && takes_jobs(worker, s->now_us))
            add_worker(s, info, answer_int(worker, "running"));
        if (info)
            json_object_set_new(worker, "read", info);
    }
    for (size_t i = 0; i < s->type_count; i++) {
        struct type_status *t = &s->types[i];
        json_t *queues = json_object_get(json_object_get(root, "seen"), t->name), *names;
        const char *queue;

        json_object_foreach(queues, queue, names)
        {
            t->served = t->served && is_taken(workers, t->name, queue, s->now_us);
        }
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
        read_type(&s->types[s->type_count++], name, row, root, s->now_us);
    }
    json_object_foreach(workers, name, row)
    {
        read_worker(&s->workers[s->worker_count++], name, row, s->now_us);
    }
    qsort(s->queues, s->queue_count, sizeof *s->queues, by_name);
    qsort(s->types, s->type_count, sizeof *s->types, by_name);
    qsort(s->workers, s->worker_count, sizeof *s->workers, by_name);
    read_serving(s, root);
    return 0;
}

/* ---- Forecasts */

/* Those of its limits that exist, the one of its own name first. */
static int read_uses(struct limit_type *type, const json_t *use, const struct limits *limits, struct error *e)
{
    size_t count = json_array_size(use);

    type->limits = calloc(count + 1, sizeof *type->limits);
    if (!type->limits)
        return error_set(e, WEIR_EINTERNAL, "status: out of memory");
    for (size_t i = 0; i <= count; i++) {
        const char *name = i == 0 ? type->name : json_string_value(json_array_get(use, i - 1));

        if (name && limits_find(limits, name))
            snprintf(type->limits[type->limit_count++], sizeof *type->limits, "%s", name);
    }
    return 0;
}

static struct limit_type limit_type_of(const struct type_status *t, const json_t *root)
{
    int64_t cost = answer_int(json_object_get(json_object_get(root, "types"), t->name), "cost");
    struct limit_type type = {
        .cost = cost > 1 ? cost : 1,
        .waiting = t->waiting,
        .parked = t->parked + t->held,
        .held = json_object_get(json_object_get(root, "held"), t->name) != NULL,
        .own_costs = t->own_costs,
        .keyless = t->keyless,
        .learned = true,
        .served = t->served,
        .in_pause = t->in_pause,
        .free = t->free,
    };

    snprintf(type.name, sizeof type.name, "%s", t->name);
    return type;
}

/* All limits, with the types of an answer. */
static int read_limits(struct weir *w, int64_t now_us, const struct status *s, const json_t *root,
                       struct limits *limits)
{
    const json_t *rows = json_object_get(root, "types"), *asleep = json_object_get(root, "asleep"), *n;
    int rc = limits_ask(w, now_us, LIMITS_ALONE, limits);
    const char *name;

    free(limits->types);
    limits->types = calloc(s->type_count + 1, sizeof *limits->types);
    if (rc == 0 && !limits->types)
        rc = error_set(&w->error, WEIR_EINTERNAL, "status: out of memory");
    for (size_t i = 0; rc == 0 && i < s->type_count; i++) {
        struct limit_type *type = &limits->types[limits->type_count++];

        *type = limit_type_of(&s->types[i], root);
        rc = read_uses(type, json_object_get(json_object_get(rows, type->name), "use"), limits, &w->error);
    }
    json_object_foreach((json_t *)asleep, name, n)
    {
        limits->asleep += json_integer_value(n);
    }
    return rc == 0 ? limits_note_holds(limits, &w->error) : rc;
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

/* ---- Asking */

/* An answer comes in pages: the members of these, and what is seen in each queue. */
static const char *const lists[] = {"queues", "paused", "unread", "asleep", "held", "types", "workers"};

static int add_seen(json_t *root, const json_t *page)
{
    json_t *seen = json_object_get(root, "seen"), *queues;
    const char *name;
    int rc = 0;

    json_object_foreach(json_object_get(page, "seen"), name, queues)
    {
        json_t *known = json_object_get(seen, name);

        rc |= known ? json_object_update(known, queues) : json_object_set(seen, name, queues);
    }
    return rc;
}

/* What a worker says of itself stands beside the document. */
static void place_infos(const json_t *page)
{
    const json_t *raw = json_object_get(page, "raw");
    json_t *worker;
    const char *id;

    json_object_foreach(json_object_get(page, "workers"), id, worker)
    {
        json_object_set(worker, "info", json_array_get(raw, (size_t)answer_int(worker, "info")));
    }
}

static int take_page(const json_t *page, void *arg)
{
    json_t *root = arg;
    int rc = add_seen(root, page);

    place_infos(page);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (json_object_size(json_object_get(page, lists[i])) > 0)
            rc |= json_object_update(json_object_get(root, lists[i]), json_object_get(page, lists[i]));
    rc |= json_object_set(root, "now", json_object_get(page, "now"));
    rc |= json_object_set(root, "dead", json_object_get(page, "dead"));
    rc |= json_object_set(root, "dead_bytes", json_object_get(page, "dead_bytes"));
    rc |= json_object_set(root, "later", json_object_get(page, "later"));
    return rc < 0 ? WEIR_EINTERNAL : 0;
}

/* All pages of the partition that calls go to, from a place on, as one document; NULL after a failure, which is in w->error. */
static json_t *ask(struct weir *w, int64_t now_us, const json_t *place)
{
    json_t *root = json_pack("{s:{}}", "seen");
    const struct pages pages = {.w = w,
                                .script = "status",
                                .now_us = now_us,
                                .arg = root,
                                .take = take_page,
                                .place = place,
                                .here = true};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        json_object_set_new(root, lists[i], json_object());
    w->error.status = 0;
    if (root && pages_walk(&pages) == 0)
        return root;
    if (w->error.status == 0)
        error_set(&w->error, WEIR_EINTERNAL, "status: out of memory, or unexpected answer from Redis");
    json_decref(root);
    return NULL;
}

/* Both are to be freed, also after a failure. */
static int read_all(struct weir *w, int64_t now_us, struct status *status, struct limits *limits)
{
    json_t *root = ask(w, now_us, NULL);
    int rc = root ? read_rows(status, root, &w->error) : w->error.status;

    if (rc == 0)
        rc = read_limits(w, now_us, status, root, limits);
    json_decref(root);
    return rc;
}

/* Of the partition that calls go to. */
static int read_here(struct weir *w, struct status *status)
{
    struct limits limits = {0};
    int rc = read_all(w, -1, status, &limits);

    for (size_t i = 0; rc == 0 && i < status->type_count; i++)
        rc = foretell(&status->types[i], &limits, &w->error);
    limits_free(&limits);
    return rc;
}

/* ---- Partitions */

/* Rows of one kind, in order. */
struct rows {
    void *at;
    size_t count, size;
    int (*order)(const void *a, const void *b);
    void (*add)(void *row, void *other); /* what another partition has of the same; takes what it holds */
};

/* Merges more into rows, both in order. false: out of memory. */
static bool merge_rows(struct rows *rows, void *more, size_t count)
{
    char *merged = calloc(rows->count + count + 1, rows->size), *to = merged, *a = rows->at, *b = more;
    const char *a_end = a + rows->count * rows->size, *b_end = b + count * rows->size;

    for (; merged && (a < a_end || b < b_end); to += rows->size) {
        int order = a == a_end ? 1 : b == b_end ? -1 : rows->order(a, b);

        memcpy(to, order <= 0 ? a : b, rows->size);
        if (order == 0)
            rows->add(to, b);
        a += order <= 0 ? rows->size : 0;
        b += order >= 0 ? rows->size : 0;
    }
    if (!merged)
        return false;
    free(rows->at);
    rows->at = merged;
    rows->count = (size_t)(to - merged) / rows->size;
    return true;
}

int64_t paused_earlier(int64_t a_us, int64_t b_us)
{
    if (a_us <= 0 || b_us <= 0)
        return a_us > 0 || (a_us < 0 && b_us == 0) ? a_us : b_us;
    return a_us < b_us ? a_us : b_us;
}

static void add_queue(void *row, void *other)
{
    struct queue_status *q = row;
    const struct queue_status *more = other;

    q->waiting += more->waiting;
    q->paused_us = paused_earlier(q->paused_us, more->paused_us);
}

/* It has its limits where it lives; elsewhere strays of it may wait. */
static void add_type(void *row, void *other)
{
    struct type_status *t = row, *more = other;
    const struct type_status strays = more->limited && !t->limited ? *t : *more;

    if (more->limited && !t->limited)
        *t = *more;
    t->waiting += strays.waiting;
    t->parked += strays.parked;
    t->held += strays.held;
    t->aside += strays.aside;
    t->running += strays.running;
    t->scheduled += strays.scheduled;
    t->done += strays.done;
    t->retried += strays.retried;
    t->dead += strays.dead;
    t->cancelled += strays.cancelled;
    t->rate_now += strays.rate_now;
    t->own_costs |= strays.own_costs;
    t->served |= strays.served;
    t->in_pause |= strays.in_pause;
    json_decref(strays.waits_for);
}

/* A worker is registered in each partition, as another one. */
static int by_process(const void *a, const void *b)
{
    const struct worker_status *x = a, *y = b;
    int order = strcmp(x->host, y->host);

    return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

static void add_process(void *row, void *other)
{
    struct worker_status *worker = row;
    const struct worker_status *more = other;

    worker->running += more->running;
    worker->seen_us = more->seen_us > worker->seen_us ? more->seen_us : worker->seen_us;
    worker->silent = worker->silent && more->silent;
    json_decref(more->queues);
}

static bool merge_all(struct status *all, struct status *more)
{
    struct rows queues = {all->queues, all->queue_count, sizeof *all->queues, by_name, add_queue};
    struct rows types = {all->types, all->type_count, sizeof *all->types, by_name, add_type};
    struct rows workers = {all->workers, all->worker_count, sizeof *all->workers, by_process, add_process};
    bool merged;

    qsort(all->workers, all->worker_count, sizeof *all->workers, by_process);
    qsort(more->workers, more->worker_count, sizeof *more->workers, by_process);
    merged = merge_rows(&queues, more->queues, more->queue_count) &&
             merge_rows(&workers, more->workers, more->worker_count) &&
             merge_rows(&types, more->types, more->type_count);
    if (merged)
        more->type_count = more->worker_count = 0; /* what they hold is in the others now */
    *all = (struct status){
        .now_us = more->now_us,
        .dead = all->dead + more->dead,
        .later = all->later + more->later,
        .dead_bytes = all->dead_bytes < 0 || more->dead_bytes < 0 ? -1 : all->dead_bytes + more->dead_bytes,
        .queues = queues.at,
        .types = types.at,
        .workers = workers.at,
        .queue_count = queues.count,
        .type_count = types.count,
        .worker_count = workers.count};
    qsort(all->workers, all->worker_count, sizeof *all->workers, by_name);
    return merged;
}

static int read_and_merge(struct weir *w, void *arg)
{
    struct status *all = arg, more = {0};
    int rc = read_here(w, w->at == 0 ? all : &more);

    if (rc == 0 && w->at > 0 && !merge_all(all, &more))
        rc = error_set(&w->error, WEIR_EINTERNAL, "status: out of memory");
    status_free(&more);
    return rc;
}

int status_read(struct weir *w, struct status *status)
{
    *status = (struct status){0};
    return client_look_at_all(w, read_and_merge, status);
}

static int read_workers(struct weir *w, void *arg)
{
    json_t *from = json_pack("[s, s]", "workers", "0"), *root = from ? ask(w, -1, from) : NULL;
    struct status *all = arg, more = {0};
    int rc = root ? read_rows(w->at == 0 ? all : &more, root, &w->error) : w->error.status;

    if (!from || (rc == 0 && more.workers && !merge_all(all, &more)))
        rc = error_set(&w->error, WEIR_EINTERNAL, "status: out of memory");
    status_free(&more);
    json_decref(root);
    json_decref(from);
    return rc;
}

int status_workers(struct weir *w, struct status *status)
{
    *status = (struct status){0};
    return client_look_at_all(w, read_workers, status);
}

int status_limits(struct weir *w, int64_t now_us, struct limits *limits)
{
    struct status status = {0};
    int rc;

    *limits = (struct limits){0};
    rc = read_all(w, now_us, &status, limits);
    status_free(&status);
    return rc;
}

void status_free(struct status *status)
{
    for (size_t i = 0; i < status->type_count; i++)
        json_decref(status->types[i].waits_for);
    for (size_t i = 0; i < status->worker_count; i++)
        json_decref(status->workers[i].queues);
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
