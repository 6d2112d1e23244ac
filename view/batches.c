#include "view/batches.h"

#include "view/document.h"
#include "view/pause.h"
#include "view/text.h"
#include "view/waits.h"

static json_t *number_json(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static json_t *follower_json(const struct batch *b)
{
    if (!*b->type)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "type", text_word(b->type), "queue", text_word(b->queue),
                     "enqueued_at", json_time(b->fired_us));
}

json_t *batch_document(const struct batch *b)
{
    return json_pack(
        "{s:o, s:s, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:b, s:o, s:o, s:o, "
        "s:o}",
        "name", text_word(b->name), "state", batch_phase_name(b->phase), "paused", pause_document(b->pause),
        "total", (json_int_t)b->total, "left", (json_int_t)b->left, "waiting",
        number_json(b->running < 0 ? -1 : b->left - b->running), "running", number_json(b->running), "aside",
        (json_int_t)b->aside, "done", (json_int_t)b->done, "failed", (json_int_t)b->failed, "dead",
        (json_int_t)b->dead, "cancelled", (json_int_t)b->cancelled, "rate", b->rate, "waits_for",
        b->waits_for ? document_make(b->waits_for, waits_members) : json_null(), "finish_at",
        json_time(b->finish_us), "at_the_earliest", b->because != 0, "created_at", json_time(b->created_us),
        "sealed_at", json_time(b->sealed_us), "ended_at", json_time(b->ended_us), "then", follower_json(b));
}

json_t *batch_change_document(const char *name, const char *action, const struct batch_change *change)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I}", "name", name, "action", action, "was",
                     batch_phase_name(change->was), "left", (json_int_t)change->left, "aside",
                     (json_int_t)change->aside);
}

int batch_was_cancelled(const char *name, struct error *e)
{
    return error_set(
        e, WEIR_EINPUT,
        "batch %s was cancelled, which cannot be undone; enqueue its jobs again under another name", name);
}

static int add_row(const struct batch *b, void *arg)
{
    json_array_append_new(arg, batch_document(b));
    return 0;
}

int view_batches(struct weir *w, json_t **doc)
{
    json_t *rows = json_array();

    *doc = NULL;
    if (batch_each(w, false, add_row, rows) == 0)
        return document_done(w, rows, doc);
    json_decref(rows);
    return w->error.status;
}

int batch_look(struct weir *w, const char *name, struct batch *b)
{
    int status = batch_read(w, name, b);

    return status ? status : batch_forecast(w, b);
}

int view_batch(struct weir *w, const char *name, json_t **doc)
{
    struct batch b;
    int status = batch_look(w, name, &b);

    *doc = NULL;
    if (status == 0)
        status = document_done(w, batch_document(&b), doc);
    batch_free(&b);
    return status;
}
