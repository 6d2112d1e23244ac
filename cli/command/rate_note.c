/* What weir rate says of jobs that were accepted and can never start under what is set now. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command/rate.h"

static void write_note(const char *name, int64_t most, char out[RATE_NOTE_SIZE])
{
    snprintf(out, RATE_NOTE_SIZE,
             "%s: jobs that cost more than %" PRId64
             ", if any wait or are scheduled, can never fit and end among the dead jobs; raise the burst or "
             "the count to keep them",
             name, most);
}

/* By the limit of that name; one that is not there or cannot be read holds any. */
static int64_t most_cost(const struct limits *limits, const char *name)
{
    const struct limit *limit = limits_find(limits, name);

    return limit && limit->readable ? limit_most_cost(&limit->set) : GATE_NEVER;
}

/* By all limits of a type. */
static int64_t least_most_cost(const struct limits *limits, const struct limit_type *type)
{
    int64_t least = GATE_NEVER;

    for (size_t i = 0; i < type->limit_count; i++) {
        int64_t most = most_cost(limits, type->limits[i]);

        least = most < least ? most : least;
    }
    return least;
}

/* Of jobs under their first limit nothing is said unless some are known to name their cost: nearly none does.
 */
static bool may_misfit(const struct limit_type *type, int64_t was)
{
    return type->may_differ && (type->own_costs || was != GATE_NEVER);
}

void rate_set_note(const struct limits *limits, const char *name, const struct rule_set *kept,
                   char out[RATE_NOTE_SIZE])
{
    int64_t most = limit_most_cost(kept);

    *out = '\0';
    for (size_t i = 0; !*out && i < limits->type_count; i++) {
        const struct limit_type *type = &limits->types[i];
        int64_t was = least_most_cost(limits, type);

        if (limit_holds(type, name) && most < was && may_misfit(type, was))
            write_note(name, most, out);
    }
}

void rate_use_note(const struct limits *limits, const char *type, char **names, char out[RATE_NOTE_SIZE])
{
    const struct limit_type *t = limits_type(limits, type);
    int64_t most = t ? least_most_cost(limits, t) : 0;
    bool may = t && may_misfit(t, most);

    *out = '\0';
    for (; may && *names; names++)
        if (most_cost(limits, *names) < most)
            write_note(*names, most = most_cost(limits, *names), out);
}

void rate_add_note(json_t *doc, const char *note)
{
    if (doc && *note)
        json_object_set_new(doc, "note", json_string(note));
}
