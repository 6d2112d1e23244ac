/* weir rate list, show and log: limits as they are, and how they came to be so. */
#include <inttypes.h>
#include <string.h>

#include "cli/command/rate.h"
#include "cli/outlook.h"
#include "cli/text.h"
#include "queue/inspect/status.h"
#include "queue/limits/rate.h"

/* ---- Parts */

void rate_format_when(int64_t now_us, int64_t us, char out[96])
{
    char time[40], in[PHRASE_SIZE];

    if (us <= now_us) {
        snprintf(out, 96, "now");
        return;
    }
    if (us == GATE_NEVER) {
        snprintf(out, 96, "when others end");
        return;
    }
    cli_format_time(us, time);
    snprintf(out, 96, "%s, in %.40s", time, format_span(us - now_us, in));
}

void rate_print_rule(const struct rule *rule)
{
    char text[RULE_TEXT_SIZE], period[32];

    rule_format(rule, text);
    duration_format(rule->period_us, period);
    output("%s; at most %" PRId64, text, rule_most_in_period(rule));
    if (rule->algorithm == ALGORITHM_CONCURRENCY)
        output(" at once");
    else
        output(" in any %s", period);
    if (*rule->by)
        output(" for each %s", rule->by);
    putchar('\n');
}

/* n T in seconds, exact as far as a double goes. */
static double span_seconds(const struct rule *rule, int64_t n)
{
    return (double)n * (double)rule->period_us / (double)rule->count / 1e6;
}

/* n T, which need not be whole microseconds. */
static void format_multiple(const struct rule *rule, int64_t n, char out[32])
{
    __int128 parts = (__int128)n * rule->period_us;

    if (parts % rule->count == 0)
        duration_format((int64_t)(parts / rule->count), out);
    else
        snprintf(out, 32, "%.9gs", span_seconds(rule, n));
}

static bool is_gcra(const struct rule *rule)
{
    return rule->algorithm == ALGORITHM_GCRA;
}

/* When all is free again: GCRA's TAT. */
static int64_t tat_of(const struct limit *limit, size_t i)
{
    return gate_resets(&limit->gates[i], limit->now_us);
}

static bool is_paused(const struct limit *limit)
{
    return limit->pause_until_us > limit->now_us;
}

/* Is the gate of rule i paused: did the provider say stop? */
static bool is_stopped(const struct limit *limit, size_t i)
{
    return limit->gates[i].pause_until_us > limit->now_us;
}

/* ---- show: text */

static void print_span(const char *label, const struct rule *rule, int64_t n)
{
    char text[32];

    format_multiple(rule, n, text);
    output("    %-12s%s\n", label, text);
}

static void print_time(int indent, const char *label, int64_t now_us, int64_t us)
{
    char text[96];

    rate_format_when(now_us, us, text);
    output("%*s%-*s%s\n", indent, "", 16 - indent, label, text);
}

static void print_gcra(const struct limit *limit, size_t i)
{
    const struct rule *rule = &limit->set.at[i];

    print_span("T", rule, 1);
    print_span("tau", rule, rule->burst - 1);
    if (tat_of(limit, i) > limit->now_us)
        print_time(4, "TAT", limit->now_us, tat_of(limit, i));
    else
        puts("    TAT         passed");
}

static void print_hold(int64_t now_us, int64_t until_us)
{
    char when[96];

    rate_format_when(now_us, until_us, when);
    output("    %-12s%s, for a job that waits at other gates too\n", "held to", when);
}

/* A rule and its gate. When the rule alone would open is told where there are others, which may open later.
 */
static void print_gate(const struct limit *limit, size_t i)
{
    const struct rule *rule = &limit->set.at[i];

    output("  ");
    rate_print_rule(rule);
    if (*rule->by) {
        if (is_gcra(rule)) {
            print_span("T", rule, 1);
            print_span("tau", rule, rule->burst - 1);
        }
        output("    %-12s%s; one gate for each value\n", "keyed by", rule->by);
        return;
    }
    if (is_gcra(rule))
        print_gcra(limit, i);
    output("    %-12s%" PRId64 " of %" PRId64 "\n", "slots left", limit_slots(limit, i), rule->burst);
    if (limit->set.count > 1)
        print_time(4, "opens", limit->now_us, limit_nth_start(limit, i, 1));
    if (is_stopped(limit, i))
        print_time(4, "paused to", limit->now_us, limit->gates[i].pause_until_us);
    if (limit->held_until_us[i])
        print_hold(limit->now_us, limit->held_until_us[i]);
    if (limit->factor[i])
        output("    %-12s%.3g of its rate\n", "adapted to", (double)limit->factor[i] / 1000);
}

static void print_types(const struct limits *limits, const char *limit)
{
    bool any = false;

    for (size_t i = 0; i < limits->type_count; i++) {
        const struct limit_type *t = &limits->types[i];

        if (!limit_holds(t, limit))
            continue;
        output("  %-14s%s: %" PRId64 " waiting, %" PRId64 " parked%s", any ? "" : "types", t->name,
               t->waiting, t->parked, t->held ? " and held: no worker has a handler" : "");
        if (t->cost > 1)
            output(", each costs %" PRId64, t->cost);
        putchar('\n');
        any = true;
        if (t->keyless.jobs > 0) {
            output("%16s", "");
            keyless_print(stdout, t->name, &t->keyless);
        }
    }
    if (!any)
        puts("  types         none yet");
}

