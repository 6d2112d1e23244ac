/* weir init: how many partitions a namespace has, before its first use. */
#include "cli/commands.h"
#include "cli/document/json.h"
#include "queue/queues/divide.h"

static int run_init(struct cli *cli, int argc, char **argv);

const struct command command_init = {.name = "init", .run = run_init};

static int print(struct cli *cli, const struct weir *w, int count, bool was)
{
    char name[PREFIX_SIZE];

    partition_namespace(w->prefix, name);
    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:i, s:b}", "name", name, "partitions", count, "new", !was));
    output("namespace %s: %d partition%s%s\n", name, count, count == 1 ? "" : "s", was ? ", as before" : "");
    if (count > 1)
        output("types that share a limit need names that are the same up to the first dot: mail.bulk, "
               "mail.urgent, limit mail.provider\n");
    return 0;
}

static int run_init(struct cli *cli, int argc, char **argv)
{
    long long count = 0;
    const struct flag flags[] = {
        {"partitions", 0, FLAG_INT, "N", "how many: 1 to 64", &count},
        {.name = NULL},
    };
    struct weir *w;
    bool was;
    int status;

    if (cli_parse_alone(cli, flags, argc, argv) < 0)
        return cli->error.status;
    if (count < 1 || count > PARTITIONS_MOST)
        return error_set(&cli->error, WEIR_EUSAGE, "init: needs --partitions N, from 1 to %d",
                         PARTITIONS_MOST);
    if (!(w = cli_client(cli)))
        return cli->error.status;
    status = divide(w, (int)count, &was) < 0 ? cli_failed(cli, w) : print(cli, w, (int)count, was);
    weir_free(w);
    return status;
}
