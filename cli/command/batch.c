/* weir batch: bulks with a name, and what was enqueued with --batch. */
#include "queue/batch/batch.h"
#include "cli/command/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bar.h"
#include "cli/confirm.h"
#include "cli/json.h"
#include "cli/outlook.h"
#include "cli/text.h"
#include "core/clock.h"

#define LOOK_EVERY_US 500000

static int run_batch(struct cli *cli, int argc, char **argv);

const struct command command_batch = {.name = "batch", .run = run_batch};

struct batch_flags {
    bool watch, dry_run, yes;
    const char *then, *queue;
};

static const char *const phases[] = {[BATCH_OPEN] = "open",
                                     [BATCH_SEALED] = "sealed",
                                     [BATCH_PAUSED] = "paused",
                                     [BATCH_CANCELLED] = "cancelled",
                                     [BATCH_ENDED] = "ended"};

/* ---- JSON */

static json_t *number_json(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static json_t *follower_json(const struct batch *b)
{
    if (!*b->type)
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "type", text_word(b->type), "queue", text_word(b->queue),
                     "enqueued_at", json_time(b->fired_us));
}

static json_t *batch_json(const struct batch *b)
{
    return json_pack(
        "{s:o, s:s, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:b, s:o, s:o, s:o, s:o}", "name",
        text_word(b->name), "state", phases[b->phase], "total", (json_int_t)b->total, "left",
        (json_int_t)b->left, "waiting", number_json(b->running < 0 ? -1 : b->left - b->running), "running",
        number_json(b->running), "aside", (json_int_t)b->aside, "done", (json_int_t)b->done, "failed",
        (json_int_t)b->failed, "dead", (json_int_t)b->dead, "cancelled", (json_int_t)b->cancelled, "rate",
        b->rate, "finish_at", json_time(b->finish_us), "at_the_earliest", b->because != 0, "created_at",
        json_time(b->created_us), "sealed_at", json_time(b->sealed_us), "ended_at", json_time(b->ended_us),
        "then", follower_json(b));
}

/* ---- Text */

static void print_count(const char *what, int64_t n, const char *note)
{
    char number[32];

    output("%-10s %11s%s\n", what, grouped((uint64_t)(n > 0 ? n : 0), number), note);
}

static void print_time(const char *what, int64_t us, const char *note)
{
    char text[40];

    if (us <= 0)
        return;
    cli_format_time(us, text);
    output("%-10s %s%s\n", what, text, note);
}

static void print_follower(const struct batch *b)
{
    char when[40] = "";

    if (!*b->type)
        return;
    if (b->fired_us)
        cli_format_time(b->fired_us, when);
    output("%-10s %s in queue %s%s%s\n", "then", b->type, b->queue,
           b->fired_us                   ? ", enqueued at "
           : b->phase == BATCH_CANCELLED ? ", not enqueued"
                                         : ", when all have ended",
           when);
}

static void print_batch(const struct batch *b)
{
    char aside[64] = "", number[32], rate[40], doubt[EARLIEST_SIZE], ends[EARLIEST_SIZE + 20];

    if (b->aside > 0)
        snprintf(aside, sizeof aside, ", %s of them aside%s", grouped((uint64_t)b->aside, number),
                 b->phase == BATCH_PAUSED      ? ""
                 : b->phase == BATCH_CANCELLED ? ": cancel it again"
                                               : ": resume it again");
    output("%s: %s\n", b->name, phases[b->phase]);
    print_count("total", b->total, "");
    print_count("waiting", b->left - b->running, aside);
    print_count("running", b->running, "");
    print_count("done", b->done, "");
    print_count("dead", b->dead, "");
    print_count("cancelled", b->cancelled, "");
    print_count("failed", b->failed, b->failed == 1 ? " attempt" : " attempts");
    if (b->left > 0)
        output("%-10s %13s\n", "rate", per_second(b->rate, rate));
    snprintf(ends, sizeof ends, "%s%s", b->at_rate ? ", at that rate" : "", earliest(b->because, doubt));
    print_time("ends", b->finish_us, ends);
    print_time("created", b->created_us, "");
    print_time("sealed", b->sealed_us, "");
    print_time("ended", b->left == 0 ? b->ended_us : 0, "");
    print_follower(b);
}

static void print_row(const struct batch *b)
{
    char created[40];

    cli_format_time(b->created_us, created);
    output("%-32s %-9s %11" PRId64 " %11" PRId64 " %11" PRId64 " %8" PRId64 " %9" PRId64 "  %s\n", b->name,
           phases[b->phase], b->total, b->left, b->done, b->dead, b->cancelled, created);
}

/* ---- The actions: argv[0] is the action's name */

static int run_list(struct cli *cli, struct weir *w, const struct batch_flags *flags, char **argv)
{
    struct batch *batches = NULL;
    size_t count;
    int status = batch_list(w, &batches, &count);

    (void)flags, (void)argv;
    if (status) {
        status = cli_failed(cli, w);
        goto out;
    }
    if (!cli->json && count == 0)
        puts("no batches; weir enqueue --from FILE --batch NAME makes one");
    if (!cli->json && count > 0)
        output("%-32s %-9s %11s %11s %11s %8s %9s  %s\n", "batch", "state", "total", "left", "done", "dead",
               "cancelled", "created");
    for (size_t i = 0; !status && i < count; i++)
        if (cli->json)
            status = json_print(cli, batch_json(&batches[i]));
        else
            print_row(&batches[i]);
out:
    free(batches);
    return status;
}

