/* What the files of weir dead share. */
#ifndef CLI_DEAD_H
#define CLI_DEAD_H

#include "cli/cli.h"
#include "queue/dead.h"

struct dead_flags {
    struct dead_filter filter;
    long long limit;
    const char *into;
    bool all, dry_run, yes, raw;
};

/* dead_show.c */
int dead_run_list(struct cli *cli, struct weir *w, const struct dead_flags *flags);
int dead_run_show(struct cli *cli, struct weir *w, const struct dead_flags *flags);

#endif
