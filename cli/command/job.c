/* weir job: what is known of one job, its end, and its end before it has ended by itself. */
#include "cli/command/job.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/confirm.h"
#include "core/clock.h"
#include "queue/inspect/cancel.h"
#include "queue/inspect/job_wait.h"
#include "queue/limits/rate.h"
#include "view/document.h"
#include "view/text.h"

#define ARGS_SHOWN 2000 /* bytes of args that are printed for a person; --json has all */

#define LIMIT_DEFAULT 50
#define MOST_DEFAULT 100000 /* jobs, once one is found */
#define MOST_UNSAID (-1)

static struct job_flags given = {.limit = LIMIT_DEFAULT, .most = MOST_UNSAID};
static struct job_search search;

/* ---- show */

/* Writes the args as they stand; all of a body that is no job. */
static json_t *args_json(struct span bytes)
{
    char *text = text_of(bytes);
    size_t len = text ? strlen(text) : 0, most = ARGS_SHOWN;
    json_t *value;

    while (most > 0 && len > ARGS_SHOWN && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    value = len > ARGS_SHOWN ? json_sprintf("%.*s... (cut; --json has all)", (int)most, text)
                             : json_string(text ? text : "");
    free(text);
    return value;
}

static int print_text(struct cli *cli, json_t *job)
{
    struct span body = found_body(job);
    json_t *doc = job_document(job);
    struct job_view view;
    struct error ignored;

    if (job_read(body.at, body.len, &view, &ignored) < 0)
        json_object_set_new(doc, "body", args_json(body));
    else if (view.args.at)
        json_object_set_new(doc, "args", args_json(view.args));
    if (json_object_get(job, "result"))
        json_object_set_new(doc, "result", args_json(text_bytes(json_object_get(job, "result"))));
    return job_print(cli, doc, answer_int(job, "now"));
}

static int run_show(struct cli *cli, struct weir *w)
{
    json_t *job;
    int status;

    if (find_job(w, -1, cli->operands[0], &job) < 0)
        return cli_failed(cli, w);
    status = cli->json ? json_print(cli, job_document_whole(job)) : print_text(cli, job);
    json_decref(job);
    return status;
}

/* ---- wait */

/* Until the job has ended, or the time is over. Once it was seen, a Redis that is lost is awaited too. */
static int await_end(struct weir *w, const char *id, int64_t until_us, struct job_wait *wait)
{
    int status = job_wait_look(w, id, wait);

    while (((status == 0 && !wait->ended) || (status == WEIR_EUNREACHABLE && wait->seen)) &&
           clock_mono_us() < until_us) {
        clock_sleep_until(wait->next_us < until_us ? wait->next_us : until_us);
        status = job_wait_look(w, id, wait);
    }
    return status;
}

static void print_end(const json_t *job, const char *id)
{
    const char *result = answer_text(job, "result"), *reason = answer_text(job, "reason");

    if (strcmp(answer_text(job, "state"), "dead") == 0)
        output("job %s is dead%s%s\n", id, *reason ? ": " : "", reason);
    else
        output("job %s is done%s%s\n", id, *result ? ": " : "", result);
}

static int judge_end(struct cli *cli, const char *id, const json_t *job)
{
    const char *state = answer_text(job, "state");

    if (strcmp(state, "finished") == 0)
        return 0;
    if (strcmp(state, "dead") == 0)
        return WEIR_EINPUT;
    return error_set(&cli->error, WEIR_ENOTNOW, "job %s: %s%s, and the time is over; wait longer", id,
                     *state ? "its state is " : "it was not found yet", state);
}

static int run_wait(struct cli *cli, struct weir *w)
{
    int64_t until_us = cli_gave(cli, "timeout") ? clock_mono_us() + given.timeout_us : INT64_MAX;
    struct job_wait wait = {.job = NULL};
    int status = await_end(w, cli->operands[0], until_us, &wait);

    if (status == WEIR_ENOTFOUND && wait.seen)
        error_set(
            &w->error, status,
            "job %s: it is done or cancelled, and was not kept: weir worker --keep keeps jobs that are done",
            cli->operands[0]);
    if (status < 0) {
        status = cli_failed(cli, w);
    } else {
        if (cli->json && !found_too_early(wait.job))
            status = json_print(cli, job_document_whole(wait.job));
        else if (wait.ended)
            print_end(wait.job, cli->operands[0]);
        status = status < 0 ? status : judge_end(cli, cli->operands[0], wait.job);
    }
    job_wait_free(&wait);
    return status;
}

/* ---- cancel */

/* What was done, and what happens now. */
static void print_cancel(const char *id, const json_t *doc, const char *lock)
{
    const char *result = answer_text(doc, "result"), *state = answer_text(doc, "state");

    if (strcmp(result, "removed") == 0)
        output("job %s is cancelled: it was %s and is gone\n", id,
               strcmp(state, "retry") == 0   ? "to be retried"
               : strcmp(state, "aside") == 0 ? "set aside"
                                             : state);
    else if (strcmp(result, "told") == 0)
        output("job %s runs on worker %s, which was asked to stop it: a command gets SIGTERM, a function can "
               "check\n",
               id, answer_text(json_object_get(doc, "worker"), "name"));
    else if (strcmp(result, "unlocked") == 0)
        output("job %s is nowhere; its unique key %s is free\n", id, lock);
    else
        output("job %s %s cancelled: it is %s in queue %s, and ends there when %s\n", id,
               strcmp(result, "marked") == 0 ? "is" : "was already", state, answer_text(doc, "queue"),
               strcmp(state, "aside") == 0 ? "its batch is resumed or cancelled" : "a worker comes to it");
}

static int cancel_one(struct cli *cli, struct weir *w, const char *id)
{
    json_t *job, *doc;
    int status = cli_confirm_one(cli, given.yes, "job cancel", "cancel job", id);

    if (status != 0)
        return status;
    if (cancel_job(w, -1, id, given.lock, &job) < 0)
        return cli_failed(cli, w);
    rate_note(w, "job cancel %s", id);
    doc = cancel_document(job);
    json_decref(job);
    if (cli->json)
        return json_print(cli, doc);
    print_cancel(id, doc, given.lock);
    json_decref(doc);
    return 0;
}

/* ---- By its id, or by a search */

static bool gave_terms(void)
{
    const struct job_flags *f = &given;

    return f->state || f->type || f->queue || f->key || f->batch || f->older || f->reason;
}

/* True when the words name one job, and no search. */
static bool is_one(char **words)
{
    return words[0] && !words[1] && !strchr(words[0], ':') && !gave_terms() && !given.dry_run;
}

static int run_list(struct cli *cli, struct weir *w)
{
    struct job_flags flags = given;
    bool said = flags.most != MOST_UNSAID;

    flags.most = said ? flags.most : MOST_DEFAULT;
    return job_run_list(cli, w, &search, &flags, !said);
}

static int run_on_all(struct cli *cli, struct weir *w)
{
    return job_act_on(cli, w, cli->action->name, &search, &given);
}

static int run_run(struct cli *cli, struct weir *w)
{
    return is_one(cli->operands) ? job_run_now(cli, w, cli->operands[0]) : run_on_all(cli, w);
}

static int run_cancel(struct cli *cli, struct weir *w)
{
    return is_one(cli->operands) ? cancel_one(cli, w, cli->operands[0]) : run_on_all(cli, w);
}

/* ---- The call */

#define TERMS "state type queue key batch older reason"

static const struct action actions[] = {
    {"list", TERMS " limit most from", NULL, 0, 0, run_list},
    {"show", "", NULL, 0, 0, run_show},
    {"wait", "timeout", NULL, 0, 0, run_wait},
    {"run", TERMS " dry-run", NULL, 0, 0, run_run},
    {"cancel", TERMS " unique dry-run yes", NULL, 0, 0, run_cancel},
    {"retry", TERMS " dry-run", NULL, 0, 0, run_on_all},
    {"remove", TERMS " dry-run yes", NULL, 0, 0, run_on_all},
};

static int check_search(struct cli *cli)
{
    if (cli->action->run != run_list && search.count == 0)
        return cli_usage(cli, "job %s: no job is named; give an ID or a search such as type:mail",
                         cli->action->name);
    if (given.lock)
        return cli_usage(cli, "job cancel --unique: is for the ID of one job; leave it or the search out");
    return 0;
}

static int check(struct cli *cli)
{
    bool takes_search = cli->action->run != run_show && cli->action->run != run_wait;
    bool one = cli->action->run != run_list && cli->action->run != run_on_all && is_one(cli->operands);

    if (given.limit < 1 || (given.most < 1 && given.most != MOST_UNSAID))
        return cli_usage(cli, "job list --%s %lld: must be 1 or more", given.limit < 1 ? "limit" : "most",
                         given.limit < 1 ? given.limit : given.most);
    if (!one && !takes_search)
        return cli_usage(cli, "job %s: needs the ID of one job; weir enqueue prints it", cli->action->name);
    if (one)
        return 0;
    return job_search_given(cli, &given, cli->operands, cli->operand_count, &search) < 0 ? cli->error.status
                                                                                         : check_search(cli);
}

static const struct flag flags[] = {
    {"state", 0, FLAG_TEXT, "STATE,...", "in one of these states", &given.state},
    {"type", 0, FLAG_TEXT, "TYPE", "of this type", &given.type},
    {"queue", 0, FLAG_TEXT, "QUEUE", "of this queue", &given.queue},
    {"key", 0, FLAG_TEXT, "KEY", "of this key", &given.key},
    {"batch", 0, FLAG_TEXT, "BATCH", "of this batch", &given.batch},
    {"older", 0, FLAG_TEXT, "WHEN", "enqueued at least that long ago: 2h, or before a day", &given.older},
    {"reason", 0, FLAG_TEXT, "TEXT", "with that in why it is dead, or in its last failure", &given.reason},
    {"limit", 0, FLAG_INT, "N", "list: at most so many jobs; default 50", &given.limit},
    {"most", 0, FLAG_INT, "N", "list: looks at so many at most; else on until it finds one", &given.most},
    {"from", 0, FLAG_TEXT, "CURSOR", "list: continues where the last list ended", &given.from},
    {"timeout", 0, FLAG_DURATION, "DUR", "wait: for that long at most; else as long as it takes",
     &given.timeout_us},
    {"unique", 0, FLAG_TEXT, "KEY", "cancel: free this key when ID holds it and is nowhere", &given.lock},
    {"dry-run", 0, FLAG_BOOL, NULL, "run, cancel, retry, remove: say how many, change nothing",
     &given.dry_run},
    {"yes", 'y', FLAG_BOOL, NULL, "cancel, remove: do not ask; of a search needed off a terminal",
     &given.yes},
    {.name = NULL},
};

const struct command command_job = {
    .name = "job", .run = cli_run, .flags = flags, .actions = &ACTIONS(actions), .check = check};
