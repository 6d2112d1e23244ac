#include "queue/limits/limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_gates(struct limit *limit)
{
    for (size_t i = 0; limit->gates && i < limit->set.count; i++)
        gate_free(&limit->gates[i]);
    free(limit->gates);
    free(limit->reason);
}

void type_free(struct type_status *type)
{
    free((void *)type->limits);
    json_decref(type->pause);
    json_decref(type->waits_for);
    if (type->backlog) {
        json_decref(type->backlog->stop);
        json_decref(type->backlog->pause);
        json_decref(type->backlog->lanes);
    }
    free(type->backlog);
}

void limit_free(struct limit *limit)
{
    free_gates(limit);
    *limit = (struct limit){0};
}

void limits_free(struct limits *limits)
{
    for (size_t i = 0; i < limits->count; i++)
        free_gates(&limits->at[i]);
    for (size_t i = 0; i < limits->type_count; i++)
        type_free(&limits->types[i]);
    free(limits->at);
    free(limits->types);
    free(limits->holds);
    *limits = (struct limits){0};
}

/* ---- The answer */

struct json_t *limit_pause(const struct limit *limit)
{
    if (limit->pause_until_us <= limit->now_us)
        return NULL;
    return json_pack("{s:I, s:I, s:s}", "since", (json_int_t)limit->set.paused_at_us, "until",
                     (json_int_t)limit->pause_until_us, "reason", limit->reason ? limit->reason : "");
}

/* The end of a pause that was written at `set`: a clock that stepped back takes it along. */
static int64_t pause_end(const struct rule_set *set, int64_t now_us)
{
    int64_t back_us = set->paused_at_us > now_us ? set->paused_at_us - now_us : 0;

    return set->pause_until_us - back_us;
}

/* Returns how much of its rate a gate grants now, in thousandths; 0: its rule does not adapt. */
static int64_t factor_of(const struct gate *g)
{
    double full = (double)g->base.count / (double)g->base.period_us;

    return g->base.adapt_high ? llround(1000 * (double)g->rule.count / (double)g->rule.period_us / full) : 0;
}

/* Returns the end of a gate's hold, from a state that gate_read() took. */
static int64_t held_until(const char *state, int64_t now_us)
{
    int64_t wrote_us, ticket, until_us;
    const char *at = state;

    if (!number_read(&at, INT64_MAX, &wrote_us) || !(at = strchr(at + 1, ' ')))
        return 0;
    at++;
    if (!number_read(&at, INT64_MAX, &ticket) || *at++ != ',' || !number_read(&at, INT64_MAX, &until_us))
        return 0;
    until_us -= wrote_us > now_us ? wrote_us - now_us : 0;
    return until_us > now_us ? until_us : 0;
}

/* Gates that were never used, one for each rule. */
static bool make_gates(struct limit *limit)
{
    limit->gates = malloc(limit->set.count * sizeof *limit->gates);
    for (size_t i = 0; limit->gates && i < limit->set.count; i++)
        gate_init(&limit->gates[i], &limit->set.at[i]);
    return limit->gates;
}

/* row: lines, as rate_list has them; they are cut. A gate whose state cannot be read is closed for a period. false: out of memory. */
static bool read_limit(char *row, int64_t now_us, struct limit *limit)
{
    const char *name = strsep(&row, "\n"), *rules = strsep(&row, "\n");
    struct error ignored;

    limit->now_us = now_us;
    snprintf(limit->name, sizeof limit->name, "%s", name);
    limit->readable = rules && rule_set_read(rules, &limit->set, &ignored) == 0;
    if (limit->readable && !make_gates(limit))
        return false;
    for (size_t i = 0; limit->readable && i < limit->set.count; i++) {
        const char *state = strsep(&row, "\n");

        limit->readable = state;
        if (state && gate_read(&limit->gates[i], state, now_us, &ignored) == 0 && *state)
            limit->held_until_us[i] = held_until(state, now_us);
        limit->factor[i] = factor_of(&limit->gates[i]);
    }
    limit->pause_until_us = limit->readable ? pause_end(&limit->set, now_us) : 0;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b); /* each row begins with its name */
}

