#include "view/rate_dry.h"

#include "queue/limits/rate.h"
#include "queue/status/status.h"
#include "view/limits.h"
#include "view/rules.h"

static json_t *change_json(const struct type_status *type, const struct forecast *now,
                           const struct forecast *then)
{
    return json_pack("{s:I,s:I,s:o,s:b,s:o,s:o,s:b,s:o}", "waiting", (json_int_t)type->waiting, "parked",
                     (json_int_t)type->parked, "finish_at", json_time(now->last_us), "at_the_earliest",
                     now->because != 0, "because", because_document(now->because), "new_finish_at",
                     json_time(then->last_us), "new_at_the_earliest", then->because != 0, "new_because",
                     because_document(then->because));
}

/* Adds both forecasts of each type that the limit holds and that has jobs waiting, added to types. */
static int forecast_both(const struct limits *limits, const struct limit *after, json_t *types,
                         struct error *e)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, after->name, &count);

    for (size_t i = 0; i < count; i++) {
        const struct type_status *type = holds[i].type;
        struct forecast now, then;

        if (type_backlog(type) == 0)
            continue;
        if (forecast_type(limits, type, NULL, &now, e) < 0 ||
            forecast_type(limits, type, after, &then, e) < 0)
            return e->status;
        json_object_set_new(types, type->name, change_json(type, &now, &then));
    }
    return 0;
}

int rate_dry_document(const struct limits *limits, const struct limit *after, const char *dropped,
                      json_t **doc, struct error *e)
{
    json_t *types = json_object();
    int status = forecast_both(limits, after, types, e);

    *doc = NULL;
    if (status == 0)
        *doc = json_pack("{s:s,s:b,s:o,s:o,s:O}", "name", after->name, "dry_run", 1, "rules",
                         rules_document(&after->set), "dropped_by",
                         *dropped ? json_string(dropped) : json_null(), "types", types);
    json_decref(types);
    return status;
}

int rate_dry_look(struct weir *w, const char *name, const struct rule_set *kept, struct limits *limits,
                  struct limit *after)
{
    int status = status_limits(w, -1, limits);

    *after = (struct limit){0};
    return status < 0 ? status
                      : limit_change(limits_find(limits, name), name, kept, limits->now_us, after, &w->error);
}

int view_rate_dry(struct weir *w, const char *name, const char *rules, json_t **doc)
{
    char dropped[RULE_PATH_SIZE];
    struct rule_set kept;
    struct limits limits = {0};
    struct limit after = {0};
    int status = rate_set(w, name, rules, true, &kept, dropped, NULL);

    *doc = NULL;
    if (status == 0)
        status = rate_dry_look(w, name, &kept, &limits, &after);
    if (status == 0)
        status = rate_dry_document(&limits, &after, dropped, doc, &w->error);
    limit_free(&after);
    limits_free(&limits);
    return status;
}
