/* weir worker list, quiet, resume, stop: the workers that run somewhere. */
#pragma once

#include "cli/cli.h"

/* What may be given to quiet, resume and stop. */
struct workers_flags {
    bool wait, yes;
};
/* argv[0] is what to do. */
WEIR_CHECKED int workers_run(struct cli *cli, const struct workers_flags *flags, int argc, char **argv);

extern const struct actions workers_actions;