static int print_one(struct cli *cli, const struct batch *b)
{
    if (cli->json)
        return json_print(cli, batch_json(b));
    print_batch(b);
    return 0;
}

/* "1,990 of 10,000 ended  99.8/s  ends 2026-11-21T09:00:00+01:00" */
static void print_progress(const struct batch *b, bool bar)
{
    char ended[32], total[32], rate[40], when[40] = "", line[200];
    double part = b->total > 0 ? (double)(b->total - b->left) / (double)b->total : -1;

    if (b->finish_us > 0 && !bar) /* a bar says what is left */
        cli_format_time(b->finish_us, when);
    snprintf(line, sizeof line, "%s of %s ended  %s%s%s%s%s", grouped((uint64_t)(b->total - b->left), ended),
             grouped((uint64_t)b->total, total), per_second(b->rate, rate), *when ? "  ends " : "", when,
             b->phase == BATCH_SEALED ? "" : "  ", b->phase == BATCH_SEALED ? "" : phases[b->phase]);
    if (bar)
        bar_show(part, b->finish_us > 0 ? b->finish_us - clock_wall_us() : BAR_LEFT_UNKNOWN, "%s", line);
    else
        output_to(stderr, "%s\n", line);
}

static int read_one(struct weir *w, const char *name, struct batch *b)
{
    int status = batch_read(w, name, b);

    return status ? status : batch_forecast(w, b);
}

/* Until it has ended; what is shown meanwhile is progress. */
static int watch(struct cli *cli, struct weir *w, const char *name, struct batch *b)
{
    bool bar = !cli->json && cli_is_terminal(stderr);
    int64_t before = -1;
    int status;

    while ((status = read_one(w, name, b)) == 0 && (b->left > 0 || !b->sealed_us)) {
        if (cli->json && (status = json_print(cli, batch_json(b))) != 0)
            return status;
        if (!cli->json && (bar || b->left != before))
            print_progress(b, bar);
        fflush(stdout);
        before = b->left;
        clock_sleep_until(clock_mono_us() + LOOK_EVERY_US);
    }
    if (bar)
        bar_clear();
    return status ? cli_failed(cli, w) : 0;
}

static int run_show(struct cli *cli, struct weir *w, const struct batch_flags *flags, char **argv)
{
    struct batch b;
    int status = flags->watch ? watch(cli, w, argv[1], &b) : read_one(w, argv[1], &b);

    if (status)
        return cli->error.status ? status : cli_failed(cli, w);
    return print_one(cli, &b);
}

static int print_change(struct cli *cli, const char *name, const char *what,
                        const struct batch_change *change)
{
    return json_print(cli, json_pack("{s:s, s:s, s:s, s:I, s:I}", "name", name, "action", what, "was",
                                     phases[change->was], "left", (json_int_t)change->left, "aside",
                                     (json_int_t)change->aside));
}

/* Was it over before, so that nothing was changed? Then that is said. */
static bool tell_over(const char *name, const struct batch_change *change)
{
    if (change->was == BATCH_ENDED)
        output("%s: has ended; nothing was changed\n", name);
    else if (change->was == BATCH_CANCELLED)
        output("%s: was cancelled before; nothing was changed\n", name);
    return change->was == BATCH_ENDED || change->was == BATCH_CANCELLED;
}

static int print_cancel(struct cli *cli, const char *name, bool dry, const struct batch_change *change)
{
    char left[32];

    if (cli->json)
        return print_change(cli, name, dry ? "none" : "cancel", change);
    if (tell_over(name, change))
        return 0;
    grouped((uint64_t)change->left, left);
    if (dry)
        output("%s: %s jobs have not ended; what runs of them would end, the others would be dropped\n", name,
               left);
    else
        output("%s: cancelled; of %s jobs that had not ended those that run end, the others are dropped as "
               "workers meet them\n",
               name, left);
    return 0;
}

/* One that was cancelled is again: what is aside may have been left there when that was broken off. */
static int run_cancel(struct cli *cli, struct weir *w, const struct batch_flags *flags, char **argv)
{
    struct batch_change change;
    char left[32];
    int status = batch_cancel(w, argv[1], true, &change);

    if (status)
        return cli_failed(cli, w);
    if (flags->dry_run || change.was == BATCH_ENDED)
        return print_cancel(cli, argv[1], true, &change);
    if (change.was != BATCH_CANCELLED)
        status =
            cli_confirm(cli, flags->yes, "batch cancel", "cancel batch %s, of which %s jobs have not ended",
                        argv[1], grouped((uint64_t)change.left, left));
    if (status)
        return status;
    if (batch_cancel(w, argv[1], false, &change))
        return cli_failed(cli, w);
    return print_cancel(cli, argv[1], false, &change);
}

