/* weir batch: bulks with a name, and what was enqueued with --batch. */
#include "cli/commands.h"
#include "view/batches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/confirm.h"
#include "cli/document/json.h"
#include "cli/document/outlook.h"
#include "cli/document/pausing.h"
#include "cli/document/table.h"
#include "cli/print/bar.h"
#include "cli/print/terminal.h"
#include "core/clock.h"
#include "queue/limits/rate.h"
#include "view/format.h"
#include "view/pause.h"

#define LOOK_EVERY_US 500000

static struct {
    bool watch, dry_run, yes;
    const char *then, *queue;
} given;

/* ---- Text */

static void put_state(FILE *to, const json_t *doc)
{
    const char *state = answer_text(doc, "state");
    bool sealed = json_is_number(json_object_get(doc, "sealed_at"));

    output_to(to, "%s%s", state,
              sealed || strcmp(state, "running") != 0 ? "" : "; not sealed, so more jobs may come");
}

static void put_waiting(FILE *to, const json_t *doc)
{
    int64_t aside = answer_int(doc, "aside");
    const char *state = answer_text(doc, "state");
    char number[32];

    output_to(to, "%s", grouped((uint64_t)answer_int(doc, "waiting"), number));
    if (aside > 0)
        output_to(to, ", %s of them set aside%s", grouped((uint64_t)aside, number),
                  strcmp(state, "paused") == 0      ? ""
                  : strcmp(state, "cancelled") == 0 ? "; cancel it again"
                                                    : "; resume it again");
}

static void put_failed(FILE *to, const json_t *doc)
{
    char text[PHRASE_SIZE];

    output_to(to, "%s", counted(answer_int(doc, "failed"), "attempt", text));
}

/* Once it has ended, of its whole life. */
static void put_rate(FILE *to, const json_t *doc)
{
    char rate[40];

    output_to(to, "%s%s", per_second(json_number_value(json_object_get(doc, "rate")), rate),
              strcmp(answer_text(doc, "state"), "ended") == 0 ? " on average" : "");
}

/* Puts "in 8m 2s (20:14:05), at that rate at the earliest (...)". */
static void put_finish(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *at = json_object_get(doc, "finish_at");
    char when[PHRASE_SIZE];

    if (json_is_number(at))
        output_to(to, "%s%s", format_when(now_us, json_us(at), when), answer_text(doc, "how"));
}

static void put_follower(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *then = json_object_get(doc, "then"), *at = json_object_get(then, "enqueued_at");
    char when[PHRASE_SIZE];

    if (!json_is_object(then))
        return;
    output_to(to, "%s in queue %s, ", answer_text(then, "type"), answer_text(then, "queue"));
    if (json_is_number(at))
        output_to(to, "enqueued %s", format_when(now_us, json_us(at), when));
    else
        output_to(to, "%s",
                  strcmp(answer_text(doc, "state"), "cancelled") == 0 ? "not enqueued"
                                                                      : "when all have ended");
}

