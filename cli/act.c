/* How a command runs, whose row says what it takes. */
#include "cli/cli.h"

static int act(struct cli *cli)
{
    const struct command *c = cli->command;
    struct weir *w = NULL;
    int status;

    if ((c->check && c->check(cli) < 0) || !(c->no_redis || (w = cli_client(cli))))
        return cli->error.status;
    status = cli->action ? cli->action->run(cli, w) : c->act(cli, w);
    weir_free(w);
    return status;
}

int cli_act(struct cli *cli, int argc, char **argv)
{
    cli->operands = argc > 0 ? argv + 1 : argv;
    cli->operand_count = argc - 1;
    return cli_choose(cli, argv[0]) < 0 ? cli->error.status : act(cli);
}

int cli_run(struct cli *cli, int argc, char **argv)
{
    const struct command *c = cli->command;
    int operands = 0, status = c->actions || c->takes_operands
                                   ? cli_parse(cli, c->flags, argc, argv, &operands)
                                   : cli_parse_alone(cli, c->flags, argc, argv);

    if (status < 0)
        return status;
    if (c->actions)
        return cli_act(cli, operands, argv);
    cli->operands = argv;
    cli->operand_count = operands;
    return act(cli);
}
