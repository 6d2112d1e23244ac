/* weir schedule: jobs that are enqueued again and again. */
#include <limits.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/document/text.h"
#include "producer/schedule.h"
#include "queue/schedule/schedule.h"

#define NEXT_COUNT 5 /* occurrences that are shown */
#define NOT_GIVEN LLONG_MIN
#define TIME_SIZE 40 /* of zone_format */

static int run_schedule(struct cli *cli, int argc, char **argv);

const struct command command_schedule = {.name = "schedule", .run = run_schedule};

/* Of add; what was not given is NULL, -1 or NOT_GIVEN. */
struct schedule_flags {
    const char *tz, *missed, *queue, *key;
    long long cost, max_attempts;
    int64_t timeout_us;
};

/* ---- Occurrences */

/* The next ones, the one that it waits for first; returns how many there are. */
static int next_times(const struct schedule_row *row, int64_t times_s[NEXT_COUNT])
{
    int64_t at_s = row->due_us / 1000000;
    int count = 0;

    if (row->due_us < 0)
        return 0;
    for (; count < NEXT_COUNT && at_s != CRON_NEVER; at_s = cron_next(&row->s.cron, row->s.zone, at_s))
        times_s[count++] = at_s;
    return count;
}

static json_t *next_json(const struct schedule_row *row)
{
    int64_t times_s[NEXT_COUNT];
    int count = next_times(row, times_s);
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(times_s[i]));
    return list;
}

/* Behind label, each on a line of its own. */
static void print_next(const struct schedule_row *row, int64_t now_us, const char *label)
{
    int64_t times_s[NEXT_COUNT];
    int count = next_times(row, times_s);
    char time[TIME_SIZE];

    for (int i = 0; i < count; i++) {
        zone_format(row->s.zone, times_s[i], time);
        output("  %-10s%s%s\n", i ? "" : label, time,
               times_s[i] * 1000000 <= now_us ? ", due: waits for a worker" : "");
    }
    if (count == 0)
        output("  %-10snever again; replace it: weir schedule add\n", label);
}

/* The schedule of that name, alone in *list, which is to be freed whatever happens; it can be read. */
static int find(struct cli *cli, struct weir *w, const char *name, struct schedule_list *list)
{
    if (schedule_look(w, name, list) < 0)
        return cli_failed(cli, w);
    cli->error = list->rows[0].why;
    return list->rows[0].status;
}

/* ---- The actions: argv[0] is the action's name */

static int check_args(struct cli *cli, const char *args)
{
    struct error why;

    if (!args || json_check(args, strlen(args), &why) == 0)
        return 0;
    return error_set(&cli->error, WEIR_EINPUT,
                     "args '%.60s': %s; give one JSON value, such as '{\"id\":42}' or '\"text\"'", args,
                     why.text);
}

static int print_added(struct cli *cli, struct weir *w, const char *name, bool replaced)
{
    struct schedule_list list;
    int status = find(cli, w, name, &list);

    if (status == 0 && cli->json) {
        status = json_print(cli, json_pack("{s:s, s:b, s:o}", "name", name, "replaced", replaced, "next",
                                           next_json(&list.rows[0])));
    } else if (status == 0) {
        output("%s: %s\n", name, replaced ? "replaced; there was one of that name" : "added");
        print_next(&list.rows[0], list.now_us, "next");
    }
    schedule_list_free(&list);
    return status;
}

static int run_add(struct cli *cli, struct weir *w, const struct schedule_flags *f, char **argv)
{
    struct weir_job_spec job = {.type = argv[3],
                                .args = argv[4],
                                .queue = f->queue,
                                .key = f->key,
                                .cost = f->cost == NOT_GIVEN ? 0 : f->cost,
                                .max_attempts = f->max_attempts == NOT_GIVEN ? 0 : (int)f->max_attempts,
                                .timeout_s = f->timeout_us < 0 ? 0 : (double)f->timeout_us / 1e6};
    enum weir_missed missed = WEIR_MISSED_ONCE;
    struct cron when;
    bool replaced;

    if (cron_parse(argv[2], &when, &cli->error) < 0)
        return cli->error.status;
    if (f->missed && !missed_read(f->missed, &missed))
        return error_set(&cli->error, WEIR_EUSAGE, "schedule add --missed %.60s: must be once, skip or all",
                         f->missed);
    if (check_args(cli, job.args) < 0)
        return cli->error.status;
    if (schedule_add(w, argv[1], argv[2], f->tz, missed, &job, &replaced) < 0)
        return cli_failed(cli, w);
    return print_added(cli, w, argv[1], replaced);
}