static const struct column sheet[] = {
    COLUMN("batch", "name"),
    COLUMN("state", NULL, .put = put_state),
    COLUMN("paused", "paused", .show = SHOW_PAUSE, .drop = 1),
    COLUMN("total", "total", .show = SHOW_COUNT),
    COLUMN("not begun", NULL, .put = put_waiting),
    COLUMN("running", "running", .show = SHOW_COUNT),
    COLUMN("done", "done", .show = SHOW_COUNT),
    COLUMN("dead", "dead", .show = SHOW_COUNT, .tone = TONE_WRONG),
    COLUMN("cancelled", "cancelled", .show = SHOW_COUNT),
    COLUMN("failed", NULL, .put = put_failed),
    COLUMN("rate", NULL, .put = put_rate),
    COLUMN("waits for", "waits_for", .show = SHOW_WAITS, .drop = 1),
    COLUMN("ends", NULL, .put_at = put_finish, .drop = 1),
    COLUMN("created", "created_at", .show = SHOW_WHEN),
    COLUMN("sealed", "sealed_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("ended", "ended_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("then", NULL, .put_at = put_follower, .drop = 1),
    {.heading = NULL},
};

static const struct column columns[] = {
    COLUMN("batch", "name"),
    COLUMN("state", "state"),
    COLUMN("total", "total", .show = SHOW_COUNT, .drop = 2),
    COLUMN("left", "left", .show = SHOW_COUNT),
    COLUMN("done", "done", .show = SHOW_COUNT, .drop = 3),
    COLUMN("dead", "dead", .show = SHOW_COUNT, .drop = 1, .tone = TONE_WRONG),
    COLUMN("cancelled", "cancelled", .show = SHOW_COUNT, .drop = 5),
    COLUMN("created", "created_at", .show = SHOW_WHEN, .drop = 4),
    {.heading = NULL},
};

/* ---- The actions: argv[0] is the action's name */

static int run_list(struct cli *cli, struct weir *w)
{
    json_t *rows;

    if (view_batches(w, &rows) < 0)
        return cli_failed(cli, w);
    return table_list(cli, columns, rows, clock_wall_us(),
                      "no batches; weir enqueue --from FILE --batch NAME makes one");
}

static int print_one(struct cli *cli, const struct batch *b)
{
    json_t *doc = batch_document(b);
    char doubt[EARLIEST_SIZE];
    int status;

    if (cli->json)
        return json_print(cli, doc);
    json_object_set_new(
        doc, "how", json_sprintf("%s%s", b->at_rate ? ", at that rate" : "", earliest(b->because, doubt)));
    status = sheet_print(cli, stdout, sheet, doc, b->now_us);
    json_decref(doc);
    return status;
}

/* "1,990 of 10,000 ended  99.8/s  ends in 1m 20s (09:00:00)" */
static void print_progress(const struct batch *b, bool bar)
{
    char ended[32], total[32], rate[40], when[PHRASE_SIZE] = "", line[200];
    bool steady = b->phase == BATCH_RUNNING;
    double part = b->total > 0 ? (double)(b->total - b->left) / (double)b->total : -1;

    if (b->finish_us > 0 && !bar) /* a bar says what is left */
        format_when(b->now_us, b->finish_us, when);
    snprintf(line, sizeof line, "%s of %s ended  %s%s%s%s%s", grouped((uint64_t)(b->total - b->left), ended),
             grouped((uint64_t)b->total, total), per_second(b->rate, rate), *when ? "  ends " : "", when,
             steady ? "" : "  ", steady ? "" : batch_phase_name(b->phase));
    if (bar)
        bar_show(part, b->finish_us > 0 ? b->finish_us - clock_wall_us() : BAR_LEFT_UNKNOWN, "%s", line);
    else
        output_to(stderr, "%s\n", line);
}

/* Until it has ended; what is shown meanwhile is progress. */
static int watch(struct cli *cli, struct weir *w, const char *name, struct batch *b)
{
    bool bar = !cli->json && cli_is_terminal(stderr);
    int64_t before = -1;
    int status;

    while ((status = batch_look(w, name, b)) == 0 && (b->left > 0 || !b->sealed_us)) {
        if (cli->json && (status = json_print(cli, batch_document(b))) != 0)
            return status;
        if (!cli->json && (bar || b->left != before))
            print_progress(b, bar);
        fflush(stdout);
        before = b->left;
        batch_free(b);
        clock_sleep_until(clock_mono_us() + LOOK_EVERY_US);
    }
    if (bar)
        bar_clear();
    return status ? cli_failed(cli, w) : 0;
}

static int run_show(struct cli *cli, struct weir *w)
{
    struct batch b;
    int status = given.watch ? watch(cli, w, cli->operands[0], &b) : batch_look(w, cli->operands[0], &b);

    if (status)
        status = cli->error.status ? status : cli_failed(cli, w);
    else
        status = print_one(cli, &b);
    batch_free(&b);
    return status;
}

static int print_change(struct cli *cli, const char *name, const char *what,
                        const struct batch_change *change)
{
    return json_print(cli, batch_change_document(name, what, change));
}

/* Says so when the batch was over before and nothing was changed. */
static bool say_over(const char *name, const char *was)
{
    bool ended = strcmp(was, "ended") == 0, over = ended || strcmp(was, "cancelled") == 0;

    if (over)
        output("batch %s %s; nothing was changed\n", name, ended ? "has ended" : "was cancelled before");
    return over;
}

static int print_cancel(struct cli *cli, const char *name, bool dry, const struct batch_change *change)
{
    char left[PHRASE_SIZE];

    if (cli->json)
        return print_change(cli, name, dry ? "none" : "cancel", change);
    if (say_over(name, batch_phase_name(change->was)))
        return 0;
    output("batch %s%s: %s; those that run %s, the others %s\n", name, dry ? "" : " cancelled",
           counted(change->left, "job", left), dry ? "would go on" : "go on",
           dry ? "would be dropped" : "are dropped as workers meet them");
    return 0;
}

/* One that was cancelled is again: what is aside may have been left there when that was broken off. */
static int run_cancel(struct cli *cli, struct weir *w)
{
    struct batch_change change;
    char left[PHRASE_SIZE];
    int status = batch_cancel(w, cli->operands[0], true, &change);

    if (status)
        return cli_failed(cli, w);
    if (given.dry_run || change.was == BATCH_ENDED)
        return print_cancel(cli, cli->operands[0], true, &change);
    if (change.was != BATCH_CANCELLED)
        status = cli_confirm(cli, given.yes, "batch cancel", "cancel batch %s, with %s that %s not ended",
                             cli->operands[0], counted(change.left, "job", left),
                             change.left == 1 ? "has" : "have");
    if (status)
        return status;
    if (batch_cancel(w, cli->operands[0], false, &change))
        return cli_failed(cli, w);
    return print_cancel(cli, cli->operands[0], false, &change);
}

static int run_pause(struct cli *cli, struct weir *w)
{
    json_t *answer, *doc = NULL;

    if (batch_pause(w, cli->operands[0], &pausing_given, &answer))
        return cli_failed(cli, w);
    if (cli->json || !say_over(cli->operands[0], answer_text(answer, "was")))
        doc = pausing_document(cli->operands[0], answer);
    json_decref(answer);
    return doc ? pausing_print(cli, cli->operands[0], false, doc) : 0;
}

static int run_resume(struct cli *cli, struct weir *w)
{
    struct batch_change change;
    char moved[PHRASE_SIZE];

    if (batch_resume(w, cli->operands[0], &change))
        return cli_failed(cli, w);
    if (change.was == BATCH_CANCELLED)
        return batch_was_cancelled(cli->operands[0], &cli->error);
    if (cli->json)
        return print_change(cli, cli->operands[0], "resume", &change);
    if (change.was == BATCH_RUNNING && change.aside == 0)
        output("batch %s was not paused\n", cli->operands[0]);
    else if (change.aside == 0)
        output("batch %s resumed\n", cli->operands[0]);
    else
        output("batch %s resumed; %s put back in %s\n", cli->operands[0], counted(change.aside, "job", moved),
               change.aside == 1 ? "its queue" : "their queues");
    return 0;
}

static int run_seal(struct cli *cli, struct weir *w)
{
    const char *queue = given.queue ? given.queue : "default";
    struct batch_sealed sealed;
    char total[PHRASE_SIZE], left[32];

    if (batch_seal(w, cli->operands[0], queue, given.then, &sealed))
        return cli_failed(cli, w);
    rate_note(w, "batch seal %s", cli->operands[0]);
    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:I, s:I}", "name", cli->operands[0], "total",
                                         (json_int_t)sealed.total, "left", (json_int_t)sealed.left));
    output("batch %s sealed; %s of %s not ended\n", cli->operands[0], grouped((uint64_t)sealed.left, left),
           counted(sealed.total, "job", total));
    return 0;
}

