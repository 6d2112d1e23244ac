#include "view/status.h"

#include <stdlib.h>

#include "view/text.h"
#include "view/waits.h"
#include "view/workers.h"

json_t *queue_document(const struct queue_status *q)
{
    return json_pack("{s:I, s:o}", "waiting", (json_int_t)q->waiting, "paused_since",
                     json_since(q->paused_us));
}

json_t *type_document(const struct type_status *t)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:f, s:o, s:o, s:b, s:o}",
        "waiting", (json_int_t)t->waiting, "parked", (json_int_t)t->parked, "held", (json_int_t)t->held,
        "running", (json_int_t)t->running, "scheduled", (json_int_t)t->scheduled, "done", (json_int_t)t->done,
        "retried", (json_int_t)t->retried, "dead", (json_int_t)t->dead, "cancelled", (json_int_t)t->cancelled,
        "aside", (json_int_t)t->aside, "keyless", (json_int_t)t->keyless.jobs, "rule",
        *t->rule ? text_word(t->rule) : json_null(), "rate", t->rate > 0 ? json_real(t->rate) : json_null(),
        "rate_now", t->rate_now, "next_start", json_time(t->next_start_us), "finish_at",
        json_time(t->finish_us), "at_the_earliest", t->because != 0, "waits_for",
        t->waits_for ? document_make(t->waits_for, waits_members) : json_null());
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
    json_t *queues = json_object(), *types = json_object(), *workers = json_array();

    for (size_t i = 0; i < s->queue_count; i++)
        add_named(queues, s->queues[i].name, queue_document(&s->queues[i]));
    for (size_t i = 0; i < s->type_count; i++)
        add_named(types, s->types[i].name, type_document(&s->types[i]));
    for (size_t i = 0; i < s->worker_count; i++)
        json_array_append_new(workers, worker_document(&s->workers[i]));
    return json_pack("{s:o, s:o, s:o, s:{s:I, s:o}}", "queues", queues, "types", types, "workers", workers,
                     "kept_dead", "jobs", (json_int_t)s->dead, "bytes",
                     s->dead_bytes < 0 ? json_null() : json_integer(s->dead_bytes));
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
