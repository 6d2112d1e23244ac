/* weir doctor: is all as it should be? */
#include "queue/doctor/doctor.h"
#include "cli/command/commands.h"
#include "cli/json.h"
#include "cli/text.h"

static int run_doctor(struct cli *cli, int argc, char **argv);

const struct command command_doctor = {.name = "doctor", .run = run_doctor};

static const char *const state_names[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_MENDED] = "mended", [DOCTOR_WARNING] = "warning", [DOCTOR_WRONG] = "wrong"};

static json_t *doctor_json(const struct doctor *d)
{
    json_t *checks = json_array();

    for (size_t i = 0; i < d->count; i++) {
        const struct doctor_check *c = &d->checks[i];

        json_array_append_new(checks, json_pack("{s:s, s:s, s:o, s:o}", "name", c->name, "state",
                                                state_names[c->state], "text", text_word(c->text), "do",
                                                text_json(span_str(c->todo))));
    }
    return json_pack("{s:o}", "checks", checks);
}

static void print_doctor(const struct doctor *d)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct doctor_check *c = &d->checks[i];

        output("%s: %s: %s%s%s\n", state_names[c->state], c->name, c->text, *c->todo ? "; " : "", c->todo);
    }
}

/* What is wrong was said; the exit code says it once more. */
static int verdict(const struct doctor *d)
{
    if (d->refused)
        return WEIR_EREFUSED;
    if (d->misconfigured)
        return WEIR_ECONFIG;
    return d->broken ? WEIR_EINPUT : 0;
}

static int run_doctor(struct cli *cli, int argc, char **argv)
{
    bool repair = false;
    const struct flag flags[] = {{"repair", 0, FLAG_BOOL, NULL, "mend what is safe to mend", &repair},
                                 {.name = NULL}};
    struct doctor d;
    struct weir *w;
    int operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status != 0)
        return status;
    if (operands)
        return error_set(&cli->error, WEIR_EUSAGE, "doctor %.100s: takes no arguments; leave it out",
                         argv[0]);
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    if (doctor_run(w, -1, repair, &d) < 0)
        status = cli_failed(cli, w);
    else if (cli->json)
        status = json_print(cli, doctor_json(&d));
    else
        print_doctor(&d);
    if (status == 0)
        status = verdict(&d);
    doctor_free(&d);
    weir_free(w);
    return status;
}
