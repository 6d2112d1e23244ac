#include "view/type.h"

#include <stddef.h>
#include <string.h>

#include "view/format.h"
#include "view/json.h"
#include "view/output.h"
#include "view/pause.h"
#include "view/text.h"
#include "view/waits.h"

enum kind { PAUSE, KEYLESS, TIME, RATE, RATE_OR_NULL, RULE, DOUBT, WAITS };

static const struct type_member {
    const char *name;
    enum kind kind;
    size_t at;
} members[] = {
#define AT(member) offsetof(struct type_status, member)
    {"paused", PAUSE, AT(pause)},
    {"keyless", KEYLESS, AT(keyless)},
    {"oldest_at", TIME, AT(oldest_us)},
    {"rule", RULE, AT(rule)},
    {"rate", RATE_OR_NULL, AT(rate)},
    {"rate_now", RATE, AT(rate_now)},
    {"next_start", TIME, AT(next_start_us)},
    {"finish_at", TIME, AT(finish_us)},
    {"at_the_earliest", DOUBT, AT(because)},
    {"waits_for", WAITS, AT(waits_for)},
#undef AT
};
#define MEMBERS (sizeof members / sizeof *members)

static double rate_of(const struct type_status *t, const struct type_member *m)
{
    double rate;

    memcpy(&rate, (const char *)t + m->at, sizeof rate);
    return rate;
}

static json_t *value_of(const struct type_status *t, const struct type_member *m)
{
    switch (m->kind) {
    case PAUSE:
        return pause_document(t->pause);
    case KEYLESS:
        return json_integer(t->keyless.jobs);
    case TIME:
        return json_time(type_number(t, m->at));
    case RATE_OR_NULL:
        return rate_of(t, m) > 0 ? json_real(rate_of(t, m)) : json_null();
    case RATE:
        return json_real(rate_of(t, m));
    case RULE:
        return *t->rule ? text_word(t->rule) : json_null();
    case DOUBT:
        return json_boolean(t->because != 0);
    default:
        return t->waits_for ? document_make(t->waits_for, waits_members) : json_null();
    }
}

json_t *type_document(const struct type_status *t)
{
    json_t *doc = json_object();

    for (const struct jobs_count *c = jobs_counts; c->name; c++)
        if (c->kind != JOBS_LOST)
            json_object_set_new_nocheck(doc, c->name, json_integer(type_number(t, c->at)));
    for (size_t i = 0; i < MEMBERS; i++)
        json_object_set_new_nocheck(doc, members[i].name, value_of(t, &members[i]));
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
