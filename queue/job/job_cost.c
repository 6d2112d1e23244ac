#include "queue/job/job_cost.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/job/json.h"

static int read_object(struct span value, enum cost_kind kind, struct job_cost *cost, struct error *e)
{
    struct json_members m = {.at = m.few, .capacity = JSON_MEMBERS_FEW};
    struct json j;
    int status = 0;

    json_begin(&j, value.at, value.len);
    j.lax = true; /* a name that comes twice is refused below, by its name */
    if (!json_members(&j, value.at, &m))
        status = json_error(&j, "not JSON", e);
    for (size_t i = 0; status == 0 && i < m.count; i++)
        status =
            cost_add(cost, kind, m.at[i].name.at, m.at[i].name.len, m.at[i].value.at, m.at[i].value.len, e);
    if (status == 0 && m.count == 0)
        status = error_set(e, WEIR_EINPUT, "{} says nothing; write a number, or {\"NAME\":NUMBER}");
    json_members_free(&m);
    return status;
}

int cost_read_json(struct span value, enum cost_kind kind, struct job_cost *cost, struct error *e)
{
    *cost = cost_of(COST_UNSAID);
    if (*value.at == '{')
        return read_object(value, kind, cost, e);
    return cost_add(cost, kind, "", 0, value.at, value.len, e);
}

void cost_write_json(const struct job_cost *cost, char out[COST_JSON_SIZE])
{
    size_t len = 0;

    *out = '\0';
    if (cost->plain != COST_UNSAID && cost->count > 0)
        len = (size_t)snprintf(out, COST_JSON_SIZE, "{\"plain\":%" PRId64, cost->plain);
    else if (cost->plain != COST_UNSAID)
        snprintf(out, COST_JSON_SIZE, "%" PRId64, cost->plain);
    for (int i = 0; i < cost->count; i++)
        len += (size_t)snprintf(out + len, COST_JSON_SIZE - len, "%c\"%s\":%" PRId64, len > 0 ? ',' : '{',
                                cost->named[i].name, cost->named[i].slots);
    if (cost->count > 0)
        snprintf(out + len, COST_JSON_SIZE - len, "}");
}
