/* weir init: how many partitions a namespace has, before its first use. */
#include "cli/commands.h"
#include "cli/document/json.h"
#include "queue/queues/divide.h"

static int print(struct cli *cli, const struct weir *w, int partitions, bool was)
{
    char name[PREFIX_SIZE];

    partition_namespace(w->prefix, name);
    if (cli->json)
        return json_print(cli,
                          json_pack("{s:s, s:i, s:b}", "name", name, "partitions", partitions, "new", !was));
    output("namespace %s: %d partition%s%s\n", name, partitions, partitions == 1 ? "" : "s",
           was ? ", as before" : "");
    if (partitions > 1)
        output("types that share a limit need names that are the same up to the first dot: mail.bulk, "
               "mail.urgent, limit mail.provider\n");
    return 0;
}

static long long count;

static const struct flag flags[] = {
    {"partitions", 0, FLAG_INT, "N", "how many: 1 to 64", &count},
    {.name = NULL},
};

static int check(struct cli *cli)
{
    if (count >= 1 && count <= PARTITIONS_MOST)
        return 0;
    return cli_usage(cli, "init: needs --partitions N, from 1 to %d", PARTITIONS_MOST);
}

static int act(struct cli *cli, struct weir *w)
{
    bool was;

    return divide(w, (int)count, &was) < 0 ? cli_failed(cli, w) : print(cli, w, (int)count, was);
}

const struct command command_init = {
    .name = "init", .run = cli_run, .flags = flags, .check = check, .act = act};
