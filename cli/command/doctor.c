/* weir doctor: is all as it should be? */
#include <string.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/print/color.h"
#include "view/doctor.h"
#include "view/format.h"

/* By state. */
static const enum tone tones[] = {TONE_PLAIN, TONE_GOOD, TONE_WARNING, TONE_WRONG};

static bool is_in(const json_t *check, enum doctor_state state)
{
    return strcmp(answer_text(check, "state"), doctor_states[state]) == 0;
}

/* Prints those in a state; returns how many they are. */
static size_t print_checks(const json_t *checks, enum doctor_state state)
{
    size_t count = 0, i;
    json_t *check;

    json_array_foreach(checks, i, check) {
        const char *todo = answer_text(check, "do");

        if (!is_in(check, state))
            continue;
        output_toned(stdout, tones[state], "%s", doctor_states[state]);
        output(": %s: %s%s%s\n", answer_text(check, "name"), answer_text(check, "text"), *todo ? "; " : "",
               todo);
        count++;
    }
    return count;
}

/* What is wrong comes last, then "1 wrong, 2 warnings". */
static void print_doctor(const struct doctor *d)
{
    size_t counts[DOCTOR_WRONG + 1], wrong, warnings;
    char text[PHRASE_SIZE];

    for (enum doctor_state state = DOCTOR_OK; state <= DOCTOR_WRONG; state++)
        counts[state] = print_checks(d->checks, state);
    warnings = counts[DOCTOR_WARNING];
    wrong = counts[DOCTOR_WRONG] - (size_t)d->broken; /* structures: says once more that some were */
    if (wrong)
        output_toned(stdout, TONE_WRONG, "%zu wrong", wrong);
    output("%s", wrong && warnings ? ", " : wrong || warnings ? "" : "nothing is wrong");
    if (warnings)
        output_toned(stdout, TONE_WARNING, "%s", counted((int64_t)warnings, "warning", text));
    output("\n");
}

/* The exit code says it once more. */
static int verdict(const struct doctor *d)
{
    if (d->refused)
        return WEIR_EREFUSED;
    if (d->misconfigured)
        return WEIR_ECONFIG;
    return d->broken > 0 ? WEIR_EINPUT : 0;
}

static bool repair;

static const struct flag flags[] = {{"repair", 0, FLAG_BOOL, NULL, "repair what is safe to repair", &repair},
                                    {.name = NULL}};

static int act(struct cli *cli, struct weir *w)
{
    struct doctor d;
    int status = 0;

    if (doctor_run(w, -1, repair, &d) < 0)
        status = cli_failed(cli, w);
    else if (cli->json)
        status = json_print(cli, doctor_document(&d));
    else
        print_doctor(&d);
    if (status == 0)
        status = verdict(&d);
    doctor_free(&d);
    return status;
}

const struct command command_doctor = {.name = "doctor", .run = cli_run, .flags = flags, .act = act};
