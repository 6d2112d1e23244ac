/* weir rate: the limits. */
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "throttle/limit.h"

static int run_rate(struct cli *cli, int argc, char **argv);

const struct command command_rate = {
    .name = "rate",
    .usage = "set NAME RULE\nlist\nshow NAME\nremove NAME",
    .summary = "Sets, lists, shows and removes limits; a type is held by the limit of its own name.",
    .text = "RULE: COUNT/PERIOD, as in 10/s, 100/1m, 5000/1d or 1/1.5s, and ,burst=N: how many may start at "
            "once after\n"
            "a quiet time (the count itself where it is not given). A new rule applies at once, to waiting "
            "jobs too.\n"
            "\n"
            "GCRA, the algorithm, spaces starts by PERIOD / COUNT and lets up to COUNT + burst - 1 into one "
            "PERIOD:\n"
            "rate set says how many. For a strict quota choose a small burst.\n"
            "\n"
            "  weir rate set mail 100/1m,burst=20\n"
            "  weir rate show mail\n",
    .run = run_rate,
};

/* ---- Text */

static void print_rule(const char *name, const struct rule *rule)
{
    char text[RULE_TEXT_SIZE], period[32];

    rule_format(rule, text);
    duration_format(rule->period_us, period);
    printf("%s: %s; at most %" PRId64 " in any %s\n", name, text, rule_most_in_period(rule), period);
}

/* "now", or a time and how long it is until then. */
static void format_when(const struct limit *limit, int64_t us, char out[96])
{
    char time[40], in[32];

    if (us <= limit->now_us) {
        snprintf(out, 96, "now");
        return;
    }
    cli_format_time(us, time);
    duration_format((us - limit->now_us + 999) / 1000 * 1000, in);
    snprintf(out, 96, "%s, in %s", time, in);
}

/* n T, which need not be whole microseconds. */
static void format_span(const struct rule *rule, int64_t n, char out[32])
{
    __int128 parts = (__int128)n * rule->period_us;

    if (parts % rule->count == 0)
        duration_format((int64_t)(parts / rule->count), out);
    else
        snprintf(out, 32, "%.9gs", (double)n * (double)rule->period_us / (double)rule->count / 1e6);
}

static void print_span(const char *label, const struct rule *rule, int64_t n)
{
    char text[32];

    format_span(rule, n, text);
    printf("  %-12s%s\n", label, text);
}

static void print_time(const char *label, const struct limit *limit, int64_t us)
{
    char text[96];

    format_when(limit, us, text);
    printf("  %-12s%s\n", label, text);
}

static void print_limit(const struct limit *limit)
{
    const struct rule *rule = &limit->gate.rule;

    if (!limit->readable) {
        printf("%s: its rule cannot be read and no job of the type starts; set it again with weir rate set\n",
               limit->name);
        return;
    }
    print_rule(limit->name, rule);
    print_span("T", rule, 1);
    print_span("tau", rule, rule->burst - 1);
    if (limit->gate.tat_us > limit->now_us)
        print_time("TAT", limit, limit->gate.tat_us);
    else
        puts("  TAT         passed");
    printf("  %-12s%" PRId64 " of %" PRId64 "\n", "slots left", limit_slots(limit), rule->burst);
    printf("  %-12s%" PRId64 "\n", "parked", limit->parked);
    print_time("next start", limit, limit_next_start(limit));
    if (limit->parked)
        print_time("last start", limit, limit_last_start(limit));
    if (limit->pause_until_us > limit->now_us)
        print_time("paused to", limit, limit->pause_until_us);
}

static void print_row(const struct limit *limit, int name_width)
{
    char rule[RULE_TEXT_SIZE] = "cannot be read", when[96];

    if (!limit->readable) {
        printf("%-*s  %s\n", name_width, limit->name, rule);
        return;
    }
    rule_format(&limit->gate.rule, rule);
    format_when(limit, limit_next_start(limit), when);
    printf("%-*s  %-22s %10" PRId64 " %10" PRId64 "  %s\n", name_width, limit->name, rule, limit_slots(limit),
           limit->parked, when);
}

static void print_table(const struct limit_list *list)
{
    int width = 4;

    for (size_t i = 0; i < list->count; i++)
        if ((int)strlen(list->at[i].name) > width)
            width = (int)strlen(list->at[i].name);
    if (list->count)
        printf("%-*s  %-22s %10s %10s  %s\n", width, "NAME", "RULE", "SLOTS LEFT", "PARKED", "NEXT START");
    for (size_t i = 0; i < list->count; i++)
        print_row(&list->at[i], width);
}

/* ---- JSON */

static json_t *rule_json(const char *name, const struct rule *rule)
{
    char text[RULE_TEXT_SIZE];

    rule_format(rule, text);
    return json_pack("{s:s,s:s,s:I,s:o,s:I,s:I}", "name", name, "rule", text, "count",
                     (json_int_t)rule->count, "period", json_seconds(rule->period_us), "burst",
                     (json_int_t)rule->burst, "most_in_period", (json_int_t)rule_most_in_period(rule));
}

