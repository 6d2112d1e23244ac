#include "view/limits.h"

#include <string.h>

#include "queue/history/history.h"
#include "queue/hold/hold.h"
#include "queue/limits/rate.h"
#include "queue/status/forecast.h"
#include "queue/status/status.h"
#include "view/document.h"
#include "view/pause.h"
#include "view/rate_keys.h"
#include "view/rules.h"
#include "view/text.h"

json_t *because_document(unsigned because)
{
    return because ? json_string(forecast_reason(because)) : json_null();
}

/* A time that has passed is null. */
static json_t *future_json(int64_t us, int64_t now_us)
{
    return us > now_us ? json_time(us) : json_null();
}

static json_t *gate_json(const struct limit *limit, size_t i)
{
    const struct rule *rule = &limit->set.at[i];
    json_t *doc = rule_document(rule), *state;

    if (*rule->by)
        return doc;
    state = json_pack("{s:I,s:o,s:o,s:o}", "slots_left", (json_int_t)limit_slots(limit, i), "next_start",
                      json_time(limit_nth_start(limit, i, 1)), "throttled_until",
                      future_json(limit->gates[i].pause_until_us, limit->now_us), "held_until",
                      future_json(limit->held_until_us[i], limit->now_us));
    if (rule->algorithm == ALGORITHM_GCRA) /* when all is free again */
        json_object_set_new(state, "tat",
                            future_json(gate_resets(&limit->gates[i], limit->now_us), limit->now_us));
    if (limit->factor[i])
        json_object_set_new(state, "factor", json_real((double)limit->factor[i] / 1000));
    json_object_update(doc, state);
    json_decref(state);
    return doc;
}

static json_t *types_json(const struct limits *limits, const char *limit)
{
    json_t *types = json_object();
    size_t count;
    const struct hold *holds = limits_holds(limits, limit, &count);

    for (size_t i = 0; i < count; i++) {
        const struct type_status *t = holds[i].type;

        json_object_set_new(types, t->name,
                            json_pack("{s:I,s:I,s:I,s:I,s:I}", "cost", (json_int_t)t->cost, "waiting",
                                      (json_int_t)t->waiting, "parked", (json_int_t)t->parked, "held",
                                      (json_int_t)t->held, "keyless", (json_int_t)t->keyless.jobs));
    }
    return types;
}

json_t *limit_document(const struct limits *limits, const struct limit *limit)
{
    json_t *rules = limit->readable ? json_array() : json_null(), *pause = limit_pause(limit), *doc;

    for (size_t i = 0; limit->readable && i < limit->set.count; i++)
        json_array_append_new(rules, gate_json(limit, i));
    doc = json_pack("{s:o,s:o,s:I,s:o,s:o,s:o,s:b}", "name", text_word(limit->name), "rules", rules, "parked",
                    (json_int_t)limits_parked(limits, limit->name), "next_start",
                    limit->readable ? json_time(limits_next_start(limits, limit)) : json_null(), "paused",
                    pause_document(pause), "types", types_json(limits, limit->name), "quiet",
                    limits_are_quiet(limits, limit));
    if (limit->own_keys > 0)
        json_object_set_new(doc, "own_key_count", json_integer(limit->own_keys));
    if (limits_are_closed(limits, limit))
        json_object_set_new(doc, "closed", json_true());
    json_decref(pause);
    return doc;
}

int limit_document_whole(const struct limits *limits, const char *name, json_t **doc, struct error *e)
{
    const struct limit *limit = limits_find(limits, name);
    struct forecast last;
    bool waits;

    *doc = NULL;
    if (!limit)
        return error_set(e, WEIR_ENOTFOUND, "limit %s: there is none; weir rate list shows them", name);
    if (forecast_limit(limits, limit, &last, e) < 0)
        return e->status;
    waits = limit->readable && limits_backlog(limits, limit->name) > 0;
    *doc = limit_document(limits, limit);
    json_object_set_new(*doc, "finish_at", waits ? json_time(last.last_us) : json_null());
    json_object_set_new(*doc, "at_the_earliest", json_boolean(waits && last.because));
    json_object_set_new(*doc, "because", because_document(waits ? last.because : 0));
    json_object_set_new(*doc, "keys_asleep",
                        *rule_set_path(&limit->set) ? json_integer(limits->asleep) : json_null());
    return 0;
}

static json_t *hour_document(const json_t *history)
{
    struct history_sum sum = history_sum(history);
    json_t *back = json_object();

    for (int why = 0; why < BACKS; why++)
        json_object_set_new(back, history_backs[why], json_integer(sum.back[why]));
    return json_pack("{s:I, s:I, s:{s:I, s:I, s:I, s:I}, s:o}", "granted", (json_int_t)sum.granted,
                     "throttled", (json_int_t)sum.throttled, "wasted", "no_job", (json_int_t)sum.no_job,
                     "no_executor", (json_int_t)sum.no_executor, "held", (json_int_t)sum.held, "late",
                     (json_int_t)sum.late, "given_back", back);
}

