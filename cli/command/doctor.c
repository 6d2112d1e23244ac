/* weir doctor: is all as it should be? */
#include "queue/doctor/doctor.h"
#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/document/text.h"
#include "cli/print/color.h"
#include "cli/print/format.h"

static int run_doctor(struct cli *cli, int argc, char **argv);

const struct command command_doctor = {.name = "doctor", .run = run_doctor};

static const struct {
    const char *name;
    enum tone tone;
} states[] = {[DOCTOR_OK] = {"ok", TONE_PLAIN},
              [DOCTOR_REPAIRED] = {"repaired", TONE_GOOD},
              [DOCTOR_WARNING] = {"warning", TONE_WARNING},
              [DOCTOR_WRONG] = {"wrong", TONE_WRONG}};

static json_t *doctor_json(const struct doctor *d)
{
    json_t *checks = json_array();

    for (size_t i = 0; i < d->count; i++) {
        const struct doctor_check *c = &d->checks[i];

        json_array_append_new(checks, json_pack("{s:s, s:s, s:o, s:o}", "name", c->name, "state",
                                                states[c->state].name, "text", text_word(c->text), "do",
                                                text_json(span_str(c->todo))));
    }
    return json_pack("{s:o}", "checks", checks);
}

/* The last line: "1 wrong, 2 warnings". */
static void print_sum(const struct doctor *d)
{
    size_t wrong = 0, warnings = 0;
    char text[PHRASE_SIZE];

    for (size_t i = 0; i < d->count; i++) {
        wrong += d->checks[i].state == DOCTOR_WRONG;
        warnings += d->checks[i].state == DOCTOR_WARNING;
    }
    wrong -= d->broken; /* structures: says once more that some were */
    if (wrong)
        output_toned(stdout, TONE_WRONG, "%zu wrong%s", wrong, warnings ? ", " : "\n");
    if (warnings)
        output_toned(stdout, TONE_WARNING, "%s\n", counted((int64_t)warnings, "warning", text));
    if (!wrong && !warnings)
        output("nothing is wrong\n");
}

/* What is wrong comes last. */
static void print_doctor(const struct doctor *d)
{
    for (enum doctor_state state = DOCTOR_OK; state <= DOCTOR_WRONG; state++)
        for (size_t i = 0; i < d->count; i++) {
            const struct doctor_check *c = &d->checks[i];

            if (c->state != state)
                continue;
            output_toned(stdout, states[state].tone, "%s", states[state].name);
            output(": %s: %s%s%s\n", c->name, c->text, *c->todo ? "; " : "", c->todo);
        }
    print_sum(d);
}

/* The exit code says it once more. */
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
    const struct flag flags[] = {{"repair", 0, FLAG_BOOL, NULL, "repair what is safe to repair", &repair},
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
