#include "queue/limits/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/redis/client.h"
#include "core/redis/reply.h"
#include "core/redis/script.h"

void limits_request(struct args *a, const char *prefix, int64_t now_us, const char *name)
{
    script_begin(a, "rate_list", prefix, now_us);
    args_add(a, name);
}

void limit_free(struct limit *limit)
{
    for (size_t i = 0; i < RULES_MAX; i++)
        gate_free(&limit->gates[i]);
    *limit = (struct limit){0};
}

void limits_free(struct limits *limits)
{
    for (size_t i = 0; i < limits->count; i++)
        limit_free(&limits->at[i]);
    for (size_t i = 0; i < limits->type_count; i++)
        free(limits->types[i].limits);
    free(limits->at);
    free(limits->types);
    *limits = (struct limits){0};
}

/* ---- The answer */

/* A string, cut where it does not fit. */
static void read_text(const struct redisReply *r, char *out, size_t size)
{
    snprintf(out, size, "%s", r->type == REDIS_REPLY_STRING ? r->str : "");
}

static bool is_row(const struct redisReply *r, size_t least)
{
    return r->type == REDIS_REPLY_ARRAY && r->elements >= least;
}

/* The end of a pause that was written at `set`: a clock that stepped back takes it along. */
static int64_t pause_end(const struct rule_set *set, int64_t now_us)
{
    int64_t back_us = set->paused_at_us > now_us ? set->paused_at_us - now_us : 0;

    return set->pause_until_us - back_us;
}

/* How much of its rate a gate grants now, in thousandths; 0: its rule does not adapt. */
static int64_t factor_of(const struct gate *g)
{
    double full = (double)g->base.count / (double)g->base.period_us;

    return g->base.adapt_high ? llround(1000 * (double)g->rule.count / (double)g->rule.period_us / full) : 0;
}

/* The end of a gate's hold; state: one that gate_read took. */
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

/* row: name, text, a state for each rule; one that cannot be read counts as never used. */
static void read_limit(const struct redisReply *row, int64_t now_us, struct limit *limit)
{
    struct error ignored;

    limit->now_us = now_us;
    read_text(row->element[0], limit->name, sizeof limit->name);
    limit->readable = row->element[1]->type == REDIS_REPLY_STRING &&
                      rule_set_read(row->element[1]->str, &limit->set, &ignored) == 0 &&
                      row->elements == 2 + limit->set.count;
    for (size_t i = 0; limit->readable && i < limit->set.count; i++) {
        const char *state = row->element[2 + i]->type == REDIS_REPLY_STRING ? row->element[2 + i]->str : "";

        gate_init(&limit->gates[i], &limit->set.at[i]);
        if (gate_read(&limit->gates[i], state, now_us, &ignored) == 0 && *state)
            limit->held_until_us[i] = held_until(state, now_us);
        limit->factor[i] = factor_of(&limit->gates[i]);
    }
    limit->pause_until_us = limit->readable ? pause_end(&limit->set, now_us) : 0;
}

/* A number that is not below least, whatever the answer says. */
static int64_t read_count(const struct redisReply *r, int64_t least)
{
    int64_t n = reply_int(r, least);

    return n > least ? n : least;
}

/* row: name, cost, waiting, parked, held, its limits. */
static int read_type(const struct redisReply *row, struct limit_type *type, struct error *e)
{
    read_text(row->element[0], type->name, sizeof type->name);
    type->cost = read_count(row->element[1], 1);
    type->waiting = read_count(row->element[2], 0);
    type->parked = read_count(row->element[3], 0);
    type->held = reply_int(row->element[4], 0) != 0;
    type->limits = calloc(row->elements, sizeof *type->limits);
    if (!type->limits)
        return error_set(e, WEIR_EINTERNAL, "rate_list: out of memory; free some and try again");
    for (size_t i = 5; i < row->elements; i++)
        read_text(row->element[i], type->limits[type->limit_count++], sizeof *type->limits);
    return 0;
}

static int unexpected(struct error *e)
{
    return error_set(e, WEIR_EINTERNAL,
                     "rate_list: unexpected answer from Redis; is another version at work?");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b); /* each row begins with its name */
}

static int read_rows(const struct redisReply *limits, const struct redisReply *types, struct limits *out,
                     struct error *e)
{
    out->at = calloc(limits->elements + 1, sizeof *out->at);
    out->types = calloc(types->elements + 1, sizeof *out->types);
    if (!out->at || !out->types)
        return error_set(e, WEIR_EINTERNAL, "rate_list: out of memory; free some and try again");
    for (size_t i = 0; i < limits->elements; i++) {
        if (!is_row(limits->element[i], 2))
            return unexpected(e);
        read_limit(limits->element[i], out->now_us, &out->at[out->count++]);
    }
    for (size_t i = 0; i < types->elements; i++) {
        if (!is_row(types->element[i], 5))
            return unexpected(e);
        if (read_type(types->element[i], &out->types[out->type_count++], e) < 0)
            return e->status;
    }
    qsort(out->at, out->count, sizeof *out->at, by_name);
    qsort(out->types, out->type_count, sizeof *out->types, by_name);
    return 0;
}

