/* What the files of weir dead share. */
#ifndef CLI_DEAD_DEAD_H
#define CLI_DEAD_DEAD_H

#include <limits.h>

#include "cli/cli.h"
#include "queue/dead/dead.h"

#define DEAD_NOT_GIVEN LLONG_MIN
#define DEAD_NO_AGE (-1)

struct dead_flags {
    struct dead_filter filter;
    long long limit;
    const char *into;
    bool all, dry_run, yes, raw;
    long long most; /* these of keep; DEAD_NOT_GIVEN, NULL, DEAD_NO_AGE: not given */
    const char *bytes;
    int64_t age_us;
};

/* dead_show.c */
int dead_run_list(struct cli *cli, struct weir *w, const struct dead_flags *flags);
int dead_run_show(struct cli *cli, struct weir *w, const struct dead_flags *flags);
/* dead_keep.c */
int dead_run_keep(struct cli *cli, struct weir *w, const struct dead_flags *flags);

#endif
