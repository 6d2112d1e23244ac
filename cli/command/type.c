/* weir type: types as a whole: listed, shown, paused, removed. */
#include "cli/commands.h"

#include "cli/document/pausing.h"
#include "cli/document/table.h"
#include "core/clock.h"
#include "queue/limits/type.h"
#include "view/status.h"
#include "view/text.h"
#include "view/type.h"

/* ---- list, show */

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
    COLUMN("paused", "paused", .show = SHOW_PAUSE, .rest = true, .tone = TONE_WARNING),
    {.heading = NULL},
};

static const struct column sheet[] = {
    COLUMN("type", "name"),
    COLUMN("paused", "paused", .show = SHOW_PAUSE, .tone = TONE_WARNING),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT),
    COLUMN("parked", "parked", .show = SHOW_COUNT),
    COLUMN("held", "held", .show = SHOW_COUNT, .drop = 1),
    COLUMN("aside", "aside", .show = SHOW_COUNT, .drop = 1),
    COLUMN("running", "running", .show = SHOW_COUNT),
    COLUMN("scheduled", "scheduled", .show = SHOW_COUNT),
    COLUMN("rate", "rule", .drop = 1),
    COLUMN("oldest", "oldest_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("waits for", "waits_for", .show = SHOW_WAITS, .drop = 1),
    {.heading = "next start", .put_at = put_next, .drop = 1},
    {.heading = "last start", .put_at = type_put_end, .drop = 1},
    {.heading = NULL},
};

static int run_list(struct cli *cli, struct weir *w)
{
    struct status status;
    json_t *rows = json_array();

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

static int run_show(struct cli *cli, struct weir *w)
{
    json_t *doc;
    int status;

    if (view_type(w, cli->operands[0], &doc) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, doc);
    status = sheet_print(cli, stdout, sheet, doc, clock_wall_us());
    json_decref(doc);
    return status;
}

/* ---- pause, resume, remove */

static int run_pausing(struct cli *cli, struct weir *w)
{
    return pausing_change(cli, w, type_pause);
}

static int run_remove(struct cli *cli, struct weir *w)
{
    if (type_remove(w, cli->operands[0]) < 0)
        return cli_failed(cli, w);
    return print_done(cli, "type ", " removed, with what was counted of it");
}

/* ---- The table */

#define ONE "the name of one type"

static const struct action actions[] = {
    {"list", "", "nothing more", 0, 0, run_list},
    {"show", "", ONE, 1, 1, run_show},
    {"pause", "for reason create", ONE, 1, 1, run_pausing},
    {"resume", "", ONE, 1, 1, run_pausing},
    {"remove", "", ONE, 1, 1, run_remove},
};

static const struct flag flags[] = {PAUSING_FLAGS, PAUSING_CREATE, {.name = NULL}};

const struct command command_type = {
    .name = "type", .run = cli_run, .flags = flags, .actions = &ACTIONS(actions), .check = pausing_check};