#define ONE "the NAME of one batch"

static const struct action actions[] = {
    {"list", "", "nothing more", 0, 0, run_list},
    {"show", "watch", ONE, 1, 1, run_show},
    {"cancel", "dry-run yes", ONE, 1, 1, run_cancel},
    {"pause", "for reason create", ONE, 1, 1, run_pause},
    {"resume", "", ONE, 1, 1, run_resume},
    {"seal", "then queue", ONE, 1, 1, run_seal},
};

static const struct flag flags[] = {
    {"watch", 0, FLAG_BOOL, NULL, "show: follow it until it has ended", &given.watch},
    {"dry-run", 0, FLAG_BOOL, NULL, "cancel: only say how many jobs", &given.dry_run},
    {"yes", 'y', FLAG_BOOL, NULL, "cancel: do not ask; needed off a terminal", &given.yes},
    {"then", 0, FLAG_TEXT, "TYPE", "seal: a job of TYPE when all have ended", &given.then},
    {"queue", 'q', FLAG_TEXT, "Q", "seal: its queue; default \"default\"", &given.queue},
    PAUSING_FLAGS,
    PAUSING_CREATE,
    {.name = NULL},
};

static int check(struct cli *cli)
{
    if (given.queue && !given.then)
        return cli_usage(cli, "batch seal --queue: is for the job that follows; add --then");
    return pausing_check(cli);
}

const struct command command_batch = {
    .name = "batch", .run = cli_run, .flags = flags, .actions = &ACTIONS(actions), .check = check};
