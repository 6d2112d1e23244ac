/* weir queue: queues as a whole: listed, paused, purged. */
#include "cli/commands.h"

#include "cli/confirm.h"
#include "cli/document/pausing.h"
#include "cli/document/table.h"
#include "core/clock.h"
#include "view/queues.h"

static struct {
    bool dry_run, yes;
    const char *type;
} given;

/* ---- list */

static const struct column columns[] = {
    COLUMN("queue", "name"),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT, .drop = 1),
    COLUMN("parked", "parked", .show = SHOW_COUNT, .drop = 1),
    COLUMN("workers", "worker_count", .show = SHOW_COUNT, .drop = 2),
    COLUMN("paused", "paused", .show = SHOW_PAUSE, .rest = true, .tone = TONE_WARNING),
    {.heading = NULL},
};

static int run_list(struct cli *cli, struct weir *w)
{
    json_t *list;

    if (view_queues(w, &list) < 0)
        return cli_failed(cli, w);
    return table_list(cli, columns, list, clock_wall_us(), "no queues yet; weir enqueue TYPE makes one");
}

/* ---- pause, resume */

static int run_pausing(struct cli *cli, struct weir *w)
{
    return pausing_change(cli, w, queue_pause);
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

static int remove_jobs(struct cli *cli, struct weir *w, const char *queue, struct queue_jobs *jobs)
{
    int64_t all = jobs->waiting + jobs->parked;
    char text[PHRASE_SIZE];
    int status = cli_confirm(cli, given.yes || all == 0, "queue purge", "remove %s%s%s of queue %s",
                             counted(all, "job", text), given.type ? " of type " : "",
                             given.type ? given.type : "", queue);

    if (status != 0)
        return status;
    return queue_purge(w, -1, queue, given.type, all, jobs) < 0 ? cli_failed(cli, w) : 0;
}

static int run_purge(struct cli *cli, struct weir *w)
{
    const char *queue = cli->operands[0];
    char waiting[PHRASE_SIZE], parked[PHRASE_SIZE];
    struct queue_jobs jobs;
    int status = 0;

    if (queue_count(w, -1, queue, given.type, &jobs) < 0)
        return cli_failed(cli, w);
    if (!cli->json)
        output_to(given.dry_run ? stdout : stderr, "queue %s%s%s: %s and %s\n", queue,
                  given.type ? " of type " : "", given.type ? given.type : "",
                  counted(jobs.waiting, "waiting job", waiting), counted(jobs.parked, "parked job", parked));
    if (!given.dry_run)
        status = remove_jobs(cli, w, queue, &jobs);
    if (status != 0)
        return status;
    if (cli->json)
        return json_print(cli, queue_purge_document(queue, given.type, given.dry_run, &jobs));
    if (!given.dry_run)
        print_purged(queue, &jobs);
    return 0;
}

/* ---- The table */

#define ONE "the name of one queue"

static const struct action actions[] = {
    {"list", "", "nothing more", 0, 0, run_list},
    {"pause", "for reason create", ONE, 1, 1, run_pausing},
    {"resume", "", ONE, 1, 1, run_pausing},
    {"purge", "type dry-run yes", ONE, 1, 1, run_purge},
};

static const struct flag flags[] = {
    {"type", 0, FLAG_TEXT, "TYPE", "purge: jobs of this type", &given.type},
    {"dry-run", 0, FLAG_BOOL, NULL, "purge: count, and change nothing", &given.dry_run},
    {"yes", 'y', FLAG_BOOL, NULL, "purge: do not ask; needed off a terminal", &given.yes},
    PAUSING_FLAGS,
    PAUSING_CREATE,
    {.name = NULL}};

const struct command command_queue = {
    .name = "queue", .run = cli_run, .flags = flags, .actions = &ACTIONS(actions), .check = pausing_check};
