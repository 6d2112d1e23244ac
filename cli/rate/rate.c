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
#include "view/rate_keys.h"

#define OPERANDS_MAX 17 /* a name and what goes with it: up to 16 limits */

/* ---- The actions that change something: argv[0] is the action's name, argv ends with NULL */

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

static int run_set(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv)
{
    char *rules = rate_join(argv + 2);
    char dropped[RULE_PATH_SIZE];
    struct rule_set kept;
    json_t *doc;
    int status;

    if (!rules)
        return error_no_memory(&cli->error, "rate");
    status = rate_set(w, argv[1], rules, flags->dry_run, &kept, dropped);
    free(rules);
    if (status < 0)
        return cli_failed(cli, w);
    if (flags->dry_run)
        return rate_print_dry(cli, w, argv[1], &kept, dropped);
    doc = rate_set_document(argv[1], &kept, dropped);
    if (cli->json)
        return json_print(cli, doc);
    print_rules(doc);
    rate_print_dropped(argv[1], dropped, argv[2]);
    json_decref(doc);
    return 0;
}

static int print_use(struct cli *cli, char **argv, const char *limits, long long cost)
{
    if (cli->json)
        return json_print(cli, rate_use_json(argv));
    if (*limits)
        output("%s: now also held by %s\n", argv[1], limits);
    if (cost)
        output("%s: a job costs %lld\n", argv[1], cost);
    return 0;
}

static int run_use(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv)
{
    char *limits = rate_join(argv + 2);
    int status;

    if (!limits)
        return error_no_memory(&cli->error, "rate");
    status = rate_use(w, argv[1], true, limits, flags->cost);
    status = status < 0 ? cli_failed(cli, w) : print_use(cli, argv, limits, flags->cost);
    free(limits);
    return status;
}

static int run_weight(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv)
{
    char *end, starts[PHRASE_SIZE];
    long weight = strtol(argv[3], &end, 10);

    (void)flags;
    if (end == argv[3] || *end || weight < 1 || weight > RATE_WEIGHT_MOST)
        return error_set(&cli->error, WEIR_EINPUT, "rate weight %.60s: not a valid weight; give 1 to %d",
                         argv[3], RATE_WEIGHT_MOST);
    if (weir_rate_weight(w, argv[1], argv[2], (int)weight) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, json_pack("{s:s,s:o,s:i}", "name", argv[1], "key", text_word(argv[2]),
                                         "weight", (int)weight));
    output("%s: %s has %s for one of a key without a weight\n", argv[1], argv[2],
           counted(weight, "start", starts));
    return 0;
}

