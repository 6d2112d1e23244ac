#include "view/schedules.h"

#include <string.h>

#include "core/clock.h"
#include "queue/inspect/job_list.h"
#include "view/pause.h"
#include "view/text.h"
#include "view/write.h"

#define NEXT_COUNT 5 /* occurrences that are shown */

static json_t *row_json(const struct schedule_row *row)
{
    const struct schedule *s = &row->s;
    json_t *doc = json_pack("{s:o}", "name", text_word(row->name));

    if (row->status != WEIR_ECONFIG)
        json_object_update_new(doc, json_pack("{s:s, s:s, s:s, s:s, s:s%, s:o}", "when", s->when, "zone",
                                              s->zone_name, "missed", missed_name(s->missed), "queue",
                                              s->queue, "type", s->view.type.at, s->view.type.len, "due_at",
                                              json_time(row->due_us)));
    json_object_set_new(doc, "paused", pause_document(s->pause));
    if (row->status != 0)
        json_object_set_new(doc, "error", text_word(row->why.text));
    return doc;
}

/* The next occurrences too, the one that it waits for first. */
json_t *schedule_document(const struct schedule_row *row)
{
    int64_t at_s = row->due_us < 0 ? CRON_NEVER : row->due_us / 1000000;
    json_t *doc = row_json(row), *next = json_array();

    for (int i = 0; i < NEXT_COUNT && at_s != CRON_NEVER; i++) {
        json_array_append_new(next, json_seconds(at_s * 1000000));
        at_s = cron_next(&row->s.cron, row->s.zone, at_s);
    }
    json_object_set_new(doc, "next", next);
    return doc;
}

/* ---- Its last runs */

#define LIVE_MOST                                                                                            \
    1000        /* of its jobs that are looked for: those of its last runs, and others that wait with them */
#define LOOKS 2 /* a job that moves may be passed over */

static const struct member run_members[] = {MEMBER("at", TIME),
                                            MEMBER("id", WORD),
                                            MEMBER("state", WORD),
                                            MEMBER("outcome", WORD, .optional = true),
                                            MEMBER("since", TIME, .optional = true),
                                            {.name = NULL}};

/* Adds to found those of its jobs that are in Redis, by their ids. *all: everything was looked at. */
static int find_live(struct weir *w, const char *name, const json_t *fired, int64_t until_us, json_t *found,
                     bool *all)
{
    struct job_search search = {.count = 0};
    const struct job_bounds most = {.looked_at = JOB_BOUND_MOST, .jobs = LIVE_MOST, .until_us = until_us};
    json_t *page = NULL;
    int status = job_search_add(&search, "schedule", name, &w->error);

    if (status == 0)
        status = job_search_add(&search, "queue", answer_text(fired, "queue"), &w->error);
    if (status == 0)
        status = job_search_add(&search, "type", answer_text(fired, "type"), &w->error);
    if (status == 0)
        status = job_list_page(w, -1, &search, NULL, &most, &page);
    for (size_t i = 0; i < json_array_size(json_object_get(page, "jobs")); i++) {
        json_t *job = json_array_get(json_object_get(page, "jobs"), i);

        json_object_set(found, answer_text(job, "id"), job);
    }
    *all = page && !json_object_get(page, "next");
    json_decref(page);
    return status;
}

/* Returns how many runs have a job that was not found. */
static int count_missing(const json_t *runs, const json_t *found)
{
    int missing = 0;

    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);

        missing += json_object_get(run, "id") && !json_object_get(run, "outcome") &&
                   !json_object_get(found, answer_text(run, "id"));
    }
    return missing;
}

/* Where nobody knows yet, it says no state. */
static void tell_state(json_t *run, const json_t *found, bool all)
{
    const json_t *job = json_object_get(found, answer_text(run, "id"));
    const char *state = !json_object_get(run, "id")       ? "skipped"
                        : json_object_get(run, "outcome") ? "finished"
                        : job                             ? answer_text(job, "state")
                        : all                             ? "gone"
                                                          : NULL;

    if (state)
        json_object_set_new(run, "state", json_string(state));
    if (job && json_object_get(job, "since"))
        json_object_set(run, "since", json_object_get(job, "since"));
}

int view_schedule_runs(struct weir *w, const struct schedule_row *row, json_t **doc)
{
    json_t *runs = json_object_get(row->s.fired, "runs"), *found = json_object(), *made;
    int64_t until_us = clock_mono_us() + JOB_LOOK_US;
    bool all = true;
    int status = 0;

    *doc = NULL;
    for (int look = 0; look < LOOKS && status == 0 && all && count_missing(runs, found) > 0; look++)
        status = find_live(w, row->name, row->s.fired, until_us, found, &all);
    for (size_t i = 0; i < json_array_size(runs); i++)
        tell_state(json_array_get(runs, i), found, all);
    json_decref(found);
    if (status < 0)
        return status;
    made = schedule_document(row);
    json_object_set_new(made, "runs", runs ? document_list(runs, run_members) : json_array());
    return document_done(w, made, doc);
}

/* ---- All, and one */

struct list {
    json_t *rows; /* by name: one may come twice */
    int64_t now_us;
};

static int add_row(struct schedule_row *row, void *arg)
{
    struct list *list = arg;

    list->now_us = row->now_us;
    json_object_set_new_nocheck(list->rows, row->name, row_json(row));
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(json_text_of(*(const json_t *const *)a, "name"),
                  json_text_of(*(const json_t *const *)b, "name"));
}

int view_schedules(struct weir *w, json_t **doc, int64_t *now_us)
{
    struct list list = {.rows = json_object()};

    *doc = NULL;
    if (schedule_each(w, add_row, &list) < 0) {
        json_decref(list.rows);
        return w->error.status;
    }
    if (now_us)
        *now_us = list.now_us;
    return document_done(w, document_rows(list.rows, by_name), doc);
}

int view_schedule(struct weir *w, const char *name, json_t **doc)
{
    struct schedule_row row;
    int status = schedule_find(w, name, &row);

    *doc = NULL;
    if (status == 0 && row.status != 0) {
        w->error = row.why;
        status = row.status;
    }
    if (status == 0)
        status = view_schedule_runs(w, &row, doc);
    if (status == 0)
        view_add_body(*doc, row.s.job);
    schedule_free(&row.s);
    return status;
}
