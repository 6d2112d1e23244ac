#include "queue/status/status_outlook.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/status/forecast.h"
#include "queue/status/waits.h"

/* Those of its limits that exist, the one of its own name first; use: as in struct type_status. */
static int read_uses(struct limit_type *type, const char *use, const struct limits *limits, struct error *e)
{
    char name[LIMIT_NAME_SIZE];
    size_t most = 2;

    for (const char *at = use; at && (at = strchr(at, ',')); at++)
        most++;
    type->limits = calloc(most, sizeof *type->limits);
    if (!type->limits)
        return error_set(e, WEIR_EINTERNAL, "status: out of memory");
    if (limits_find(limits, type->name))
        strcpy(type->limits[type->limit_count++], type->name);
    for (size_t len; use && *use; use += len + (use[len] == ',')) {
        len = strcspn(use, ",");
        snprintf(name, sizeof name, "%.*s", (int)len, use);
        if (limits_find(limits, name))
            strcpy(type->limits[type->limit_count++], name);
    }
    return 0;
}

static struct limit_type limit_type_of(const struct type_status *t, const json_t *root)
{
    struct limit_type type = {
        .cost = t->cost,
        .waiting = t->waiting,
        .parked = t->parked + t->held,
        .held = json_object_get(json_object_get(root, "held"), t->name) != NULL,
        .own_costs = t->own_costs,
        .keyless = t->keyless,
        .learned = true,
        .served = t->served,
        .in_pause = t->in_pause,
        .free = t->free,
        .executors = t->executors,
    };

    snprintf(type.name, sizeof type.name, "%s", t->name);
    return type;
}

int status_give_types(struct status *s, const json_t *root, struct limits *limits, struct error *e)
{
    const json_t *asleep = json_object_get(root, "asleep"), *n;
    const char *name;
    int rc = 0;

    free(limits->types);
    limits->types = calloc(s->type_count + 1, sizeof *limits->types);
    if (!limits->types)
        return error_set(e, WEIR_EINTERNAL, "status: out of memory");
    for (size_t i = 0; rc == 0 && i < s->type_count; i++) {
        struct limit_type *type = &limits->types[limits->type_count++];

        *type = limit_type_of(&s->types[i], root);
        rc = read_uses(type, s->types[i].use, limits, e);
        s->types[i].limited = type->limit_count > 0;
    }
    json_object_foreach((json_t *)asleep, name, n)
    {
        limits->asleep += json_integer_value(n);
    }
    return rc == 0 ? limits_note_holds(limits, e) : rc;
}

static void read_rule(struct type_status *t, const struct limits *limits, const struct limit_type *type)
{
    const struct rule *rule = limits_rule(limits, type);
    char period[32];

    if (!rule)
        return;
    duration_format(rule->period_us, period);
    snprintf(t->rule, sizeof t->rule, "%" PRId64 "/%s", rule->count, period);
}

int status_foretell(struct type_status *t, const struct all_limits *all, struct error *e)
{
    const struct limits *limits = &all->at[t->partition];
    const struct limit_type *type = limits_type(limits, t->name);
    struct limit_type first; /* shallow: of its jobs only the first */
    struct forecast next, last;

    if (t->foretold)
        return 0;
    t->foretold = true;
    t->waits_for = type ? waits_of_type(limits, type) : NULL;
    if (!type || type->limit_count == 0)
        return 0;
    t->rate = limits_rate(limits, type);
    read_rule(t, limits, type);
    if (type->waiting + type->parked == 0 || (type->held && type->parked > 0))
        return 0;
    if (forecast_type(limits, type, NULL, &last, e) < 0)
        return e->status;
    first = *type;
    first.parked = 1;
    first.waiting = 0;
    if (forecast_type(limits, &first, NULL, &next, e) < 0)
        return e->status;
    t->next_start_us = next.last_us == GATE_NEVER ? -1 : next.last_us;
    t->finish_us = last.last_us == GATE_NEVER ? -1 : last.last_us;
    t->because = last.because;
    return 0;
}