/* Reads for how long: the operand, or --for. */
static int read_pause(struct cli *cli, const char *span, struct pausing *how)
{
    struct error why;

    if (span && cli_gave(cli, "for"))
        return error_set(&cli->error, WEIR_EUSAGE, "rate pause: %.60s and --for: give one of them", span);
    if (!span)
        return pausing_read(cli, how);
    if (duration_parse(span, &how->for_us, &why) < 0)
        return error_set(&cli->error, WEIR_EINPUT, "rate pause: %s", why.text);
    if (how->for_us == 0)
        return error_set(&cli->error, WEIR_EINPUT,
                         "rate pause %.60s: no time at all; rate resume ends a pause", span);
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

static int run_pause(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv)
{
    struct pausing how = flags->pausing;

    if (read_pause(cli, argv[2], &how) < 0)
        return cli->error.status;
    return change_pause(cli, w, argv[1], &how);
}

static int run_resume(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv)
{
    (void)flags;
    return change_pause(cli, w, argv[1], &(struct pausing){.for_us = RATE_RESUME});
}

static const struct action {
    const char *name, *flags;
    const char *operands;
    int least, most; /* operands */
    int (*run)(struct cli *cli, struct weir *w, const struct rate_flags *flags, char **argv);
} actions[] = {
    {"set", "dry-run", "NAME RULE...", 2, OPERANDS_MAX, run_set},
    {"use", "cost", "TYPE NAME...", 2, OPERANDS_MAX, run_use},
    {"unuse", "dry-run yes", "TYPE NAME...", 2, OPERANDS_MAX, rate_run_unuse},
    {"weight", "", "NAME KEY N", 3, 3, run_weight},
    {"pause", "for reason", "NAME or NAME/KEY, and perhaps a DURATION", 1, 2, run_pause},
    {"resume", "", "NAME or NAME/KEY", 1, 1, run_resume},
    {"list", "", "nothing more", 0, 0, rate_run_list},
    {"show", "verbose", "NAME", 1, 1, rate_run_show},
    {"keys", "top", "NAME or NAME/KEY", 1, 1, rate_run_keys},
    {"remove", "dry-run yes", "NAME", 1, 1, rate_run_remove},
    {"log", "", "nothing more", 0, 0, rate_run_log},
};

/* Checks that there are as many operands as the action takes. A cost alone is enough for use. */
static int check_operands(struct cli *cli, const struct action *action, int operands)
{
    if (operands >= action->least - cli_gave(cli, "cost") && operands <= action->most)
        return 0;
    return error_set(&cli->error, WEIR_EUSAGE, "rate %s: takes %s; weir help rate has examples", action->name,
                     action->operands);
}

/* A word such as -1/s is meant for a rule and would be taken for a flag. */
static int check_negative(struct cli *cli, char **argv)
{
    struct rule rule;

    for (; *argv; argv++)
        if ((*argv)[0] == '-' && isdigit((unsigned char)(*argv)[1]) && strchr(*argv, '/') &&
            rule_parse(*argv, &rule, &cli->error) < 0)
            return cli->error.status;
    return 0;
}

static int run_rate(struct cli *cli, int argc, char **argv)
{
    struct rate_flags given = {.top = RATE_KEYS_SHOWN};
    const struct flag flags[] = {{.name = "dry-run",
                                  .kind = FLAG_BOOL,
                                  .help = "change nothing; set: show when the waiting jobs would start; "
                                          "unuse, remove: how many would start at once",
                                  .target = &given.dry_run},
                                 {.name = "yes",
                                  .letter = 'y',
                                  .kind = FLAG_BOOL,
                                  .help = "unuse, remove: do not ask; needed off a terminal",
                                  .target = &given.yes},
                                 {.name = "cost",
                                  .kind = FLAG_INT,
                                  .value = "N",
                                  .help = "use: the slots that a job takes",
                                  .target = &given.cost},
                                 PAUSING_TIME_FLAGS(given.pausing),
                                 {.name = "top",
                                  .kind = FLAG_INT,
                                  .value = "N",
                                  .help = "keys: at most so many, 1 to 100; default 20",
                                  .target = &given.top},
                                 {.name = "verbose",
                                  .letter = 'v',
                                  .kind = FLAG_BOOL,
                                  .help = "show: T, tau and TAT too",
                                  .target = &given.verbose},
                                 {.name = NULL}};
    const struct action *action;
    struct weir *w;
    int chosen, operands, status;

    if (check_negative(cli, argv) < 0 || cli_parse(cli, flags, argc, argv, &operands) < 0)
        return cli->error.status;
    if (cli_gave(cli, "cost") && given.cost < 1)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "rate use --cost %lld: below 1; give the slots a job takes", given.cost);
    chosen = cli_choose(cli, operands ? argv[0] : NULL);
    if (chosen < 0)
        return cli->error.status;
    action = &actions[chosen];
    if (check_operands(cli, action, operands - 1) < 0)
        return cli->error.status;
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    status = action->run(cli, w, &given, argv);
    weir_free(w);
    return status;
}

const struct command command_rate = {.name = "rate", .run = run_rate, .actions = &ACTIONS(actions)};
