#include "serve/metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "queue/inspect/history.h"
#include "queue/inspect/status.h"
#include "view/limits.h"

#define LABEL_SIZE 800 /* each byte of a name may be escaped */

struct metrics {
    struct text *out;
    struct error *e;
    bool failed; /* out of memory, or Redis; *e says why */
};

/* ---- Lines */

static void add(struct metrics *m, const char *text)
{
    if (!m->failed && text_add(m->out, text, strlen(text), m->e) < 0)
        m->failed = true;
}

/* What stands before its rows. */
static void family(struct metrics *m, const char *name, const char *kind, const char *help)
{
    add(m, "# HELP ");
    add(m, name);
    add(m, " ");
    add(m, help);
    add(m, "\n# TYPE ");
    add(m, name);
    add(m, " ");
    add(m, kind);
    add(m, "\n");
}

/* name="value", with what the format escapes. */
static void label(struct metrics *m, const char *name, const char *value, bool first)
{
    char text[LABEL_SIZE];
    size_t len = 0;

    for (; *value && len < sizeof text - 2; value++) {
        if (*value == '\\' || *value == '"' || *value == '\n')
            text[len++] = '\\';
        text[len++] = *value == '\n' ? 'n' : *value;
    }
    text[len] = '\0';
    add(m, first ? "{" : ",");
    add(m, name);
    add(m, "=\"");
    add(m, text);
    add(m, "\"");
}

static void value(struct metrics *m, double number)
{
    char text[40];

    snprintf(text, sizeof text, " %.17g\n", number);
    add(m, text);
}

/* A row; of labels those that are not NULL. */
static void row(struct metrics *m, const char *metric, const char *name, const char *of, const char *other,
                const char *which, double number)
{
    add(m, metric);
    if (name)
        label(m, name, of, true);
    if (other)
        label(m, other, which, !name);
    if (name || other)
        add(m, "}");
    value(m, number);
}

static void alone(struct metrics *m, const char *name, const char *kind, const char *help, double number)
{
    family(m, name, kind, help);
    row(m, name, NULL, NULL, NULL, NULL, number);
}

/* ---- Histograms: a list of [upper bound in ms, n] */

static void bucket(struct metrics *m, const char *metric, const char *type, const char *cause, double most_s,
                   int64_t n)
{
    char bound[40] = "+Inf";

    if (most_s > 0)
        snprintf(bound, sizeof bound, "%.10g", most_s);
    add(m, metric);
    add(m, "_bucket");
    label(m, "type", type, true);
    if (cause)
        label(m, "cause", cause, false);
    label(m, "le", bound, false);
    add(m, "}");
    value(m, (double)n);
}

static void part(struct metrics *m, const char *metric, const char *which, const char *type,
                 const char *cause, double number)
{
    add(m, metric);
    row(m, which, "type", type, cause ? "cause" : NULL, cause, number);
}

/* All buckets from 1 ms to 12 days: Prometheus wants the same ones each time. */
static void histogram(struct metrics *m, const char *metric, const char *type, const char *cause,
                      const json_t *list, double sum_s)
{
    int64_t n = 0;
    size_t at = 0;

    for (int power = 0; power <= 30; power++) {
        double most_ms = (double)(INT64_C(1) << power);

        for (; at < json_array_size(list) &&
               json_number_value(json_array_get(json_array_get(list, at), 0)) <= most_ms;
             at++)
            n += json_integer_value(json_array_get(json_array_get(list, at), 1));
        if (power % 2 == 0) /* 1 ms, 4 ms, 16 ms ...: sixteen of them */
            bucket(m, metric, type, cause, most_ms / 1000, n);
    }
    for (; at < json_array_size(list); at++)
        n += json_integer_value(json_array_get(json_array_get(list, at), 1));
    bucket(m, metric, type, cause, 0, n);
    part(m, metric, "_sum", type, cause, sum_s);
    part(m, metric, "_count", type, cause, (double)n);
}

/* ---- Which have rows of their own */

static int64_t jobs_of(const struct type_status *t)
{
    return t->waiting + t->parked + t->held + t->running + t->scheduled + t->aside;
}

static int more_jobs(const void *a, const void *b)
{
    const struct type_status *x = a, *y = b;
    int64_t one = jobs_of(x), other = jobs_of(y);

    if (one != other)
        return one < other ? 1 : -1;
    return (x->done < y->done) - (x->done > y->done);
}

