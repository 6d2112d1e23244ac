#include "cli/command/workers.h"

#include <inttypes.h>
#include <string.h>

#include "cli/document/table.h"
#include "queue/inspect/order.h"
#include "view/workers.h"

#define WHICH_SIZE 300

/* ---- list */

static const struct column columns[] = {
    COLUMN("worker", "name"),
    COLUMN("host", "host", .drop = 2),
    COLUMN("pid", "pid", .drop = 1),
    COLUMN("state", "state"),
    COLUMN("running", "running", .show = SHOW_COUNT),
    COLUMN("executors", "executors", .show = SHOW_COUNT, .drop = 3),
    COLUMN("queues", "serves", .drop = 4),
    COLUMN("types", "type_count", .show = SHOW_COUNT, .drop = 5),
    COLUMN("version", "version", .drop = 6),
    COLUMN("seen", "seen_at", .show = SHOW_TIME),
    {.heading = NULL},
};

static int run_list(struct cli *cli, struct weir *w, const char *which)
{
    struct status status;
    int rc = status_workers(w, &status);

    (void)which;
    rc = rc < 0 ? cli_failed(cli, w)
                : table_list(cli, columns, workers_document(&status), status.now_us,
                             "no worker runs; weir worker --exec TYPE=COMMAND starts one");
    status_free(&status);
    return rc;
}

/* ---- quiet, stop */

static bool is_meant(const struct worker_status *worker, const char *which)
{
    char process[WHICH_SIZE];

    snprintf(process, sizeof process, "%s:%" PRId64, worker->host, worker->pid);
    return strcmp(which, "all") == 0 || strcmp(which, worker->name) == 0 || strcmp(which, process) == 0;
}

static int order_one(struct cli *cli, struct weir *w, const struct worker_status *worker, const char *order)
{
    char within[PHRASE_SIZE];

    if (!*worker->instance)
        return error_set(&cli->error, WEIR_ENOTNOW,
                         "worker %s %s: an older version, which hears no orders; send %s to process %" PRId64
                         " of %s",
                         order, worker->name, strcmp(order, "stop") == 0 ? "SIGTERM" : "SIGTSTP", worker->pid,
                         worker->host);
    if (worker_order(w, worker->instance, order) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, worker_order_document(worker, order));
    output("worker %s (%s:%" PRId64 ") %s, within %s\n", worker->name, worker->host, worker->pid,
           strcmp(order, "stop") == 0 ? "finishes its jobs and stops" : "takes no more jobs and stays",
           format_span(worker->lease_us / 4, within));
    return 0;
}

static int order_all(struct cli *cli, struct weir *w, const char *which, const char *order)
{
    struct status status;
    int rc = status_workers(w, &status), found = 0;

    if (rc < 0)
        rc = cli_failed(cli, w);
    for (size_t i = 0; rc == 0 && i < status.worker_count; i++)
        if (!status.workers[i].silent && is_meant(&status.workers[i], which)) {
            found++;
            rc = order_one(cli, w, &status.workers[i], order);
        }
    if (rc == 0 && found == 0)
        rc = error_set(&cli->error, WEIR_ENOTFOUND,
                       "worker %.200s: there is none that runs; weir worker list shows them", which);
    status_free(&status);
    return rc;
}

static int run_quiet(struct cli *cli, struct weir *w, const char *which)
{
    return order_all(cli, w, which, "quiet");
}

static int run_stop(struct cli *cli, struct weir *w, const char *which)
{
    return order_all(cli, w, which, "stop");
}

/* ---- The table */

static const struct action {
    const char *name, *flags;
    int operands; /* behind the name */
    int (*run)(struct cli *cli, struct weir *w, const char *which);
} actions[] = {
    {"list", "", 0, run_list},
    {"quiet", "", 1, run_quiet},
    {"stop", "", 1, run_stop},
};

int workers_run(struct cli *cli, int argc, char **argv)
{
    const struct action *action;
    struct weir *w;
    int chosen, status;

    if (cli->given_count > 0)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "worker %.100s --%s: only a worker that is to run has it; leave it out", argv[0],
                         cli->given[0]);
    chosen = cli_choose(cli, argv[0], actions, sizeof *actions, sizeof actions / sizeof *actions);
    if (chosen < 0)
        return cli->error.status;
    action = &actions[chosen];
    if (argc - 1 != action->operands)
        return error_set(&cli->error, WEIR_EUSAGE, "worker %s: takes %s; weir help worker has examples",
                         action->name,
                         action->operands ? "a worker's name, HOST:PID, or all" : "nothing more");
    if (!(w = cli_client(cli)))
        return cli->error.status;
    status = action->run(cli, w, argv[1]);
    weir_free(w);
    return status;
}
