#include "serve/metrics.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "queue/history/history.h"
#include "queue/status/status.h"
#include "serve/metrics_limits.h"
#include "serve/page/page.h"
#include "view/format.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- Which have rows of their own */

/* Metrics show of a status the first METRICS_ROWS of each list at most, which is sorted. */
struct shown {
    const struct status *all;
    const struct type_status **types;
    const struct queue_status **queues;
    size_t type_count, queue_count;
};

static int64_t jobs_of(const struct type_status *t)
{
    return t->waiting + t->parked + t->held + t->running + t->scheduled + t->aside;
}

static int more_jobs(const void *a, const void *b)
{
    const struct type_status *x = *(const struct type_status *const *)a,
                             *y = *(const struct type_status *const *)b;
    int64_t one = jobs_of(x), other = jobs_of(y);

    if (one != other)
        return one < other ? 1 : -1;
    return x->done != y->done ? (x->done < y->done) - (x->done > y->done) : strcmp(x->name, y->name);
}

static int more_waiting(const void *a, const void *b)
{
    const struct queue_status *x = *(const struct queue_status *const *)a,
                              *y = *(const struct queue_status *const *)b;

    return x->waiting != y->waiting ? (x->waiting < y->waiting) - (x->waiting > y->waiting)
                                    : strcmp(x->name, y->name);
}

/* false: out of memory. shown_free also then. */
static bool choose(struct shown *shown, const struct status *s)
{
    *shown = (struct shown){.all = s,
                            .types = calloc(s->type_count + 1, sizeof *shown->types),
                            .queues = calloc(s->queue_count + 1, sizeof *shown->queues)};
    if (!shown->types || !shown->queues)
        return false;
    for (size_t i = 0; i < s->type_count; i++)
        shown->types[i] = &s->types[i];
    for (size_t i = 0; i < s->queue_count; i++)
        shown->queues[i] = &s->queues[i];
    qsort(shown->types, s->type_count, sizeof *shown->types, more_jobs);
    qsort(shown->queues, s->queue_count, sizeof *shown->queues, more_waiting);
    shown->type_count = s->type_count < METRICS_ROWS ? s->type_count : METRICS_ROWS;
    shown->queue_count = s->queue_count < METRICS_ROWS ? s->queue_count : METRICS_ROWS;
    return true;
}

static void shown_free(struct shown *shown)
{
    free(shown->types);
    free(shown->queues);
}

/* ---- Types */

static int64_t sum_at(const struct status *s, size_t offset)
{
    int64_t sum = 0;

    for (size_t i = 0; i < s->type_count; i++)
        sum += type_number(&s->types[i], offset);
    return sum;
}

/* The counts of one kind: of each type that is shown, and of all types. */
static void write_by_type(struct metrics *m, const struct shown *s, enum jobs_kind kind, const char *metric,
                          const char *label)
{
    for (size_t i = 0; i < s->type_count; i++)
        for (const struct jobs_count *c = jobs_counts; c->name; c++)
            if (c->kind == kind)
                metrics_row(m, metric, "type", s->types[i]->name, label, c->name,
                            (double)type_number(s->types[i], c->at));
}

static void write_of_all(struct metrics *m, const struct shown *s, enum jobs_kind kind, const char *metric,
                         const char *label)
{
    for (const struct jobs_count *c = jobs_counts; c->name; c++)
        if (c->kind == kind)
            metrics_row(m, metric, label, c->name, NULL, NULL, (double)sum_at(s->all, c->at));
}

static void write_jobs(struct metrics *m, const struct shown *s)
{
    metrics_family(m, "weir_jobs", "gauge", "Jobs by type and where they are.");
    write_by_type(m, s, JOBS_NOW, "weir_jobs", "state");
    metrics_family(m, "weir_jobs_all", "gauge", "Jobs of all types by where they are.");
    write_of_all(m, s, JOBS_NOW, "weir_jobs_all", "state");
}

