/* weir type: types as a whole: listed, shown, paused, removed. */
#include "cli/commands.h"

#include "cli/document/pausing.h"
#include "cli/document/table.h"
#include "core/clock.h"
#include "queue/limits/type.h"
#include "view/pause.h"
#include "view/status.h"
#include "view/text.h"
#include "view/type.h"
#include "view/waits.h"

/* ---- list, show */

static void put_pause(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *paused = json_object_get(doc, "paused");

    if (json_is_object(paused))
        pause_put(to, paused, now_us);
}

static void put_waits(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *waits_for = json_object_get(doc, "waits_for");

    if (json_is_object(waits_for))
        waits_put(to, waits_for, now_us);
}

/* A type whose workers are quiet waits for one of them, whatever its limits allow. */
static void put_next(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *at = json_object_get(doc, "next_start");
    char when[PHRASE_SIZE];

    if (json_is_number(at) && !json_has(json_object_get(doc, "waits_for"), "resting"))
        output_to(to, "%s", format_when(now_us, json_us(at), when));
}

static const struct column columns[] = {
    COLUMN("type", "name"),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT),
    COLUMN("parked", "parked", .show = SHOW_COUNT, .drop = 2),
    COLUMN("running", "running", .show = SHOW_COUNT, .drop = 1),
    COLUMN("rate", "rule", .drop = 3),
    {.heading = "paused", .put = put_pause, .rest = true, .tone = TONE_WARNING},
    {.heading = NULL},
};

static const struct column sheet[] = {
    COLUMN("type", "name"),
    {.heading = "paused", .put = put_pause, .tone = TONE_WARNING},
    COLUMN("waiting", "waiting", .show = SHOW_COUNT),
    COLUMN("parked", "parked", .show = SHOW_COUNT),
    COLUMN("held", "held", .show = SHOW_COUNT, .drop = 1),
    COLUMN("aside", "aside", .show = SHOW_COUNT, .drop = 1),
    COLUMN("running", "running", .show = SHOW_COUNT),
    COLUMN("scheduled", "scheduled", .show = SHOW_COUNT),
    COLUMN("rate", "rule", .drop = 1),
    COLUMN("oldest", "oldest_at", .show = SHOW_WHEN, .drop = 1),
    {.heading = "waits for", .put = put_waits, .drop = 1},
    {.heading = "next start", .put = put_next, .drop = 1},
    {.heading = "last start", .put = type_put_end, .drop = 1},
    {.heading = NULL},
};

static int run_list(struct cli *cli, struct weir *w, const struct pausing *how, char **argv)
{
    struct status status;
    json_t *rows = json_array();

    (void)how, (void)argv;
    if (status_read(w, &status) < 0) {
        status_free(&status);
        json_decref(rows);
        return cli_failed(cli, w);
    }
    for (size_t i = 0; i < status.type_count; i++) {
        json_t *row = type_document(&status.types[i]);

        json_object_set_new(row, "name", text_word(status.types[i].name));
        json_array_append_new(rows, row);
    }
    status_free(&status);
    return table_list(cli, columns, rows, clock_wall_us(), "no types yet; weir enqueue TYPE makes one");
}

static int run_show(struct cli *cli, struct weir *w, const struct pausing *how, char **argv)
{
    json_t *doc;
    int status;

    (void)how;
    if (view_type(w, argv[1], &doc) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, doc);
    status = sheet_print(cli, stdout, sheet, doc, clock_wall_us());
    json_decref(doc);
    return status;
}

/* ---- pause, resume, remove */

static int run_pause(struct cli *cli, struct weir *w, const struct pausing *how, char **argv)
{
    return pausing_change(cli, w, type_pause, argv[1], how);
}

static int run_resume(struct cli *cli, struct weir *w, const struct pausing *how, char **argv)
{
    (void)how;
    return pausing_change(cli, w, type_pause, argv[1], &(struct pausing){.for_us = RATE_RESUME});
}

static int run_remove(struct cli *cli, struct weir *w, const struct pausing *how, char **argv)
{
    (void)how;
    if (type_remove(w, argv[1]) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:s}", "name", argv[1], "action", argv[0]));
    output("type %s removed, with what was counted of it\n", argv[1]);
    return 0;
}

/* ---- The table */

static const struct action {
    const char *name, *flags;
    int operands; /* behind the name */
    int (*run)(struct cli *cli, struct weir *w, const struct pausing *how, char **argv);
} actions[] = {
    {"list", "", 0, run_list},
    {"show", "", 1, run_show},
    {"pause", "for reason create", 1, run_pause},
    {"resume", "", 1, run_resume},
    {"remove", "", 1, run_remove},
};

static int run_type(struct cli *cli, int argc, char **argv)
{
    struct pausing how = {.for_us = RATE_ENDLESS};
    const struct flag flags[] = {PAUSING_FLAGS(how), {.name = NULL}};
    const struct action *action;
    struct weir *w;
    int chosen, operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status != 0)
        return status;
    chosen = cli_choose(cli, operands ? argv[0] : NULL);
    if (chosen < 0 || pausing_read(cli, &how) < 0)
        return cli->error.status;
    action = &actions[chosen];
    if (operands - 1 != action->operands)
        return error_set(&cli->error, WEIR_EUSAGE, "type %s: takes %s; weir help type has examples",
                         action->name, action->operands ? "the name of one type" : "nothing more");
    if (!(w = cli_client(cli)))
        return cli->error.status;
    status = action->run(cli, w, &how, argv);
    weir_free(w);
    return status;
}

const struct command command_type = {.name = "type", .run = run_type, .actions = &ACTIONS(actions)};