static int more_waiting(const void *a, const void *b)
{
    const struct queue_status *x = a, *y = b;

    return (x->waiting < y->waiting) - (x->waiting > y->waiting);
}

static size_t shown(size_t count)
{
    return count < METRICS_ROWS ? count : METRICS_ROWS;
}

/* ---- Types */

static const struct {
    const char *name;
    size_t offset;
} states[] =
    {
        {"waiting", offsetof(struct type_status, waiting)},
        {"parked", offsetof(struct type_status, parked)},
        {"held", offsetof(struct type_status, held)},
        {"aside", offsetof(struct type_status, aside)},
        {"running", offsetof(struct type_status, running)},
        {"scheduled", offsetof(struct type_status, scheduled)},
},
  outcomes[] = {
      {"done", offsetof(struct type_status, done)},
      {"retried", offsetof(struct type_status, retried)},
      {"dead", offsetof(struct type_status, dead)},
      {"cancelled", offsetof(struct type_status, cancelled)},
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static int64_t count_at(const struct type_status *t, size_t offset)
{
    int64_t n;

    memcpy(&n, (const char *)t + offset, sizeof n);
    return n;
}

static void write_jobs(struct metrics *m, const struct status *s)
{
    family(m, "weir_jobs", "gauge", "Jobs by type and where they are.");
    for (size_t i = 0; i < shown(s->type_count); i++)
        for (size_t k = 0; k < COUNT(states); k++)
            row(m, "weir_jobs", "type", s->types[i].name, "state", states[k].name,
                (double)count_at(&s->types[i], states[k].offset));
    family(m, "weir_jobs_all", "gauge", "Jobs of all types by where they are.");
    for (size_t k = 0; k < COUNT(states); k++) {
        int64_t sum = 0;

        for (size_t i = 0; i < s->type_count; i++)
            sum += count_at(&s->types[i], states[k].offset);
        row(m, "weir_jobs_all", "state", states[k].name, NULL, NULL, (double)sum);
    }
    family(m, "weir_job_ends_total", "counter",
           "Ends of jobs and of attempts (retried), by type; workers have reported them.");
    for (size_t i = 0; i < shown(s->type_count); i++)
        for (size_t k = 0; k < COUNT(outcomes); k++)
            row(m, "weir_job_ends_total", "type", s->types[i].name, "outcome", outcomes[k].name,
                (double)count_at(&s->types[i], outcomes[k].offset));
}

static void write_rates(struct metrics *m, const struct status *s)
{
    family(m, "weir_type_rate_limit", "gauge", "Starts a second that the limits of a type let through now.");
    for (size_t i = 0; i < shown(s->type_count); i++)
        if (s->types[i].rate > 0)
            row(m, "weir_type_rate_limit", "type", s->types[i].name, NULL, NULL, s->types[i].rate);
    family(m, "weir_type_next_start_timestamp_seconds", "gauge", "When the next job of a type starts.");
    for (size_t i = 0; i < shown(s->type_count); i++)
        if (s->types[i].next_start_us > 0 && s->types[i].next_start_us != GATE_NEVER)
            row(m, "weir_type_next_start_timestamp_seconds", "type", s->types[i].name, NULL, NULL,
                (double)s->types[i].next_start_us / 1e6);
    family(m, "weir_type_backlog_end_timestamp_seconds", "gauge",
           "When the last job that waits now starts, at the earliest.");
    for (size_t i = 0; i < shown(s->type_count); i++)
        if (s->types[i].finish_us > 0 && s->types[i].finish_us != GATE_NEVER)
            row(m, "weir_type_backlog_end_timestamp_seconds", "type", s->types[i].name, NULL, NULL,
                (double)s->types[i].finish_us / 1e6);
}

static double spent(const json_t *total, const char *what)
{
    return (double)answer_int(json_object_get(total, "spent"), what) / 1000;
}

static void write_times(struct metrics *m, const struct status *s, const json_t *totals)
{
    static const char *const causes[] = {"rate", "key", "concurrency", "pause", "executor"};

    family(m, "weir_job_starts_total", "counter", "Jobs that were started, by type.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        row(m, "weir_job_starts_total", "type", s->types[i].name, NULL, NULL,
            (double)answer_int(json_array_get(totals, i), "starts"));
    family(m, "weir_job_run_seconds", "histogram", "How long handlers ran.");
    for (size_t i = 0; i < json_array_size(totals); i++) {
        const json_t *total = json_array_get(totals, i);

        histogram(m, "weir_job_run_seconds", s->types[i].name, NULL, json_object_get(total, "run"),
                  spent(total, "run"));
    }
    family(m, "weir_job_wait_seconds", "histogram",
           "From enqueue to start, by what let a job start that had waited for it last.");
    for (size_t i = 0; i < json_array_size(totals); i++) {
        const json_t *total = json_array_get(totals, i), *wait = json_object_get(total, "wait");

        for (size_t k = 0; k < COUNT(causes); k++)
            if (json_object_get(wait, causes[k]))
                histogram(m, "weir_job_wait_seconds", s->types[i].name, causes[k],
                          json_object_get(wait, causes[k]), spent(total, causes[k]));
    }
}

static void write_types(struct metrics *m, struct weir *w, struct status *s)
{
    const char *names[METRICS_ROWS];
    json_t *totals;

    qsort(s->types, s->type_count, sizeof *s->types, more_jobs);
    for (size_t i = 0; i < shown(s->type_count); i++)
        names[i] = s->types[i].name;
    if (history_totals(w, false, names, shown(s->type_count), &totals) < 0) {
        m->failed = true;
        return;
    }
    write_jobs(m, s);
    write_rates(m, s);
    write_times(m, s, totals);
    json_decref(totals);
}

/* ---- Queues, workers, what is dead */

static void write_queues(struct metrics *m, struct status *s)
{
    qsort(s->queues, s->queue_count, sizeof *s->queues, more_waiting);
    family(m, "weir_queue_jobs", "gauge", "Jobs that wait in a queue.");
    for (size_t i = 0; i < shown(s->queue_count); i++)
        row(m, "weir_queue_jobs", "queue", s->queues[i].name, NULL, NULL, (double)s->queues[i].waiting);
    family(m, "weir_queue_paused", "gauge", "1: the queue is paused.");
    for (size_t i = 0; i < shown(s->queue_count); i++)
        row(m, "weir_queue_paused", "queue", s->queues[i].name, NULL, NULL, s->queues[i].paused_us != 0);
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
    family(m, "weir_workers", "gauge",
           "Worker processes by state; quiet ones were told to take no more jobs.");
    row(m, "weir_workers", "state", "working", NULL, NULL,
        (double)((int64_t)s->worker_count - silent - quiet));
    row(m, "weir_workers", "state", "quiet", NULL, NULL, (double)quiet);
    row(m, "weir_workers", "state", "silent", NULL, NULL, (double)silent);
    alone(m, "weir_executors", "gauge", "Executors of all workers.", (double)executors);
    alone(m, "weir_executors_busy", "gauge", "Jobs that workers have in flight.", (double)running);
    alone(m, "weir_last_heartbeat_timestamp_seconds", "gauge", "When a worker was last heard of; 0: never.",
          (double)seen_us / 1e6);
}

static void write_dead(struct metrics *m, const struct status *s)
{
    alone(m, "weir_dead_jobs", "gauge", "Dead jobs that are kept.", (double)s->dead);
    if (s->dead_bytes >= 0)
        alone(m, "weir_dead_bytes", "gauge", "Bytes of these.", (double)s->dead_bytes);
}

/* ---- Limits, of their documents */

static void write_paused(struct metrics *m, const json_t *limits)
{
    const json_t *limit;
    size_t i;

    family(m, "weir_limit_paused", "gauge", "1: the limit is paused.");
    json_array_foreach((json_t *)limits, i, limit)
    {
        if (i < METRICS_ROWS)
            row(m, "weir_limit_paused", "limit", json_text_of(limit, "name"), NULL, NULL,
                json_is_number(json_object_get(limit, "paused_until")));
    }
    family(m, "weir_limit_next_start_timestamp_seconds", "gauge", "When a limit lets the next job start.");
    json_array_foreach((json_t *)limits, i, limit)
    {
        double at_s = json_number_value(json_object_get(limit, "next_start"));

        if (i < METRICS_ROWS && at_s > 0)
            row(m, "weir_limit_next_start_timestamp_seconds", "limit", json_text_of(limit, "name"), NULL,
                NULL, at_s);
    }
}

static void write_rules(struct metrics *m, const json_t *limits)
{
    const json_t *limit, *rule;
    size_t i, k;

    family(m, "weir_limit_rate", "gauge",
           "Starts a second that a rule of a limit lets through in the long run.");
    json_array_foreach((json_t *)limits, i, limit)
    {
        json_array_foreach(json_object_get(limit, "rules"), k, rule)
        {
            double period_s = json_number_value(json_object_get(rule, "period"));

            if (i < METRICS_ROWS && period_s > 0)
                row(m, "weir_limit_rate", "limit", json_text_of(limit, "name"), "rule",
                    json_text_of(rule, "rule"), json_number_value(json_object_get(rule, "count")) / period_s);
        }
    }
}

static void write_slots(struct metrics *m, const json_t *limits, const json_t *totals)
{
    static const char *const whys[] = {"no_job", "no_executor", "held", "late"};
    const char *reason;
    json_t *n;

    family(m, "weir_limit_slots_granted_total", "counter", "Slots that a limit has granted to jobs.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        row(m, "weir_limit_slots_granted_total", "limit", json_text_of(json_array_get(limits, i), "name"),
            NULL, NULL, (double)answer_int(json_array_get(totals, i), "granted"));
    family(m, "weir_limit_slots_wasted_total", "counter", "Slots that nobody took, by the reason.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        for (size_t k = 0; k < COUNT(whys); k++)
            row(m, "weir_limit_slots_wasted_total", "limit", json_text_of(json_array_get(limits, i), "name"),
                "reason", whys[k],
                (double)answer_int(json_object_get(json_array_get(totals, i), "wasted"), whys[k]));
    family(m, "weir_limit_throttled_total", "counter",
           "Jobs whose provider said stop (429), by the reason that the handler gave.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        json_object_foreach(json_object_get(json_array_get(totals, i), "throttled"), reason, n)
        {
            row(m, "weir_limit_throttled_total", "limit", json_text_of(json_array_get(limits, i), "name"),
                "reason", reason, json_number_value(n));
        }
}

static void write_limits(struct metrics *m, struct weir *w)
{
    const char *names[METRICS_ROWS];
    json_t *limits, *totals = NULL;
    size_t count = 0;

    if (view_rates(w, &limits, NULL) < 0) {
        m->failed = true;
        return;
    }
    for (; count < shown(json_array_size(limits)); count++)
        names[count] = json_text_of(json_array_get(limits, count), "name");
    if (history_totals(w, true, names, count, &totals) < 0) {
        m->failed = true;
    } else {
        write_rules(m, limits);
        write_paused(m, limits);
        write_slots(m, limits, totals);
    }
    alone(m, "weir_limits", "gauge", "Limits that are set; the first 200 by name have rows.",
          (double)json_array_size(limits));
    json_decref(totals);
    json_decref(limits);
}

/* ---- */

static void write_round_trip(struct metrics *m, struct weir *w)
{
    int64_t took_us;

    if (client_ping(w, &took_us) < 0)
        m->failed = true;
    else
        alone(m, "weir_redis_round_trip_seconds", "gauge", "How long Redis took to answer a PING.",
              (double)took_us / 1e6);
}

static void write_all(struct metrics *m, struct weir *w, struct status *s, int64_t took_us)
{
    alone(m, "weir_redis_up", "gauge", "1: Redis answers.", 1);
    write_round_trip(m, w);
    alone(m, "weir_status_seconds", "gauge", "How long it took to read queues, types and workers.",
          (double)took_us / 1e6);
    alone(m, "weir_types", "gauge", "Types that are known; the 200 with the most jobs have rows.",
          (double)s->type_count);
    alone(m, "weir_queues", "gauge", "Queues that are known; the 200 with the most jobs have rows.",
          (double)s->queue_count);
    write_types(m, w, s);
    write_queues(m, s);
    write_workers(m, s);
    write_dead(m, s);
    write_limits(m, w);
}

int metrics_write(struct weir *w, struct text *out)
{
    struct metrics m = {.out = out, .e = &w->error};
    int64_t begun_us = clock_mono_us();
    struct status status;
    int rc = status_read(w, &status);

    if (rc == 0)
        write_all(&m, w, &status, clock_mono_us() - begun_us);
    status_free(&status);
    if (rc == 0 && m.failed)
        rc = w->error.status;
    if (rc == WEIR_EUNREACHABLE) {
        out->len = 0;
        m.failed = false;
        alone(&m, "weir_redis_up", "gauge", "1: Redis answers.", 0);
        rc = m.failed ? w->error.status : 0;
    }
    return rc;
}