static void write_ends(struct metrics *m, const struct shown *s)
{
    metrics_family(m, "weir_job_ends_total", "counter", "Ends of jobs and of attempts (retried), by type.");
    write_by_type(m, s, JOBS_ENDED, "weir_job_ends_total", "outcome");
    metrics_family(m, "weir_job_ends_all_total", "counter", "Ends of jobs and of attempts of all types.");
    write_of_all(m, s, JOBS_ENDED, "weir_job_ends_all_total", "outcome");
    metrics_alone(m, "weir_reaped_jobs_total", "counter",
                  "Jobs of all types that were taken back from workers that were silent.",
                  (double)sum_at(s->all, offsetof(struct type_status, reaped)));
    metrics_alone(m, "weir_stale_ends_total", "counter",
                  "Ends of jobs of all types that changed nothing: the worker had lost the job by then.",
                  (double)sum_at(s->all, offsetof(struct type_status, stale)));
}

/* A time that is known, and not that of what is paused until somebody resumes it. */
static bool is_foreseen(int64_t us)
{
    return us > 0 && us < FORMAT_ENDLESS_US;
}

static void write_rates(struct metrics *m, const struct shown *s)
{
    metrics_family(m, "weir_type_rate_limit", "gauge",
                   "Starts a second that the limits of a type let through now.");
    for (size_t i = 0; i < s->type_count; i++)
        if (s->types[i]->rate > 0)
            metrics_row(m, "weir_type_rate_limit", "type", s->types[i]->name, NULL, NULL, s->types[i]->rate);
    metrics_family(m, "weir_type_next_start_timestamp_seconds", "gauge",
                   "When the next job of a type starts.");
    for (size_t i = 0; i < s->type_count; i++)
        if (is_foreseen(s->types[i]->next_start_us))
            metrics_row(m, "weir_type_next_start_timestamp_seconds", "type", s->types[i]->name, NULL, NULL,
                        (double)s->types[i]->next_start_us / 1e6);
    metrics_family(m, "weir_type_backlog_end_timestamp_seconds", "gauge",
                   "When the last job that waits now starts, at the earliest.");
    for (size_t i = 0; i < s->type_count; i++)
        if (is_foreseen(s->types[i]->finish_us))
            metrics_row(m, "weir_type_backlog_end_timestamp_seconds", "type", s->types[i]->name, NULL, NULL,
                        (double)s->types[i]->finish_us / 1e6);
}

/* Since when its first job waits. */
static void age(struct metrics *m, const char *metric, const char *label, const char *name, int64_t since_us,
                int64_t now_us)
{
    if (since_us > 0)
        metrics_row(m, metric, label, name, NULL, NULL,
                    (double)(now_us > since_us ? now_us - since_us : 0) / 1e6);
}

static void write_ages(struct metrics *m, const struct shown *s)
{
    metrics_family(m, "weir_type_oldest_age_seconds", "gauge",
                   "How long the first job of a type waits, of those that were looked at.");
    for (size_t i = 0; i < s->type_count; i++)
        age(m, "weir_type_oldest_age_seconds", "type", s->types[i]->name, s->types[i]->oldest_us,
            s->all->now_us);
}

static const char *what_it_waits_for(const json_t *waits)
{
    return json_object_get(waits, "paused") && !json_object_get(waits, "gate") ? "pause"
           : json_object_get(waits, "type")                                    ? "worker"
           : json_object_get(waits, "executors")                               ? "executor"
           : json_object_get(waits, "by")                                      ? "key"
                                                                               : "gate";
}

static void write_wait(struct metrics *m, const struct type_status *t)
{
    metrics_add(m, "weir_type_waits_for");
    metrics_label(m, "type", t->name, true);
    metrics_label(m, "what", what_it_waits_for(t->waits_for), false);
    metrics_label(m, "gate", answer_text(t->waits_for, "gate"), false);
    metrics_label(m, "limit", answer_text(t->waits_for, "limit_name"), false);
    metrics_add(m, "}");
    metrics_value(m, 1);
}

static void write_waits(struct metrics *m, const struct shown *s)
{
    metrics_family(m, "weir_type_paused", "gauge",
                   "1: somebody has paused the type; no row: it is not paused.");
    for (size_t i = 0; i < s->type_count; i++)
        if (s->types[i]->pause)
            metrics_row(m, "weir_type_paused", "type", s->types[i]->name, NULL, NULL, 1);
    metrics_family(m, "weir_type_waits_for", "gauge",
                   "1: what the next job of a type waits for last: a gate of a limit, a key, an executor, a "
                   "worker, the end of a pause.");
    for (size_t i = 0; i < s->type_count; i++)
        if (s->types[i]->waits_for)
            write_wait(m, s->types[i]);
}

