#include "queue/status/coming.h"

#include <string.h>

#include "core/script/script.h"

#define TYPES_MOST 20

/* Adds the types that it holds, whose jobs wait; returns how many. */
static size_t add_types(struct args *a, const struct limits *limits, const char *name)
{
    size_t count, added = 0;
    const struct hold *holds = limits_holds(limits, name, &count);

    for (size_t i = 0; i < count && added < TYPES_MOST; i++)
        if (type_backlog(holds[i].type) > 0 && !holds[i].type->pause) {
            args_add(a, holds[i].type->name);
            added++;
        }
    return added;
}

/* A walk has the gates of a type for all keys, from which the starts before a job have taken. */
struct walk {
    struct gate gates[RULES_MAX];
    size_t count;
    int64_t from_us;
};

static void walk_end(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        gate_free(&walk->gates[i]);
}

static int walk_begin(struct walk *walk, const struct limit *limit)
{
    *walk = (struct walk){.from_us = limit_looked_at(limit)};
    for (size_t i = 0; limit->readable && i < limit->set.count; i++) {
        if (*limit->set.at[i].by)
            continue;
        if (gate_copy(&walk->gates[walk->count], &limit->gates[i]) < 0)
            return WEIR_EINTERNAL;
        walk->count++;
        if (limit->held_until_us[i] > walk->from_us)
            walk->from_us = limit->held_until_us[i];
    }
    return 0;
}

/* Computes when a job of that cost starts after the jobs before it; GATE_NEVER: when something ends. */
static int walk_on(struct walk *walk, int64_t cost, int64_t *start_us)
{
    int64_t taken;

    *start_us = walk->from_us;
    if (walk->count == 0)
        return 0;
    *start_us = gates_start(walk->gates, walk->count, walk->from_us, cost);
    if (*start_us == GATE_NEVER)
        return 0;
    walk->from_us = *start_us;
    return gates_take(walk->gates, walk->count, walk->from_us, 1, cost, &taken);
}

static int64_t plain_cost(const json_t *job, const struct limits *limits)
{
    const struct type_status *type = limits_type(limits, answer_text(job, "type"));

    return answer_int_or(job, "cost", type ? type->cost : 1);
}

/* Lets gates that count slots by name take what a job costs. */
static void price_gates(struct walk *walk, const json_t *job)
{
    struct job_cost cost, none = cost_of(COST_UNSAID);

    if (!cost_parse(answer_text(job, "costs"), &cost))
        cost = none;
    for (size_t i = 0; i < walk->count; i++)
        gate_price(&walk->gates[i], &cost, &none);
}

static int set_starts(json_t *jobs, const struct limits *limits, const struct limit *limit)
{
    struct walk walk;
    int status = walk_begin(&walk, limit);
    json_t *job;
    size_t i;

    json_array_foreach(jobs, i, job) {
        int64_t start_us = GATE_NEVER, opens_us = answer_int(job, "opens_at");

        price_gates(&walk, job);
        if (status == 0 && !json_is_true(json_object_get(job, "shut")))
            status = walk_on(&walk, plain_cost(job, limits), &start_us);
        json_object_del(job, "opens_at");
        json_object_del(job, "shut");
        json_object_del(job, "cost");
        json_object_del(job, "costs");
        start_us = opens_us > start_us ? opens_us : start_us;
        if (limit->readable && start_us < GATE_NEVER)
            json_object_set_new(job, "start", json_integer(start_us));
    }
    walk_end(&walk);
    return status;
}

int coming_ask(struct weir *w, int64_t now_us, const struct limits *limits, const struct limit *limit,
               int most, json_t **jobs)
{
    int status = client_at_home(w, limit->name, strlen(limit->name));
    json_t *answer, *job;
    size_t types, i;
    struct args a = {0};

    *jobs = NULL;
    script_begin(&a, "coming", w->prefix, now_us);
    args_add_int(&a, most);
    types = add_types(&a, limits, limit->name);
    if (status != 0 || types == 0) {
        args_free(&a);
        *jobs = status == 0 ? json_array() : NULL;
        return status;
    }
    status = client_ask(w, "coming", &a, &answer);
    if (status != 0)
        return status;
    *jobs = json_incref(json_object_get(answer, "jobs"));
    json_decref(answer);
    if (!json_is_array(*jobs)) { /* Lua's empty table */
        json_decref(*jobs);
        *jobs = json_array();
    }
    json_array_foreach(*jobs, i, job) {
        json_object_set_new(job, "place", json_integer(answer_int(job, "place")));
        json_object_set_new(job, "of", json_integer(answer_int(job, "of")));
    }
    if (set_starts(*jobs, limits, limit) == 0)
        return 0;
    json_decref(*jobs);
    *jobs = NULL;
    return error_no_memory(&w->error, "coming");
}
