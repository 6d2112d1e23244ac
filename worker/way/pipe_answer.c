#include "worker/way/pipe_answer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"

static bool is_text(struct span value)
{
    return *value.at == '"';
}

/* Reads a number of an answer, which ends where something else begins. NAN: it is none. */
static double read_number(struct span value)
{
    return *value.at == '-' || isdigit((unsigned char)*value.at) ? decimal_read(value.at, NULL) : NAN;
}

static bool is_time(struct span value)
{
    return isfinite(read_number(value)) && read_number(value) >= 0;
}

static bool is_cost(struct span value)
{
    double cost = read_number(value);

    return cost >= 0 && cost <= JOB_COST_MOST && cost == floor(cost);
}

bool pipe_answer_read(struct pipe_answer *answer, struct span line, struct error *e)
{
    struct span value;
    struct json j;
    const char *at;

    answer->line = line;
    json_begin(&j, line.at, line.len);
    j.lax = true;
    at = json_space(&j, line.at);
    if (at == j.end || *at != '{')
        return false;
    at = json_members(&j, at, &answer->members);
    if (!at || !json_end(&j, at))
        json_error(&j, "not JSON", e);
    value = json_member(&answer->members, "id");
    answer->id = value;
    answer->number = NAN;
    if (value.at && is_text(value))
        answer->id = (struct span){answer->text, json_text(value, answer->text, sizeof answer->text)};
    else if (value.at)
        answer->number = read_number(value);
    return true;
}

void pipe_answer_free(struct pipe_answer *answer)
{
    json_members_free(&answer->members);
}

bool pipe_answer_means(const struct pipe_answer *answer, struct span id)
{
    char *end;

    return read_number(id) == answer->number && decimal_read(id.at, &end) == answer->number &&
           end == id.at + id.len;
}

bool pipe_answer_end(const struct pipe_answer *answer, enum task_end *end)
{
    static const struct {
        const char *name;
        enum task_end end;
    } statuses[] = {
        {"done", END_DONE}, {"retry", END_RETRY}, {"dead", END_DEAD}, {"throttled", END_THROTTLED}};
    struct span value = json_member(&answer->members, "status");
    char name[16];

    if (!value.at || !is_text(value))
        return false;
    json_text(value, name, sizeof name);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (strcmp(statuses[i].name, name) == 0) {
            *end = statuses[i].end;
            return true;
        }
    return false;
}

enum { AFTER, COST, SPENT, REASON, RESULT };

static bool is_any(struct span value)
{
    return value.len > 0;
}

static const struct {
    const char *name;
    bool (*is_right)(struct span value);
    const char *must_be;
} optional[] = {
    [AFTER] = {"after", is_time, "a number of seconds, 0 or more"},
    [COST] = {"cost", is_cost, "a whole number from 0 to 1000000000"},
    [SPENT] = {"spent", is_any, "a cost"},
    [REASON] = {"reason", is_text, "a string"},
    [RESULT] = {"result", is_any, "JSON"},
};

/* Finds an optional member of an answer. false: it was left out, or null, or wrong, which is logged. */
static bool find_optional(const struct task *task, const struct pipe_answer *answer, int which,
                          struct span *value)
{
    *value = json_member(&answer->members, optional[which].name);
    if (!value->at || *value->at == 'n')
        return false;
    if (optional[which].is_right(*value))
        return true;
    task_log(LOG_LEVEL_WARN, task, "wrong answer: \"%s\" must be %s, and counts as left out: %.*s",
             optional[which].name, optional[which].must_be,
             (int)(answer->line.len < 200 ? answer->line.len : 200), answer->line.at);
    return false;
}

void pipe_answer_take(const struct pipe_answer *answer, struct task *task, enum task_end end, double *after_s,
                      char **reason)
{
    struct span value;

    if (find_optional(task, answer, AFTER, &value))
        *after_s = read_number(value);
    if (find_optional(task, answer, COST, &value))
        task->spent = (int64_t)read_number(value);
    if (find_optional(task, answer, SPENT, &value))
        task_spent_json(task, value);
    if (find_optional(task, answer, REASON, &value) && (*reason = malloc(value.len)))
        json_text(value, *reason, value.len);
    if (end == END_DONE && find_optional(task, answer, RESULT, &value))
        task_result(task, value);
}
