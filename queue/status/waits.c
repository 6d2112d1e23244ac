#include "queue/status/waits.h"

#include <stdio.h>
#include <string.h>

#include "queue/status/forecast.h"

static const struct rule *rule_of(const json_t *row, const struct limits *limits)
{
    const struct limit *limit = limits_find(limits, answer_text(row, "limit_name"));

    return limit && limit->readable ? rule_set_at(&limit->set, answer_int_or(row, "index", -1)) : NULL;
}

/* key: that of a keyed rule; NULL: all of them. */
static void set_rule(json_t *row, const struct rule *rule, const char *key)
{
    bool keyed = rule && *rule->by && key;
    char text[RULE_TEXT_SIZE];

    json_object_set_new(row, "gate",
                        rule ? json_sprintf("%s#%d%s%s", answer_text(row, "limit_name"),
                                            (int)answer_int(row, "index"), keyed ? "/" : "", keyed ? key : "")
                             : json_string(answer_text(row, "limit_name")));
    json_object_del(row, "rule");
    if (!rule || json_is_true(json_object_get(row, "closed")))
        return;
    rule_format(rule, text);
    json_object_set_new(row, "rule", json_string(text));
    json_object_set_new(row, "count", json_integer(rule->count));
    if (rule->algorithm != ALGORITHM_CONCURRENCY)
        json_object_set_new(row, "period", json_integer(rule->period_us));
    if (rule->zone.is_set)
        json_object_set_new(row, "zone", json_string(rule->zone_name));
    if (rule->of_jobs)
        json_object_set_new(row, "counts", json_string("jobs"));
}

/* Reads the rule that the key of a gate has for itself. NULL: it has none. */
static const struct rule *own_rule(json_t *row, struct rule *own)
{
    struct error ignored;

    if (rule_read(answer_text(row, "own_rule"), own, &ignored) < 0)
        return NULL;
    own->place = (int)answer_int(row, "index");
    json_object_set_new(row, "own_rule", json_true());
    if (answer_int(row, "own_until") == 0)
        json_object_del(row, "own_until");
    return own;
}

const struct rule *waits_gate(json_t *row, const struct limits *limits, const char *key, int64_t now_us,
                              struct rule *own)
{
    const struct rule *rule = own_rule(row, own);
    bool open = answer_int_or(row, "opens_at", INT64_MAX) <= now_us;

    if (!rule)
        rule = rule_of(row, limits);
    set_rule(row, rule, key);
    json_object_set_new(row, "open", json_boolean(open));
    if (open)
        json_object_del(row, "opens_at");
    return rule;
}

int waits_last(const json_t *gates)
{
    int64_t last_us = 0;
    int last = -1;

    for (size_t i = 0; i < json_array_size(gates); i++) {
        const json_t *gate = json_array_get(gates, i);
        int64_t opens_us = answer_int_or(gate, "opens_at", INT64_MAX);

        if (!json_is_true(json_object_get(gate, "open")) && opens_us > last_us) {
            last_us = opens_us;
            last = (int)i;
        }
    }
    return last;
}

json_t *waits_until(const json_t *gate, int64_t until_us)
{
    json_t *waits = json_copy((json_t *)gate);

    if (until_us < GATE_NEVER)
        json_object_set_new(waits, "until", json_integer(until_us));
    return waits;
}

/* True when a gate that time does not open will never hold so much. One of concurrency opens when jobs end. */
static bool is_too_small(const struct rule *rule, int64_t cost)
{
    return rule->algorithm != ALGORITHM_CONCURRENCY || cost > rule->count;
}

/* Of the gates that are closed one. */
struct closed {
    const struct limit *limit; /* NULL: none */
    int index;                 /* of its rule; below 0: the whole limit is closed */
    int64_t opens_us, held_us; /* GATE_NEVER: not by time */
};

/* Keeps the gate that opens last; of equals the first. */
static void keep_last(struct closed *last, const struct closed *other)
{
    if (!last->limit || other->opens_us > last->opens_us)
        *last = *other;
}

