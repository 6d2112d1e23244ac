/* weir queue: queues as a whole: listed, paused, purged. */
#include "cli/commands.h"
#include "queue/queues/queues.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/confirm.h"
#include "cli/document/json.h"
#include "cli/document/table.h"
#include "core/clock.h"

static int run_queue(struct cli *cli, int argc, char **argv);

const struct command command_queue = {.name = "queue", .run = run_queue};

struct queue_flags {
    bool dry_run, yes;
    const char *type;
};

/* ---- list */

/* us: not 0. */
static void format_since(int64_t us, char out[40])
{
    if (us > 0)
        cli_format_time(us, out);
    else
        strcpy(out, "an unknown time");
}

static const struct column columns[] = {
    COLUMN("queue", "name"),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT, .drop = 1),
    COLUMN("parked", "parked", .show = SHOW_COUNT, .drop = 1),
    COLUMN("workers", "worker_count", .show = SHOW_COUNT, .drop = 2),
    COLUMN("paused since", "paused_since", .show = SHOW_WHEN, .tone = TONE_WARNING),
    {.heading = NULL},
};

static json_t *row_json(const struct queue_row *row)
{
    return json_pack("{s:s, s:I, s:I, s:o, s:I}", "name", row->name, "waiting", (json_int_t)row->waiting,
                     "parked", (json_int_t)row->parked, "paused_since", json_since(row->paused_us),
                     "worker_count", (json_int_t)row->workers);
}

static int run_list(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue)
{
    struct queue_row *rows;
    json_t *list;
    size_t count;

    (void)flags, (void)queue;
    if (queues_read(w, &rows, &count) < 0)
        return cli_failed(cli, w);
    list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, row_json(&rows[i]));
    free(rows);
    return table_list(cli, columns, list, clock_wall_us(), "no queues yet; weir enqueue TYPE makes one");
}

/* ---- pause, resume */

static int pause_or_resume(struct cli *cli, struct weir *w, const char *queue, bool pause)
{
    int64_t before_us;
    char since[40];
    bool known;

    if (queue_pause(w, queue, pause, &before_us, &known) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:b, s:o}", "name", queue, "paused", pause,
                                         "was_paused_since", json_since(before_us)));
    if (before_us != 0)
        format_since(before_us, since);
    if (pause && before_us != 0)
        output("queue %s was paused already, since %s\n", queue, since);
    else if (pause)
        output("queue %s is paused: nothing of it starts until weir queue resume %s%s\n", queue, queue,
               known ? "" : "; it has had no job yet");
    else if (before_us != 0)
        output("queue %s resumed; it was paused since %s\n", queue, since);
    else
        output("queue %s was not paused\n", queue);
    return 0;
}

static int run_pause(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue)
{
    (void)flags;
    return pause_or_resume(cli, w, queue, true);
}

static int run_resume(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue)
{
    (void)flags;
    return pause_or_resume(cli, w, queue, false);
}

/* ---- purge */

static json_t *purge_json(const char *queue, const struct queue_flags *flags, const struct queue_jobs *jobs)
{
    return json_pack("{s:s, s:o, s:b, s:I, s:I, s:I, s:I}", "name", queue, "type",
                     flags->type ? json_string(flags->type) : json_null(), "dry_run", flags->dry_run,
                     "waiting", (json_int_t)jobs->waiting, "parked", (json_int_t)jobs->parked, "marked",
                     (json_int_t)jobs->marked, "without_id", (json_int_t)jobs->nameless);
}

static void print_purged(const char *queue, const struct queue_jobs *jobs)
{
    output("queue %s: %" PRId64 " waiting and %" PRId64 " parked jobs removed\n", queue, jobs->waiting,
           jobs->parked);
    if (jobs->marked > 0)
        output("%" PRId64 " that wait are marked, and end when a worker comes to them\n", jobs->marked);
    if (jobs->nameless > 0)
        output("%" PRId64 " have no id to mark, and stay\n", jobs->nameless);
}

static int run_purge(struct cli *cli, struct weir *w, const struct queue_flags *flags, const char *queue)
{
    const char *of_type = flags->type ? " of type " : "", *type = flags->type ? flags->type : "";
    struct queue_jobs jobs, found;
    char text[PHRASE_SIZE];
    int status;

    if (queue_count(w, -1, queue, flags->type, &found) < 0)
        return cli_failed(cli, w);
    jobs = found;
    if (!cli->json)
        output_to(flags->dry_run ? stdout : stderr,
                  "queue %s%s%s: %" PRId64 " waiting and %" PRId64 " parked jobs\n", queue, of_type, type,
                  found.waiting, found.parked);
    if (!flags->dry_run) {
        status = cli_confirm(cli, flags->yes || found.waiting + found.parked == 0, "queue purge",
                             "remove %s%s%s of queue %s", counted(found.waiting + found.parked, "job", text),
                             of_type, type, queue);
        if (status != 0)
            return status;
        if (queue_purge(w, -1, queue, flags->type, found.waiting + found.parked, &jobs) < 0)
            return cli_failed(cli, w);
    }
    if (cli->json)
        return json_print(cli, purge_json(queue, flags, &jobs));
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
    {"pause", "", 1, run_pause},
    {"resume", "", 1, run_resume},
    {"purge", "type dry-run yes", 1, run_purge},
};
#define ACTION_COUNT (sizeof actions / sizeof *actions)

static int run_queue(struct cli *cli, int argc, char **argv)
{
    struct queue_flags given = {.type = NULL};
    const struct flag flags[] = {
        {.name = "type", .kind = FLAG_TEXT, .value = "TYPE", .help = "purge: jobs of this type", &given.type},
        {.name = "dry-run",
         .kind = FLAG_BOOL,
         .help = "purge: count, and change nothing",
         .target = &given.dry_run},
        {.name = "yes", .letter = 'y', .kind = FLAG_BOOL, .help = "purge: do not ask", .target = &given.yes},
        {.name = NULL}};
    const struct action *action;
    struct weir *w;
    int chosen, operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status != 0)
        return status;
    chosen = cli_choose(cli, operands ? argv[0] : NULL, actions, sizeof *actions, ACTION_COUNT);
    if (chosen < 0)
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
