/* weir why: where a job is, what holds it, and when it starts. */
#include "queue/inspect/why.h"

#include "cli/command/job.h"
#include "cli/commands.h"
#include "view/status.h"

static int run_why(struct cli *cli, int argc, char **argv);

const struct command command_why = {.name = "why", .run = run_why};

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

static int run_why(struct cli *cli, int argc, char **argv)
{
    const struct flag flags[] = {{.name = NULL}};
    struct weir *w;
    json_t *why;
    int operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status != 0)
        return status;
    if (operands != 1)
        return error_set(&cli->error, WEIR_EUSAGE, "why: needs the ID of one job; weir enqueue prints it");
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    if (why_read(w, -1, argv[0], &why) < 0)
        status = why_failed(cli, w, argv[0]);
    else if (cli->json)
        status = json_print(cli, job_document(why));
    else
        status = job_print(cli, job_document(why), answer_int(why, "now"));
    json_decref(why);
    weir_free(w);
    return status;
}