int64_t limit_provider_pause(const struct limit *limit)
{
    int64_t until_us = 0;

    for (size_t i = 0; limit->readable && i < limit->set.count; i++)
        if (!*limit->set.at[i].by && limit->gates[i].pause_until_us > until_us)
            until_us = limit->gates[i].pause_until_us;
    return until_us > limit->now_us ? until_us : 0;
}

void limit_add_hour(struct weir *w, const char *name, json_t *doc)
{
    const struct history_call call = {.name = name, .of_limit = true, .slots = 60};
    json_t *history;
    bool known = history_ask(w, -1, &call, &history) == 0;

    json_object_set_new(doc, "last_hour", known ? hour_document(history) : json_null());
    json_decref(history);
}

json_t *rate_set_document(const char *name, const struct rule_set *rules, const char *dropped)
{
    return json_pack("{s:s,s:o,s:o}", "name", name, "rules", rules_document(rules), "dropped_by",
                     *dropped ? json_string(dropped) : json_null());
}

/* ---- Asked */

struct found {
    const char *name;
    struct limits *limits;
};

static int find_limit(struct weir *w, void *arg)
{
    const struct found *found = arg;

    limits_free(found->limits);
    if (status_limits(w, -1, found->limits) < 0)
        return w->error.status;
    return limits_find(found->limits, found->name) != NULL;
}

int limits_look(struct weir *w, const char *name, struct limits *limits)
{
    int status;

    *limits = (struct limits){0};
    status = limit_name_check("limit", name, &w->error);
    return status < 0 ? status : client_look_at_all(w, find_limit, &(struct found){name, limits});
}

void limit_add_holds(struct weir *w, const char *name, json_t *doc)
{
    static const struct member members[] = {
        MEMBER("token", WORD), MEMBER("key", WORD), MEMBER("cost", COST), MEMBER("since", TIME),
        MEMBER("until", TIME), MEMBER("who", WORD), {.name = NULL},
    };
    json_t *rows = NULL;

    if (hold_list(w, name, &rows) < 0)
        rows = json_array();
    json_object_set_new(doc, "held_by", document_list(rows, members));
    json_decref(rows);
}

int view_rate(struct weir *w, const char *name, json_t **doc)
{
    struct limits limits;
    int status = limits_look(w, name, &limits);

    *doc = NULL;
    if (status >= 0)
        status = limit_document_whole(&limits, name, doc, &w->error);
    if (status >= 0)
        limit_add_hour(w, name, *doc);
    if (status >= 0)
        limit_add_paused_keys(w, name, *doc);
    if (status >= 0)
        limit_add_holds(w, name, *doc);
    limits_free(&limits);
    return status;
}

static int by_limit(const void *a, const void *b)
{
    const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;

    return strcmp(answer_text(x, "name"), answer_text(y, "name"));
}

/* Each once: one that moves may be on two partitions. */
static json_t *limit_rows(const struct all_limits *all)
{
    json_t *docs = json_object();

    for (int i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->at[i].count; k++)
            json_object_set_new_nocheck(docs, all->at[i].at[k].name,
                                        limit_document(&all->at[i], &all->at[i].at[k]));
    return document_rows(docs, by_limit);
}

int view_rates(struct weir *w, json_t **doc, int64_t *now_us)
{
    struct status read;
    struct all_limits limits;
    int status = status_read_untold(w, &read, &limits);

    *doc = NULL;
    if (status == 0)
        status = document_done(w, limit_rows(&limits), doc);
    for (int i = 0; now_us && i < limits.count; i++)
        *now_us = i == 0 || limits.at[i].now_us > *now_us ? limits.at[i].now_us : *now_us;
    all_limits_free(&limits);
    status_free(&read);
    return status;
}

/* ---- What was changed */

/* A change as it is printed; NULL: its text cannot be read. */
static json_t *change_json(const char *text)
{
    json_t *change = text ? json_loads(text, 0, NULL) : NULL, *doc = NULL;

    if (json_is_string(json_object_get(change, "by")) && json_is_string(json_object_get(change, "what")))
        doc = json_pack("{s:f,s:O,s:O}", "at", json_number_value(json_object_get(change, "at")), "who",
                        json_object_get(change, "by"), "what", json_object_get(change, "what"));
    json_decref(change);
    return doc;
}

int view_rate_log(struct weir *w, bool all, json_t **doc)
{
    json_t *changes, *row;
    int status = rate_log_read(w, all, &changes);

    *doc = json_array();
    for (size_t i = json_array_size(changes); status == 0 && i > 0; i--) { /* the oldest first */
        const char *text = json_string_value(json_array_get(changes, i - 1));

        if ((row = change_json(text)))
            json_array_append_new(*doc, row);
        else
            status = error_set(&w->error, WEIR_ECONFIG,
                               "rate log: a line of it cannot be read: %.60s; delete the key `changes`",
                               text ? text : "");
    }
    json_decref(changes);
    return status;
}