static void keep_closed(struct closed *last, const struct limits *limits, const struct limit *limit,
                        const struct type_status *type)
{
    if (!limit->readable) {
        keep_last(last, &(struct closed){limit, -1, GATE_NEVER, 0});
        return;
    }
    for (size_t i = 0; i < limit->set.count; i++) {
        int64_t held_us = limit->held_until_us[i], at_us;
        struct gate g = limit->gates[i]; /* shallow: only looked at */

        if (*limit->gates[i].rule.by)
            continue;
        type_price(type, &g);
        at_us = gate_start(&g, limits->now_us, type_next_cost(type));
        at_us = held_us > at_us ? held_us : at_us;
        if (at_us > limits->now_us)
            keep_last(last, &(struct closed){limit, (int)i, at_us, held_us});
    }
    if (limit->pause_until_us > limits->now_us)
        keep_last(last, &(struct closed){limit, -1, limit->pause_until_us, 0});
}

static json_t *closed_gate(const struct closed *c, int64_t cost)
{
    json_t *gate = json_pack("{s:s, s:b}", "limit_name", c->limit->name, "open", false);
    const struct rule *rule = c->index < 0 ? NULL : &c->limit->set.at[c->index];

    if (rule) {
        json_object_set_new(gate, "index", json_integer(rule->place));
        json_object_set_new(gate, "throttled_until", json_integer(c->limit->gates[c->index].pause_until_us));
        json_object_set_new(gate, "held_until", json_integer(c->held_us));
        if (c->opens_us == GATE_NEVER && is_too_small(rule, cost))
            json_object_set_new(gate, "never", json_true());
    } else if (c->limit->readable) {
        json_object_set_new(gate, "paused", limit_pause(c->limit));
    }
    set_rule(gate, rule, NULL);
    if (c->opens_us < GATE_NEVER) {
        json_object_set_new(gate, "opens_at", json_integer(c->opens_us));
        json_object_set_new(gate, "until", json_integer(c->opens_us));
    }
    return gate;
}

/* Of the gates that are not keyed the closed one that opens last, *opens_us, or the one at which another type has its turn; or NULL. */
static json_t *waits_gates(const struct limits *limits, const struct type_status *type, int64_t *opens_us)
{
    int64_t cost = type_next_cost(type);
    struct closed last = {.limit = NULL};
    struct type_turn turn;

    for (size_t i = 0; i < type->limit_count; i++)
        keep_closed(&last, limits, type->limits[i], type);
    if (!last.limit && type_awaits_turn(limits, type, &turn))
        last = (struct closed){turn.limit, (int)turn.rule, turn.until_us, turn.until_us};
    *opens_us = last.opens_us;
    return last.limit ? closed_gate(&last, cost) : NULL;
}

/* ---- What else it may be */

json_t *waits_pause(const char *kind, const char *name, const json_t *pause)
{
    return json_pack("{s:s, s:O}", kind, name, "paused", pause);
}

json_t *waits_worker(const char *type, const char *queue, int64_t resting, int64_t since_us)
{
    json_t *row = json_pack("{s:s}", "type", type);

    if (queue)
        json_object_set_new(row, "queue", json_string(queue));
    if (resting > 0)
        json_object_set_new(row, "resting", json_integer(resting));
    if (resting > 0 && since_us > 0)
        json_object_set_new(row, "resting_since", json_integer(since_us));
    return row;
}

json_t *waits_executor(const struct type_status *type)
{
    bool busy = type->served && type->free == 0 && type->executors > 0;

    return busy ? json_pack("{s:I}", "executors", (json_int_t)type->executors) : NULL;
}

/* True when a keyed rule is stricter than another one for jobs of that cost. Rules of concurrency say nothing of time. */
static bool is_slower(const struct rule *rule, const struct rule *than, const struct type_status *type)
{
    bool counts = rule->algorithm == ALGORITHM_CONCURRENCY;

    if (!than || than->algorithm == ALGORITHM_CONCURRENCY)
        return !than || !counts || rule->count < than->count;
    return !counts && (double)rule->count * (double)than->period_us * limits_cost_at(than, type) <
                          (double)than->count * (double)rule->period_us * limits_cost_at(rule, type);
}