static json_t *span_json(const struct rule *rule, int64_t n)
{
    return json_real((double)n * (double)rule->period_us / (double)rule->count / 1e6);
}

static json_t *limit_json(const struct limit *limit)
{
    const struct rule *rule = &limit->gate.rule;
    json_t *state, *doc;

    if (!limit->readable)
        return json_pack("{s:s,s:n,s:I}", "name", limit->name, "rule", "parked", (json_int_t)limit->parked);
    state = json_pack(
        "{s:o,s:o,s:o,s:I,s:I,s:o,s:o,s:o}", "t", span_json(rule, 1), "tau", span_json(rule, rule->burst - 1),
        "tat", limit->gate.tat_us > 0 ? json_seconds(limit->gate.tat_us) : json_null(), "slots_left",
        (json_int_t)limit_slots(limit), "parked", (json_int_t)limit->parked, "next_start",
        json_seconds(limit_next_start(limit)), "last_start",
        limit->parked ? json_seconds(limit_last_start(limit)) : json_null(), "paused_until",
        limit->pause_until_us > limit->now_us ? json_seconds(limit->pause_until_us) : json_null());
    doc = rule_json(limit->name, rule);
    if (json_object_update(doc, state) < 0) {
        json_decref(doc);
        doc = NULL;
    }
    json_decref(state);
    return doc;
}

/* ---- The actions: argv[0] is the action's name */

static int rate_set(struct cli *cli, struct weir *w, char **argv)
{
    struct rule rule;

    if (weir_rate_set(w, argv[1], argv[2]) < 0)
        return cli_failed(cli, w);
    if (rule_parse(argv[2], &rule, &cli->error) < 0)
        return cli->error.status;
    if (cli->json)
        return json_print(cli, rule_json(argv[1], &rule));
    print_rule(argv[1], &rule);
    return 0;
}

static int rate_list(struct cli *cli, struct weir *w, char **argv)
{
    struct limit_list list;
    int status = 0;

    (void)argv;
    if (limit_read(w, NULL, &list) < 0)
        return cli_failed(cli, w);
    if (!cli->json)
        print_table(&list);
    for (size_t i = 0; cli->json && status == 0 && i < list.count; i++)
        status = json_print(cli, limit_json(&list.at[i]));
    limit_list_free(&list);
    return status;
}

static int rate_show(struct cli *cli, struct weir *w, char **argv)
{
    struct limit_list list;
    int status = 0;

    if (limit_read(w, argv[1], &list) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        status = json_print(cli, limit_json(&list.at[0]));
    else
        print_limit(&list.at[0]);
    limit_list_free(&list);
    return status;
}

static int rate_remove(struct cli *cli, struct weir *w, char **argv)
{
    if (weir_rate_remove(w, argv[1]) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, json_pack("{s:s,s:b}", "name", argv[1], "removed", 1));
    printf("%s: removed; its type runs without a limit\n", argv[1]);
    return 0;
}

static const struct action {
    const char *name;
    const char *operands;
    int count; /* of operands */
    int (*run)(struct cli *cli, struct weir *w, char **argv);
} actions[] = {
    {"set", "NAME RULE", 2, rate_set},
    {"list", "nothing more", 0, rate_list},
    {"show", "NAME", 1, rate_show},
    {"remove", "NAME", 1, rate_remove},
};
#define ACTION_COUNT (sizeof actions / sizeof *actions)

static const struct action *find_action(struct cli *cli, const char *word)
{
    const char *names[ACTION_COUNT + 1] = {NULL};
    const char *likely;

    for (size_t i = 0; i < ACTION_COUNT; i++) {
        if (strcmp(actions[i].name, word) == 0)
            return &actions[i];
        names[i] = actions[i].name;
    }
    likely = cli_likely(word, names);
    if (likely)
        error_set(&cli->error, WEIR_EUSAGE, "rate %.60s: unknown; did you mean rate %s?", word, likely);
    else
        error_set(&cli->error, WEIR_EUSAGE, "rate %.60s: unknown; there are set, list, show and remove",
                  word);
    return NULL;
}

static int run_rate(struct cli *cli, int argc, char **argv)
{
    const struct action *action;
    struct weir *w;
    int operands, status;

    if (cli_parse(cli, NULL, argc, argv, &operands) < 0)
        return cli->error.status;
    if (operands == 0)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "rate: what to do is missing; there are set, list, show and remove");
    action = find_action(cli, argv[0]);
    if (!action)
        return cli->error.status;
    if (operands != 1 + action->count)
        return error_set(&cli->error, WEIR_EUSAGE, "rate %s: takes %s; weir help rate has examples",
                         action->name, action->operands);
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    status = action->run(cli, w, argv);
    weir_free(w);
    return status;
}
