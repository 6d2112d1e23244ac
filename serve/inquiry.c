#include "serve/inquiry.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "serve/fields.h"
#include "serve/intake.h"
#include "serve/metrics.h"
#include "serve/page/page.h"
#include "view/hidden.h"
#include "view/stream.h"
#include "view/text.h"
#include "view/write.h"

struct inquiry *inquiry_new(enum inquiry_kind kind)
{
    struct inquiry *t = calloc(1, sizeof *t);

    if (t) {
        t->kind = kind;
        t->errand.run = inquiry_run;
    }
    return t;
}

void inquiry_free(struct inquiry *t)
{
    if (!t)
        return;
    json_decref(t->fields);
    free(t->path);
    free(t->query);
    text_free(&t->body);
    text_free(&t->text);
    free(t);
}

#define WAIT_S 10 /* for so long a search goes on before it says that it has found nothing so far */
#define WAIT_MOST_S 60

/* ---- Answers */

static unsigned status_of(int status)
{
    switch (status) {
    case WEIR_ENOTFOUND:
        return MHD_HTTP_NOT_FOUND;
    case WEIR_EINPUT:
    case WEIR_EUSAGE:
        return MHD_HTTP_BAD_REQUEST;
    case WEIR_ENOTNOW:
        return MHD_HTTP_CONFLICT;
    case WEIR_EUNREACHABLE:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

/* Frees the document. NULL: there was no memory for it. */
static void put_document(struct inquiry *t, json_t *doc)
{
    struct text text = {0};
    FILE *to = doc ? view_stream(&text) : NULL;
    bool done = to && view_write(to, doc, t->hide_args ? VIEW_NO_BODIES : VIEW_ALL) && putc('\n', to) != EOF;

    if (to)
        done = fclose(to) == 0 && done;
    json_decref(doc);
    text_free(&t->text);
    if (done)
        t->text = text;
    else
        text_free(&text);
    t->type = "application/json";
}

void inquiry_fail(struct inquiry *t, unsigned status, const struct error *why)
{
    t->error = *why;
    t->status = status ? status : status_of(why->status);
    put_document(t, json_pack("{s:o}", "error", text_word(why->text)));
}

/* ---- On its thread */

/* The cursor that the word of an earlier answer stands for. */
static int find_cursor(struct inquiry *t, struct error *e)
{
    const char *word = t->hide_args && !t->until_us ? field_text(t->fields, "cursor") : NULL;
    char *cursor;

    if (!word)
        return 0;
    if (view_find_cursor(word, &cursor, e) < 0)
        return e->status;
    json_object_set_new(t->fields, "cursor", json_string(cursor));
    free(cursor);
    return 0;
}

static int read_wait(struct inquiry *t, struct error *e)
{
    int64_t wait_s = field_number(t->fields, "wait", WAIT_S);

    if (t->until_us)
        return 0;
    if (wait_s < 0 || wait_s > WAIT_MOST_S)
        return error_set(e, WEIR_EINPUT, "wait: must be 0 to %d seconds", WAIT_MOST_S);
    t->until_us = clock_mono_us() + wait_s * 1000000;
    return 0;
}

/* A search that has found nothing goes on, from where it ended, as long as some places are left and there is time. */
static bool goes_on(struct inquiry *t, const json_t *doc)
{
    const json_t *jobs = json_object_get(doc, "jobs"), *state = json_object_get(doc, "state");
    json_t *cursor = json_object_get(doc, "cursor");

    if (t->kind != INQUIRY_DOCUMENT || !json_is_string(cursor) || clock_mono_us() >= t->until_us)
        return false;
    if (jobs ? json_array_size(jobs) > 0 : !json_is_null(state))
        return false;
    return json_object_set(t->fields, "cursor", cursor) == 0;
}

static void run_resource(struct inquiry *t, struct weir *w)
{
    const struct ask ask = {
        .names = {t->names[0], t->names[1]}, .fields = t->fields, .hide_args = t->hide_args};
    json_t *doc;

    if (fields_check(t->fields, t->resource->fields, &w->error) < 0 || find_cursor(t, &w->error) < 0 ||
        read_wait(t, &w->error) < 0 || t->resource->answer(w, &ask, &doc) < 0) {
        inquiry_fail(t, 0, &w->error);
        return;
    }
    t->status = MHD_HTTP_OK;
    t->errand.again = goes_on(t, doc);
    put_document(t, doc);
}

static void run_jobs(struct inquiry *t, struct weir *w)
{
    json_t *doc;
    int status;

    if (!t->lines && json_object_size(t->fields) > 0) {
        error_set(&w->error, WEIR_EINPUT,
                  "fields in the address are for lines: send them as application/x-ndjson, or write all into "
                  "the job");
        inquiry_fail(t, 0, &w->error);
        return;
    }
    status = t->lines ? intake_lines(w, t->fields, (struct span){t->body.at, t->body.len}, &doc)
                      : intake_one(w, (struct span){t->body.at, t->body.len}, &doc);

    if (status == 0) {
        t->status = MHD_HTTP_OK;
        put_document(t, doc);
        return;
    }
    if (!doc) {
        inquiry_fail(t, 0, &w->error);
        return;
    }
    t->error = w->error;
    t->status = status_of(status);
    json_object_set_new(doc, "error", text_word(w->error.text));
    put_document(t, doc);
}

static void run_metrics(struct inquiry *t, const struct tools *tools)
{
    t->status = MHD_HTTP_OK;
    t->type = METRICS_TYPE;
    if (metrics_write(tools->w, tools->pages, &t->text) < 0)
        inquiry_fail(t, 0, &tools->w->error);
}

static void run_page(struct inquiry *t, const struct tools *tools)
{
    const struct page_request r = {.path = t->path,
                                   .query = t->query,
                                   .actions = t->actions,
                                   .hide_args = t->hide_args,
                                   .cache = tools->pages};
    struct error e = {0};

    t->type = "text/html; charset=utf-8";
    t->status = page_render(tools->w, &r, &t->text, &e);
    if (t->status == MHD_HTTP_INTERNAL_SERVER_ERROR)
        inquiry_fail(t, t->status, &e);
}

void inquiry_run(struct errand *errand, const struct tools *tools)
{
    struct inquiry *t = (struct inquiry *)errand;

    if (t->drop_pages)
        page_cache_drop(tools->pages);
    if (t->kind == INQUIRY_PAGE)
        run_page(t, tools);
    else if (t->kind == INQUIRY_METRICS)
        run_metrics(t, tools);
    else if (t->kind == INQUIRY_JOBS)
        run_jobs(t, tools->w);
    else
        run_resource(t, tools->w);
}