/* ---- The pages of an answer */

static int take_page(const json_t *page, void *arg)
{
    struct limits_asking *asking = arg;
    struct limits *out = asking->out;
    const json_t *raw = json_object_get(page, "raw");
    struct limit *at = reallocarray(out->at, out->count + json_array_size(raw) + 1, sizeof *at);
    bool done = at;

    out->now_us = answer_int(page, "now");
    out->at = at ? at : out->at;
    for (size_t i = 0; done && i < json_array_size(raw); i++) {
        char *row = strdup(json_string_value(json_array_get(raw, i)));

        done = row;
        if (row) {
            at[out->count] = (struct limit){0};
            done = read_limit(row, out->now_us, &at[out->count]);
            at[out->count].own_keys = answer_int(json_object_get(page, "own_keys"), at[out->count].name);
            out->count++;
        }
        free(row);
    }
    return done ? 0 : error_no_memory(&asking->w->error, "rate_list");
}

/* A scan may find a limit twice. */
static void forget_twins(struct limits *limits)
{
    size_t kept = 0;

    for (size_t i = 0; i < limits->count; i++)
        if (kept > 0 && strcmp(limits->at[kept - 1].name, limits->at[i].name) == 0)
            limit_free(&limits->at[i]);
        else
            limits->at[kept++] = limits->at[i];
    limits->count = kept;
}

void limits_begin(struct weir *w, int64_t now_us, struct limits *out, struct limits_asking *asking,
                  struct pages *pages)
{
    static const char *const words[] = {"limits", NULL};

    *out = (struct limits){0};
    *asking = (struct limits_asking){w, out};
    *pages = (struct pages){.w = w,
                            .script = "rate_list",
                            .now_us = now_us,
                            .arg = asking,
                            .words = words,
                            .take = take_page,
                            .here = true,
                            .ahead = true};
}

void limits_end(struct limits *limits)
{
    if (limits->count > 0)
        qsort(limits->at, limits->count, sizeof *limits->at, by_name);
    forget_twins(limits);
}

/* ---- Which limit holds which type */

static int by_limit(const void *a, const void *b)
{
    const struct hold *x = a, *y = b;
    int order = strcmp(x->limit, y->limit);

    return order ? order : (x->type > y->type) - (x->type < y->type);
}

/* Finds the limits of other names that hold a type, in order; returns how many. */
static size_t find_uses(const struct limits *limits, struct hold *uses)
{
    size_t count = 0;

    for (size_t i = 0; i < limits->type_count; i++) {
        struct type_status *type = &limits->types[i];

        for (size_t k = 0; k < type->limit_count; k++)
            if (strcmp(type->limits[k]->name, type->name) != 0)
                uses[count++] = (struct hold){type->limits[k]->name, type};
    }
    if (count > 0)
        qsort(uses, count, sizeof *uses, by_limit);
    return count;
}

/* Types are in order, and so is what each holds by its own name. */
int limits_note_holds(struct limits *limits, struct error *e)
{
    size_t most = limits->type_count, used, at = 0;
    struct hold *uses;

    for (size_t i = 0; i < limits->type_count; i++)
        most += limits->types[i].limit_count;
    free(limits->holds);
    limits->hold_count = 0;
    limits->holds = malloc((most + 1) * sizeof *limits->holds);
    uses = malloc((most + 1) * sizeof *uses);
    if (!limits->holds || !uses) {
        free(uses);
        return error_no_memory(e, "rate_list");
    }
    used = find_uses(limits, uses);
    for (size_t i = 0; i < limits->type_count; i++) {
        struct hold own = {limits->types[i].name, &limits->types[i]};

        while (at < used && by_limit(&uses[at], &own) < 0)
            limits->holds[limits->hold_count++] = uses[at++];
        limits->holds[limits->hold_count++] = own;
    }
    while (at < used)
        limits->holds[limits->hold_count++] = uses[at++];
    free(uses);
    return 0;
}

