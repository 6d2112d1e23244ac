#include "cli/command/workers.h"

#include <string.h>

#include "cli/confirm.h"
#include "cli/document/table.h"
#include "core/clock.h"
#include "core/likely.h"
#include "view/workers.h"

/* ---- list */

static void put_state(FILE *to, const json_t *worker, int64_t now_us)
{
    const json_t *at = json_object_get(worker, "ordered_at");
    char clock[PHRASE_SIZE];

    output_to(to, "%s", answer_text(worker, "state"));
    if (json_is_number(at))
        output_to(to, " since %s", format_clock(now_us, json_us(at), clock));
}

static void put_types(FILE *to, const json_t *worker)
{
    worker_put_types(to, json_int_of(worker, "type_count"), json_object_get(worker, "patterns"));
}

static const struct column columns[] = {
    COLUMN("worker", "name"),
    COLUMN("host", "host", .drop = 2),
    COLUMN("pid", "pid", .drop = 1),
    COLUMN("state", NULL, .put_at = put_state),
    COLUMN("running", "running", .show = SHOW_COUNT),
    COLUMN("executors", "executors", .show = SHOW_COUNT, .drop = 3),
    COLUMN("queues", "serves", .drop = 4),
    COLUMN("types", NULL, .put = put_types, .drop = 5),
    COLUMN("version", "version", .drop = 6),
    COLUMN("seen", "seen_at", .show = SHOW_TIME),
    {.heading = NULL},
};

static int run_list(struct cli *cli, struct weir *w)
{
    struct status status;
    int rc = status_workers(w, &status);

    rc = rc < 0 ? cli_failed(cli, w)
                : table_list(cli, columns, workers_document(&status), status.now_us,
                             "no worker runs; weir worker --exec TYPE=COMMAND starts one");
    status_free(&status);
    return rc;
}

/* ---- quiet, stop */

static int print_order(struct cli *cli, const json_t *worker)
{
    const char *order = json_text_of(worker, "order");
    char within[PHRASE_SIZE];

    if (cli->json)
        return json_print(cli, json_incref((json_t *)worker));
    output("worker %s (%s:%lld) %s, within %s\n", json_text_of(worker, "name"), json_text_of(worker, "host"),
           (long long)json_int_of(worker, "pid"),
           strcmp(order, "stop") == 0    ? "finishes its jobs and stops"
           : strcmp(order, "quiet") == 0 ? "takes no more jobs and stays"
                                         : "takes jobs again",
           format_span(json_us(json_object_get(worker, "within")), within));
    return 0;
}

#define LOOK_EVERY_US 300000

/* Until those that were ordered have no jobs left. */
static int await_idle(struct cli *cli, struct weir *w, const char *which)
{
    int busy;

    while ((busy = view_workers_busy(w, which)) > 0)
        clock_sleep_until(clock_mono_us() + LOOK_EVERY_US);
    return busy < 0 ? cli_failed(cli, w) : 0;
}

static struct workers_flags given;

/* Orders all that are meant, and prints those that were ordered, whatever happened to others. */
static int run_order(struct cli *cli, struct weir *w)
{
    const char *order = cli->action->name, *which = cli->operands[0];
    json_t *ordered, *worker;
    bool all = strcmp(which, "all") == 0;
    int rc = cli_confirm(cli, given.yes || !all, order, "have all workers of this namespace %s",
                         strcmp(order, "stop") == 0    ? "stop"
                         : strcmp(order, "quiet") == 0 ? "take no more jobs"
                                                       : "take jobs again"),
        printed = 0;
    size_t i;

    if (rc != 0)
        return rc;
    rc = view_worker_orders(w, which, order, &ordered);
    json_array_foreach(ordered, i, worker)
        printed = printed ? printed : print_order(cli, worker);
    json_decref(ordered);
    if (rc < 0)
        return cli_failed(cli, w);
    fflush(stdout);
    return printed == 0 && given.wait ? await_idle(cli, w, which) : printed;
}

/* ---- The table */

#define WHICH "a worker's name, HOST:PID, HOST, or all"

static const struct action actions[] = {
    {"list", "", "nothing more", 0, 0, run_list},
    {"quiet", "wait yes", WHICH, 1, 1, run_order},
    {"resume", "yes", WHICH, 1, 1, run_order},
    {"stop", "wait yes", WHICH, 1, 1, run_order},
};

const struct actions workers_actions = ACTIONS(actions);

static bool is_action(const char *word)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, cli_action(word)) == 0)
            return true;
    return false;
}

/* True for a mistyped action. */
static bool is_near_action(const char *word)
{
    const char *names[sizeof actions / sizeof *actions + 1] = {NULL};

    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        names[i] = actions[i].name;
    return likely_word(word, names);
}

/* A flag that only a worker has which runs jobs; NULL: none was given. */
static const char *flag_of_worker(const struct cli *cli)
{
    for (int i = 0; i < cli->given_count; i++)
        if (strcmp(cli->given[i], "wait") != 0 && strcmp(cli->given[i], "yes") != 0)
            return cli->given[i];
    return NULL;
}

int workers_run(struct cli *cli, const struct workers_flags *flags, int argc, char **argv)
{
    const char *other = flag_of_worker(cli);

    if (other && !is_action(argv[0]))
        return cli_usage(cli,
                         "worker %.60s: belongs to no flag; write a handler as one word: --exec "
                         "'mail=./send --fast'",
                         argv[0]);
    if (other)
        return cli_usage(cli, "worker %.100s --%s: only a worker that runs jobs has it; leave it out",
                         argv[0], other);
    if (!is_action(argv[0]) && !is_near_action(argv[0]))
        return cli_usage(
            cli,
            "worker %.60s: types are named with their handlers, as --exec %.60s=./handler; or there are "
            "worker list, quiet, resume and stop",
            argv[0], argv[0]);
    given = *flags;
    return cli_act(cli, argc, argv);
}
