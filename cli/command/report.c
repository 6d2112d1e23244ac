/* weir report: is work flowing, what holds it, what is wrong? */
#include <string.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/print/color.h"
#include "view/format.h"
#include "view/report.h"
#include "view/waits.h"

#define REPORT_WRONG (-1) /* the exit code of "stuck" and "wrong"; one that no failure has */

static const struct verdict {
    const char *name;
    enum tone tone;
    int status;
} verdicts[] = {{"idle", TONE_GOOD, 0},
                {"flowing", TONE_GOOD, 0},
                {"wrong", TONE_WRONG, REPORT_WRONG},
                {"stuck", TONE_WRONG, REPORT_WRONG},
                {"unknown", TONE_WARNING, WEIR_EUNREACHABLE}};

static const struct verdict *verdict_of(const json_t *doc)
{
    size_t i = 0;

    while (strcmp(verdicts[i].name, answer_text(doc, "verdict")) != 0)
        i++;
    return &verdicts[i];
}

/* ---- Text */

static void print_verdict(const json_t *doc)
{
    output_toned(stdout, verdict_of(doc)->tone, "%s", answer_text(doc, "verdict"));
    output(": ");
    report_put_verdict(stdout, doc);
    output("\n");
}

/* Prints what a type waits for, as weir status and weir why say it, then how many jobs and until when. */
static void print_constraint(const json_t *row, int64_t now_us)
{
    const json_t *waits_for = json_object_get(row, "waits_for"), *ends = json_object_get(row, "finish_at");
    const char *type = answer_text(row, "type"), *queue = answer_text(row, "queue");
    bool stuck = json_is_true(json_object_get(row, "stuck"));
    char text[PHRASE_SIZE];

    if (stuck)
        tone_begin(stdout, TONE_WRONG);
    output("%s%s",
           *type    ? ""
           : *queue ? "queue "
                    : "batch ",
           *type    ? type
           : *queue ? queue
                    : answer_text(row, "batch"));
    if (stuck)
        tone_end(stdout, TONE_WRONG);
    if (json_is_object(waits_for)) {
        output(": waits for ");
        waits_put(stdout, waits_for, now_us);
    } else {
        output(": can start");
    }
    output(" (%s", counted(answer_int(row, "jobs"), "job", text));
    if (!stuck && json_number_value(ends) > 0)
        output(", the last starts %s%s", format_when(now_us, json_us(ends), text),
               json_is_true(json_object_get(row, "at_the_earliest")) ? " at the earliest" : "");
    output(")\n");
}

static void print_checks(const json_t *checks)
{
    json_t *check;
    size_t i;

    json_array_foreach((json_t *)checks, i, check) {
        bool wrong = strcmp(answer_text(check, "state"), "wrong") == 0;
        const char *todo = answer_text(check, "do");

        output_toned(stdout, wrong ? TONE_WRONG : TONE_WARNING, "%s", answer_text(check, "state"));
        output(": %s: %s%s%s\n", answer_text(check, "name"), answer_text(check, "text"), *todo ? "; " : "",
               todo);
    }
}

static void print_report(const json_t *doc)
{
    int64_t now_us = json_us(json_object_get(doc, "at")), more = answer_int(doc, "more");
    const json_t *rows = json_object_get(doc, "constraints");
    char text[32];

    print_verdict(doc);
    for (size_t i = 0; i < json_array_size(rows); i++)
        print_constraint(json_array_get(rows, i), now_us);
    if (more > 0)
        output("and %s more\n", grouped((uint64_t)more, text));
    print_checks(json_object_get(doc, "checks"));
}

static int act(struct cli *cli, struct weir *w)
{
    json_t *doc = NULL;
    int status = 0, verdict;

    cli_expect_much();
    if (view_report(w, false, &doc) < 0) {
        status = cli_failed(cli, w);
    } else {
        verdict = verdict_of(doc)->status;
        if (cli->json)
            status = json_print(cli, json_incref(doc));
        else
            print_report(doc);
        status = status == 0 ? verdict : status;
    }
    json_decref(doc);
    return status;
}

const struct command command_report = {.name = "report", .run = cli_run, .act = act};
