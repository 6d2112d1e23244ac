#include "serve/metrics_limits.h"

#include <stdlib.h>
#include <string.h>

#include "queue/history/history.h"
#include "serve/metrics.h"
#include "view/format.h"
#include "view/limits.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void write_paused(struct metrics *m, const json_t *limits)
{
    const json_t *limit;
    size_t i;

    metrics_family(m, "weir_limit_paused", "gauge", "1: the limit is paused.");
    json_array_foreach((json_t *)limits, i, limit)
        metrics_row(m, "weir_limit_paused", "limit", json_text_of(limit, "name"), NULL, NULL,
                    json_is_object(json_object_get(limit, "paused")));
    metrics_family(m, "weir_limit_next_start_timestamp_seconds", "gauge",
                   "When a limit lets the next job start.");
    json_array_foreach((json_t *)limits, i, limit) {
        double at_s = json_number_value(json_object_get(limit, "next_start"));

        if (at_s > 0 && at_s * 1e6 < FORMAT_ENDLESS_US)
            metrics_row(m, "weir_limit_next_start_timestamp_seconds", "limit", json_text_of(limit, "name"),
                        NULL, NULL, at_s);
    }
}

static void write_rules(struct metrics *m, const json_t *limits)
{
    const json_t *limit, *rule;
    size_t i, k;

    metrics_family(m, "weir_limit_rate", "gauge",
                   "Starts a second that a rule of a limit lets through in the long run.");
    json_array_foreach((json_t *)limits, i, limit) {
        json_array_foreach(json_object_get(limit, "rules"), k, rule) {
            double period_s = json_number_value(json_object_get(rule, "period"));

            if (period_s > 0)
                metrics_row(m, "weir_limit_rate", "limit", json_text_of(limit, "name"), "rule",
                            json_text_of(rule, "rule"),
                            json_number_value(json_object_get(rule, "count")) / period_s);
        }
    }
}

static void write_own_keys(struct metrics *m, const json_t *limits)
{
    const json_t *limit;
    size_t i;

    metrics_family(m, "weir_limit_own_rule_keys", "gauge", "Keys of a limit that have rules of their own.");
    json_array_foreach((json_t *)limits, i, limit)
        if (json_int_of(limit, "own_key_count") > 0)
            metrics_row(m, "weir_limit_own_rule_keys", "limit", json_text_of(limit, "name"), NULL, NULL,
                        (double)json_int_of(limit, "own_key_count"));
}

static void write_slots(struct metrics *m, const json_t *limits, const json_t *totals)
{
    static const char *const whys[] = {"no_job", "no_executor", "held", "late"};
    const char *reason;
    json_t *n;

    metrics_family(m, "weir_limit_slots_granted_total", "counter", "Slots that a limit has granted to jobs.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        metrics_row(m, "weir_limit_slots_granted_total", "limit",
                    json_text_of(json_array_get(limits, i), "name"), NULL, NULL,
                    (double)answer_int(json_array_get(totals, i), "granted"));
    metrics_family(m, "weir_limit_slots_wasted_total", "counter", "Slots that nobody took, by the reason.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        for (size_t k = 0; k < COUNT(whys); k++)
            metrics_row(m, "weir_limit_slots_wasted_total", "limit",
                        json_text_of(json_array_get(limits, i), "name"), "reason", whys[k],
                        (double)answer_int(json_object_get(json_array_get(totals, i), "wasted"), whys[k]));
    metrics_family(m, "weir_limit_slots_given_back_total", "counter",
                   "Slots that came back, as no handler was called, by the reason.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        for (int why = 0; why < BACKS; why++)
            metrics_row(m, "weir_limit_slots_given_back_total", "limit",
                        json_text_of(json_array_get(limits, i), "name"), "reason", history_backs[why],
                        (double)answer_int(json_object_get(json_array_get(totals, i), "given_back"),
                                           history_backs[why]));
    metrics_family(m, "weir_limit_throttled_total", "counter",
                   "Jobs whose provider said stop (429), by the reason that the handler gave.");
    for (size_t i = 0; i < json_array_size(totals); i++)
        json_object_foreach(json_object_get(json_array_get(totals, i), "throttled"), reason, n)
            metrics_row(m, "weir_limit_throttled_total", "limit",
                        json_text_of(json_array_get(limits, i), "name"), "reason", reason,
                        json_number_value(n));
}

static size_t shown(size_t count)
{
    return count < METRICS_ROWS ? count : METRICS_ROWS;
}

/* A place is a limit and the limits of its partition. */
struct place {
    const struct limit *limit;
    const struct limits *of;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct place *)a)->limit->name, ((const struct place *)b)->limit->name);
}

/* Makes documents of the first limits by name; *count: all there are. NULL: out of memory. */
static json_t *first_limits(const struct all_limits *all, size_t *count)
{
    struct place *places;
    json_t *docs = json_array();
    size_t most = 0;

    *count = 0;
    for (int i = 0; i < all->count; i++)
        most += all->at[i].count;
    places = calloc(most + 1, sizeof *places);
    for (int i = 0; places && i < all->count; i++)
        for (size_t k = 0; k < all->at[i].count; k++)
            places[(*count)++] = (struct place){&all->at[i].at[k], &all->at[i]};
    if (places)
        qsort(places, *count, sizeof *places, by_name);
    for (size_t i = 0; i < shown(*count); i++)
        json_array_append_new(docs, limit_document(places[i].of, places[i].limit));
    if (!places || json_array_size(docs) < shown(*count)) {
        json_decref(docs);
        docs = NULL;
    }
    free(places);
    return docs;
}

void metrics_limits(struct metrics *m, struct weir *w, const struct all_limits *all)
{
    const char *names[METRICS_ROWS];
    size_t count;
    json_t *limits = first_limits(all, &count), *totals = NULL;

    if (!limits) {
        m->failed = true;
        error_no_memory(m->e, "metrics");
        return;
    }
    for (size_t i = 0; i < shown(count); i++)
        names[i] = json_text_of(json_array_get(limits, i), "name");
    if (history_totals(w, true, names, shown(count), &totals) < 0) {
        m->failed = true;
    } else {
        write_rules(m, limits);
        write_paused(m, limits);
        write_own_keys(m, limits);
        write_slots(m, limits, totals);
    }
    metrics_alone(m, "weir_limits", "gauge", "Limits that are set; the first 200 by name have rows.",
                  (double)count);
    json_decref(totals);
    json_decref(limits);
}
