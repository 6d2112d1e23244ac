#include "queue/history/history.h"

#include <string.h>

#include "core/script/script.h"
#include "queue/history/slot.h"

#define FIRST_MOST (INT64_C(1) << 31)          /* of minutes: in some thousand years */
#define STEP_MOST_US (INT64_C(3600) * 1000000) /* an hour */

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

/* Makes numbers of the times with which the lists of a list begin. */
static void make_firsts(json_t *history, const char *member)
{
    json_t *row;
    size_t i;

    make_list(history, member);
    json_array_foreach(json_object_get(history, member), i, row)
        json_array_set_new(row, 0, json_integer(answer_int_at(row, 0)));
}

static struct span text_at(const json_t *raw, size_t i)
{
    const json_t *text = json_array_get(raw, i);

    return (struct span){json_is_string(text) ? json_string_value(text) : "", json_string_length(text)};
}

/* The slots that have counts. */
static json_t *read_slots(const json_t *history)
{
    const json_t *raw = json_object_get(history, "raw");
    int64_t step_us = answer_int(history, "step"), first = answer_int(history, "first");
    json_t *slots = json_array();

    for (size_t i = 0; i < json_array_size(raw) && first < FIRST_MOST && step_us <= STEP_MOST_US; i++) {
        int64_t number = first + (int64_t)i;
        json_t *slot = slot_read(text_at(raw, i), number);

        if (json_object_size(slot) > 0) {
            json_object_set_new(slot, "at", json_integer(number * step_us));
            json_array_append(slots, slot);
        }
        json_decref(slot);
    }
    return slots;
}

static void write_call(struct weir *w, int64_t now_us, const struct history_call *call, struct args *a)
{
    *a = (struct args){0};
    script_begin(a, "history", w->prefix, now_us);
    args_add(a, call->of_limit ? "l" : "t");
    args_add(a, call->name);
    args_add(a, call->by_hours ? "h" : "m");
    args_add_int(a, call->slots);
}

static void complete(json_t *history, const struct history_call *call)
{
    make_number(history, "now");
    json_object_set_new(history, "slots", read_slots(history));
    json_object_del(history, "raw");
    json_object_del(history, "first");
    if (call->of_limit) {
        make_firsts(history, "starts_now");
        make_firsts(history, "wasted_now");
    }
}

int history_ask(struct weir *w, int64_t now_us, const struct history_call *call, json_t **history)
{
    struct args a;
    int status = client_at_home(w, call->name, strlen(call->name));

    *history = NULL;
    if (status != 0)
        return status;
    write_call(w, now_us, call, &a);
    status = client_ask(w, "history", &a, history);
    if (status == 0)
        complete(*history, call);
    return status;
}

/* ---- Several */

static bool lives_here(const struct weir *w, const char *name)
{
    return partition_home(name, strlen(name), w->count) == w->at;
}

/* Asks for those that live in the partition that calls go to; WEIR_EUNREACHABLE: it does not answer. */
static int ask_here(struct weir *w, int64_t now_us, const struct history_call *calls, size_t count,
                    json_t **histories)
{
    struct args asked[HISTORY_AT_ONCE];
    json_t *answers[HISTORY_AT_ONCE];
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (lives_here(w, calls[i].name))
            write_call(w, now_us, &calls[i], &asked[n++]);
    client_ask_each(w, "history", asked, n, answers);
    n = 0;
    for (size_t i = 0; i < count; i++)
        if (lives_here(w, calls[i].name) && (histories[i] = answers[n++]))
            complete(histories[i], &calls[i]);
    return n > 0 && client_is_silent(w) ? w->error.status : 0;
}

int history_ask_each(struct weir *w, int64_t now_us, const struct history_call *calls, size_t count,
                     json_t **histories)
{
    int status = 0;

    for (size_t i = 0; i < count; i++)
        histories[i] = NULL;
    for (int p = 0; count > 0 && status == 0 && p < client_count(w); p++) {
        status = client_at(w, p);
        if (status == 0)
            status = ask_here(w, now_us, calls, count, histories);
    }
    for (size_t i = 0; i < count && status != WEIR_EUNREACHABLE; i++)
        if (!histories[i])
            status = history_ask(w, now_us, &calls[i], &histories[i]);
    if (status != WEIR_EUNREACHABLE)
        return 0;
    for (size_t i = 0; i < count; i++) {
        json_decref(histories[i]);
        histories[i] = NULL;
    }
    return status;
}

/* ---- All that was ever recorded */

struct totals {
    bool of_limits;
    const char *const *names;
    size_t count;
    json_t *rows;
};

static int totals_here(struct weir *w, void *arg)
{
    const struct totals *t = arg;
    json_t *answer;
    size_t asked = 0;
    struct args a = {0};
    int status;

    script_begin(&a, "totals", w->prefix, -1);
    args_add(&a, t->of_limits ? "l" : "t");
    for (size_t i = 0; i < t->count; i++)
        if (lives_here(w, t->names[i]) && ++asked)
            args_add(&a, t->names[i]);
    if (asked == 0) {
        args_free(&a);
        return 0;
    }
    status = client_ask(w, "totals", &a, &answer);
    if (status != 0)
        return status;
    for (size_t i = 0, row = 0; i < t->count; i++)
        if (lives_here(w, t->names[i]))
            json_array_set_new(t->rows, i, slot_read(text_at(json_object_get(answer, "raw"), row++), 0));
    json_decref(answer);
    return 0;
}

int history_totals(struct weir *w, bool of_limits, const char *const *names, size_t count, json_t **rows)
{
    struct totals t = {of_limits, names, count, json_array()};
    int status;

    for (size_t i = 0; i < count; i++)
        json_array_append_new(t.rows, json_object());
    status = client_look_at_all(w, totals_here, &t);
    if (status == 0 && json_array_size(t.rows) < count)
        status = error_no_memory(&w->error, "totals");
    *rows = t.rows;
    if (status != 0) {
        json_decref(t.rows);
        *rows = NULL;
    }
    return status;
}

/* ---- Sums */

static int64_t sum_of(const json_t *counts)
{
    const char *name;
    json_t *count;
    int64_t sum = 0;

    json_object_foreach((json_t *)counts, name, count)
        sum += answer_int(counts, name);
    return sum;
}

const char *const history_backs[BACKS] = {[BACK_NOT_BEGUN] = "not_begun",
                                          [BACK_LATE] = "late",
                                          [BACK_NO_HANDLER] = "no_handler",
                                          [BACK_WRONG_JOB] = "wrong_job"};

struct history_sum history_sum(const json_t *history)
{
    struct history_sum sum = {0};
    json_t *slot;
    size_t i;

    json_array_foreach(json_object_get(history, "slots"), i, slot) {
        const json_t *wasted = json_object_get(slot, "wasted");

        sum.granted += answer_int(slot, "granted");
        sum.no_job += answer_int(wasted, "no_job");
        sum.no_executor += answer_int(wasted, "no_executor");
        sum.held += answer_int(wasted, "held");
        sum.late += answer_int(wasted, "late");
        for (int why = 0; why < BACKS; why++)
            sum.back[why] += answer_int(json_object_get(slot, "given_back"), history_backs[why]);
        sum.throttled += sum_of(json_object_get(slot, "throttled"));
    }
    return sum;
}