/* Returns the rule that keys have for themselves in place of that one; NULL: not all that wait are known to have the same. */
static const struct rule *rule_of_keys(const struct type_status *type, const char *limit,
                                       const struct rule *rule, struct rule *own)
{
    const json_t *lanes = type->backlog ? type->backlog->lanes : NULL;
    int64_t left = type_parked(type) - (type->backlog ? type->backlog->stopped : 0);
    const char *text = NULL;
    struct error ignored;

    for (size_t i = 0; i < json_array_size(lanes); i++) {
        const json_t *lane = json_array_get(lanes, i), *words = json_object_get(lane, "gates");

        for (size_t at = 0; at + 3 < json_array_size(words); at += 4) {
            const char *name = json_string_value(json_array_get(words, at)),
                       *word = json_string_value(json_array_get(words, at + 3));

            if (!name || strcmp(name, limit) != 0 || answer_int_at(words, at + 1) != rule->place)
                continue;
            if (!word || (text && strcmp(text, word) != 0))
                return NULL;
            text = word;
            left -= answer_int(lane, "jobs");
        }
    }
    if (!text || left > 0 || rule_read(text, own, &ignored) < 0)
        return NULL;
    own->place = rule->place;
    return own;
}

/* Returns the strictest of the keyed rules of a type, or NULL. */
static json_t *waits_keys(const struct type_status *type)
{
    const struct rule *found = NULL, *its;
    struct rule own;
    json_t *row = NULL;

    for (size_t i = 0; i < type->limit_count; i++) {
        const struct limit *limit = type->limits[i];

        for (size_t k = 0; limit->readable && k < limit->set.count; k++) {
            if (!*limit->set.at[k].by || !is_slower(&limit->set.at[k], found, type))
                continue;
            found = &limit->set.at[k];
            json_decref(row);
            row = json_pack("{s:s, s:i, s:s}", "limit_name", limit->name, "index", found->place, "by",
                            found->by);
        }
    }
    if (!row)
        return NULL;
    its = rule_of_keys(type, answer_text(row, "limit_name"), found, &own);
    if (its)
        json_object_set_new(row, "own_rule", json_true());
    set_rule(row, its ? its : found, NULL);
    return row;
}

/* Returns the gate of a key that somebody has paused, as all are for which jobs wait. */
static json_t *waits_stopped(const struct limits *limits, const struct backlog *b)
{
    const json_t *stop = b->stop;
    const json_t *pause = json_array_get(stop, 3);
    json_t *row =
        json_pack("{s:O, s:I, s:O*, s:b}", "limit_name", json_array_get(stop, 0), "index",
                  (json_int_t)answer_int_at(stop, 1), "paused", b->closed ? NULL : pause, "open", false);

    if (!row)
        return NULL;
    json_object_set_new(row, b->closed ? "closed" : "until",
                        b->closed ? json_true() : json_integer(b->stopped_until_us));
    set_rule(row, rule_of(row, limits), json_string_value(json_array_get(stop, 2)));
    return row;
}

/* Returns a gate for all keys, or the gates of keys: the one that opens later. */
static json_t *waits_limits(const struct limits *limits, const struct type_status *type)
{
    int64_t opens_us = 0, keys_us = type->backlog ? type->backlog->opens_us : 0;
    json_t *waits = waits_gates(limits, type, &opens_us), *keys;

    if (keys_us <= limits->now_us || (waits && keys_us <= opens_us))
        return waits;
    keys = waits_keys(type);
    if (!keys)
        return waits;
    json_decref(waits);
    if (keys_us < GATE_NEVER)
        json_object_set_new(keys, "until", json_integer(keys_us));
    return keys;
}

json_t *waits_of_type(const struct limits *limits, const struct type_status *type)
{
    const struct backlog *b = type->backlog;
    json_t *waits;

    if (type_backlog(type) == 0)
        return NULL;
    if (b && *b->queue)
        return waits_pause("queue", b->queue, b->pause);
    if (type->pause)
        return waits_pause("type", type->name, type->pause);
    if (!type->served)
        return waits_worker(type->name, NULL, type->resting, type->resting_us);
    if (b && type_is_stopped(type))
        return waits_stopped(limits, b);
    waits = waits_limits(limits, type);
    if (!waits)
        waits = waits_executor(type);
    return waits || type_parked(type) == 0 || (b && b->opens_us > 0) ? waits : waits_keys(type);
}