static double spent(const json_t *total, const char *what)
{
    return (double)answer_int(json_object_get(total, "spent"), what) / 1000;
}

static void write_times(struct metrics *m, const struct shown *s, const json_t *totals)
{
    static const char *const causes[] = {"rate", "key", "concurrency", "pause", "executor"};

    metrics_family(m, "weir_job_starts_total", "counter", "Jobs that were started, by type.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        metrics_row(m, "weir_job_starts_total", "type", s->types[i]->name, NULL, NULL,
                    (double)answer_int(json_array_get(totals, i), "starts"));
    metrics_family(m, "weir_job_throttled_total", "counter",
                   "Attempts whose provider said stop (429), by type; no attempt is used up.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        metrics_row(m, "weir_job_throttled_total", "type", s->types[i]->name, NULL, NULL,
                    (double)answer_int(json_array_get(totals, i), "throttled"));
    metrics_family(m, "weir_job_run_seconds", "histogram", "How long handlers ran.");
    for (size_t i = 0; i < json_array_size(totals); i++) {
        const json_t *total = json_array_get(totals, i);

        metrics_histogram(m, "weir_job_run_seconds", s->types[i]->name, NULL, json_object_get(total, "run"),
                          spent(total, "run"));
    }
    metrics_family(m, "weir_job_wait_seconds", "histogram",
                   "From enqueue to start, by what let a job start that had waited for it last.");
    for (size_t i = 0; i < json_array_size(totals); i++) {
        const json_t *total = json_array_get(totals, i), *wait = json_object_get(total, "wait");

        for (size_t k = 0; k < COUNT(causes); k++)
            if (s->types[i]->limited || json_object_get(wait, causes[k]))
                metrics_histogram(m, "weir_job_wait_seconds", s->types[i]->name, causes[k],
                                  json_object_get(wait, causes[k]), spent(total, causes[k]));
    }
}

static void write_types(struct metrics *m, struct weir *w, const struct shown *s)
{
    const char *names[METRICS_ROWS];
    json_t *totals;

    for (size_t i = 0; i < s->type_count; i++)
        names[i] = s->types[i]->name;
    if (history_totals(w, false, names, s->type_count, &totals) < 0) {
        m->failed = true;
        return;
    }
    write_jobs(m, s);
    write_ages(m, s);
    write_ends(m, s);
    write_rates(m, s);
    write_waits(m, s);
    write_times(m, s, totals);
    json_decref(totals);
}

/* ---- Queues, workers, what is dead */

static void write_queues(struct metrics *m, const struct shown *s)
{
    metrics_family(m, "weir_queue_jobs", "gauge", "Jobs that wait in a queue.");
    for (size_t i = 0; i < s->queue_count; i++)
        metrics_row(m, "weir_queue_jobs", "queue", s->queues[i]->name, NULL, NULL,
                    (double)s->queues[i]->waiting);
    metrics_family(m, "weir_queue_oldest_age_seconds", "gauge", "How long the first job of a queue waits.");
    for (size_t i = 0; i < s->queue_count; i++)
        age(m, "weir_queue_oldest_age_seconds", "queue", s->queues[i]->name, s->queues[i]->oldest_us,
            s->all->now_us);
    metrics_family(m, "weir_queue_paused", "gauge", "1: the queue is paused.");
    for (size_t i = 0; i < s->queue_count; i++)
        metrics_row(m, "weir_queue_paused", "queue", s->queues[i]->name, NULL, NULL,
                    s->queues[i]->paused_us != 0);
}

