/* weir schedule: jobs that are enqueued again and again. */
#include <string.h>

#include "cli/command/enqueue.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "cli/document/pausing.h"
#include "cli/document/table.h"
#include "producer/schedule.h"
#include "queue/limits/rate.h"
#include "view/pause.h"
#include "view/schedules.h"
#include "view/text.h"

#define WAITS_US 2000000 /* so long after an occurrence a worker that is there has seen it */

static struct {
    const char *tz, *missed, *queue, *key; /* of add, to timeout */
    const char *cost;
    long long max_attempts;
    int64_t timeout_us;
    bool yes;
} given;

/* ---- Text */

static void put_due(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *at = json_object_get(doc, "due_at");
    char when[PHRASE_SIZE];

    if (at)
        output_to(to, "%s", json_is_number(at) ? format_when(now_us, json_us(at), when) : "never");
}

static void put_wrong(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *at = json_object_get(doc, "due_at");
    const char *error = json_string_value(json_object_get(doc, "error"));

    if (!error && json_is_object(json_object_get(doc, "paused"))) {
        output_to(to, "paused ");
        pause_put(to, json_object_get(doc, "paused"), now_us);
        return;
    }
    output_to(to, "%s",
              error                              ? error
              : !json_is_number(at)              ? "never again; replace it: weir schedule add"
              : json_us(at) <= now_us - WAITS_US ? "due: waits for a worker"
                                                 : "");
}

static const struct column columns[] = {
    COLUMN("schedule", "name"),
    COLUMN("when", "when"),
    COLUMN("zone", "zone", .drop = 2),
    COLUMN("type", "type", .drop = 1),
    {.heading = "next", .put_at = put_due, .show = SHOW_WHEN},
    {.heading = "wrong", .put_at = put_wrong, .drop = 1, .rest = true, .tone = TONE_WRONG},
    {.heading = NULL},
};

/* Puts ", 09:00 in Europe/Berlin", where clocks show something else than here. */
static void put_there(FILE *to, const struct zone *zone, const char *name, int64_t us)
{
    char here[40], there[40];
    bool same_day;

    format_time(us, here);
    zone_format(zone, us / 1000000, there);
    same_day = strncmp(here, there, strlen("2026-11-23")) == 0;
    there[strlen("2026-11-23T09:00")] = '\0';
    there[strlen("2026-11-23")] = ' ';
    if (strncmp(here + 11, there + 11, strlen("09:00")) != 0)
        output_to(to, ", %s in %s", there + (same_day ? 11 : 0), name);
}

static void put_next(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *next = json_object_get(doc, "next");
    const char *name = json_string_value(json_object_get(doc, "zone"));
    struct zone *zone = NULL;
    struct error ignored;
    char when[PHRASE_SIZE];

    if (json_array_size(next) == 0)
        output_to(to, "never again; replace it: weir schedule add");
    else if (zone_open(name, &zone, &ignored) == 0)
        for (size_t i = 0; i < json_array_size(next); i++) {
            int64_t us = json_us(json_array_get(next, i));

            if (i)
                fputc('\n', to);
            output_to(to, "%s", format_when(now_us, us, when));
            put_there(to, zone, name, us);
            if (!i && us <= now_us - WAITS_US)
                output_to(to, "; due: waits for a worker");
        }
    zone_free(zone);
}

static void put_how(FILE *to, const json_t *run)
{
    const char *state = answer_text(run, "state");

    output_to(to, "%s",
              *answer_text(run, "outcome") ? answer_text(run, "outcome")
              : strcmp(state, "gone") == 0 ? "gone: done, cancelled or removed"
              : *state                     ? state
                                           : "not found yet: weir job show looks further");
}

static const struct column sheet[] = {
    COLUMN("schedule", "name"),
    COLUMN("paused", "paused", .show = SHOW_PAUSE, .drop = 1),
    COLUMN("when", "when"),
    COLUMN("zone", "zone"),
    COLUMN("missed", "missed"),
    COLUMN("queue", "queue"),
    COLUMN("type", "type"),
    COLUMN("body", "body"),
    {.heading = "next", .put_at = put_next},
    {.heading = NULL},
};
static const struct column run_columns[] = {
    COLUMN("last runs", "at", .show = SHOW_WHEN),
    COLUMN("job", "id"),
    {.heading = "how", .put = put_how},
    COLUMN("since", "since", .show = SHOW_WHEN, .drop = 1),
    {.heading = NULL},
};
static const struct column *const next_lines = &sheet[sizeof sheet / sizeof *sheet - 2];

/* The schedule of that name, whose s is to be freed whatever happens; it can be read. */
static int find(struct cli *cli, struct weir *w, const char *name, struct schedule_row *row)
{
    if (schedule_find(w, name, row) < 0)
        return cli_failed(cli, w);
    cli->error = row->why;
    return row->status;
}

/* ---- The actions: argv[0] is the action's name */

static int print_added(struct cli *cli, struct weir *w, const char *name, bool replaced)
{
    struct schedule_row row;
    int status = find(cli, w, name, &row);
    json_t *doc = status == 0 ? schedule_document(&row) : NULL;

    if (status == 0 && cli->json) {
        json_object_set_new(doc, "replaced", json_boolean(replaced));
        status = json_print(cli, json_incref(doc));
    } else if (status == 0) {
        output("schedule %s %s\n", name, replaced ? "replaced; there was one of that name" : "added");
        status = sheet_print(cli, stdout, next_lines, doc, row.now_us);
    }
    json_decref(doc);
    schedule_free(&row.s);
    return status;
}

