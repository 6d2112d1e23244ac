/* weir dead list --group: what died of which reasons, and since when. */
#include "cli/dead/dead.h"
#include "cli/document/table.h"
#include "core/clock.h"
#include "view/dead.h"

#define BRIEF_FROM 3

static const struct column columns[] = {
    COLUMN("first", "first_at", .show = SHOW_WHEN, .drop = 2),
    COLUMN("last", "last_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("first job", "id", .drop = 3),
    COLUMN("jobs", "jobs", .show = SHOW_COUNT),
    COLUMN("type", "type"),
    COLUMN("reason", "reason", .rest = true),
    {.heading = NULL},
};

/* Takes the row of all other groups off. */
static json_t *cut_others(json_t *rows)
{
    size_t last = json_array_size(rows) - 1;
    json_t *others = json_array_get(rows, last);

    if (!json_object_get(others, "groups"))
        return NULL;
    json_incref(others);
    json_array_remove(rows, last);
    return others;
}

int dead_print_groups(struct cli *cli, FILE *to, json_t *rows, bool brief)
{
    json_t *others = cut_others(rows);
    char groups[PHRASE_SIZE], jobs[PHRASE_SIZE];
    int status = json_array_size(rows) == 0
                     ? 0
                     : table_print(cli, to, brief ? columns + BRIEF_FROM : columns, rows, clock_wall_us());

    if (others)
        output_to(to, "and %s, of %s\n", counted(answer_int(others, "groups"), "other group", groups),
                  counted(answer_int(others, "jobs"), "job", jobs));
    json_decref(others);
    return status;
}

static int take_page(const json_t *page, void *arg)
{
    return dead_groups_add(arg, page);
}

static int print(struct cli *cli, json_t *rows)
{
    int status = 0;

    if (!cli->json) {
        status = dead_print_groups(cli, stdout, rows, false);
        output_to(stderr, json_array_size(rows) == 0 ? "no dead jobs there\n"
                                                     : "weir dead retry --type TYPE --reason 'REASON' "
                                                       "retries a group; each # is a number or an id\n");
        return status;
    }
    for (size_t i = 0; status == 0 && i < json_array_size(rows); i++)
        status = json_print(cli, json_incref(json_array_get(rows, i)));
    return status;
}

int dead_run_groups(struct cli *cli, struct weir *w)
{
    json_t *groups = json_object(), *rows;
    struct dead_walk walk = {
        .w = w, .verb = "count", .filter = dead_given.filter, .take = take_page, .arg = groups};
    int status = dead_go(cli, &walk);

    rows = dead_groups(groups, cli_gave(cli, "limit") ? (size_t)dead_given.limit : DEAD_GROUPS_SHOWN);
    if (status >= 0)
        status = rows ? print(cli, rows) : error_no_memory(&cli->error, "dead list");
    json_decref(rows);
    return status;
}
