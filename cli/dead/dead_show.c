/* weir dead list and show: what died, and why. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/dead/dead.h"
#include "cli/document/text.h"
#include "cli/print/terminal.h"

#define REASON_MOST 120 /* characters of a reason in a line of a list, about */

/* ---- JSON */

static json_t *job_json(const struct dead_job *job)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:I}", "since",
                     json_seconds(job->died_us), "id", text_json(job->id), "type", text_json(job->type),
                     "queue", text_json(job->queue), "key", text_json(job->key), "reason",
                     text_json(job->reason), "attempts", (json_int_t)job->attempts, "interrupted",
                     (json_int_t)job->interrupted, "throttled", (json_int_t)job->throttled, "batch",
                     text_json(job->batch), "unique", text_json(job->unique), "failed_at",
                     job->failed_us < 0 ? json_null() : json_seconds(job->failed_us), "failure",
                     text_json(job->failure), "bytes", (json_int_t)job->size_bytes);
}

/* ---- list */

static void print_line(const struct dead_job *job)
{
    char died[40], *reason = text_of_ends(job->reason, REASON_MOST);

    cli_format_time(job->died_us, died);
    output("%s  ", died);
    text_print(job->type, 0);
    fputs("  ", stdout);
    text_print(job->id, 0);
    output("  %" PRId64 " attempt%s  ", job->attempts, job->attempts == 1 ? "" : "s");
    output("%s\n", reason && *reason ? reason : "-");
    free(reason);
}

/* Those of a page, as long as there are fewer than the limit. */
static int list_page(struct cli *cli, const struct dead_walk *walk, int64_t limit, int64_t *shown)
{
    struct dead_job job;
    int status = 0;

    for (size_t i = 0; status == 0 && i < walk->found && *shown < limit; i++, ++*shown) {
        dead_job(walk, i, &job);
        if (cli->json)
            status = text_print_with_body(cli, job_json(&job), job.body);
        else
            print_line(&job);
    }
    return status;
}

int dead_run_list(struct cli *cli, struct weir *w, const struct dead_flags *flags)
{
    struct dead_walk walk = {.w = w, .now_us = -1, .verb = DEAD_LIST, .filter = flags->filter};
    int64_t shown = 0, met = 0;
    int status = 0;

    walk.body_bytes = cli->json ? INT32_MAX : 0;
    while (status == 0 && !walk.ended && met <= flags->limit) {
        if (dead_next(&walk) < 0)
            status = cli_failed(cli, w);
        else
            status = list_page(cli, &walk, flags->limit, &shown);
        met += (int64_t)walk.found;
    }
    if (status == 0 && met > flags->limit)
        output_to(stderr, "weir: the oldest %" PRId64 " are shown; --limit N shows more\n", shown);
    else if (status == 0 && met == 0)
        fputs("weir: no dead jobs there\n", stderr);
    dead_end(&walk);
    return status;
}

/* ---- show */

static void print_field(const char *name, struct span value)
{
    if (value.len == 0)
        return;
    output("%-14s", name);
    text_print(value, 0);
    putchar('\n');
}

static void print_job(const struct dead_job *job)
{
    char died[40], failed[40];

    cli_format_time(job->died_us, died);
    print_field("job", job->id);
    output("%-14s%s\n", "died", died);
    print_field("reason", job->reason);
    print_field("type", job->type);
    print_field("queue", job->queue);
    print_field("key", job->key);
    output("%-14s%" PRId64 "; interrupted %" PRId64 ", throttled %" PRId64 " times\n", "attempts",
           job->attempts, job->interrupted, job->throttled);
    if (job->failed_us >= 0) {
        cli_format_time(job->failed_us, failed);
        output("%-14s%s  ", "failed before", failed);
        text_print(job->failure, 0);
        putchar('\n');
    }
    print_field("batch", job->batch);
    print_field("unique", job->unique);
    output("%-14s%" PRId64 " bytes\n", "body", job->size_bytes);
    text_print(job->body, 0);
    putchar('\n');
}

static int show_page(struct cli *cli, const struct dead_walk *walk, bool raw)
{
    struct dead_job job;
    int status = 0;

    for (size_t i = 0; status == 0 && i < walk->found; i++) {
        dead_job(walk, i, &job);
        if (raw && cli_is_terminal(stdout))
            text_print(job.body, 0);
        else if (raw)
            fwrite(job.body.at, 1, job.body.len, stdout);
        else if (cli->json)
            status = text_print_with_body(cli, job_json(&job), job.body);
        else
            print_job(&job);
    }
    return status;
}

int dead_run_show(struct cli *cli, struct weir *w, const struct dead_flags *flags)
{
    struct dead_walk walk = {
        .w = w, .now_us = -1, .verb = DEAD_LIST, .filter = flags->filter, .body_bytes = INT32_MAX};
    bool met = false;
    int status = 0;

    while (status == 0 && !walk.ended) {
        status = dead_next(&walk) < 0 ? cli_failed(cli, w) : show_page(cli, &walk, flags->raw);
        met = met || walk.found > 0;
    }
    dead_end(&walk);
    if (status == 0 && !met)
        return error_set(&cli->error, WEIR_ENOTFOUND,
                         "dead show %.150s: not among the dead jobs; weir dead list names them",
                         flags->filter.ids[0]);
    return status;
}
