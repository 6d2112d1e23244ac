#include "view/status.h"

#include <stdlib.h>

#include "view/pause.h"
#include "view/paused_keys.h"
#include "view/text.h"
#include "view/workers.h"

json_t *queue_document(const struct queue_status *q)
{
    return json_pack("{s:I, s:o, s:o}", "waiting", (json_int_t)q->waiting, "oldest_at",
                     json_time(q->oldest_us), "paused", pause_document(q->pause));
}

/* A name may be any bytes. */
static void add_named(json_t *object, const char *name, json_t *value)
{
    char *text = text_of(span_str(name));

    if (text)
        json_object_set_new(object, text, value);
    free(text);
}

json_t *status_document(const struct status *s)
{
    json_t *queues = json_object(), *workers = json_array();

    for (size_t i = 0; i < s->queue_count; i++)
        add_named(queues, s->queues[i].name, queue_document(&s->queues[i]));
    for (size_t i = 0; i < s->worker_count; i++)
        json_array_append_new(workers, worker_document(&s->workers[i]));
    return json_pack("{s:o, s:o, s:o, s:{s:I, s:o}, s:o, s:I}", "queues", queues, "types", types_document(s),
                     "workers", workers, "kept_dead", "jobs", (json_int_t)s->dead, "bytes",
                     s->dead_bytes < 0 ? json_null() : json_integer(s->dead_bytes), "paused_keys",
                     paused_keys_document(s->paused_keys), "paused_key_count",
                     (json_int_t)s->paused_key_count);
}

int view_status(struct weir *w, json_t **doc)
{
    struct status status;
    int rc = status_read(w, &status);

    *doc = NULL;
    if (rc == 0)
        rc = document_done(w, status_document(&status), doc);
    status_free(&status);
    return rc;
}

int view_type(struct weir *w, const char *name, json_t **doc)
{
    struct status status;
    const struct type_status *type;
    int rc = status_read(w, &status);

    *doc = NULL;
    type = rc == 0 ? status_type(&status, name) : NULL;
    if (rc == 0 && !type)
        rc = error_set(&w->error, WEIR_ENOTFOUND, "type %.128s: there is none; weir status shows them", name);
    if (rc == 0)
        rc = document_done(w, type_document(type), doc);
    if (rc == 0)
        json_object_set_new(*doc, "name", text_word(type->name));
    status_free(&status);
    return rc;
}

double type_rate(const struct type_status *t)
{
    bool of_all = !json_object_get(t->waits_for, "by");
    int64_t period_us = answer_int(t->waits_for, "period");
    double each = json_object_get(t->waits_for, "counts") ? 1 : t->each;

    return of_all && period_us > 0
               ? (double)answer_int(t->waits_for, "count") / ((double)period_us / 1e6) / each
               : t->rate;
}

bool type_is_unserved(const struct type_status *t)
{
    return type_backlog(t) > 0 && !t->served;
}
