#include "queue/limits/type.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/limits/rate.h"

static int none_to_pause(struct weir *w, const char *type, const struct pausing *how)
{
    char do_else[96];

    snprintf(do_else, sizeof do_else, "weir type list shows them%s%s", how->create_by ? "; " : "",
             how->create_by ? how->create_by : "");
    return rate_none(w, "type", type, do_else);
}

int type_pause(struct weir *w, const char *type, const struct pausing *how, json_t **answer)
{
    struct args a = {0};
    int status = limit_name_check("type", type, &w->error);

    *answer = NULL;
    if (status == 0)
        status = client_at_home(w, type, strlen(type));
    if (status != 0)
        return status;
    pause_request(&a, "type_pause", w->prefix, -1, "type ", type, how);
    status = client_ask(w, "type_pause", &a, answer);
    if (status == 0 && *answer_text(*answer, "missing"))
        status = none_to_pause(w, type, how);
    if (status == 0)
        status = rate_apply(w, *answer);
    if (status != 0) {
        json_decref(*answer);
        *answer = NULL;
    }
    return status;
}

/* ---- Removing */

/* Collects what all partitions say. */
struct removing {
    const char *type;
    char left[200];
    bool found;
};

static void add_left(struct removing *r, const json_t *left)
{
    static const char *const order[] = {"running", "waiting", "parked", "scheduled", "aside", "dead"};

    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        size_t len = strlen(r->left);

        if (answer_int(left, order[i]) > 0)
            snprintf(r->left + len, sizeof r->left - len, "%s%" PRId64 " %s", len ? ", " : "",
                     answer_int(left, order[i]), order[i]);
    }
}

static int remove_here(struct weir *w, void *arg)
{
    struct removing *r = arg;
    json_t *answer;
    struct args a = {0};
    int status;

    type_remove_request(&a, w->prefix, -1, r->type);
    status = client_ask(w, "type_remove", &a, &answer);
    r->found |= status == 0 && !json_object_get(answer, "missing");
    add_left(r, json_object_get(answer, "left"));
    if (status == 0 && *answer_text(answer, "uses"))
        status = error_set(
            &w->error, WEIR_EINPUT,
            "type %s: limits, a cost or a pause are set for it; weir rate unuse, weir type resume", r->type);
    json_decref(answer);
    return status;
}

int type_remove(struct weir *w, const char *type)
{
    struct removing r = {.type = type};
    int status = limit_name_check("type", type, &w->error);

    if (status == 0)
        status = client_change_all(w, remove_here, &r);
    if (status == 0 && *r.left)
        return error_set(&w->error, WEIR_EINPUT,
                         "type %s: jobs of it are left: %s; weir job list type:%s shows them", type, r.left,
                         type);
    return status == 0 && !r.found ? rate_none(w, "type", type, "weir type list shows them") : status;
}