static json_t *row_json(const struct schedule_row *row)
{
    const struct schedule *s = &row->s;

    if (row->status == WEIR_ECONFIG)
        return json_pack("{s:o, s:o}", "name", text_word(row->name), "error", text_word(row->why.text));
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:s%, s:o}", "name", text_word(row->name), "when", s->when,
                     "zone", s->zone_name, "missed", missed_name(s->missed), "queue", s->queue, "type",
                     s->view.type.at, s->view.type.len, "due_at",
                     row->due_us < 0 ? json_null() : json_integer(row->due_us / 1000000));
}

static void print_row(const struct schedule_row *row, int64_t now_us)
{
    char time[TIME_SIZE] = "never";

    if (row->status != 0) {
        output("%-20s %s\n", row->name, row->why.text);
        return;
    }
    if (row->due_us >= 0)
        zone_format(row->s.zone, row->due_us / 1000000, time);
    output("%-20s %-20s %-20s %-24.*s %s%s\n", row->name, row->s.when, row->s.zone_name,
           (int)row->s.view.type.len, row->s.view.type.at, time,
           row->due_us >= 0 && row->due_us <= now_us ? ", due" : "");
}

static int run_list(struct cli *cli, struct weir *w, const struct schedule_flags *f, char **argv)
{
    struct schedule_list list;
    int status = schedule_look(w, NULL, &list);

    (void)f;
    (void)argv;
    if (status < 0)
        status = cli_failed(cli, w);
    else if (!cli->json && list.count == 0)
        puts("no schedules; weir schedule add makes one");
    else if (!cli->json)
        output("%-20s %-20s %-20s %-24s %s\n", "schedule", "when", "zone", "type", "next");
    for (size_t i = 0; status == 0 && i < list.count; i++) {
        if (cli->json)
            status = json_print(cli, row_json(&list.rows[i]));
        else
            print_row(&list.rows[i], list.now_us);
    }
    schedule_list_free(&list);
    return status;
}

static int print_show_json(struct cli *cli, const struct schedule_row *row)
{
    json_t *doc = row_json(row);

    json_object_set_new(doc, "next", next_json(row));
    return text_print_with_body(cli, doc, row->s.job);
}

static int run_show(struct cli *cli, struct weir *w, const struct schedule_flags *f, char **argv)
{
    struct schedule_list list;
    const struct schedule_row *row;
    int status = find(cli, w, argv[1], &list);

    (void)f;
    row = list.rows;
    if (status == 0 && cli->json) {
        status = print_show_json(cli, row);
    } else if (status == 0) {
        output("%s\n  %-10s%s, %s\n  %-10s%s\n  %-10s%s\n  %-10s%.*s\n", row->name, "when", row->s.when,
               row->s.zone_name, "missed", missed_name(row->s.missed), "queue", row->s.queue, "job",
               (int)row->s.job.len, row->s.job.at);
        print_next(row, list.now_us, "next");
    }
    schedule_list_free(&list);
    return status;
}

static int run_remove(struct cli *cli, struct weir *w, const struct schedule_flags *f, char **argv)
{
    (void)f;
    if (weir_schedule_remove(w, argv[1]) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:s}", "name", argv[1], "action", argv[0]));
    output("%s: removed; the jobs that it has enqueued stay\n", argv[1]);
    return 0;
}