/* ---- Looking at it */

const struct limit *limits_find(const struct limits *limits, const char *name)
{
    return limits->count ? bsearch(name, limits->at, limits->count, sizeof *limits->at, by_name) : NULL;
}

int64_t type_parked(const struct type_status *type)
{
    return type->parked + type->held;
}

int64_t type_backlog(const struct type_status *type)
{
    return type->waiting + type_parked(type);
}

bool limit_holds(const struct type_status *type, const char *limit)
{
    for (size_t i = 0; i < type->limit_count; i++)
        if (strcmp(type->limits[i]->name, limit) == 0)
            return true;
    return strcmp(type->name, limit) == 0;
}

/* The first hold that is not before those of a limit; behind: that is behind them. */
static size_t find_hold(const struct limits *limits, const char *limit, bool behind)
{
    size_t low = 0, high = limits->hold_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(limits->holds[middle].limit, limit);

        if (order < 0 || (behind && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct hold *limits_holds(const struct limits *limits, const char *limit, size_t *count)
{
    size_t first = find_hold(limits, limit, false);

    *count = find_hold(limits, limit, true) - first;
    return *count ? &limits->holds[first] : NULL;
}

int64_t limits_parked(const struct limits *limits, const char *limit)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, limit, &count);
    int64_t parked = 0;

    for (size_t i = 0; i < count; i++)
        parked += type_parked(holds[i].type);
    return parked;
}

int64_t limits_backlog(const struct limits *limits, const char *limit)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, limit, &count);
    int64_t backlog = 0;

    for (size_t i = 0; i < count; i++)
        backlog += type_backlog(holds[i].type);
    return backlog;
}

int64_t limit_looked_at(const struct limit *limit)
{
    return limit->pause_until_us > limit->now_us ? limit->pause_until_us : limit->now_us;
}

int64_t limit_slots(const struct limit *limit, size_t rule)
{
    struct gate open = limit->gates[rule]; /* shallow: only looked at */

    if (limit->held_until_us[rule])
        return 0;
    open.pause_until_us = 0;
    return gate_count(&open, limit->now_us, limit->set.at[rule].burst, 1);
}

int64_t limit_nth_start(const struct limit *limit, size_t rule, int64_t n)
{
    int64_t from_us = limit_looked_at(limit), held_us = limit->held_until_us[rule];

    return gate_nth_start(&limit->gates[rule], held_us > from_us ? held_us : from_us, n, 1);
}

/* ---- Other rules */

/* The gate that a rule goes on with: that of its place. NULL: one that was never used. */
static const struct gate *origin_of(const struct limit *before, const struct rule *rule)
{
    const struct rule *was = before && before->readable ? rule_set_at(&before->set, rule->place) : NULL;

    return was && !*was->by && !*rule->by ? &before->gates[was - before->set.at] : NULL;
}

int limit_change(const struct limit *before, const char *name, const struct rule_set *rules, int64_t now_us,
                 struct limit *after, struct error *e)
{
    int status = 0;

    *after = (struct limit){.readable = true, .set = *rules, .now_us = now_us};
    snprintf(after->name, sizeof after->name, "%s", name);
    after->drops_keys =
        before && before->readable && strcmp(rule_set_path(&before->set), rule_set_path(rules)) != 0;
    after->pause_until_us = before ? before->pause_until_us : 0;
    if (!make_gates(after))
        status = WEIR_EINTERNAL;
    for (size_t i = 0; status == 0 && i < rules->count; i++) {
        const struct gate *from = origin_of(before, &rules->at[i]);

        if (!from)
            continue;
        status = gate_copy(&after->gates[i], from);
        if (status == 0)
            status = gate_change(&after->gates[i], &rules->at[i], now_us);
    }
    if (status == 0)
        return 0;
    limit_free(after);
    return error_no_memory(e, "rate set");
}

struct type_status *limits_type(const struct limits *limits, const char *name)
{
    return limits->type_count
               ? bsearch(name, limits->types, limits->type_count, sizeof *limits->types, by_name)
               : NULL;
}
