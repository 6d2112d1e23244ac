#include "serve/work_item.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/duration.h"
#include "queue/call/call.h"
#include "queue/limits/rate_request.h"
#include "serve/fields.h"
#include "serve/metrics.h"
#include "serve/page/page.h"
#include "serve/post_jobs.h"
#include "view/hidden.h"
#include "view/stream.h"
#include "view/text.h"
#include "view/write.h"

struct work_item *work_item_new(enum work_item_kind kind)
{
    struct work_item *item = calloc(1, sizeof *item);

    if (item) {
        item->kind = kind;
        item->work.run = work_item_run;
    }
    return item;
}

void work_item_free(struct work_item *item)
{
    if (!item)
        return;
    json_decref(item->fields);
    json_decref(item->hold.document);
    job_wait_free(&item->wait);
    free(item->path);
    free(item->query);
    text_free(&item->body);
    text_free(&item->text);
    free(item);
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
static void put_document(struct work_item *item, json_t *doc)
{
    struct text text = {0};
    FILE *to = doc ? view_stream(&text) : NULL;
    bool done =
        to && view_write(to, doc, item->hide_args ? VIEW_NO_BODIES : VIEW_ALL) && putc('\n', to) != EOF;

    if (to)
        done = fclose(to) == 0 && done;
    json_decref(doc);
    text_free(&item->text);
    if (done)
        item->text = text;
    else
        text_free(&text);
    item->type = "application/json";
}

/* Answers {"error": ...}; status 0: that which goes with the error. */
static void fail(struct work_item *item, unsigned status, const struct error *why)
{
    item->error = *why;
    item->status = status ? status : status_of(why->status);
    put_document(item, json_pack("{s:o}", "error", text_word(why->text)));
}

/* ---- On its thread */

/* The cursor that the word of an earlier answer stands for. */
static int find_cursor(struct work_item *item, struct error *e)
{
    const char *word = item->hide_args && !item->until_us ? field_text(item->fields, "cursor") : NULL;
    char *cursor;

    if (!word)
        return 0;
    if (view_find_cursor(word, &cursor, e) < 0)
        return e->status;
    json_object_set_new(item->fields, "cursor", json_string(cursor));
    free(cursor);
    return 0;
}

/* Reads a number of seconds, or a time such as 30s. Where a job is asked for, without a cursor, it is for the end of that job. */
static int read_wait(struct work_item *item, struct error *e)
{
    const char *text = field_text(item->fields, "wait");
    int64_t wait_us = field_number(item->fields, "wait", WAIT_S) * 1000000;
    struct error why;

    if (item->until_us)
        return 0;
    if (text && text[strspn(text, "0123456789")] && duration_parse(text, &wait_us, &why) < 0)
        wait_us = -1;
    if (wait_us < 0 || wait_us > WAIT_MOST_S * 1000000)
        return error_set(e, WEIR_EINPUT, "wait: must be 0 to %d seconds, such as 30s", WAIT_MOST_S);
    item->until_us = clock_mono_us() + wait_us;
    item->waits =
        text && strcmp(item->resource->path, "/api/jobs/*") == 0 && !field_text(item->fields, "cursor");
    return 0;
}

/* A search that has found nothing goes on, from where it ended, as long as some places are left and there is time. */
static bool goes_on(struct work_item *item, const json_t *doc)
{
    const json_t *jobs = json_object_get(doc, "jobs"), *state = json_object_get(doc, "state");
    json_t *cursor = json_object_get(doc, "cursor");

    if (item->waits) {
        item->work.at_us = item->wait.next_us < item->until_us ? item->wait.next_us : item->until_us;
        return !item->wait.ended && clock_mono_us() < item->until_us;
    }
    if (item->kind != WORK_DOCUMENT || !json_is_string(cursor) || clock_mono_us() >= item->until_us)
        return false;
    if (jobs ? json_array_size(jobs) > 0 : !json_is_null(state))
        return false;
    return json_object_set(item->fields, "cursor", cursor) == 0;
}

static void run_resource(struct work_item *item, const struct tools *tools)
{
    struct weir *w = tools->w;
    struct ask ask = {
        .row = item->resource, .name = item->name, .fields = item->fields, .hide_args = item->hide_args};
    json_t *doc = NULL;

    if (fields_check(item->fields, item->resource->fields, &w->error) < 0 ||
        find_cursor(item, &w->error) < 0 || read_wait(item, &w->error) < 0) {
        fail(item, 0, &w->error);
        return;
    }
    ask.wait = item->waits ? &item->wait : NULL;
    requests_on_behalf(item->visitor);
    if (item->resource->answer(w, &ask, &doc) < 0) {
        json_decref(doc);
        fail(item, 0, &w->error);
        return;
    }
    item->status = MHD_HTTP_OK;
    item->work.again = goes_on(item, doc);
    put_document(item, doc);
}

static void run_jobs(struct work_item *item, const struct tools *tools)
{
    struct weir *w = tools->w;
    json_t *doc;
    int status;

    if (!item->lines && json_object_size(item->fields) > 0) {
        error_set(&w->error, WEIR_EINPUT,
                  "fields in the address are for lines: send them as application/x-ndjson, or write all into "
                  "the job");
        fail(item, 0, &w->error);
        return;
    }
    status = item->lines
                 ? post_jobs_lines(w, item->fields, (struct span){item->body.at, item->body.len}, &doc)
                 : post_jobs_one(w, (struct span){item->body.at, item->body.len}, &doc);

    if (status == 0) {
        item->status = MHD_HTTP_OK;
        put_document(item, doc);
        return;
    }
    if (!doc) {
        fail(item, 0, &w->error);
        return;
    }
    item->error = w->error;
    item->status = status_of(status);
    json_object_set_new(doc, "error", text_word(w->error.text));
    put_document(item, doc);
}

/* The status of HTTP that goes with an answer of the protocol. */
static unsigned status_of_answer(const struct text *answer)
{
    static const char begin[] = "{\"refused\":\"";
    static const struct {
        const char *kind;
        unsigned status;
    } kinds[] = {{"invalid\"", MHD_HTTP_BAD_REQUEST},
                 {"missing\"", MHD_HTTP_NOT_FOUND},
                 {"closed\"", MHD_HTTP_CONFLICT},
                 {"unavailable\"", MHD_HTTP_SERVICE_UNAVAILABLE}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (answer->len > sizeof begin + strlen(kinds[i].kind) &&
            memcmp(answer->at, begin, sizeof begin - 1) == 0 &&
            memcmp(answer->at + sizeof begin - 1, kinds[i].kind, strlen(kinds[i].kind)) == 0)
            return kinds[i].status;
    return MHD_HTTP_OK;
}

static void run_call(struct work_item *item, const struct tools *tools)
{
    struct weir *w = tools->w;
    bool lost;

    item->type = "application/json";
    if (call_verb(w, item->verb, (struct span){item->body.at ? item->body.at : "", item->body.len},
                  &item->text, &lost) == 0) {
        item->status = status_of_answer(&item->text);
        return;
    }
    item->error = w->error;
    item->status = lost ? MHD_HTTP_GATEWAY_TIMEOUT : MHD_HTTP_SERVICE_UNAVAILABLE;
    put_document(item,
                 lost ? json_pack("{s:o}", "error", text_word(w->error.text))
                      : json_pack("{s:s, s:o}", "refused", "unavailable", "why", text_word(w->error.text)));
}

/* 200: held, renewed, ended. Of a denial 429, of one for ever 400. */
static unsigned status_of_hold(const json_t *answer)
{
    if (!json_is_false(json_object_get(answer, "allowed")))
        return MHD_HTTP_OK;
    return json_object_get(answer, "never") ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_TOO_MANY_REQUESTS;
}

static void run_hold(struct work_item *item, const struct tools *tools)
{
    struct weir *w = tools->w;
    json_t *answer = NULL;
    bool lost = false;

    if (!item->hold.document &&
        post_hold_read(&item->hold, item->resource, item->name, item->fields, item->visitor, &w->error) < 0) {
        fail(item, 0, &w->error);
    } else if (post_hold_ask(&item->hold, w, item->resource->by.word, &answer, &item->work.at_us, &lost) <
               0) {
        fail(item, lost ? MHD_HTTP_GATEWAY_TIMEOUT : MHD_HTTP_SERVICE_UNAVAILABLE, &w->error);
    } else if (json_object_get(answer, "refused")) {
        put_document(item, json_incref(answer));
        item->status = status_of_answer(&item->text);
        put_document(item, json_pack("{s:O}", "error", json_object_get(answer, "why")));
    } else {
        item->status = status_of_hold(answer);
        item->work.again = item->work.at_us > 0;
        item->retry_after_s = json_number_value(json_object_get(answer, "retry_after"));
        put_document(item, json_incref(answer));
    }
    json_decref(answer);
}

static void run_metrics(struct work_item *item, const struct tools *tools)
{
    item->status = MHD_HTTP_OK;
    item->type = METRICS_TYPE;
    if (metrics_write(tools->w, tools->pages, &item->text) < 0)
        fail(item, 0, &tools->w->error);
}

static void run_page(struct work_item *item, const struct tools *tools)
{
    const struct page_request r = {.path = item->path,
                                   .query = item->query,
                                   .actions = item->actions,
                                   .hide_args = item->hide_args,
                                   .cache = tools->pages};
    struct error e = {0};

    item->type = "text/html; charset=utf-8";
    item->status = page_render(tools->w, &r, &item->text, &e);
    if (item->status == MHD_HTTP_INTERNAL_SERVER_ERROR)
        fail(item, item->status, &e);
}

void work_item_run(struct work *work, const struct tools *tools)
{
    static void (*const runs[])(struct work_item * item, const struct tools *tools) = {
        [WORK_DOCUMENT] = run_resource, [WORK_METRICS] = run_metrics, [WORK_ACTION] = run_resource,
        [WORK_JOBS] = run_jobs,         [WORK_CALL] = run_call,       [WORK_HOLD] = run_hold,
        [WORK_PAGE] = run_page};
    struct work_item *item = (struct work_item *)work;

    if (item->drop_pages)
        page_cache_drop(tools->pages);
    runs[item->kind](item, tools);
}
