#include "cli/top/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "queue/status/forecast.h"
#include "view/report.h"

/* Workers record what happened every 5 s: what is younger is not all there. */
#define RECORDED_US 6000000
#define KEPT_US 30000000 /* over which the rate of a limit is told */

/* ---- Limits, and what waits for them */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool list_limits(struct top_snapshot *s)
{
    size_t count = 0;

    for (int i = 0; i < s->partitions; i++)
        count += s->limits[i].count;
    s->limit_rows = calloc(count + 1, sizeof *s->limit_rows);
    if (!s->limit_rows)
        return false;
    for (int i = 0; i < s->partitions; i++)
        for (size_t j = 0; j < s->limits[i].count; j++) {
            struct limit_row *row = &s->limit_rows[s->limit_count++];

            row->limit = &s->limits[i].at[j];
            row->next_us = row->limit->readable ? limits_next_start(&s->limits[i], row->limit) : 0;
            memcpy(row->name, row->limit->name, sizeof row->name);
        }
    qsort(s->limit_rows, s->limit_count, sizeof *s->limit_rows, by_name);
    return true;
}

static void count_waiting(struct top_snapshot *s)
{
    for (size_t i = 0; i < s->status.type_count; i++) {
        const struct type_status *t = &s->status.types[i];
        const char *name = answer_text(t->waits_for, "limit_name");
        struct limit_row *row =
            *name ? bsearch(name, s->limit_rows, s->limit_count, sizeof *s->limit_rows, by_name) : NULL;

        if (row) {
            row->jobs += t->waiting + t->parked;
            row->types++;
        }
    }
}

struct top_snapshot *top_snapshot_of(struct status *status, struct limits *limits, int partitions)
{
    struct top_snapshot *s = calloc(1, sizeof *s);

    if (!s) {
        status_free(status);
        for (int i = 0; i < partitions; i++)
            limits_free(&limits[i]);
        free(limits);
        return NULL;
    }
    *s = (struct top_snapshot){
        .mono_us = clock_mono_us(), .status = *status, .limits = limits, .partitions = partitions};
    if (!list_limits(s)) {
        top_snapshot_free(s);
        return NULL;
    }
    count_waiting(s);
    return s;
}

void top_snapshot_free(struct top_snapshot *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->partitions; i++)
        limits_free(&s->limits[i]);
    free(s->limits);
    free(s->limit_rows);
    json_decref(s->report);
    status_free(&s->status);
    free(s);
}

/* ---- Reading */

struct top_snapshot *top_snapshot_read(struct weir *w)
{
    struct status status;
    struct all_limits limits;
    json_t *report = NULL;
    struct top_snapshot *s;
    int rc = status_read_with_limits(w, &status, &limits);

    if (rc == 0)
        rc = report_of(w, &status, false, &report);
    if (rc != 0) {
        status_free(&status);
        all_limits_free(&limits);
        return NULL;
    }
    s = top_snapshot_of(&status, limits.at, limits.count);
    if (s)
        s->report = json_incref(report);
    else
        rc = error_no_memory(&w->error, "top");
    json_decref(report);
    return rc == 0 ? s : NULL;
}

/* ---- How often */

/* Of Redis's processor, us, at most: a type, a queue or a limit, and whatever else a reading takes. Measured; doc/operating.md. */
#define ROW_US 15
#define FIXED_US 2000
#define SHARE 100 /* of its time, one part at most is ours */

int64_t top_snapshot_pause(int64_t rows, int64_t took_us, int64_t interval_us)
{
    int64_t most_us = FIXED_US + rows * ROW_US, pause_us = SHARE * (took_us < most_us ? took_us : most_us);

    return pause_us > interval_us ? pause_us : interval_us;
}

/* ---- The past */

static void add_slot(struct past *past, const json_t *slot, int64_t age)
{
    int at = PAST_MINUTES - 1 - (int)age;

    if (age < 0 || at < 0)
        return;
    past->starts[at] = answer_int(slot, past->of_limit ? "granted" : "starts");
    past->retried += answer_int(slot, "retried");
    past->dead += answer_int(slot, "dead");
}

static double kept_of(const json_t *history)
{
    int64_t last_us = answer_int(history, "now") - RECORDED_US, started = 0;
    json_t *start;
    size_t i;

    json_array_foreach(json_object_get(history, "starts_now"), i, start) {
        int64_t at_us = json_integer_value(json_array_get(start, 0));

        if (at_us > last_us - KEPT_US && at_us <= last_us)
            started += json_integer_value(json_array_get(start, 1));
    }
    return (double)started / ((double)KEPT_US / 1e6);
}

void past_fill(struct past *past, const json_t *history)
{
    int64_t minute = 60000000, last = answer_int(history, "now") / minute;
    json_t *slot;
    size_t i;

    json_array_foreach(json_object_get(history, "slots"), i, slot)
        add_slot(past, slot, last - answer_int(slot, "at") / minute);
    past->slots = history_sum(history);
    past->kept = kept_of(history);
}

const struct past *pasts_find(const struct pasts *pasts, const char *name, bool of_limit)
{
    for (size_t i = 0; pasts && i < pasts->count; i++)
        if (pasts->at[i].of_limit == of_limit && strcmp(pasts->at[i].name, name) == 0)
            return &pasts->at[i];
    return NULL;
}
