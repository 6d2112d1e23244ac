/* weir job run; weir job cancel, run, retry and remove for all jobs that a search is for. */
#include <string.h>

#include "cli/command/job.h"
#include "cli/confirm.h"
#include "core/clock.h"
#include "queue/inspect/find_job.h"
#include "view/jobs.h"
#include "view/waits.h"

/* ---- run ID */

/* "queue" or "lane", where it is the first. */
static const char *line_of(const json_t *doc)
{
    return strncmp(json_text_of(doc, "list"), "lane:", 5) == 0 ? "lane" : "queue";
}

static void print_run(const json_t *doc, int64_t now_us)
{
    const json_t *waits = json_object_get(doc, "waits_for");
    const char *was = json_text_of(doc, "was"), *id = json_text_of(doc, "id");

    if (strcmp(json_text_of(doc, "result"), "first") == 0)
        output("job %s is %s, and the first in its %s already", id, was, line_of(doc));
    else if (json_object_get(doc, "list"))
        output("job %s was %s, and is the first in its %s now", id, was, line_of(doc));
    else
        output("job %s was %s, and a worker has taken it", id, was);
    if (json_object_get(doc, "list"))
        output(json_is_object(waits) ? "; it waits for " : "; it starts as soon as a worker takes it");
    if (json_is_object(waits))
        waits_put(stdout, waits, now_us);
    putchar('\n');
}

int job_run_now(struct cli *cli, struct weir *w, const char *id)
{
    json_t *doc;

    if (view_job_run(w, id, &doc) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, doc);
    print_run(doc, clock_wall_us());
    json_decref(doc);
    return 0;
}

/* ---- By a search */

static const struct job_action {
    const char *action, *done;
    bool asks; /* as it destroys something */
} all_actions[] = {
    {"cancel", "cancelled", true},
    {"run", "put first", false},
    {"retry", "retried", false},
    {"remove", "removed", true},
};

static const struct job_action *job_action_of(const char *action)
{
    const struct job_action *a = all_actions;

    while (strcmp(a->action, action) != 0)
        a++;
    return a;
}

/* ": 200 parked, 34 scheduled" */
static void print_states(const json_t *states, const char *member)
{
    const char *state, *before = ": ";
    json_t *counts;
    char number[32];

    json_object_foreach((json_t *)states, state, counts) {
        int64_t n = answer_int(counts, member);

        if (n > 0) {
            output("%s%s %s", before, grouped((uint64_t)n, number), state);
            before = ", ";
        }
    }
    putchar('\n');
}

/* Some of a cancelled batch were left; of nothing else the error says so. */
static int end_with_batch(struct cli *cli, const struct job_action *a, const json_t *doc)
{
    const char *batch = answer_text(doc, "batch");
    char name[32];

    snprintf(name, sizeof name, "job %s", a->action);
    if (*batch && answer_int(doc, "jobs") == 0)
        return job_batch_over(name, batch, &cli->error);
    if (*batch && !cli->json)
        output("others of batch %s are left: it was cancelled\n", batch);
    return 0;
}

static int print_acted(struct cli *cli, const struct job_action *a, json_t *result)
{
    char text[PHRASE_SIZE];
    int status = 0;

    if (cli->json) {
        status = end_with_batch(cli, a, result);
        json_object_del(result, "looked_at");
        json_object_del(result, "next");
        return json_print(cli, result) < 0 ? cli->error.status : status;
    }
    output("%s %s", counted(answer_int(result, "jobs"), "job", text), a->done);
    print_states(json_object_get(result, "states"), "jobs");
    if (answer_int(result, "left") > 0) {
        output("%s left as they are", counted(answer_int(result, "left"), "job", text));
        print_states(json_object_get(result, "states"), "left");
    }
    status = end_with_batch(cli, a, result);
    json_decref(result);
    return status;
}

static int print_dry_run(struct cli *cli, const struct job_action *a, const json_t *counts)
{
    int64_t jobs = answer_int(counts, "jobs");
    char text[PHRASE_SIZE];

    if (cli->json)
        return json_print(cli, job_actions_dry_document(a->action, counts));
    output("%s would be %s\n", counted(jobs, "job", text), a->done);
    return end_with_batch(cli, a, counts);
}

/* No job is like that. WEIR_ENOTFOUND: one was named by its id alone. */
static int check_named(struct weir *w, const struct job_search *s)
{
    const char *id = s->count == 1 ? job_search_value(s, "id") : NULL;

    return id ? find_none(w, id) : 0;
}

static int act_on(struct cli *cli, struct weir *w, const struct job_action *a, const struct job_search *s,
                  const struct job_flags *f, const json_t *counts)
{
    int64_t jobs = answer_int(counts, "jobs");
    const struct job_bounds most = {.looked_at = INT64_MAX, .jobs = jobs};
    char name[32], text[PHRASE_SIZE];
    json_t *result = NULL;
    int status = 0;

    snprintf(name, sizeof name, "job %s", a->action);
    if (a->asks && jobs > 0)
        status = cli_confirm(cli, f->yes, name, "%s %s", a->action, counted(jobs, "job", text));
    if (status == 0 && job_actions(w, -1, s, a->action, NULL, &most, &result) < 0)
        status = cli_failed(cli, w);
    if (status == 0)
        job_actions_note(w, s, a->action, answer_int(result, "jobs"));
    if (status == 0 && json_object_get(counts, "batch")) /* which the walk need not have come to */
        json_object_set(result, "batch", json_object_get(counts, "batch"));
    return status != 0 ? status : print_acted(cli, a, result);
}

int job_act_on(struct cli *cli, struct weir *w, const char *action, const struct job_search *s,
               const struct job_flags *f)
{
    const struct job_bounds all = {.looked_at = INT64_MAX, .jobs = JOB_BOUND_MOST};
    const struct job_action *a = job_action_of(action);
    json_t *counts;
    int64_t jobs;
    int status;

    if (job_actions_count_page(w, -1, s, action, NULL, &all, &counts) < 0)
        return cli_failed(cli, w);
    jobs = answer_int(counts, "jobs");
    if (jobs == 0 && *answer_text(counts, "batch"))
        status = end_with_batch(cli, a, counts);
    else if (jobs == 0 && check_named(w, s) < 0)
        status = cli_failed(cli, w);
    else if (f->dry_run)
        status = print_dry_run(cli, a, counts);
    else
        status = act_on(cli, w, a, s, f, counts);
    json_decref(counts);
    return status;
}
