#include "cli/dead/dead.h"

struct dead_flags dead_given = {.limit = 50};

int dead_go(struct cli *cli, struct dead_walk *walk)
{
    int status;

    walk->now_us = -1;
    status = dead_walk(walk);
    return status < 0 && !cli->error.status ? cli_failed(cli, walk->w) : status;
}
