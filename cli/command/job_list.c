/* weir job list: the jobs that a search is for. */
#include <stdlib.h>
#include <string.h>

#include "cli/command/job.h"
#include "cli/document/table.h"
#include "cli/print/bar.h"
#include "cli/print/terminal.h"
#include "view/jobs.h"
#include "view/text.h"

#define REASON_MOST 120 /* characters of a reason in a line, about */

/* ---- The search */

int job_search_given(struct cli *cli, const struct job_flags *f, char **words, int count,
                     struct job_search *s)
{
    char older[80] = "";
    const struct {
        const char *field, *value;
    } terms[] = {{"state", f->state},  {"type", f->type},   {"queue", f->queue},
                 {"key", f->key},      {"batch", f->batch}, {"enqueued", f->older ? older : NULL},
                 {"reason", f->reason}};
    int status = 0;

    snprintf(older, sizeof older, ">%s", f->older ? f->older : "");
    *s = (struct job_search){.count = 0};
    for (int i = 0; status == 0 && i < count; i++)
        status = job_search_read(s, words[i], &cli->error);
    for (size_t i = 0; status == 0 && i < sizeof terms / sizeof *terms; i++)
        if (terms[i].value)
            status = job_search_add(s, terms[i].field, terms[i].value, &cli->error);
    return status;
}

/* ---- Text */

/* Since when it runs or is dead, or when it starts; else its place in line. */
static void put_when(FILE *to, const json_t *job, int64_t now_us)
{
    static const char *const times[] = {"since", "start"};
    char when[PHRASE_SIZE], of[32];

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (json_is_number(json_object_get(job, times[i])))
            output_to(to, "%s", format_relative(now_us, json_us(json_object_get(job, times[i])), when));
    if (json_object_get(job, "list"))
        output_to(to, "%s of %s", grouped((uint64_t)json_int_of(job, "place"), when),
                  grouped((uint64_t)json_int_of(job, "of"), of));
}

static void put_reason(FILE *to, const json_t *job)
{
    char *reason = text_of_ends(text_bytes(json_object_get(job, "reason")), REASON_MOST);

    output_to(to, "%s", reason ? reason : "");
    free(reason);
}

static const struct column columns[] = {
    COLUMN("state", "state"),
    COLUMN("type", "type"),
    COLUMN("job", "id"),
    COLUMN("enqueued", "enqueued_at", .show = SHOW_TIME, .drop = 2),
    COLUMN("queue", "queue", .drop = 3),
    COLUMN("key", "key", .drop = 1),
    COLUMN("place, time", NULL, .put_at = put_when, .drop = 1, .right = true),
    COLUMN("attempts", "attempts", .show = SHOW_COUNT, .drop = 4),
    {.heading = "reason", .put = put_reason, .rest = true},
    {.heading = NULL},
};

/* How far it has come, where that is not all. */
static void print_rest(const json_t *page)
{
    const char *next = json_text_of(page, "next");
    char looked[32], of[32], shown[PHRASE_SIZE];
    size_t count = json_array_size(json_object_get(page, "jobs"));

    if (*next)
        output_to(stderr, "%s; looked at %s of %s; go on with --from %s\n",
                  counted((int64_t)count, "job", shown),
                  grouped((uint64_t)json_int_of(page, "looked_at"), looked),
                  grouped((uint64_t)json_int_of(page, "of"), of), next);
}

static void show_progress(const json_t *page)
{
    int64_t looked_at = json_int_of(page, "looked_at"), of = json_int_of(page, "of");
    char looked[32], all[32];

    bar_show(of > 0 ? (double)looked_at / (double)of : -1, BAR_LEFT_UNKNOWN, "looked at %s of %s",
             grouped((uint64_t)looked_at, looked), grouped((uint64_t)of, all));
}

/* The first page that has found one, or that is the last. */
static int look(struct cli *cli, struct weir *w, const struct job_search *s, const char *from,
                const struct job_bounds *most, bool goes_on, json_t **page)
{
    json_t *before = NULL;
    bool shown = false;
    int status;

    for (;;) {
        status = job_list_page(w, -1, s, before ? json_text_of(before, "next") : from, most, page);
        json_decref(before);
        goes_on = goes_on && status == 0 && json_array_size(json_object_get(*page, "jobs")) == 0 &&
                  json_object_get(*page, "next");
        if (!goes_on)
            break;
        if ((shown = cli_is_terminal(stderr)))
            show_progress(*page);
        before = *page;
    }
    if (shown)
        bar_clear();
    return status < 0 ? cli_failed(cli, w) : 0;
}

int job_run_list(struct cli *cli, struct weir *w, const struct job_search *s, const struct job_flags *f,
                 bool goes_on)
{
    const struct job_bounds most = {.looked_at = f->most, .jobs = f->limit};
    json_t *page, *rows;
    int status = look(cli, w, s, f->from, &most, goes_on, &page);

    if (status < 0)
        return status;
    rows = jobs_document(json_object_get(page, "jobs"));
    status = table_list(cli, columns, rows, answer_int(page, "now"),
                        json_object_get(page, "next") ? "no such jobs so far"
                        : job_search_has(s, "state", "finished") || job_search_value(s, "id")
                            ? "no such jobs"
                            : "no such jobs; state:finished finds those that are done and kept");
    print_rest(page);
    json_decref(page);
    return status;
}
