#include "view/dead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/inspect/job_act.h"
#include "queue/limits/rate.h"
#include "throttle/limit.h"
#include "view/text.h"
#include "view/write.h"

static const struct member members[] = {
    MEMBER("since", TIME),
    MEMBER("id", WORD),
    MEMBER("type", WORD),
    MEMBER("queue", WORD),
    MEMBER("key", WORD),
    MEMBER("reason", WORD),
    MEMBER("attempts", NUMBER),
    MEMBER("interrupted", NUMBER),
    MEMBER("throttled", NUMBER),
    MEMBER("enqueued_at", TIME),
    MEMBER("due_at", TIME, .optional = true),
    MEMBER("batch", WORD),
    MEMBER("unique", WORD),
    MEMBER("failed_at", TIME),
    MEMBER("failure", WORD),
    MEMBER("bytes", NUMBER),
    {.name = NULL},
};

struct span dead_body(const json_t *page, size_t i)
{
    return text_bytes(json_array_get(json_object_get(page, "raw"), i));
}

json_t *dead_document(const json_t *page, size_t i)
{
    json_t *doc = document_make(json_array_get(json_object_get(page, "found"), i), members);

    view_add_body(doc, dead_body(page, i));
    return doc;
}

/* ---- Asked */

#define ENOUGH 1 /* ends a walk */
#define BYTES_MOST (4 * JOB_BODY_MAX)

struct list {
    json_t *rows;
    int64_t most;
    size_t bytes;
    bool more;
};

static int add_page(const json_t *page, void *arg)
{
    size_t found = json_array_size(json_object_get(page, "found"));
    struct list *list = arg;

    for (size_t i = 0; i < found; i++) {
        list->more = (int64_t)json_array_size(list->rows) == list->most || list->bytes > BYTES_MOST;
        if (list->more)
            return ENOUGH;
        list->bytes += dead_body(page, i).len;
        json_array_append_new(list->rows, dead_document(page, i));
    }
    return 0;
}

static int list_dead(struct weir *w, const struct dead_filter *filter, struct list *list)
{
    const struct dead_walk walk = {.w = w,
                                   .now_us = -1,
                                   .verb = "list",
                                   .filter = *filter,
                                   .body_bytes = INT32_MAX,
                                   .take = add_page,
                                   .arg = list};

    return dead_walk(&walk) < 0 ? w->error.status : 0;
}

int view_dead(struct weir *w, const struct dead_filter *filter, int64_t most, json_t **doc)
{
    struct list list = {.rows = json_array(), .most = most};
    int status = list_dead(w, filter, &list);

    *doc = NULL;
    if (status == 0)
        return document_done(w, json_pack("{s:o, s:b}", "jobs", list.rows, "more", list.more), doc);
    json_decref(list.rows);
    return status;
}

int view_dead_one(struct weir *w, const char *id, json_t **doc)
{
    const struct dead_filter filter = {.ids = &id, .id_count = 1};
    struct list list = {.rows = json_array(), .most = 1};
    int status = list_dead(w, &filter, &list);

    *doc = NULL;
    if (status == 0 && json_array_size(list.rows) == 0)
        status = error_set(&w->error, WEIR_ENOTFOUND,
                           "dead show %.150s: not among the dead jobs; weir dead list names them", id);
    if (status == 0)
        status = document_done(w, json_incref(json_array_get(list.rows, 0)), doc);
    json_decref(list.rows);
    return status;
}

/* ---- Groups */

static const struct member group_members[] = {
    MEMBER("type", WORD),
    MEMBER("reason", WORD),
    MEMBER("jobs", NUMBER),
    MEMBER("first_at", TIME),
    MEMBER("last_at", TIME),
    MEMBER("id", WORD),
    MEMBER("groups", NUMBER, .optional = true),
    {.name = NULL},
};

static int set_number(json_t *row, const char *name, int64_t n)
{
    return json_object_set_new(row, name, json_integer(n));
}

/* Jobs whose time of death nobody knows change no time. */
static int add_counts(json_t *to, const json_t *row)
{
    int64_t first = answer_int(row, "first_at"), last = answer_int(row, "last_at");
    int64_t known = answer_int(to, "first_at");
    int status = set_number(to, "jobs", answer_int(to, "jobs") + answer_int(row, "jobs"));

    if (first > 0 && (known <= 0 || first < known))
        status |= set_number(to, "first_at", first);
    if (last > answer_int(to, "last_at"))
        status |= set_number(to, "last_at", last);
    return status;
}

