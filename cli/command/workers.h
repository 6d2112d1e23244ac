/* weir worker list, quiet, stop: the workers that run somewhere. */
#ifndef CLI_COMMAND_WORKERS_H
#define CLI_COMMAND_WORKERS_H

#include "cli/cli.h"

/* argv[0] is what to do. */
WEIR_CHECKED int workers_run(struct cli *cli, int argc, char **argv);

extern const struct actions workers_actions;

#endif
