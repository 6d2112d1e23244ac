/* weir rate: the limits, and which types they hold. */
#include "cli/rate/rate.h"
#include "cli/commands.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/document/json.h"
#include "cli/document/pausing.h"
#include "cli/document/text.h"
#include "queue/limits/rate.h"
#include "queue/status/status.h"
#include "view/format.h"
#include "view/pause.h"

#define OPERANDS_MAX 17 /* a name and what goes with it: up to 16 limits */

/* ---- The actions that change something */

static void print_rules(const json_t *doc)
{
    const json_t *rules = json_object_get(doc, "rules"), *rule;

    for (size_t i = 0; (rule = json_array_get(rules, i)); i++) {
        output("%s: %s; ", json_string_value(json_object_get(doc, "name")),
               json_string_value(json_object_get(rule, "rule")));
        rate_put_most(stdout, rule);
        putchar('\n');
    }
}

static int set_limit(struct cli *cli, struct weir *w, const char *name)
{
    char *rules = rate_join(cli->operands + 1);
    char dropped[RULE_PATH_SIZE];
    struct rule_set kept;
    json_t *doc;
    int64_t lost = 0;
    int status;

    if (!rules)
        return error_no_memory(&cli->error, "rate");
    status = rate_set(w, name, rules,
                      (rate_given.dry_run ? RATE_DRY : 0) | (rate_given.drop_keys ? RATE_DROP_KEYS : 0),
                      &kept, dropped, &lost);
    free(rules);
    if (status < 0)
        return cli_failed(cli, w);
    if (rate_given.dry_run)
        return rate_print_dry(cli, w, name, &kept, dropped, lost);
    doc = rate_set_document(name, &kept, dropped);
    if (cli->json)
        return json_print(cli, doc);
    print_rules(doc);
    rate_print_lost(name, lost);
    rate_print_dropped(name, dropped, cli->operands[1]);
    json_decref(doc);
    return 0;
}

static int run_set(struct cli *cli, struct weir *w)
{
    char limit[RATE_LIMIT_SIZE];
    const char *key;

    rate_part(cli->operands[0], limit, &key);
    return key ? rate_set_key(cli, w, limit, key) : set_limit(cli, w, cli->operands[0]);
}

static int run_use(struct cli *cli, struct weir *w)
{
    return rate_change_use(cli, w, true);
}

