#include "view/schedules.h"

#include <string.h>

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
        status = document_done(w, schedule_document(&row), doc);
    if (status == 0)
        view_add_body(*doc, row.s.job);
    schedule_free(&row.s);
    return status;
}
