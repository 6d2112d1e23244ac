/* weir queue: queues as a whole: listed, paused, purged. */
#include "cli/commands.h"

#include "cli/confirm.h"
#include "cli/document/pausing.h"
#include "cli/document/table.h"
#include "core/clock.h"
#include "view/pause.h"
#include "view/queues.h"

struct queue_flags {
    bool dry_run, yes;
    const char *type;
    struct pausing pausing;
};

/* ---- list */

static const struct column columns[] = {
    COLUMN("queue", "name"),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT, .drop = 1),
    COLUMN("parked", "parked", .show = SHOW_COUNT, .drop = 1),
    COLUMN("workers", "worker_count", .show = SHOW_COUNT, .drop = 2),
    COLUMN("paused since", "paused_since", .show = SHOW_WHEN, .tone = TONE_WARNING),
    {.heading = NULL},
};

static int run_list(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue)
{
    json_t *list;

    (void)flags, (void)queue;
    if (view_queues(w, &list) < 0)
        return cli_failed(cli, w);
    return table_list(cli, columns, list, clock_wall_us(), "no queues yet; weir enqueue TYPE makes one");
}

/* ---- pause, resume */

static int run_pause(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue)
{
    return pausing_change(cli, w, queue_pause, queue, &flags->pausing);
}

static int run_resume(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue)
{
    (void)flags;
    return pausing_change(cli, w, queue_pause, queue, &(struct pausing){.for_us = RATE_RESUME});
}

/* ---- purge */

static void print_purged(const char *queue, const struct queue_jobs *jobs)
{
    char text[PHRASE_SIZE], parked[PHRASE_SIZE];

    output("queue %s: %s and %s removed\n", queue, counted(jobs->waiting, "waiting job", text),
           counted(jobs->parked, "parked job", parked));
    if (jobs->marked > 0)
        output("%s marked, to end where a worker meets them\n", counted(jobs->marked, "waiting job", text));
}

static int remove_jobs(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue,
                       struct queue_jobs *jobs)
{
    int64_t all = jobs->waiting + jobs->parked;
    char text[PHRASE_SIZE];
    int status = cli_confirm(cli, flags->yes || all == 0, "queue purge", "remove %s%s%s of queue %s",
                             counted(all, "job", text), flags->type ? " of type " : "",
                             flags->type ? flags->type : "", queue);

    if (status != 0)
        return status;
    return queue_purge(w, -1, queue, flags->type, all, jobs) < 0 ? cli_failed(cli, w) : 0;
}

static int run_purge(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue)
{
    char waiting[PHRASE_SIZE], parked[PHRASE_SIZE];
    struct queue_jobs jobs;
    int status = 0;

    if (queue_count(w, -1, queue, flags->type, &jobs) < 0)
        return cli_failed(cli, w);
    if (!cli->json)
        output_to(flags->dry_run ? stdout : stderr, "queue %s%s%s: %s and %s\n", queue,
                  flags->type ? " of type " : "", flags->type ? flags->type : "",
                  counted(jobs.waiting, "waiting job", waiting), counted(jobs.parked, "parked job", parked));
    if (!flags->dry_run)
        status = remove_jobs(cli, w, flags, queue, &jobs);
    if (status != 0)
        return status;
    if (cli->json)
        return json_print(cli, queue_purge_document(queue, flags->type, flags->dry_run, &jobs));
    if (!flags->dry_run)
        print_purged(queue, &jobs);
    return 0;
}

/* ---- The table */

static const struct action {
    const char *name, *flags;
    int operands; /* behind the name */
    int (*run)(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue);
} actions[] = {
    {"list", "", 0, run_list},
    {"pause", "for reason create", 1, run_pause},
    {"resume", "", 1, run_resume},
    {"purge", "type dry-run yes", 1, run_purge},
};

static int run_queue(struct cli *cli, int argc, char **argv)
{
    struct queue_flags given = {.type = NULL};
    const struct flag flags[] = {
        {.name = "type", .kind = FLAG_TEXT, .value = "TYPE", .help = "purge: jobs of this type", &given.type},
        {.name = "dry-run",
         .kind = FLAG_BOOL,
         .help = "purge: count, and change nothing",
         .target = &given.dry_run},
        {.name = "yes",
         .letter = 'y',
         .kind = FLAG_BOOL,
         .help = "purge: do not ask; needed off a terminal",
         .target = &given.yes},
        PAUSING_FLAGS(given.pausing),
        {.name = NULL}};
    const struct action *action;
    struct weir *w;
    int chosen, operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status != 0)
        return status;
    chosen = cli_choose(cli, operands ? argv[0] : NULL);
    if (chosen < 0 || pausing_read(cli, &given.pausing) < 0)
        return cli->error.status;
    action = &actions[chosen];
    if (operands - 1 != action->operands)
        return error_set(&cli->error, WEIR_EUSAGE, "queue %s: takes %s; weir help queue has examples",
                         action->name, action->operands ? "the name of one queue" : "nothing more");
    if (!(w = cli_client(cli)))
        return cli->error.status;
    status = action->run(cli, w, &given, argv[1]);
    weir_free(w);
    return status;
}

const struct command command_queue = {.name = "queue", .run = run_queue, .actions = &ACTIONS(actions)};