static int add_group(json_t *groups, json_t *row)
{
    char *reason = text_of(text_bytes(json_object_get(row, "reason"))), *key = NULL;
    json_t *known;
    int status = -1;

    if (reason && asprintf(&key, "%s\n%s", answer_text(row, "type"), reason) >= 0) {
        known = json_object_get(groups, key);
        status = known ? add_counts(known, row) : json_object_set_nocheck(groups, key, row);
        free(key);
    }
    free(reason);
    return status;
}

int dead_groups_add(json_t *groups, const json_t *page)
{
    const json_t *rows = json_object_get(page, "reasons");
    int status = 0;

    for (size_t i = 0; status == 0 && i < json_array_size(rows); i++)
        status = add_group(groups, json_array_get(rows, i));
    return status == 0 ? 0 : WEIR_EINTERNAL;
}

static int by_jobs(const void *a, const void *b)
{
    const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
    int64_t x_jobs = answer_int(x, "jobs"), y_jobs = answer_int(y, "jobs");
    int order = (x_jobs < y_jobs) - (x_jobs > y_jobs);

    if (order == 0)
        order = strcmp(answer_text(x, "reason"), answer_text(y, "reason"));
    return order ? order : strcmp(answer_text(x, "type"), answer_text(y, "type"));
}

json_t *dead_groups(json_t *groups, size_t most)
{
    json_t *rows = document_rows(groups, by_jobs), *others, *documents;
    size_t count = json_array_size(rows);

    if (most > 0 && count > most) {
        others = json_pack("{s:I}", "groups", (json_int_t)(count - most));
        for (size_t i = most; i < count; i++)
            add_counts(others, json_array_get(rows, i));
        for (size_t i = count; i > most; i--)
            json_array_remove(rows, i - 1);
        json_array_append_new(rows, others);
    }
    documents = document_list(rows, group_members);
    json_decref(rows);
    return documents;
}

static int add_groups(const json_t *page, void *arg)
{
    return dead_groups_add(arg, page);
}

int view_dead_groups(struct weir *w, const struct dead_filter *filter, size_t most, json_t **doc)
{
    json_t *groups = json_object();
    const struct dead_walk walk = {
        .w = w, .now_us = -1, .verb = "count", .filter = *filter, .take = add_groups, .arg = groups};
    int status = dead_walk(&walk);
    json_t *rows = dead_groups(groups, most);

    *doc = NULL;
    if (status == 0)
        return document_done(w, json_pack("{s:o}", "reasons", rows), doc);
    json_decref(rows);
    return w->error.status;
}

/* ---- Moved */

json_t *dead_move_document(const char *verb, int64_t jobs, int64_t without_queue, int64_t cancelled)
{
    return json_pack("{s:s, s:I, s:I, s:I}", "action", verb, "jobs", (json_int_t)jobs, "without_queue",
                     (json_int_t)without_queue, "batch_cancelled", (json_int_t)cancelled);
}

struct move {
    int64_t jobs, without_queue;
    char batch[LIMIT_NAME_SIZE]; /* that was cancelled; "" */
    size_t met;
};

static int add_move(const json_t *page, void *arg)
{
    struct move *m = arg;

    m->jobs += answer_int(page, "jobs");
    m->without_queue += answer_int(page, "without_queue");
    if (*answer_text(page, "batch"))
        snprintf(m->batch, sizeof m->batch, "%s", answer_text(page, "batch"));
    m->met += json_array_size(json_object_get(page, "ids"));
    return 0;
}

int view_dead_move(struct weir *w, const char *verb, const char *id, const char *into, json_t **doc)
{
    struct move m = {0};
    const struct dead_walk walk = {.w = w,
                                   .now_us = -1,
                                   .verb = verb,
                                   .filter = {.ids = &id, .id_count = 1},
                                   .into = into,
                                   .take = add_move,
                                   .arg = &m};

    *doc = NULL;
    if (dead_walk(&walk) < 0)
        return w->error.status;
    if (*m.batch && m.jobs == 0)
        return job_batch_over("dead retry", m.batch, &w->error);
    if (m.without_queue > 0 && m.jobs == 0)
        return error_set(&w->error, WEIR_EINPUT,
                         "dead retry: which queue they were in is not known; name one with --into QUEUE");
    if (m.met == 0)
        return error_set(&w->error, WEIR_ENOTFOUND,
                         "dead %s %.150s: not among the dead jobs; weir dead list names them", verb, id);
    rate_note(w, "dead %s %s", verb, id);
    return document_done(w, dead_move_document(verb, m.jobs, m.without_queue, 0), doc);
}
