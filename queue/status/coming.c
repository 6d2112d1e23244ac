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
        if (holds[i].type->waiting + holds[i].type->parked > 0) {
            args_add(a, holds[i].type->name);
            added++;
        }
    return added;
}

/* When the n-th start from now is, as far as all rules for all keys go. */
static int64_t nth_start(const struct limit *limit, int64_t n)
{
    int64_t latest_us = limit_looked_at(limit);

    for (size_t i = 0; i < limit->set.count; i++)
        if (!*limit->set.at[i].by) {
            int64_t at_us = limit_nth_start(limit, i, n);

            latest_us = at_us > latest_us ? at_us : latest_us;
        }
    return latest_us;
}

static void set_start(json_t *job, const struct limit *limit, int64_t n)
{
    int64_t start_us = nth_start(limit, n), opens_us = answer_int(job, "opens_at");

    json_object_del(job, "opens_at");
    start_us = opens_us > start_us ? opens_us : start_us;
    if (limit->readable && start_us < GATE_NEVER)
        json_object_set_new(job, "start", json_integer(start_us));
}

int coming_ask(struct weir *w, int64_t now_us, const struct limits *limits, const struct limit *limit,
               int most, json_t **jobs)
{
    int status = client_at_home(w, limit->name, strlen(limit->name));
    json_t *answer, *job;
    size_t types, i;
    struct args a;

    *jobs = NULL;
    args_init(&a);
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
    json_array_foreach(*jobs, i, job)
    {
        json_object_set_new(job, "place", json_integer(answer_int(job, "place")));
        json_object_set_new(job, "of", json_integer(answer_int(job, "of")));
        set_start(job, limit, (int64_t)i + 1);
    }
    return 0;
}
