/* weir log: what people have done. */
#include "cli/commands.h"
#include "cli/rate/rate.h"

static int run_log(struct cli *cli, int argc, char **argv)
{
    struct weir *w;
    int status = cli_parse_alone(cli, NULL, argc, argv);

    if (status != 0)
        return status;
    if (!(w = cli_client(cli)))
        return cli->error.status;
    status = rate_print_log(cli, w, true);
    weir_free(w);
    return status;
}

const struct command command_log = {.name = "log", .run = run_log};
