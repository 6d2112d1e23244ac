/* weir log: what people have done. */
#include "cli/commands.h"
#include "cli/rate/rate.h"

static int act(struct cli *cli, struct weir *w)
{
    return rate_print_log(cli, w, true);
}

const struct command command_log = {.name = "log", .run = cli_run, .act = act};