static int run_pause(struct cli *cli, struct weir *w, const struct batch_flags *flags, char **argv)
{
    struct batch_change change;

    (void)flags;
    if (batch_pause(w, argv[1], &change))
        return cli_failed(cli, w);
    if (cli->json)
        return print_change(cli, argv[1], "pause", &change);
    if (tell_over(argv[1], &change))
        return 0;
    if (change.left == 0 && change.was != BATCH_PAUSED)
        output("%s: paused; it has no jobs now, and those that come wait for weir batch resume %s\n", argv[1],
               argv[1]);
    else
        output("%s: %s; what runs ends, weir batch resume %s goes on with the others\n", argv[1],
               change.was == BATCH_PAUSED ? "was paused before" : "paused", argv[1]);
    return 0;
}

static int run_resume(struct cli *cli, struct weir *w, const struct batch_flags *flags, char **argv)
{
    struct batch_change change;
    char moved[32];

    (void)flags;
    if (batch_resume(w, argv[1], &change))
        return cli_failed(cli, w);
    if (change.was == BATCH_CANCELLED)
        return error_set(
            &cli->error, WEIR_EINPUT,
            "batch %s: it was cancelled, which stays so; enqueue its jobs again under another name", argv[1]);
    if (cli->json)
        return print_change(cli, argv[1], "resume", &change);
    if (change.was == BATCH_OPEN && change.aside == 0)
        output("%s: was not paused\n", argv[1]);
    else
        output("%s: goes on; %s job%s that had been set aside %s back in %s queue\n", argv[1],
               grouped((uint64_t)change.aside, moved), change.aside == 1 ? "" : "s",
               change.aside == 1 ? "is" : "are", change.aside == 1 ? "its" : "their");
    return 0;
}

static int run_seal(struct cli *cli, struct weir *w, const struct batch_flags *flags, char **argv)
{
    const char *queue = flags->queue ? flags->queue : "default";
    struct batch_sealed sealed;
    char total[32], left[32];

    if (batch_seal(w, argv[1], queue, flags->then, &sealed))
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:I, s:I}", "name", argv[1], "total",
                                         (json_int_t)sealed.total, "left", (json_int_t)sealed.left));
    output("%s: sealed; %s of %s jobs have not ended\n", argv[1], grouped((uint64_t)sealed.left, left),
           grouped((uint64_t)sealed.total, total));
    return 0;
}

static const struct action {
    const char *name;
    int operands;
    int (*run)(struct cli *cli, struct weir *w, const struct batch_flags *flags, char **argv);
    bool watch, destroys, then; /* has it these flags? */
} actions[] = {
    {.name = "list", .run = run_list},
    {.name = "show", .operands = 1, .run = run_show, .watch = true},
    {.name = "cancel", .operands = 1, .run = run_cancel, .destroys = true},
    {.name = "pause", .operands = 1, .run = run_pause},
    {.name = "resume", .operands = 1, .run = run_resume},
    {.name = "seal", .operands = 1, .run = run_seal, .then = true},
};
#define ACTION_COUNT (sizeof actions / sizeof *actions)

static int check_call(struct cli *cli, const struct action *action, const struct batch_flags *f, int operands)
{
    const struct {
        const char *flag;
        bool given, allowed;
    } given[] = {
        {"watch", f->watch, action->watch}, {"dry-run", f->dry_run, action->destroys},
        {"yes", f->yes, action->destroys},  {"then", f->then, action->then},
        {"queue", f->queue, action->then},
    };

    if (operands != action->operands)
        return error_set(&cli->error, WEIR_EUSAGE, "batch %s: needs %s; see weir batch --help", action->name,
                         action->operands ? "the NAME of one batch" : "nothing more");
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].given && !given[i].allowed)
            return error_set(&cli->error, WEIR_EUSAGE, "batch %s --%s: has no such flag; leave it out",
                             action->name, given[i].flag);
    if (f->queue && !f->then)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "batch seal --queue: is for the job that follows; add --then");
    return 0;
}

static int run_batch(struct cli *cli, int argc, char **argv)
{
    struct batch_flags f = {.watch = false};
    const struct flag flags[] = {
        {"watch", 0, FLAG_BOOL, NULL, "show: until it has ended", &f.watch},
        {"dry-run", 0, FLAG_BOOL, NULL, "cancel: only say how many jobs", &f.dry_run},
        {"yes", 'y', FLAG_BOOL, NULL, "cancel: do not ask", &f.yes},
        {"then", 0, FLAG_TEXT, "TYPE", "seal: a job of TYPE when all have ended", &f.then},
        {"queue", 'q', FLAG_TEXT, "Q", "seal: its queue: default", &f.queue},
        {.name = NULL},
    };
    const struct action *action;
    struct weir *w;
    int chosen, operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status)
        return status;
    chosen = cli_choose(cli, operands ? argv[0] : NULL, actions, sizeof *actions, ACTION_COUNT);
    if (chosen < 0)
        return cli->error.status;
    action = &actions[chosen];
    status = check_call(cli, action, &f, operands - 1);
    if (status)
        return status;
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    status = action->run(cli, w, &f, argv);
    weir_free(w);
    return status;
}