static int run_add(struct cli *cli, struct weir *w)
{
    struct weir_job_spec job = {.type = cli->operands[2],
                                .args = cli->operands[3],
                                .queue = given.queue,
                                .key = given.key,
                                .costs = given.cost,
                                .max_attempts = (int)given.max_attempts,
                                .timeout_s = (double)given.timeout_us / 1e6};
    enum weir_missed missed = WEIR_MISSED_ONCE;
    struct cron when;
    bool replaced;

    if (cron_parse(cli->operands[1], &when, &cli->error) < 0)
        return cli->error.status;
    if (given.missed && !missed_read(given.missed, &missed))
        return cli_usage(cli, "schedule add --missed %.60s: must be once, skip or all", given.missed);
    if (enqueue_check_args(cli, job.args) < 0)
        return cli->error.status;
    if (schedule_add(w, cli->operands[0], cli->operands[1], given.tz, missed, &job, &replaced) < 0)
        return cli_failed(cli, w);
    rate_note(w, "schedule add %s", cli->operands[0]);
    return print_added(cli, w, cli->operands[0], replaced);
}

static int run_list(struct cli *cli, struct weir *w)
{
    int64_t now_us;
    json_t *rows;

    if (view_schedules(w, &rows, &now_us) < 0)
        return cli_failed(cli, w);
    return table_list(cli, columns, rows, now_us, "no schedules; weir schedule add makes one");
}

static int run_show(struct cli *cli, struct weir *w)
{
    struct schedule_row row;
    int status = find(cli, w, cli->operands[0], &row);
    json_t *doc = NULL;

    if (status == 0 && view_schedule_runs(w, &row, &doc) < 0)
        status = cli_failed(cli, w);
    if (status == 0 && cli->json) {
        view_add_body(doc, row.s.job);
        status = json_print(cli, json_incref(doc));
    } else if (status == 0) {
        json_object_set_new(doc, "body", text_json(row.s.job));
        status = sheet_print(cli, stdout, sheet, doc, row.now_us);
        if (status == 0 && json_array_size(json_object_get(doc, "runs")) > 0) {
            output("\n");
            status = table_print(cli, stdout, run_columns, json_object_get(doc, "runs"), row.now_us);
        }
    }
    json_decref(doc);
    schedule_free(&row.s);
    return status;
}

static int run_remove(struct cli *cli, struct weir *w)
{
    int status = cli_confirm_one(cli, given.yes, "schedule remove", "remove schedule", cli->operands[0]);

    if (status != 0)
        return status;
    if (weir_schedule_remove(w, cli->operands[0]) < 0)
        return cli_failed(cli, w);
    rate_note(w, "schedule remove %s", cli->operands[0]);
    return print_done(cli, "schedule ", " removed; the jobs that it has enqueued stay");
}

static int run_pausing(struct cli *cli, struct weir *w)
{
    return pausing_change(cli, w, schedule_pause);
}

static int run_run(struct cli *cli, struct weir *w)
{
    struct schedule_row row;
    char id[WEIR_ID_SIZE];
    int status = find(cli, w, cli->operands[0], &row);

    if (status == 0 && schedule_enqueue(w, &row.s, id) < 0)
        status = cli_failed(cli, w);
    schedule_free(&row.s);
    if (status < 0)
        return status;
    rate_note(w, "schedule run %s", cli->operands[0]);
    if (cli->json)
        return json_print(cli, json_pack("{s:s}", "id", id));
    output("%s\n", id);
    return 0;
}

static const struct action actions[] = {
    {"add", "tz missed queue key cost max-attempts timeout", "NAME WHEN TYPE [ARGS], WHEN in quotes", 3, 4,
     run_add},
    {"list", "", "nothing more", 0, 0, run_list},
    {"show", "", "NAME", 1, 1, run_show},
    {"remove", "yes", "NAME", 1, 1, run_remove},
    {"pause", "for reason", "NAME", 1, 1, run_pausing},
    {"resume", "", "NAME", 1, 1, run_pausing},
    {"run", "", "NAME", 1, 1, run_run},
};

static const struct flag flags[] = {
    {"tz", 0, FLAG_TEXT, "ZONE", "of the tz database, such as Europe/Berlin; default UTC", &given.tz},
    {"missed", 0, FLAG_TEXT, "POLICY",
     "occurrences without a worker: one job for all (once), none that is a minute late (skip), or all; "
     "default once",
     &given.missed},
    {"queue", 'q', FLAG_TEXT, "Q", "the queue of its jobs; default \"default\"", &given.queue},
    {"key", 0, FLAG_TEXT, "K", "the value that a keyed limit goes by", &given.key},
    {"cost", 0, FLAG_COST, "N",
     "slots a job takes of each rate, or tokens=N of rules of=tokens; default: as its type, else 1",
     &given.cost},
    {"max-attempts", 0, FLAG_INT, "N", "how often a job is tried; default 25", &given.max_attempts},
    {"timeout", 0, FLAG_DURATION, "DUR", "how long an attempt may take", &given.timeout_us},
    {"yes", 'y', FLAG_BOOL, NULL, "remove: do not ask", &given.yes},
    PAUSING_FLAGS,
    {.name = NULL},
};

static int check(struct cli *cli)
{
    if (cli_gave(cli, "max-attempts") && (given.max_attempts < 1 || given.max_attempts > JOB_ATTEMPTS_MOST))
        return cli_usage(cli, "schedule add --max-attempts %lld: must be 1 to %d", given.max_attempts,
                         JOB_ATTEMPTS_MOST);
    if (cli_gave(cli, "timeout") && given.timeout_us == 0)
        return cli_usage(cli, "schedule add --timeout 0s: must be above 0");
    return pausing_check(cli);
}

const struct command command_schedule = {
    .name = "schedule", .run = cli_run, .flags = flags, .actions = &ACTIONS(actions), .check = check};
