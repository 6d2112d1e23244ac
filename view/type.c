#include "view/type.h"

#include "view/format.h"
#include "view/json.h"
#include "view/output.h"
#include "view/pause.h"
#include "view/text.h"
#include "view/waits.h"

json_t *type_document(const struct type_status *t)
{
    json_t *doc = json_object();

    for (const struct jobs_count *c = jobs_counts; c->name; c++)
        if (c->kind != JOBS_LOST)
            json_object_set_new_nocheck(doc, c->name, json_integer(type_number(t, c->at)));
    json_object_set_new_nocheck(doc, "paused", pause_document(t->pause));
    json_object_set_new_nocheck(doc, "keyless", json_integer(t->keyless.jobs));
    json_object_set_new_nocheck(doc, "oldest_at", json_time(t->oldest_us));
    json_object_set_new_nocheck(doc, "rule", *t->rule ? text_word(t->rule) : json_null());
    json_object_set_new_nocheck(doc, "rate", t->rate > 0 ? json_real(t->rate) : json_null());
    json_object_set_new_nocheck(doc, "rate_now", json_real(t->rate_now));
    json_object_set_new_nocheck(doc, "next_start", json_time(t->next_start_us));
    json_object_set_new_nocheck(doc, "finish_at", json_time(t->finish_us));
    json_object_set_new_nocheck(doc, "at_the_earliest", json_boolean(t->because != 0));
    json_object_set_new_nocheck(doc, "waits_for",
                                t->waits_for ? document_make(t->waits_for, waits_members) : json_null());
    return doc;
}

json_t *types_document(const struct status *s)
{
    json_t *doc = json_object();

    for (size_t i = 0; i < s->type_count; i++)
        json_object_set_new_nocheck(doc, s->types[i].name, type_document(&s->types[i]));
    return doc;
}

void type_put_end(FILE *to, const json_t *type, int64_t now_us)
{
    const json_t *at = json_object_get(type, "finish_at");
    char when[PHRASE_SIZE];

    if (json_is_number(at))
        output_to(to, "%s%s", format_when(now_us, json_us(at), when),
                  json_is_true(json_object_get(type, "at_the_earliest")) ? ", at the earliest" : "");
}
