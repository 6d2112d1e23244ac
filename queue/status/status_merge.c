#include "queue/status/status_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b); /* each row begins with its name */
}

/* Rows of one kind, in order. */
struct rows {
    void *at;
    size_t count, size;
    int (*order)(const void *a, const void *b);
    void (*add)(void *row, void *other); /* what another partition has of the same; takes what it holds */
};

/* Merges more into rows, both in order, and sets *count to 0: what they hold is the others' now. false: out of memory, nothing has changed. */
static bool merge_rows(struct rows *rows, void *more, size_t *count)
{
    char *merged = calloc(rows->count + *count + 1, rows->size), *to = merged, *a = rows->at, *b = more;
    const char *a_end, *b_end;

    if (!merged)
        return false;
    a_end = a + rows->count * rows->size;
    b_end = b + *count * rows->size;
    for (; a < a_end || b < b_end; to += rows->size) {
        int order = a == a_end ? 1 : b == b_end ? -1 : rows->order(a, b);

        memcpy(to, order <= 0 ? a : b, rows->size);
        if (order == 0)
            rows->add(to, b);
        a += order <= 0 ? rows->size : 0;
        b += order >= 0 ? rows->size : 0;
    }
    free(rows->at);
    *count = 0;
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

/* Returns the earlier one that is known of two times since when jobs wait. */
static int64_t older(int64_t a_us, int64_t b_us)
{
    return a_us == 0 || (b_us != 0 && b_us < a_us) ? b_us : a_us;
}

static void add_queue(void *row, void *other)
{
    struct queue_status *q = row;
    const struct queue_status *more = other;
    bool earlier = paused_earlier(q->paused_us, more->paused_us) != q->paused_us;

    q->waiting += more->waiting;
    q->oldest_us = older(q->oldest_us, more->oldest_us);
    json_decref(earlier ? q->pause : more->pause);
    q->pause = earlier ? more->pause : q->pause;
    q->paused_us = earlier ? more->paused_us : q->paused_us;
}

static void add_jobs(struct type_status *t, const struct type_status *more, size_t at)
{
    int64_t sum = type_number(t, at) + type_number(more, at);

    memcpy((char *)t + at, &sum, sizeof sum);
}

/* True when b and not a can be foretold: where a type lives it has its limits, or where jobs of it wait. */
static bool is_better(const struct type_status *a, const struct type_status *b)
{
    if (a->limited != b->limited)
        return b->limited;
    return type_backlog(a) == 0 && type_backlog(b) > 0;
}

/* Adds a type; where it does not live, strays of it may wait. */
static void add_type(void *row, void *other)
{
    struct type_status *t = row, *more = other;
    bool better = is_better(t, more);
    struct type_status strays = better ? *t : *more;

    if (better)
        *t = *more;
    for (const struct jobs_count *c = jobs_counts; c->name; c++)
        add_jobs(t, &strays, c->at);
    t->rate_now += strays.rate_now;
    t->oldest_us = older(t->oldest_us, strays.oldest_us);
    t->own_costs |= strays.own_costs;
    t->served |= strays.served;
    t->in_pause |= strays.in_pause;
    t->pause = t->pause ? t->pause : json_incref(strays.pause);
    type_free(&strays);
}

/* A worker is registered in each partition, as another one. */
static int by_process(const void *a, const void *b)
{
    const struct worker_status *x = a, *y = b;
    int order = strcmp(x->host, y->host);

    return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

void status_sort_processes(struct status *status)
{
    qsort(status->workers, status->worker_count, sizeof *status->workers, by_process);
}

const struct worker_status *status_process(const struct status *status, const char *host, int64_t pid)
{
    struct worker_status wanted = {.pid = pid};

    if (status->worker_count == 0)
        return NULL;
    snprintf(wanted.host, sizeof wanted.host, "%s", host);
    return bsearch(&wanted, status->workers, status->worker_count, sizeof wanted, by_process);
}

static void add_process(void *row, void *other)
{
    struct worker_status *worker = row;
    const struct worker_status *more = other;

    worker->running += more->running;
    worker->seen_us = more->seen_us > worker->seen_us ? more->seen_us : worker->seen_us;
    worker->silent = worker->silent && more->silent;
    worker->heard = worker->heard || more->heard;
    json_decref(more->queues);
    json_decref(more->patterns);
}

/* Returns the earlier of two times, 0: never. */
static int64_t earlier(int64_t a_us, int64_t b_us)
{
    return !a_us || (b_us && b_us < a_us) ? b_us : a_us;
}

/* Adds the paused keys and the stopped queues of another partition. */
static bool add_named(struct status *all, const struct status *more)
{
    all->paused_key_count += more->paused_key_count;
    return json_object_update(all->paused_keys, more->paused_keys) == 0 &&
           json_object_update(all->stopped, more->stopped) == 0;
}

bool status_merge(struct status *all, struct status *more)
{
    struct rows queues = {all->queues, all->queue_count, sizeof *all->queues, by_name, add_queue};
    struct rows types = {all->types, all->type_count, sizeof *all->types, by_name, add_type};
    struct rows workers = {all->workers, all->worker_count, sizeof *all->workers, by_process, add_process};
    bool merged;

    status_sort_processes(all);
    status_sort_processes(more);
    merged = add_named(all, more) && merge_rows(&queues, more->queues, &more->queue_count) &&
             merge_rows(&workers, more->workers, &more->worker_count) &&
             merge_rows(&types, more->types, &more->type_count);
    *all = (struct status){
        .now_us = more->now_us,
        .dead = all->dead + more->dead,
        .later = all->later + more->later,
        .claimed_us = earlier(all->claimed_us, more->claimed_us),
        .dead_bytes = all->dead_bytes < 0 || more->dead_bytes < 0 ? -1 : all->dead_bytes + more->dead_bytes,
        .queues = queues.at,
        .types = types.at,
        .workers = workers.at,
        .queue_count = queues.count,
        .type_count = types.count,
        .worker_count = workers.count,
        .paused_keys = all->paused_keys,
        .paused_key_count = all->paused_key_count,
        .stopped = all->stopped};
    /* merge_rows() has put the new rows into `workers`: nothing freed is read. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    qsort(all->workers, all->worker_count, sizeof *all->workers, by_name);
    return merged;
}
