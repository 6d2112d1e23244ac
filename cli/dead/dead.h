/* What the files of weir dead share. */
#pragma once

#include "cli/cli.h"
#include "queue/dead/dead.h"

struct dead_flags {
    struct dead_filter filter;
    long long limit;
    const char *into;
    bool all, dry_run, yes, raw, group;
    long long most; /* these of keep */
    const char *bytes;
    int64_t age_us;
};
extern struct dead_flags dead_given; /* on the command line */

/* dead_go.c. Walks through all that the filter lets through: verb, and take with its argument, as struct dead_walk has
 * them. Fills cli->error on failure. */
WEIR_CHECKED int dead_go(struct cli *cli, struct dead_walk *walk);

/* dead_show.c */
int dead_run_list(struct cli *cli, struct weir *w);
int dead_run_show(struct cli *cli, struct weir *w);
/* dead_group.c */
#define DEAD_GROUPS_SHOWN 20
/* Prints rows of dead_groups(), brief: without times and sample; takes the last one off where it is of others. */
WEIR_CHECKED int dead_print_groups(struct cli *cli, FILE *to, json_t *rows, bool brief);
int dead_run_groups(struct cli *cli, struct weir *w);
/* dead_move.c */
int dead_run_retry(struct cli *cli, struct weir *w);
int dead_run_remove(struct cli *cli, struct weir *w);
/* dead_keep.c */
int dead_run_keep(struct cli *cli, struct weir *w);
