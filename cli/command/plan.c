/* weir plan: when jobs would start under rules that need not be set anywhere. It asks no Redis and touches
 * nothing. */
#include <inttypes.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/document/table.h"
#include "cli/rate/rate.h"
#include "core/clock.h"
#include "throttle/plan.h"
#include "view/format.h"
#include "view/rules.h"

#define COUNT_MAX INT64_C(1000000000000000)

/* The jobs that are told: the first, these parts of all in percent, the last. */
static const int parts[] = {0, 10, 50, 90, 100};
#define POINTS (sizeof parts / sizeof *parts)

struct plan {
    struct rule_set rules;
    int64_t count, from_us;
    struct plan_point points[POINTS];
};

/* ---- Reading */

static int check_rules(struct cli *cli, const struct rule_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->at[i].algorithm == ALGORITHM_CONCURRENCY)
            return error_set(&cli->error, WEIR_EINPUT,
                             "plan concurrency=%" PRId64
                             ": it opens when a job ends, and nobody knows how long jobs take; "
                             "leave it out",
                             set->at[i].count);
    return 0;
}

static int read_plan(struct cli *cli, const char *count, char **rules, int n, struct plan *plan)
{
    const char *at = count;

    if (!count)
        return cli_usage(cli, "plan: how many jobs is missing; write weir plan --count 1000 100/1m");
    if (!count_read(&at, COUNT_MAX, &plan->count) || *at || plan->count < 1)
        return cli_usage(
            cli, "plan --count %.60s: not a number of jobs; write 1 to %" PRId64 ", as in --count 1000",
            count, COUNT_MAX);
    if (n == 0)
        return cli_usage(cli, "plan: the rules are missing; write weir plan --count 1000 100/1m");
    if (rule_set_parse((const char *const *)rules, (size_t)n, &plan->rules, &cli->error) < 0)
        return cli->error.status;
    return check_rules(cli, &plan->rules);
}

static void choose_points(struct plan *plan)
{
    for (size_t i = 0; i < POINTS; i++) {
        int64_t job = (int64_t)((__int128)plan->count * parts[i] / 100);

        plan->points[i].job = job < 1 ? 1 : job;
    }
}

/* ---- The document */

static json_t *points_json(const struct plan *plan)
{
    json_t *points = json_array();

    for (size_t i = 0; i < POINTS; i++)
        json_array_append_new(points, json_pack("{s:f,s:I,s:o}", "part", parts[i] / 100.0, "nth",
                                                (json_int_t)plan->points[i].job, "start",
                                                json_seconds(plan->points[i].start_us)));
    return points;
}

static json_t *plan_json(const struct plan *plan)
{
    const struct plan_point *first = &plan->points[0], *last = &plan->points[POINTS - 1];

    return json_pack("{s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "jobs", (json_int_t)plan->count, "rules",
                     rules_document(&plan->rules), "from", json_seconds(plan->from_us), "first_start",
                     json_seconds(first->start_us), "finish_at", json_seconds(last->start_us), "span",
                     json_seconds(last->start_us - first->start_us), "points", points_json(plan));
}

/* ---- Text */

static void put_part(FILE *to, const json_t *point)
{
    double part = json_number_value(json_object_get(point, "part"));

    if (part > 0 && part < 1)
        output_to(to, "%.0f %%", 100 * part);
    else
        output_to(to, part > 0 ? "last" : "first");
}

static const struct column columns[] = {
    {.heading = "part", .put = put_part},
    COLUMN("job", "nth", .show = SHOW_COUNT),
    COLUMN("starts", "start", .show = SHOW_WHEN),
    {.heading = NULL},
};

/* Of few jobs several points are the same one. */
static json_t *different_points(const json_t *points)
{
    json_t *different = json_array(), *point;
    json_int_t before = 0;
    size_t i;

    json_array_foreach(points, i, point) {
        if (json_integer_value(json_object_get(point, "nth")) > before)
            json_array_append(different, point);
        before = json_integer_value(json_object_get(point, "nth"));
    }
    return different;
}

static int print_plan(struct cli *cli, const struct plan *plan, const json_t *doc)
{
    json_t *points = different_points(json_object_get(doc, "points"));
    char rules[RULE_SET_TEXT_SIZE], jobs[PHRASE_SIZE];
    int status;

    rule_set_format(&plan->rules, rules);
    output("%s%s under %s\n", counted(plan->count, "job", jobs),
           *rule_set_path(&plan->rules) ? " of one key" : "", rules);
    status = table_print(cli, stdout, columns, points, plan->from_us);
    json_decref(points);
    return status;
}

static const char *jobs;

static const struct flag flags[] = {
    {"count", 0, FLAG_TEXT, "N", "how many jobs", &jobs},
    {.name = NULL},
};

static int act(struct cli *cli, struct weir *w)
{
    struct plan plan = {.from_us = clock_wall_us()};
    json_t *doc;
    int status;

    (void)w;
    if (read_plan(cli, jobs, cli->operands, cli->operand_count, &plan) < 0)
        return cli->error.status;
    choose_points(&plan);
    if (plan_starts(&plan.rules, plan.from_us, plan.points, POINTS, &cli->error) < 0)
        return cli->error.status;
    doc = plan_json(&plan);
    if (cli->json)
        return json_print(cli, doc);
    status = print_plan(cli, &plan, doc);
    json_decref(doc);
    return status;
}

const struct command command_plan = {
    .name = "plan", .run = cli_run, .flags = flags, .no_redis = true, .takes_operands = true, .act = act};