int limits_reply(const struct redisReply *r, struct limits *out, struct error *e)
{
    *out = (struct limits){0};
    if (reply_array(r, 4, "rate_list", e) < 0)
        return e->status;
    if (!is_row(r->element[2], 0) || !is_row(r->element[3], 0))
        return unexpected(e);
    out->now_us = reply_int(r->element[0], 0);
    out->asleep = reply_int(r->element[1], 0);
    return read_rows(r->element[2], r->element[3], out, e);
}

int limits_read(struct weir *w, const char *name, struct limits *out)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    *out = (struct limits){0};
    if (name && limit_name_check("limit", name, &w->error) < 0)
        return w->error.status;
    args_init(&a);
    limits_request(&a, w->prefix, -1, name ? name : "");
    status = client_call(w, &a, &reply, NULL);
    if (status == 0)
        status = limits_reply(reply, out, &w->error);
    if (status == 0 && name && out->count == 0)
        status =
            error_set(&w->error, WEIR_ENOTFOUND, "limit %s: there is none; weir rate list shows them", name);
    if (reply)
        freeReplyObject(reply);
    args_free(&a);
    return status;
}

/* ---- Looking at it */

const struct limit *limits_find(const struct limits *limits, const char *name)
{
    return limits->count ? bsearch(name, limits->at, limits->count, sizeof *limits->at, by_name) : NULL;
}

bool limit_holds(const struct limit_type *type, const char *limit)
{
    for (size_t i = 0; i < type->limit_count; i++)
        if (strcmp(type->limits[i], limit) == 0)
            return true;
    return strcmp(type->name, limit) == 0;
}

int64_t limits_parked(const struct limits *limits, const char *limit)
{
    int64_t parked = 0;

    for (size_t i = 0; i < limits->type_count; i++)
        if (limit_holds(&limits->types[i], limit))
            parked += limits->types[i].parked;
    return parked;
}

int64_t limits_backlog(const struct limits *limits, const char *limit)
{
    int64_t backlog = limits_parked(limits, limit);

    for (size_t i = 0; i < limits->type_count; i++)
        if (limit_holds(&limits->types[i], limit))
            backlog += limits->types[i].waiting;
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

/* How much one rule is like another, as rate_set goes by it: 0 not at all. */
static int likeness(const struct rule *a, const struct rule *b)
{
    if (*a->by || *b->by || a->algorithm != b->algorithm)
        return 0;
    return rule_equal(a, b) ? 3 : a->period_us == b->period_us ? 2 : 1;
}

/* from[i]: the gate that rule i goes on with, NULL for one that was never used: of the rule most like it, of
 * which each has one heir, else of the one in its place. */
static void find_origins(const struct limit *before, const struct rule_set *rules,
                         const struct gate *from[RULES_MAX])
{
    size_t count = before && before->readable ? before->set.count : 0;
    bool taken[RULES_MAX] = {false};

    for (size_t i = 0; i < RULES_MAX; i++)
        from[i] = NULL;
    for (int level = 3; level > 0; level--)
        for (size_t i = 0; i < rules->count; i++)
            for (size_t j = 0; j < count; j++)
                if (!from[i] && !taken[j] && likeness(&rules->at[i], &before->set.at[j]) >= level) {
                    from[i] = &before->gates[j];
                    taken[j] = true;
                }
    for (size_t i = 0; i < rules->count && i < count; i++)
        if (!from[i] && !taken[i] && !*rules->at[i].by && !*before->set.at[i].by)
            from[i] = &before->gates[i];
}

int limit_change(const struct limit *before, const char *name, const struct rule_set *rules, int64_t now_us,
                 struct limit *after, struct error *e)
{
    const struct gate *from[RULES_MAX];
    int status = 0;

    find_origins(before, rules, from);
    *after = (struct limit){.readable = true, .set = *rules, .now_us = now_us};
    snprintf(after->name, sizeof after->name, "%s", name);
    after->pause_until_us = before ? before->pause_until_us : 0;
    for (size_t i = 0; status == 0 && i < rules->count; i++) {
        if (!from[i]) {
            gate_init(&after->gates[i], &rules->at[i]);
            continue;
        }
        status = gate_copy(&after->gates[i], from[i]);
        if (status == 0)
            status = gate_change(&after->gates[i], &rules->at[i], now_us);
    }
    if (status == 0)
        return 0;
    limit_free(after);
    return error_set(e, WEIR_EINTERNAL, "rate set: out of memory; free some and try again");
}

int64_t limit_most_cost(const struct rule_set *rules)
{
    int64_t most = GATE_NEVER;

    for (size_t i = 0; i < rules->count; i++) {
        struct gate g;

        gate_init(&g, &rules->at[i]);
        if (g.rule.algorithm != ALGORITHM_CONCURRENCY && g.rule.burst < most)
            most = g.rule.burst;
        gate_free(&g);
    }
    return most;
}

struct limit_type *limits_type(const struct limits *limits, const char *name)
{
    return limits->type_count
               ? bsearch(name, limits->types, limits->type_count, sizeof *limits->types, by_name)
               : NULL;
}
