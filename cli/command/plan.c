/* weir plan: when jobs would start under rules that need not be set anywhere. It asks no Redis and touches
 * nothing. */
#include <inttypes.h>
#include <string.h>

#include "cli/command/commands.h"
#include "cli/command/rate.h"
#include "core/clock.h"
#include "throttle/plan.h"

static int run_plan(struct cli *cli, int argc, char **argv);

const struct command command_plan = {.name = "plan", .run = run_plan};

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
        return error_set(&cli->error, WEIR_EUSAGE,
                         "plan: how many jobs is missing; write weir plan --count 1000 100/1m");
    if (!count_read(&at, COUNT_MAX, &plan->count) || *at || plan->count < 1)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "plan --count %.60s: not a number of jobs; write 1 to %" PRId64
                         ", as in --count 1000",
                         count, COUNT_MAX);
    if (n == 0)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "plan: the rules are missing; write weir plan --count 1000 100/1m");
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

/* ---- Printing */

/* The two largest units: "8d 18h", "16m 39s"; what is shorter than a minute to the millisecond. */
static void format_wait(int64_t us, char out[64])
{
    static const struct {
        char name;
        int64_t us;
    } units[] = {{'d', INT64_C(86400000000)}, {'h', INT64_C(3600000000)}, {'m', 60000000}, {'s', 1000000}};

    for (size_t i = 0; i + 1 < sizeof units / sizeof *units; i++)
        if (us >= units[i].us) {
            snprintf(out, 64, "%" PRId64 "%c %" PRId64 "%c", us / units[i].us, units[i].name,
                     us % units[i].us / units[i + 1].us, units[i + 1].name);
            return;
        }
    duration_format(us / 1000 * 1000, out);
}

static void print_point(const struct plan *plan, size_t i)
{
    const struct plan_point *p = &plan->points[i];
    char label[16] = "first", time[40], in[64];

    if (parts[i])
        snprintf(label, sizeof label, parts[i] == 100 ? "last" : "%d %%", parts[i]);
    cli_format_time(p->start_us, time);
    format_wait(p->start_us - plan->from_us, in);
    output("  %-6s job %-16" PRId64 " %s, ", label, p->job, time);
    if (p->start_us == plan->from_us)
        puts("now");
    else
        output("in %s\n", in);
}

static void print_text(const struct plan *plan)
{
    char rules[RULE_SET_TEXT_SIZE];

    rule_set_format(&plan->rules, rules);
    output("%" PRId64 " jobs%s under %s\n", plan->count, *rule_set_path(&plan->rules) ? " of one key" : "",
           rules);
    for (size_t i = 0; i < POINTS; i++)
        if (i == 0 || plan->points[i].job > plan->points[i - 1].job)
            print_point(plan, i);
}

static json_t *points_json(const struct plan *plan)
{
    json_t *points = json_array();

    for (size_t i = 0; i < POINTS; i++)
        if (json_array_append_new(points, json_pack("{s:f,s:I,s:o}", "part", parts[i] / 100.0, "nth",
                                                    (json_int_t)plan->points[i].job, "start",
                                                    json_seconds(plan->points[i].start_us))) < 0) {
            json_decref(points);
            return NULL;
        }
    return points;
}

static int print_json(struct cli *cli, const struct plan *plan)
{
    const struct plan_point *first = &plan->points[0], *last = &plan->points[POINTS - 1];

    return json_print(
        cli, json_pack("{s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "jobs", (json_int_t)plan->count, "rules",
                       rate_rules_json(&plan->rules), "from", json_seconds(plan->from_us), "first_start",
                       json_seconds(first->start_us), "finish_at", json_seconds(last->start_us), "span",
                       json_seconds(last->start_us - first->start_us), "points", points_json(plan)));
}

static int run_plan(struct cli *cli, int argc, char **argv)
{
    struct plan plan = {.from_us = clock_wall_us()};
    const char *count = NULL;
    const struct flag flags[] = {
        {"count", 0, FLAG_TEXT, "N", "how many jobs", &count},
        {.name = NULL},
    };
    int operands;

    if (cli_parse(cli, flags, argc, argv, &operands) < 0 || read_plan(cli, count, argv, operands, &plan) < 0)
        return cli->error.status;
    choose_points(&plan);
    if (plan_starts(&plan.rules, plan.from_us, plan.points, POINTS, &cli->error) < 0)
        return cli->error.status;
    if (cli->json)
        return print_json(cli, &plan);
    print_text(&plan);
    return 0;
}