static void print_last(const struct limit *limit, const struct forecast *last)
{
    char when[96], doubt[EARLIEST_SIZE];

    rate_format_when(limit->now_us, last->last_us, when);
    output("  last start    %s%s\n", when, last->last_us != GATE_NEVER ? earliest(last->because, doubt) : "");
}

static void print_limit(const struct limits *limits, const struct limit *limit, const struct forecast *last)
{
    output("%s\n", limit->name);
    if (!limit->readable)
        puts("  its rules cannot be read and no job that it holds starts; set it again with weir rate set");
    for (size_t i = 0; limit->readable && i < limit->set.count; i++)
        print_gate(limit, i);
    output("  parked        %" PRId64 "\n", limits_parked(limits, limit->name));
    if (*rule_set_path(&limit->set))
        output("  keys asleep   %" PRId64 " over all keyed limits\n", limits->asleep);
    if (is_paused(limit))
        print_time(2, "paused to", limit->now_us, limit->pause_until_us);
    if (limit->readable)
        print_time(2, "next start", limit->now_us, limit_next_start(limit));
    if (limit->readable && limits_backlog(limits, limit->name) > 0)
        print_last(limit, last);
    print_types(limits, limit->name);
}

/* ---- show: JSON */

json_t *rate_rule_json(const struct rule *rule)
{
    bool rate = rule->algorithm != ALGORITHM_CONCURRENCY;
    char text[RULE_TEXT_SIZE];
    json_t *doc;

    rule_format(rule, text);
    doc = json_pack("{s:s,s:I,s:I,s:I,s:o}", "rule", text, "count", (json_int_t)rule->count, "burst",
                    (json_int_t)rule->burst, "most_in_period", (json_int_t)rule_most_in_period(rule),
                    "period", rate ? json_seconds(rule->period_us) : json_null());
    json_object_set_new(doc, "by", *rule->by ? json_string(rule->by) : json_null());
    if (is_gcra(rule)) {
        json_object_set_new(doc, "t", json_real(span_seconds(rule, 1)));
        json_object_set_new(doc, "tau", json_real(span_seconds(rule, rule->burst - 1)));
    }
    return doc;
}

json_t *rate_rules_json(const struct rule_set *set)
{
    json_t *rules = json_array();

    for (size_t i = 0; i < set->count; i++)
        json_array_append_new(rules, rate_rule_json(&set->at[i]));
    return rules;
}

/* A time that has passed is null. */
static json_t *future_json(int64_t us, int64_t now_us)
{
    return us > now_us ? json_time(us) : json_null();
}

static json_t *gate_json(const struct limit *limit, size_t i)
{
    json_t *doc = rate_rule_json(&limit->set.at[i]), *state;

    if (*limit->set.at[i].by)
        return doc;
    state = json_pack("{s:I,s:o,s:o,s:o}", "slots_left", (json_int_t)limit_slots(limit, i), "next_start",
                      json_time(limit_nth_start(limit, i, 1)), "paused_until",
                      future_json(limit->gates[i].pause_until_us, limit->now_us), "held_until",
                      future_json(limit->held_until_us[i], limit->now_us));
    if (is_gcra(&limit->set.at[i]))
        json_object_set_new(state, "tat", future_json(tat_of(limit, i), limit->now_us));
    if (limit->factor[i])
        json_object_set_new(state, "factor", json_real((double)limit->factor[i] / 1000));
    json_object_update(doc, state);
    json_decref(state);
    return doc;
}

static json_t *types_json(const struct limits *limits, const char *limit)
{
    json_t *types = json_object();

    for (size_t i = 0; i < limits->type_count; i++) {
        const struct limit_type *t = &limits->types[i];

        if (limit_holds(t, limit))
            json_object_set_new(
                types, t->name,
                json_pack("{s:I,s:I,s:I,s:I,s:I}", "cost", (json_int_t)t->cost, "waiting",
                          (json_int_t)t->waiting, "parked", (json_int_t)(t->held ? 0 : t->parked), "held",
                          (json_int_t)(t->held ? t->parked : 0), "keyless", (json_int_t)t->keyless.jobs));
    }
    return types;
}

static json_t *limit_json(const struct limits *limits, const struct limit *limit)
{
    json_t *rules = limit->readable ? json_array() : json_null();

    for (size_t i = 0; limit->readable && i < limit->set.count; i++)
        json_array_append_new(rules, gate_json(limit, i));
    return json_pack("{s:o,s:o,s:I,s:o,s:o,s:o}", "name", text_word(limit->name), "rules", rules, "parked",
                     (json_int_t)limits_parked(limits, limit->name), "next_start",
                     limit->readable ? json_time(limit_next_start(limit)) : json_null(), "paused_until",
                     future_json(limit->pause_until_us, limit->now_us), "types",
                     types_json(limits, limit->name));
}

