/* weir job: what is known of one job, its end, and its end before it has ended by itself. */
#include "cli/command/job.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/confirm.h"
#include "cli/document/text.h"
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

/* A call has what was asked for. */
struct call {
    struct job_flags flags;
    struct job_search search;
    const char *action;
    const char *id; /* of the one job; NULL: a search */
};

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

static int print_text(struct cli *cli, const json_t *job)
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

static int run_show(struct cli *cli, struct weir *w, const struct call *call)
{
    json_t *job;
    int status;

    if (find_job(w, -1, call->id, &job) < 0)
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

static int judge_end(struct cli *cli, const struct call *call, const json_t *job)
{
    const char *state = answer_text(job, "state");

    if (strcmp(state, "finished") == 0)
        return 0;
    if (strcmp(state, "dead") == 0)
        return WEIR_EINPUT;
    return error_set(&cli->error, WEIR_ENOTNOW, "job %s: %s%s, and the time is over; wait longer", call->id,
                     *state ? "its state is " : "it was not found yet", state);
}

static int run_wait(struct cli *cli, struct weir *w, const struct call *call)
{
    int64_t until_us = cli_gave(cli, "timeout") ? clock_mono_us() + call->flags.timeout_us : INT64_MAX;
    struct job_wait wait = {.job = NULL};
    int status = await_end(w, call->id, until_us, &wait);

    if (status == WEIR_ENOTFOUND && wait.seen)
        error_set(
            &w->error, status,
            "job %s: it is done or cancelled, and was not kept: weir worker --keep keeps jobs that are done",
            call->id);
    if (status < 0) {
        status = cli_failed(cli, w);
    } else {
        if (cli->json && !found_too_early(wait.job))
            status = json_print(cli, job_document_whole(wait.job));
        else if (wait.ended)
            print_end(wait.job, call->id);
        status = status < 0 ? status : judge_end(cli, call, wait.job);
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

static int run_cancel(struct cli *cli, struct weir *w, const struct call *call)
{
    json_t *job, *doc;
    int status = cli_confirm_one(cli, call->flags.yes, "job cancel", "cancel job", call->id);

    if (status != 0)
        return status;
    if (cancel_job(w, -1, call->id, call->flags.lock, &job) < 0)
        return cli_failed(cli, w);
    rate_note(w, "job cancel %s", call->id);
    doc = cancel_document(job);
    json_decref(job);
    if (cli->json)
        return json_print(cli, doc);
    print_cancel(call->id, doc, call->flags.lock);
    json_decref(doc);
    return 0;
}

/* ---- Others */

static int run_list(struct cli *cli, struct weir *w, const struct call *call)
{
    struct job_flags flags = call->flags;
    bool said = flags.most != MOST_UNSAID;

    flags.most = said ? flags.most : MOST_DEFAULT;
    return job_run_list(cli, w, &call->search, &flags, !said);
}

static int run_now(struct cli *cli, struct weir *w, const struct call *call)
{
    return job_run_now(cli, w, call->id);
}

static int run_on_all(struct cli *cli, struct weir *w, const struct call *call)
{
    return job_act_on(cli, w, call->action, &call->search, &call->flags);
}

/* ---- The call */

#define TERMS "state type queue key batch older reason"

static const struct action {
    const char *name, *flags;
    int (*one)(struct cli *cli, struct weir *w,
               const struct call *call); /* by its id; NULL: a search like another */
    int (*all)(struct cli *cli, struct weir *w, const struct call *call); /* by a search */
} actions[] = {{"list", TERMS " limit most from", NULL, run_list},
               {"show", "", run_show, NULL},
               {"wait", "timeout", run_wait, NULL},
               {"run", TERMS " dry-run", run_now, run_on_all},
               {"cancel", TERMS " unique dry-run yes", run_cancel, run_on_all},
               {"retry", TERMS " dry-run", NULL, run_on_all},
               {"remove", TERMS " dry-run yes", NULL, run_on_all}};

static bool gave_terms(const struct job_flags *f)
{
    return f->state || f->type || f->queue || f->key || f->batch || f->older || f->reason;
}

static int check_search(struct cli *cli, const struct action *action, const struct call *call)
{
    if (action->all != run_list && call->search.count == 0)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "job %s: no job is named; give an ID or a search such as type:mail", action->name);
    if (call->flags.lock)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "job cancel --unique: is for the ID of one job; leave it or the search out");
    return 0;
}

static int read_call(struct cli *cli, const struct action *action, char **words, int count, struct call *call)
{
    const struct job_flags *f = &call->flags;
    bool one = action->one && count == 1 && !strchr(words[0], ':') && !gave_terms(f) && !f->dry_run;

    call->action = action->name;
    call->id = one ? words[0] : NULL;
    if (f->limit < 1 || (f->most < 1 && f->most != MOST_UNSAID))
        return error_set(&cli->error, WEIR_EUSAGE, "job list --%s %lld: must be 1 or more",
                         f->limit < 1 ? "limit" : "most", f->limit < 1 ? f->limit : f->most);
    if (!one && !action->all)
        return error_set(&cli->error, WEIR_EUSAGE, "job %s: needs the ID of one job; weir enqueue prints it",
                         action->name);
    if (!one && job_search_given(cli, f, words, count, &call->search) < 0)
        return cli->error.status;
    return one ? 0 : check_search(cli, action, call);
}

static int run_action(struct cli *cli, int argc, char **argv, struct call *call)
{
    const struct action *action;
    int status, chosen = cli_choose(cli, argc ? argv[0] : NULL);
    struct weir *w;

    if (chosen < 0 || read_call(cli, &actions[chosen], argv + 1, argc - 1, call) < 0)
        return cli->error.status;
    if (!(w = cli_client(cli)))
        return cli->error.status;
    action = &actions[chosen];
    status = (call->id ? action->one : action->all)(cli, w, call);
    weir_free(w);
    return status;
}

static int run_job(struct cli *cli, int argc, char **argv)
{
    struct call call = {.flags = {.limit = LIMIT_DEFAULT, .most = MOST_UNSAID}};
    struct job_flags *f = &call.flags;
    const struct flag own[] = {
        {"limit", 0, FLAG_INT, "N", "list: at most so many jobs; default 50", &f->limit},
        {"most", 0, FLAG_INT, "N", "list: looks at so many at most; else on until it finds one", &f->most},
        {"from", 0, FLAG_TEXT, "CURSOR", "list: continues where the last list ended", &f->from},
        {"timeout", 0, FLAG_DURATION, "DUR", "wait: for that long at most; else as long as it takes",
         &f->timeout_us},
        {"unique", 0, FLAG_TEXT, "KEY", "cancel: free this key when ID holds it and is nowhere", &f->lock},
        {"dry-run", 0, FLAG_BOOL, NULL, "run, cancel, retry, remove: say how many, change nothing",
         &f->dry_run},
        {"yes", 'y', FLAG_BOOL, NULL, "cancel, remove: do not ask; of a search needed off a terminal",
         &f->yes},
        {.name = NULL}};
    struct flag flags[JOB_SEARCH_FLAGS + sizeof own / sizeof *own];
    int operands, status;

    job_search_flags(f, flags);
    memcpy(flags + JOB_SEARCH_FLAGS, own, sizeof own);
    status = cli_parse(cli, flags, argc, argv, &operands);
    return status != 0 ? status : run_action(cli, operands, argv, &call);
}

const struct command command_job = {.name = "job", .run = run_job, .actions = &ACTIONS(actions)};
