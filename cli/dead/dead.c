/* weir dead: jobs that will not run again without a person: listed, shown, retried, removed. */
#include "cli/dead/dead.h"
#include "cli/commands.h"

#include <string.h>

#define IDS_MOST 1000
#define LIMIT_DEFAULT 50
#define FILTERS "type queue batch reason older newer"

static const struct action {
    const char *name, *flags;
    int least, most; /* ids */
    int (*run)(struct cli *cli, struct weir *w, const struct dead_flags *flags);
} actions[] = {
    {"list", FILTERS " group limit", 0, 0, dead_run_list},
    {"show", "raw", 1, 1, dead_run_show},
    {"retry", FILTERS " into all dry-run", 0, IDS_MOST, dead_run_retry},
    {"remove", FILTERS " all dry-run yes", 0, IDS_MOST, dead_run_remove},
    {"keep", "most bytes age dry-run yes", 0, 0, dead_run_keep},
};

/* Checks that it is clear which jobs are meant. */
static int check_choice(struct cli *cli, const struct action *action, const struct dead_flags *f, int ids)
{
    const struct dead_filter *only = &f->filter;
    bool chosen = ids > 0 || only->type || only->queue || only->batch || only->reason || only->older_us ||
                  only->newer_us;

    for (int i = 0; i < ids; i++)
        if (strchr(only->ids[i], ':') && strncmp(only->ids[i], "raw:", 4) != 0)
            return error_set(
                &cli->error, WEIR_EUSAGE,
                "dead %s %.60s: that is a search, no ID; weir job list, retry and remove take one",
                action->name, only->ids[i]);
    if (ids < action->least)
        return error_set(&cli->error, WEIR_EUSAGE, "dead %s: which one? give its ID, of weir dead list",
                         action->name);
    if (ids > action->most && action->most == 0)
        return error_set(&cli->error, WEIR_EUSAGE, "dead %s: takes no ID; weir dead show ID says all of one",
                         action->name);
    if (ids > action->most)
        return error_set(&cli->error, WEIR_EUSAGE, "dead %s: more than %d ID%s; give fewer at a time",
                         action->name, action->most, action->most == 1 ? "" : "s");
    if (action->most == IDS_MOST && !chosen && !f->all)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "dead %s: which ones? give IDs, filters such as --type TYPE, or --all",
                         action->name);
    if (f->all && chosen)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "dead %s --all: means all of them; leave out --all or the others", action->name);
    return 0;
}

static int check_values(struct cli *cli, const struct dead_flags *f)
{
    if (cli_gave(cli, "older") && f->filter.older_us == 0)
        return error_set(&cli->error, WEIR_EUSAGE, "dead --older 0s: no time at all; give more");
    if (cli_gave(cli, "newer") && f->filter.newer_us == 0)
        return error_set(&cli->error, WEIR_EUSAGE, "dead --newer 0s: no time at all; give more");
    if (f->limit < 1)
        return error_set(&cli->error, WEIR_EUSAGE, "dead list --limit %lld: must be 1 or more", f->limit);
    if (f->into && !name_is_valid(f->into, strlen(f->into)))
        return error_set(&cli->error, WEIR_EUSAGE,
                         "dead retry --into %.60s: not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         f->into);
    if (f->raw && cli->json)
        return error_set(
            &cli->error, WEIR_EUSAGE,
            "dead show --raw: writes the bytes of the body and nothing else; leave out --json or --raw");
    return 0;
}

static int run_action(struct cli *cli, struct dead_flags *f, int argc, char **argv)
{
    const struct action *action;
    int chosen = cli_choose(cli, argc ? argv[0] : NULL);
    struct weir *w;
    int status;

    if (chosen < 0)
        return cli->error.status;
    action = &actions[chosen];
    f->filter.ids = (const char *const *)argv + 1;
    f->filter.id_count = (size_t)argc - 1;
    if (check_values(cli, f) < 0 || check_choice(cli, action, f, argc - 1) < 0)
        return cli->error.status;
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    status = action->run(cli, w, f);
    weir_free(w);
    return status;
}

static int run_dead(struct cli *cli, int argc, char **argv)
{
    struct dead_flags f = {.limit = LIMIT_DEFAULT};
    struct dead_filter *only = &f.filter;
    const struct flag flags[] = {
        {"type", 0, FLAG_TEXT, "TYPE", "of this type", &only->type},
        {"queue", 0, FLAG_TEXT, "QUEUE", "of this queue", &only->queue},
        {"batch", 0, FLAG_TEXT, "BATCH", "of this batch", &only->batch},
        {"reason", 0, FLAG_TEXT, "TEXT", "with that in their reason", &only->reason},
        {"older", 0, FLAG_AGO, "WHEN", "died at least that long ago: 2h, or a day: before today, 2026-11-28",
         &only->older_us},
        {"newer", 0, FLAG_AGO, "WHEN",
         "died at most that long ago: 2h, or a day: since yesterday, 2026-11-28", &only->newer_us},
        {"group", 0, FLAG_BOOL, NULL, "list: by type and reason, the largest first", &f.group},
        {"limit", 0, FLAG_INT, "N", "list: at most so many lines; default 50, with --group 20", &f.limit},
        {"raw", 0, FLAG_BOOL, NULL, "show: the bytes of its body, as they are", &f.raw},
        {"into", 0, FLAG_TEXT, "QUEUE", "retry: into this queue, instead of each its own", &f.into},
        {"all", 0, FLAG_BOOL, NULL, "retry, remove: all of them", &f.all},
        {"most", 0, FLAG_INT, "N", "keep: at most so many jobs", &f.most},
        {"bytes", 0, FLAG_TEXT, "SIZE", "keep: at most so many bytes, 2MiB to 1024GiB", &f.bytes},
        {"age", 0, FLAG_DURATION, "DUR", "keep: for at most that time", &f.age_us},
        {"dry-run", 0, FLAG_BOOL, NULL, "retry, remove, keep: say how many, change nothing", &f.dry_run},
        {"yes", 'y', FLAG_BOOL, NULL, "remove, keep: do not ask; needed off a terminal", &f.yes},
        {.name = NULL},
    };
    int operands;

    if (cli_parse(cli, flags, argc, argv, &operands) < 0)
        return cli->error.status;
    return run_action(cli, &f, operands, argv);
}

const struct command command_dead = {.name = "dead", .run = run_dead, .actions = &ACTIONS(actions)};