static json_t *shown_json(const struct limits *limits, const struct limit *limit, const struct forecast *last)
{
    bool waits = limit->readable && limits_backlog(limits, limit->name) > 0;
    json_t *doc = limit_json(limits, limit);

    json_object_set_new(doc, "finish_at", waits ? json_time(last->last_us) : json_null());
    json_object_set_new(doc, "at_the_earliest", json_boolean(waits && last->because));
    return doc;
}

static int show(struct cli *cli, const struct limits *limits, const char *name)
{
    const struct limit *limit = limits_find(limits, name);
    struct forecast last;

    if (!limit)
        return error_set(&cli->error, WEIR_ENOTFOUND, "limit %s: there is none; weir rate list shows them",
                         name);
    if (forecast_limit(limits, limit, &last, &cli->error) < 0)
        return cli->error.status;
    if (cli->json)
        return json_print(cli, shown_json(limits, limit, &last));
    print_limit(limits, limit, &last);
    return 0;
}

int rate_run_show(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv)
{
    struct limits limits = {0};
    int status = limit_name_check("limit", argv[1], &cli->error);

    (void)flags;
    if (status == 0)
        status = status_limits(w, &limits) < 0 ? cli_failed(cli, w) : show(cli, &limits, argv[1]);
    limits_free(&limits);
    return status;
}

/* ---- list */

/* The fewest slots of the rules that are not keyed; -1: all are. */
static int64_t fewest_slots(const struct limit *limit)
{
    int64_t fewest = -1;

    for (size_t i = 0; i < limit->set.count; i++) {
        int64_t slots = *limit->set.at[i].by ? -1 : limit_slots(limit, i);

        if (slots >= 0 && (fewest < 0 || slots < fewest))
            fewest = slots;
    }
    return fewest;
}

static void print_row(const struct limits *limits, const struct limit *limit, int name_width, int rules_width)
{
    char rules[RULE_SET_TEXT_SIZE], when[96], slots[24] = "-";

    if (!limit->readable) {
        output("%-*s  cannot be read\n", name_width, limit->name);
        return;
    }
    rule_set_format(&limit->set, rules);
    rate_format_when(limit->now_us, limit_next_start(limit), when);
    if (fewest_slots(limit) >= 0)
        snprintf(slots, sizeof slots, "%" PRId64, fewest_slots(limit));
    output("%-*s  %-*s %10s %10" PRId64 "  %s%s\n", name_width, limit->name, rules_width, rules, slots,
           limits_parked(limits, limit->name), when, is_paused(limit) ? " (paused)" : "");
}

static int longer(int width, const char *text)
{
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

static void print_table(const struct limits *limits)
{
    int name_width = 4, rules_width = 5;

    for (size_t i = 0; i < limits->count; i++) {
        char rules[RULE_SET_TEXT_SIZE] = "";

        if (limits->at[i].readable)
            rule_set_format(&limits->at[i].set, rules);
        name_width = longer(name_width, limits->at[i].name);
        rules_width = longer(rules_width, rules);
    }
    if (limits->count)
        output("%-*s  %-*s %10s %10s  %s\n", name_width, "NAME", rules_width, "RULES", "SLOTS LEFT", "PARKED",
               "NEXT START");
    for (size_t i = 0; i < limits->count; i++)
        print_row(limits, &limits->at[i], name_width, rules_width);
}

int rate_run_list(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv)
{
    struct limits limits;
    int status = status_limits(w, &limits);

    (void)flags;
    (void)argv;
    if (status < 0)
        status = cli_failed(cli, w);
    else if (!cli->json)
        print_table(&limits);
    for (size_t i = 0; cli->json && status == 0 && i < limits.count; i++)
        status = json_print(cli, limit_json(&limits, &limits.at[i]));
    limits_free(&limits);
    return status;
}

/* ---- log */

static int print_change(struct cli *cli, const char *text)
{
    json_t *doc = json_loads(text, 0, NULL);
    const char *by = json_string_value(json_object_get(doc, "by"));
    const char *what = json_string_value(json_object_get(doc, "what"));
    double at = json_number_value(json_object_get(doc, "at"));
    char time[40];
    int status = 0;

    if (!by || !what) {
        json_decref(doc);
        return error_set(&cli->error, WEIR_ECONFIG,
                         "rate log: a line of it cannot be read: %.60s; delete the key `changes`", text);
    }
    cli_format_time((int64_t)(at * 1e6), time);
    if (cli->json)
        status = json_print(cli, json_pack("{s:f,s:s,s:s}", "at", at, "who", by, "what", what));
    else
        output("%s  %-24s %s\n", time, by, what);
    json_decref(doc);
    return status;
}

int rate_run_log(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv)
{
    json_t *changes;
    int status = 0;

    (void)flags;
    (void)argv;
    if (rate_log_read(w, &changes) < 0)
        return cli_failed(cli, w);
    for (size_t i = json_array_size(changes); status == 0 && i > 0; i--)
        status = print_change(cli, json_string_value(json_array_get(changes, i - 1)));
    json_decref(changes);
    return status;
}
