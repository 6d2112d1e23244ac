/* weir why: where a job is, what holds it, and when it starts. */
#include "queue/inspect/why.h"

#include "cli/command/job.h"
#include "cli/commands.h"
#include "view/status.h"

/* Says of a type, which is no job, what tells of it. */
static int why_failed(struct cli *cli, struct weir *w, const char *name)
{
    struct error failure = w->error;
    json_t *type;

    if (failure.status == WEIR_ENOTFOUND && view_type(w, name, &type) == 0) {
        json_decref(type);
        return error_set(
            &cli->error, WEIR_ENOTFOUND,
            "why %.130s: that is a type, not a job; weir type show %.130s says what it waits for", name,
            name);
    }
    w->error = failure;
    return cli_failed(cli, w);
}

static int check(struct cli *cli)
{
    return cli->operand_count == 1 ? 0
                                   : cli_usage(cli, "why: needs the ID of one job; weir enqueue prints it");
}

static int act(struct cli *cli, struct weir *w)
{
    json_t *why;
    int status;

    if (why_read(w, -1, cli->operands[0], &why) < 0)
        status = why_failed(cli, w, cli->operands[0]);
    else if (cli->json)
        status = json_print(cli, job_document(why));
    else
        status = job_print(cli, job_document(why), answer_int(why, "now"));
    json_decref(why);
    return status;
}

const struct command command_why = {
    .name = "why", .run = cli_run, .takes_operands = true, .check = check, .act = act};
