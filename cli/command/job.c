/* weir job: what is known of one job, and its end before it has ended by itself. */
#include "cli/command/job.h"

#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/confirm.h"
#include "cli/document/text.h"
#include "queue/inspect/cancel.h"
#include "view/document.h"

#define ARGS_SHOWN 2000 /* bytes of args that are printed for a person; --json has all */

static int run_job(struct cli *cli, int argc, char **argv);

const struct command command_job = {.name = "job", .run = run_job};

struct job_flags {
    const char *lock;
    bool yes;
};

/* ---- show */

/* As they stand; all of a body that is no job. */
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
    return job_print(cli, doc, answer_int(job, "now"));
}

static int run_show(struct cli *cli, struct weir *w, const char *id, const struct job_flags *flags)
{
    json_t *job;
    int status;

    (void)flags;
    if (find_job(w, -1, id, &job) < 0)
        return cli_failed(cli, w);
    status = cli->json ? json_print(cli, job_document_whole(job)) : print_text(cli, job);
    json_decref(job);
    return status;
}

/* ---- cancel */

/* What was done, and what happens now. */
static void print_cancel(const char *id, const json_t *doc, const char *lock)
{
    const char *result = answer_text(doc, "result"), *state = answer_text(doc, "state");

    if (strcmp(result, "removed") == 0)
        output("job %s is cancelled: it was %s and is gone\n", id,
               strcmp(state, "retry") == 0 ? "to be retried" : "scheduled");
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

static int run_cancel(struct cli *cli, struct weir *w, const char *id, const struct job_flags *flags)
{
    json_t *job, *doc;
    int status = cli_confirm_one(cli, flags->yes, "job cancel", "cancel job", id);

    if (status != 0)
        return status;
    if (cancel_job(w, -1, id, flags->lock, &job) < 0)
        return cli_failed(cli, w);
    doc = cancel_document(job);
    json_decref(job);
    if (cli->json)
        return json_print(cli, doc);
    print_cancel(id, doc, flags->lock);
    json_decref(doc);
    return 0;
}

/* ---- The call */

static const struct action {
    const char *name, *flags;
    int (*run)(struct cli *cli, struct weir *w, const char *id, const struct job_flags *flags);
} actions[] = {{"show", "", run_show}, {"cancel", "unique yes", run_cancel}};

static int run_job(struct cli *cli, int argc, char **argv)
{
    struct job_flags given = {.lock = NULL};
    const struct flag flags[] = {
        {"unique", 0, FLAG_TEXT, "KEY", "cancel: free this key when ID holds it and is nowhere", &given.lock},
        {"yes", 'y', FLAG_BOOL, NULL, "cancel: do not ask", &given.yes},
        {.name = NULL}};
    struct weir *w;
    int operands, chosen, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status != 0)
        return status;
    chosen = cli_choose(cli, operands ? argv[0] : NULL, actions, sizeof *actions, 2);
    if (chosen < 0)
        return cli->error.status;
    if (operands != 2)
        return error_set(&cli->error, WEIR_EUSAGE, "job %s: needs the ID of one job; weir enqueue prints it",
                         actions[chosen].name);
    if (!(w = cli_client(cli)))
        return cli->error.status;
    status = actions[chosen].run(cli, w, argv[1], &given);
    weir_free(w);
    return status;
}
