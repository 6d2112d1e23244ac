#include "queue/inspect/history.h"

#include <string.h>

#include "core/script/script.h"

static void make_number(json_t *object, const char *member)
{
    json_object_set_new(object, member, json_integer(answer_int(object, member)));
}

/* Lua's empty tables say nothing of what they are. */
static void make_list(json_t *object, const char *member)
{
    if (!json_is_array(json_object_get(object, member)))
        json_object_set_new(object, member, json_array());
}

/* Times came as text. */
static void make_times(json_t *history)
{
    json_t *slot, *start;
    size_t i;

    make_number(history, "now");
    json_array_foreach(json_object_get(history, "slots"), i, slot)
    {
        make_number(slot, "at");
    }
    json_array_foreach(json_object_get(history, "starts_now"), i, start)
    {
        json_array_set_new(start, 0, json_integer(answer_int_at(start, 0)));
    }
}

int history_ask(struct weir *w, int64_t now_us, const struct history_call *call, json_t **history)
{
    struct args a;
    int status = client_at_home(w, call->name, strlen(call->name));

    *history = NULL;
    if (status != 0)
        return status;
    args_init(&a);
    script_begin(&a, "history", w->prefix, now_us);
    args_add(&a, call->of_limit ? "l" : "t");
    args_add(&a, call->name);
    args_add(&a, call->by_hours ? "h" : "m");
    args_add_int(&a, call->slots);
    status = client_ask(w, "history", &a, history);
    if (status != 0)
        return status;
    make_list(*history, "slots");
    if (call->of_limit)
        make_list(*history, "starts_now");
    make_times(*history);
    return 0;
}

static int64_t sum_of(const json_t *counts)
{
    const char *name;
    json_t *count;
    int64_t sum = 0;

    json_object_foreach((json_t *)counts, name, count)
    {
        sum += answer_int(counts, name);
    }
    return sum;
}

struct history_sum history_sum(const json_t *history)
{
    struct history_sum sum = {0};
    json_t *slot;
    size_t i;

    json_array_foreach(json_object_get(history, "slots"), i, slot)
    {
        const json_t *wasted = json_object_get(slot, "wasted");

        sum.granted += answer_int(slot, "granted");
        sum.no_job += answer_int(wasted, "no_job");
        sum.no_executor += answer_int(wasted, "no_executor");
        sum.held += answer_int(wasted, "held");
        sum.late += answer_int(wasted, "late");
        sum.throttled += sum_of(json_object_get(slot, "throttled"));
    }
    return sum;
}