static int run_run(struct cli *cli, struct weir *w, const struct schedule_flags *f, char **argv)
{
    struct schedule_list list;
    char id[WEIR_ID_SIZE];
    int status = find(cli, w, argv[1], &list);

    (void)f;
    if (status == 0 && schedule_enqueue(w, &list.rows[0].s, id) < 0)
        status = cli_failed(cli, w);
    schedule_list_free(&list);
    if (status < 0)
        return status;
    if (cli->json)
        return json_print(cli, json_pack("{s:s}", "id", id));
    output("%s\n", id);
    return 0;
}

static const struct action {
    const char *name;
    const char *operands;
    int least, most; /* operands */
    int (*run)(struct cli *cli, struct weir *w, const struct schedule_flags *f, char **argv);
} actions[] = {
    {"add", "NAME WHEN TYPE [ARGS], WHEN in quotes", 3, 4, run_add},
    {"list", "nothing more", 0, 0, run_list},
    {"show", "NAME", 1, 1, run_show},
    {"remove", "NAME", 1, 1, run_remove},
    {"run", "NAME", 1, 1, run_run},
};
#define ACTION_COUNT (sizeof actions / sizeof *actions)

static int check_flags(struct cli *cli, const struct action *action, const struct schedule_flags *f)
{
    bool given = f->tz || f->missed || f->queue || f->key || f->cost != NOT_GIVEN ||
                 f->max_attempts != NOT_GIVEN || f->timeout_us != -1;

    if (given && action->run != run_add)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "schedule %s: takes no flags of schedule add; leave them out", action->name);
    if (f->cost != NOT_GIVEN && (f->cost < 1 || f->cost > JOB_COST_MOST))
        return error_set(&cli->error, WEIR_EUSAGE, "schedule add --cost: must be 1 to %d", JOB_COST_MOST);
    if (f->max_attempts != NOT_GIVEN && (f->max_attempts < 1 || f->max_attempts > 1000000))
        return error_set(&cli->error, WEIR_EUSAGE, "schedule add --max-attempts: must be 1 to 1000000");
    if (f->timeout_us == 0)
        return error_set(&cli->error, WEIR_EUSAGE, "schedule add --timeout: must be above 0");
    return 0;
}

static int run_action(struct cli *cli, const struct schedule_flags *f, int operands, char **argv)
{
    const struct action *action;
    struct weir *w;
    int chosen, status;

    chosen = cli_choose(cli, operands ? argv[0] : NULL, actions, sizeof *actions, ACTION_COUNT);
    if (chosen < 0)
        return cli->error.status;
    action = &actions[chosen];
    if (operands - 1 < action->least || operands - 1 > action->most)
        return error_set(&cli->error, WEIR_EUSAGE, "schedule %s: takes %s; weir help schedule has examples",
                         action->name, action->operands);
    if (check_flags(cli, action, f) < 0 || !(w = cli_client(cli)))
        return cli->error.status;
    status = action->run(cli, w, f, argv);
    weir_free(w);
    return status;
}

static int run_schedule(struct cli *cli, int argc, char **argv)
{
    struct schedule_flags f = {.cost = NOT_GIVEN, .max_attempts = NOT_GIVEN, .timeout_us = -1};
    const struct flag flags[] = {
        {"tz", 0, FLAG_TEXT, "ZONE", "of the tz database, such as Europe/Berlin: UTC", &f.tz},
        {"missed", 0, FLAG_TEXT, "POLICY", "once, skip or all: once", &f.missed},
        {"queue", 'q', FLAG_TEXT, "Q", "the queue of its jobs: default", &f.queue},
        {"key", 0, FLAG_TEXT, "K", "the value that a keyed limit goes by", &f.key},
        {"cost", 0, FLAG_INT, "N", "how many slots a job takes of each rate: 1", &f.cost},
        {"max-attempts", 0, FLAG_INT, "N", "how often a job is tried: 25", &f.max_attempts},
        {"timeout", 0, FLAG_DURATION, "DUR", "how long an attempt may take", &f.timeout_us},
        {.name = NULL},
    };
    int operands;

    if (cli_parse(cli, flags, argc, argv, &operands) < 0)
        return cli->error.status;
    return run_action(cli, &f, operands, argv);
}
