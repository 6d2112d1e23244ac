#include "queue/status/status_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/status/forecast.h"
#include "queue/status/waits.h"

/* Reads the limits of a type that exist, that of its own name (NULL: there is none) first. */
static int read_uses(struct type_status *type, const struct limit *own, const json_t *uses,
                     const struct limits *limits, struct error *e)
{
    size_t most = (own != NULL) + json_array_size(uses);

    if (most == 0)
        return 0;
    type->limits = calloc(most, sizeof *type->limits);
    if (!type->limits)
        return error_no_memory(e, "status");
    if (own)
        type->limits[type->limit_count++] = own;
    for (size_t i = 0; i < json_array_size(uses); i++) {
        const char *name = json_string_value(json_array_get(uses, i));
        const struct limit *limit = name ? limits_find(limits, name) : NULL;

        if (limit)
            type->limits[type->limit_count++] = limit;
    }
    return 0;
}

/* GATE_NEVER: until somebody resumes it. */
static int64_t pause_until(const json_t *pause)
{
    int64_t until_us = answer_int(pause, "until");

    return until_us >= PAUSED_ENDLESS_US ? GATE_NEVER : until_us;
}

/* Finds the limit of that name; NULL: there is none. No limit before *at has it, as names are asked for in their order. */
static const struct limit *next_limit(const struct limits *limits, size_t *at, const char *name)
{
    int order = 1;

    while (*at < limits->count && (order = strcmp(limits->at[*at].name, name)) < 0)
        ++*at;
    return order == 0 ? &limits->at[*at] : NULL;
}

/* false: out of memory. */
static bool give_reasons(const json_t *root, struct limits *limits)
{
    const char *name;
    json_t *reason;

    json_object_foreach(json_object_get(root, "reasons"), name, reason) {
        struct limit *limit = (struct limit *)limits_find(limits, name);

        if (limit && !limit->reason && !(limit->reason = strdup(json_string_value(reason))))
            return false;
    }
    return true;
}

int status_give_types(struct status *s, const json_t *root, struct limits *limits, struct error *e)
{
    const json_t *types = json_object_get(root, "types"), *asleep = json_object_get(root, "asleep"), *n;
    const char *name;
    size_t at = 0;
    int rc = 0;

    if (!give_reasons(root, limits))
        return error_no_memory(e, "status");
    free(limits->types);
    limits->types = malloc((s->type_count + 1) * sizeof *limits->types);
    if (!limits->types)
        return error_no_memory(e, "status");
    for (size_t i = 0; rc == 0 && i < s->type_count; i++) {
        struct type_status *type = &limits->types[limits->type_count++];

        *type = s->types[i];
        json_incref(type->pause);
        type->pause_until_us = pause_until(type->pause);
        if (!status_read_backlog(type, root))
            return error_no_memory(e, "status");
        rc = read_uses(type, next_limit(limits, &at, type->name),
                       json_object_get(json_object_get(types, type->name), "use"), limits, e);
        s->types[i].limited = type->limit_count > 0;
    }
    json_object_foreach((json_t *)asleep, name, n)
        limits->asleep += json_integer_value(n);
    return rc == 0 ? limits_note_holds(limits, e) : rc;
}

static void read_rule(struct type_status *t, const struct type_status *type)
{
    const struct rule *rule = limits_rule(type, &t->rate);
    char period[32];

    if (!rule)
        return;
    rule_format_period(rule, period);
    snprintf(t->rule, sizeof t->rule, "%" PRId64 "/%s", rule->count, period);
}

int status_foretell(struct type_status *t, const struct all_limits *all, struct error *e)
{
    const struct limits *limits = &all->at[t->partition];
    const struct type_status *type = limits_type(limits, t->name);
    struct forecast last;
    int64_t next_us;

    if (t->foretold)
        return 0;
    t->foretold = true;
    t->waits_for = waits_of_type(limits, type);
    t->each = limits_cost(type);
    if (type->limit_count == 0)
        return 0;
    read_rule(t, type);
    if (type_backlog(type) == 0 || type->held > 0)
        return 0;
    if (forecast_type(limits, type, NULL, &last, e) < 0)
        return e->status;
    next_us = type_next_start(limits, type);
    t->next_start_us = next_us == GATE_NEVER ? -1 : next_us;
    t->finish_us = last.last_us == GATE_NEVER ? -1 : last.last_us;
    t->because = last.because;
    return 0;
}
