/* What weir rate says of jobs that were accepted and can never start under what is set now. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rate.h"

/* Has it jobs that may cost more than its limits will hold? was: the most that they held. */
static bool may_misfit(const struct limit_type *type, int64_t was)
{
    return type->own_costs || (was != GATE_NEVER && !type->met && type->waiting > 0);
}

static void write_note(const char *name, int64_t most, char out[RATE_NOTE_SIZE])
{
    snprintf(out, RATE_NOTE_SIZE,
             "%s: waiting jobs that cost more than %" PRId64
             " can never fit and end among the dead jobs; raise the burst or the count to keep them",
             name, most);
}

/* By the limit of that name; one that is not there or cannot be read holds any. */
static int64_t most_cost(const struct limits *limits, const char *name)
{
    const struct limit *limit = limits_find(limits, name);

    return limit && limit->readable ? limit_most_cost(&limit->set) : GATE_NEVER;
}

void rate_set_note(const struct limits *limits, const char *name, const struct rule_set *kept,
                   char out[RATE_NOTE_SIZE])
{
    int64_t was = most_cost(limits, name), most = limit_most_cost(kept);

    *out = '\0';
    for (size_t i = 0; most < was && !*out && i < limits->type_count; i++)
        if (limit_holds(&limits->types[i], name) && may_misfit(&limits->types[i], was))
            write_note(name, most, out);
}

void rate_use_note(const struct limits *limits, const char *type, char **names, char out[RATE_NOTE_SIZE])
{
    const struct limit_type *t = NULL;
    int64_t was = GATE_NEVER;

    *out = '\0';
    for (size_t i = 0; !t && i < limits->type_count; i++)
        if (strcmp(limits->types[i].name, type) == 0)
            t = &limits->types[i];
    for (size_t i = 0; t && i < t->limit_count; i++)
        was = most_cost(limits, t->limits[i]) < was ? most_cost(limits, t->limits[i]) : was;
    for (; t && *names; names++) {
        int64_t most = most_cost(limits, *names);

        if (most < was && may_misfit(t, was))
            write_note(*names, was = most, out);
    }
}

void rate_add_note(json_t *doc, const char *note)
{
    if (doc && *note)
        json_object_set_new(doc, "note", json_string(note));
}