static void write_workers(struct metrics *m, const struct status *s)
{
    int64_t silent = 0, quiet = 0, executors = 0, running = 0, seen_us = 0;

    for (size_t i = 0; i < s->worker_count; i++) {
        const struct worker_status *worker = &s->workers[i];

        silent += worker->silent;
        quiet += !worker->silent && *worker->order != '\0';
        executors += worker->silent ? 0 : worker->executors;
        running += worker->running;
        seen_us = worker->seen_us > seen_us ? worker->seen_us : seen_us;
    }
    metrics_family(m, "weir_workers", "gauge",
                   "Worker processes by state; quiet ones were told to take no more jobs.");
    metrics_row(m, "weir_workers", "state", "working", NULL, NULL,
                (double)((int64_t)s->worker_count - silent - quiet));
    metrics_row(m, "weir_workers", "state", "quiet", NULL, NULL, (double)quiet);
    metrics_row(m, "weir_workers", "state", "silent", NULL, NULL, (double)silent);
    metrics_alone(m, "weir_executors", "gauge", "Executors of all workers.", (double)executors);
    metrics_alone(m, "weir_executors_busy", "gauge", "Jobs that workers have in flight.", (double)running);
    if (seen_us > 0)
        metrics_alone(m, "weir_last_heartbeat_timestamp_seconds", "gauge",
                      "When the worker that was last heard of sent its heartbeat.", (double)seen_us / 1e6);
    if (s->claimed_us > 0)
        metrics_alone(
            m, "weir_last_claim_timestamp_seconds", "gauge",
            "When a claim last took jobs or took charge of waiting jobs; an idle worker does so each second.",
            (double)s->claimed_us / 1e6);
}

static void write_dead(struct metrics *m, const struct status *s)
{
    metrics_alone(m, "weir_dead_jobs", "gauge", "Dead jobs that are kept.", (double)s->dead);
    if (s->dead_bytes >= 0)
        metrics_alone(m, "weir_dead_bytes", "gauge", "Bytes of these.", (double)s->dead_bytes);
}

/* ---- */

/* false: out of memory. */
static bool foretell(struct metrics *m, struct page_cache *cache, const struct shown *s)
{
    for (size_t i = 0; i < s->type_count; i++)
        if (page_cache_foretell(cache, s->types[i], m->e) < 0)
            return false;
    return true;
}

static void write_all(struct metrics *m, struct weir *w, struct page_cache *cache,
                      const struct page_reading *r, int64_t ping_us)
{
    const struct status *s = r->status;
    struct shown shown;

    metrics_alone(m, "weir_redis_up", "gauge", "1: Redis answers.", 1);
    metrics_alone(m, "weir_redis_round_trip_seconds", "gauge", "How long Redis took to answer a PING.",
                  (double)ping_us / 1e6);
    metrics_alone(m, "weir_status_seconds", "gauge", "How long it took to read queues, types and workers.",
                  (double)r->took_us / 1e6);
    metrics_alone(m, "weir_status_age_seconds", "gauge",
                  "How long ago that was: in a large namespace it is used for longer.",
                  (double)r->age_us / 1e6);
    metrics_alone(m, "weir_types", "gauge", "Types that are known; the 200 with the most jobs have rows.",
                  (double)s->type_count);
    metrics_alone(m, "weir_queues", "gauge", "Queues that are known; the 200 with the most jobs have rows.",
                  (double)s->queue_count);
    if (choose(&shown, s) && foretell(m, cache, &shown)) {
        write_types(m, w, &shown);
        write_queues(m, &shown);
    } else {
        m->failed = true;
        error_no_memory(m->e, "metrics");
    }
    shown_free(&shown);
    write_workers(m, s);
    write_dead(m, s);
    metrics_limits(m, w, r->limits);
}

int metrics_write(struct weir *w, struct page_cache *cache, struct text *out)
{
    struct page_cache *own = cache ? NULL : page_cache_new(), *used = cache ? cache : own;
    struct metrics m = {.out = out, .e = &w->error};
    struct page_reading reading;
    int64_t ping_us;
    int rc = used ? client_ping(w, &ping_us) /* first: behind a call that had to wait, Redis is free */
                  : error_no_memory(&w->error, "metrics");

    if (rc == 0)
        rc = page_cache_read(w, used, &reading);
    if (rc == 0)
        write_all(&m, w, used, &reading, ping_us);
    page_cache_free(own);
    if (rc == 0 && m.failed)
        rc = w->error.status;
    if (rc == WEIR_EUNREACHABLE) {
        out->len = 0;
        m.failed = false;
        metrics_alone(&m, "weir_redis_up", "gauge", "1: Redis answers.", 0);
        rc = m.failed ? w->error.status : 0;
    }
    return rc;
}
