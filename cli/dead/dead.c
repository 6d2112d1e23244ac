/* weir dead: jobs that will not run again without a person: listed, shown, retried, removed. */
#include "cli/dead/dead.h"
#include "cli/commands.h"

#include <string.h>

#define IDS_MOST 1000
#define FILTERS "type queue batch reason older newer"

static const struct action actions[] = {
    {"list", FILTERS " group limit", NULL, 0, 0, dead_run_list},
    {"show", "raw", NULL, 1, 1, dead_run_show},
    {"retry", FILTERS " into all dry-run", NULL, 0, IDS_MOST, dead_run_retry},
    {"remove", FILTERS " all dry-run yes", NULL, 0, IDS_MOST, dead_run_remove},
    {"keep", "most bytes age dry-run yes", NULL, 0, 0, dead_run_keep},
};

/* Checks that it is clear which jobs are meant. */
static int check_choice(struct cli *cli)
{
    const struct action *action = cli->action;
    const struct dead_flags *f = &dead_given;
    const struct dead_filter *only = &f->filter;
    int ids = cli->operand_count;
    bool chosen = ids > 0 || only->type || only->queue || only->batch || only->reason || only->older_us ||
                  only->newer_us;

    for (int i = 0; i < ids; i++)
        if (strchr(only->ids[i], ':') && strncmp(only->ids[i], "raw:", 4) != 0)
            return cli_usage(
                cli, "dead %s %.60s: that is a search, no ID; weir job list, retry and remove take one",
                action->name, only->ids[i]);
    if (ids < action->least)
        return cli_usage(cli, "dead %s: which one? give its ID, of weir dead list", action->name);
    if (ids > action->most && action->most == 0)
        return cli_usage(cli, "dead %s: takes no ID; weir dead show ID says all of one", action->name);
    if (ids > action->most)
        return cli_usage(cli, "dead %s: more than %d ID%s; give fewer at a time", action->name, action->most,
                         action->most == 1 ? "" : "s");
    if (action->most == IDS_MOST && !chosen && !f->all)
        return cli_usage(cli, "dead %s: which ones? give IDs, filters such as --type TYPE, or --all",
                         action->name);
    if (f->all && chosen)
        return cli_usage(cli, "dead %s --all: means all of them; leave out --all or the others",
                         action->name);
    return 0;
}

static int check_values(struct cli *cli)
{
    const struct dead_flags *f = &dead_given;

    if (cli_gave(cli, "older") && f->filter.older_us == 0)
        return cli_usage(cli, "dead --older 0s: no time at all; give more");
    if (cli_gave(cli, "newer") && f->filter.newer_us == 0)
        return cli_usage(cli, "dead --newer 0s: no time at all; give more");
    if (f->limit < 1)
        return cli_usage(cli, "dead list --limit %lld: must be 1 or more", f->limit);
    if (f->into && !name_is_valid(f->into, strlen(f->into)))
        return cli_usage(cli, "dead retry --into %.60s: not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         f->into);
    if (f->raw && cli->json)
        return cli_usage(
            cli, "dead show --raw: writes the bytes of the body and nothing else; leave out --json or --raw");
    return 0;
}

static int check(struct cli *cli)
{
    dead_given.filter.ids = (const char *const *)cli->operands;
    dead_given.filter.id_count = (size_t)cli->operand_count;
    return check_values(cli) < 0 ? cli->error.status : check_choice(cli);
}

static const struct flag flags[] = {
    {"type", 0, FLAG_TEXT, "TYPE", "of this type", &dead_given.filter.type},
    {"queue", 0, FLAG_TEXT, "QUEUE", "of this queue", &dead_given.filter.queue},
    {"batch", 0, FLAG_TEXT, "BATCH", "of this batch", &dead_given.filter.batch},
    {"reason", 0, FLAG_TEXT, "TEXT", "with that in their reason", &dead_given.filter.reason},
    {"older", 0, FLAG_AGO, "WHEN",
     "died at least that long ago: 2h, or a day or time: before today, 2026-11-28",
     &dead_given.filter.older_us},
    {"newer", 0, FLAG_AGO, "WHEN",
     "died at most that long ago: 2h, or a day or time: since 2026-11-28T09:00Z",
     &dead_given.filter.newer_us},
    {"group", 0, FLAG_BOOL, NULL, "list: by type and reason, the largest first", &dead_given.group},
    {"limit", 0, FLAG_INT, "N", "list: at most so many lines; default 50, with --group 20",
     &dead_given.limit},
    {"raw", 0, FLAG_BOOL, NULL, "show: the bytes of its body, as they are", &dead_given.raw},
    {"into", 0, FLAG_TEXT, "QUEUE", "retry: into this queue, instead of each its own", &dead_given.into},
    {"all", 0, FLAG_BOOL, NULL, "retry, remove: all of them", &dead_given.all},
    {"most", 0, FLAG_INT, "N", "keep: at most so many jobs", &dead_given.most},
    {"bytes", 0, FLAG_TEXT, "SIZE", "keep: at most so many bytes, 2MiB to 1024GiB", &dead_given.bytes},
    {"age", 0, FLAG_DURATION, "DUR", "keep: for at most that time", &dead_given.age_us},
    {"dry-run", 0, FLAG_BOOL, NULL, "retry, remove, keep: say how many, change nothing", &dead_given.dry_run},
    {"yes", 'y', FLAG_BOOL, NULL, "remove, keep: do not ask; needed off a terminal", &dead_given.yes},
    {.name = NULL},
};

const struct command command_dead = {
    .name = "dead", .run = cli_run, .flags = flags, .actions = &ACTIONS(actions), .check = check};