static int run_weight(struct cli *cli, struct weir *w)
{
    const char *name = cli->operands[0], *key = cli->operands[1], *number = cli->operands[2];
    char *end, starts[PHRASE_SIZE];
    long weight = strtol(number, &end, 10);

    if (end == number || *end || weight < 1 || weight > RATE_WEIGHT_MOST)
        return error_set(&cli->error, WEIR_EINPUT, "rate weight %.60s: not a valid weight; give 1 to %d",
                         number, RATE_WEIGHT_MOST);
    if (weir_rate_weight(w, name, key, (int)weight) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(
            cli, json_pack("{s:s,s:o,s:i}", "name", name, "key", text_word(key), "weight", (int)weight));
    output("%s: %s has %s for one of a key without a weight\n", name, key, counted(weight, "start", starts));
    return 0;
}

/* Changes the pause of NAME or NAME/KEY. */
static int change_pause(struct cli *cli, struct weir *w, const char *name, const struct pausing *how)
{
    char limit[RATE_LIMIT_SIZE];
    const char *key;
    json_t *answer, *doc;
    bool was;

    rate_part(name, limit, &key);
    if (rate_pause(w, limit, key, how, &answer) < 0)
        return cli_failed(cli, w);
    was = json_is_true(json_object_get(answer, "was"));
    doc = pausing_key_document(limit, key, answer);
    json_decref(answer);
    return pausing_print(cli, name, was, doc);
}

static int run_pause(struct cli *cli, struct weir *w)
{
    return change_pause(cli, w, cli->operands[0], &pausing_given);
}

static int run_resume(struct cli *cli, struct weir *w)
{
    return change_pause(cli, w, cli->operands[0], &(struct pausing){.for_us = RATE_RESUME});
}

static const struct action actions[] = {
    {"set", "for else if-revision drop-keys dry-run", "NAME or NAME/KEY, and RULE...", 2, OPERANDS_MAX,
     run_set},
    {"use", "cost", "TYPE NAME...", 1, OPERANDS_MAX, run_use},
    {"unuse", "dry-run yes", "TYPE NAME...", 2, OPERANDS_MAX, rate_run_unuse},
    {"weight", "", "NAME KEY N", 3, 3, run_weight},
    {"pause", "for reason", "NAME or NAME/KEY, and perhaps a DURATION", 1, 2, run_pause},
    {"resume", "", "NAME or NAME/KEY", 1, 1, run_resume},
    {"list", "keys", "nothing more, or NAME --keys", 0, 1, rate_run_list},
    {"show", "verbose", "NAME or NAME/KEY", 1, 1, rate_run_show},
    {"keys", "top", "NAME or NAME/KEY", 1, 1, rate_run_keys},
    {"remove", "dry-run yes", "NAME or NAME/KEY", 1, 1, rate_run_remove},
    {"log", "", "nothing more", 0, 0, rate_run_log},
};

static const struct flag flags[] = {
    {"dry-run", 0, FLAG_BOOL, NULL,
     "change nothing; set: show when the waiting jobs would start; unuse, remove: how many would start at "
     "once",
     &rate_given.dry_run},
    {"yes", 'y', FLAG_BOOL, NULL, "unuse, remove: do not ask; needed off a terminal", &rate_given.yes},
    {"cost", 0, FLAG_COST, "N", "use: the slots that a job takes, or tokens=N of rules of=tokens",
     &rate_given.cost},
    {"for", 0, FLAG_DURATION, "DURATION",
     "pause: for that time, else until resume; set NAME/KEY: for that time, else until remove",
     &pausing_given.for_us},
    {"reason", 0, FLAG_TEXT, "TEXT", "pause: why", &pausing_given.reason},
    {"else", 0, FLAG_TEXT, "closed",
     "set NAME/KEY: after that time nothing of it starts until it is set again", &rate_given.otherwise},
    {"if-revision", 0, FLAG_INT, "N",
     "set NAME/KEY: only if its rules have that revision, which rate show tells; 0: it has none",
     &rate_given.revision},
    {"drop-keys", 0, FLAG_BOOL, NULL, "set NAME: with another path, keys lose the rules of their own",
     &rate_given.drop_keys},
    {"keys", 0, FLAG_BOOL, NULL, "list: the keys of NAME that have rules of their own", &rate_given.keys},
    {"top", 0, FLAG_INT, "N", "keys: at most so many, 1 to 100; default 20", &rate_given.top},
    {"verbose", 'v', FLAG_BOOL, NULL, "show: T, tau and TAT too", &rate_given.verbose},
    {.name = NULL},
};

/* Reads for how long: the operand span, or --for. */
static int check_pause(struct cli *cli)
{
    const char *span = cli->operands[1];
    struct error why;

    if (span && cli_gave(cli, "for"))
        return cli_usage(cli, "rate pause: %.60s and --for: give one of them", span);
    if (!span)
        return pausing_check(cli);
    if (duration_parse(span, &pausing_given.for_us, &why) < 0)
        return error_set(&cli->error, WEIR_EINPUT, "rate pause: %s", why.text);
    if (pausing_given.for_us == 0)
        return error_set(&cli->error, WEIR_EINPUT,
                         "rate pause %.60s: no time at all; rate resume ends a pause", span);
    return 0;
}

/* Reads how long rules hold: those of a limit until they are changed. */
static int check_set(struct cli *cli)
{
    static const char *const of_keys[] = {"for", "else", "if-revision"};
    bool ends = cli_gave(cli, "for"), key = strchr(cli->operands[0], '/');

    for (size_t i = 0; !key && i < sizeof of_keys / sizeof *of_keys; i++)
        if (cli_gave(cli, of_keys[i]))
            return cli_usage(cli, "rate set %.60s --%s: only rules of a key have that; give NAME/KEY",
                             cli->operands[0], of_keys[i]);
    if (key && rate_given.drop_keys)
        return cli_usage(cli, "rate set %.60s --drop-keys: this is a key; give the NAME of the limit",
                         cli->operands[0]);
    if (rate_given.otherwise && strcmp(rate_given.otherwise, "closed") != 0)
        return cli_usage(cli,
                         "rate set --else %.60s: must be closed; without it the rules of the limit hold then",
                         rate_given.otherwise);
    if (rate_given.otherwise && !ends)
        return cli_usage(cli, "rate set --else closed: after which time; give --for too");
    if (cli_gave(cli, "if-revision") && rate_given.revision < 0)
        return cli_usage(cli, "rate set --if-revision %lld: below 0; rate show tells it",
                         rate_given.revision);
    if (ends && pausing_given.for_us == 0)
        return error_set(&cli->error, WEIR_EINPUT,
                         "rate set --for 0s: no time at all; rate remove %.60s ends it", cli->operands[0]);
    if (!ends)
        pausing_given.for_us = RATE_ENDLESS;
    return 0;
}

/* A cost alone is enough for use. */
static int check(struct cli *cli)
{
    if (cli->action->run == run_use && cli->operand_count == 1 && !cli_gave(cli, "cost"))
        return cli_takes(cli);
    if (cli->action->run == run_set)
        return check_set(cli);
    if (cli->action->run == rate_run_list && rate_given.keys != (cli->operand_count == 1))
        return cli_usage(cli,
                         rate_given.keys
                             ? "rate list --keys: whose; give the NAME of a limit"
                             : "rate list %.60s: takes no name but with --keys; rate show NAME shows one",
                         cli->operands[0]);
    return cli->action->run == run_pause ? check_pause(cli) : 0;
}

/* A word such as -1/s is meant for a rule and would be taken for a flag. */
static int run_rate(struct cli *cli, int argc, char **argv)
{
    struct rule rule;

    for (char **word = argv; *word; word++)
        if ((*word)[0] == '-' && isdigit((unsigned char)(*word)[1]) && strchr(*word, '/') &&
            rule_parse(*word, &rule, &cli->error) < 0)
            return cli->error.status;
    return cli_run(cli, argc, argv);
}

const struct command command_rate = {
    .name = "rate", .run = run_rate, .flags = flags, .actions = &ACTIONS(actions), .check = check};
