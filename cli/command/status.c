/* weir status: queues, types, workers. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/document/outlook.h"
#include "cli/document/table.h"
#include "cli/print/terminal.h"
#include "view/pause.h"
#include "view/paused_keys.h"
#include "view/status.h"
#include "view/type.h"
#include "view/waits.h"

#define MOMENT_US 1000000
#define PAUSED_SHOWN 5 /* keys */

/* ---- Text */

static const struct column type_columns[] = {
    COLUMN("type", ""),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT),
    COLUMN("parked", "parked", .show = SHOW_COUNT, .drop = 3),
    COLUMN("held", "held", .show = SHOW_COUNT, .drop = 5, .tone = TONE_WARNING),
    COLUMN("aside", "aside", .show = SHOW_COUNT, .drop = 8),
    COLUMN("running", "running", .show = SHOW_COUNT, .drop = 1),
    COLUMN("scheduled", "scheduled", .show = SHOW_COUNT, .drop = 7),
    COLUMN("done", "done", .show = SHOW_COUNT, .drop = 4),
    COLUMN("retried", "retried", .show = SHOW_COUNT, .drop = 9),
    COLUMN("dead", "dead_kept", .show = SHOW_COUNT, .drop = 1, .tone = TONE_WRONG),
    COLUMN("oldest", "oldest_at", .show = SHOW_TIME, .drop = 6),
    COLUMN("rate", "rule", .drop = 2),
    COLUMN("now", "rate_now", .show = SHOW_RATE, .drop = 6),
    {.heading = "ends", .put_at = type_put_end, .show = SHOW_WHEN},
    {.heading = NULL},
};

static const struct column queue_columns[] = {
    COLUMN("queue", ""),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT),
    COLUMN("oldest", "oldest_at", .show = SHOW_TIME, .drop = 1),
    COLUMN("paused", "paused", .show = SHOW_PAUSE, .rest = true, .tone = TONE_WARNING),
    {.heading = NULL},
};

static const struct column worker_columns[] = {
    COLUMN("worker", "name"),
    COLUMN("host", "host", .drop = 2),
    COLUMN("pid", "pid", .drop = 1),
    COLUMN("running", "running", .show = SHOW_COUNT),
    COLUMN("seen", "seen_at", .show = SHOW_TIME),
    {.heading = NULL},
};

/* Prints what does not flow: it waits for somebody, or for longer than a moment; unserved: all wait for workers. */
static void print_waits(const json_t *types, bool unserved, int64_t now_us)
{
    const char *name;
    json_t *type;

    json_object_foreach((json_t *)types, name, type) {
        const json_t *waits_for = json_object_get(type, "waits_for"),
                     *until = json_object_get(waits_for, "until");

        if (json_is_object(waits_for) && !(unserved && !json_object_get(waits_for, "paused")) &&
            !(json_is_number(until) && json_us(until) < now_us + MOMENT_US)) {
            output("%s: waits for ", name);
            waits_put(stdout, waits_for, now_us);
            output("\n");
        } else if (!json_is_object(waits_for) && json_is_object(json_object_get(type, "paused"))) {
            output("%s: paused ", name);
            pause_put(stdout, json_object_get(type, "paused"), now_us);
            output("\n");
        }
    }
}

static void print_keyless(const struct status *s)
{
    for (size_t i = 0; i < s->type_count; i++)
        if (keyless_most(&s->types[i].keyless))
            keyless_print(stdout, s->types[i].name, &s->types[i].keyless);
}

/* Prints the first of the paused keys. */
static void print_paused_keys(const json_t *doc, int64_t now_us)
{
    const json_t *rows = json_object_get(doc, "paused_keys");
    int64_t more = answer_int(doc, "paused_key_count"), shown = 0;
    char keys[PHRASE_SIZE], text[384];

    for (; shown < PAUSED_SHOWN && shown < (int64_t)json_array_size(rows); shown++) {
        const json_t *row = json_array_get(rows, (size_t)shown);

        paused_key_text(row, now_us, text, sizeof text);
        output("%s: %s\n", answer_text(row, "limit_name"), text);
    }
    if (more > shown)
        output("%s more %s paused; weir rate keys NAME\n", counted(more - shown, "key", keys),
               more - shown == 1 ? "is" : "are");
}

static void print_ended(const struct status *s)
{
    char jobs[PHRASE_SIZE], bytes[32];
    int64_t cancelled = 0;

    for (size_t i = 0; i < s->type_count; i++)
        cancelled += s->types[i].cancelled;
    if (s->dead > 0)
        output("\n%s, %s\n", counted(s->dead, "dead job", jobs),
               s->dead_bytes < 0 ? "bytes not counted yet" : sized(s->dead_bytes, bytes));
    if (cancelled > 0)
        output("\n%s cancelled\n", counted(cancelled, "job", jobs));
}

static int print_status(struct cli *cli, const struct status *s, const json_t *doc)
{
    const json_t *types = json_object_get(doc, "types"), *queues = json_object_get(doc, "queues"),
                 *workers = json_object_get(doc, "workers");
    int rc = 0;

    if (s->type_count == 0)
        output("no jobs yet; enqueue one with weir enqueue TYPE\n");
    else
        rc = table_print(cli, stdout, type_columns, types, s->now_us);
    print_waits(types, s->worker_count == 0, s->now_us);
    print_paused_keys(doc, s->now_us);
    print_keyless(s);
    if (rc == 0 && s->queue_count > 0) {
        output("\n");
        rc = table_print(cli, stdout, queue_columns, queues, s->now_us);
    }
    output(s->worker_count == 0 ? "\nno workers; start one with weir worker\n" : "\n");
    if (rc == 0 && s->worker_count > 0)
        rc = table_print(cli, stdout, worker_columns, workers, s->now_us);
    print_ended(s);
    return rc;
}

static int print_document(struct cli *cli, const struct status *s)
{
    json_t *doc = status_document(s);
    int rc;

    if (cli->json || !doc)
        return json_print(cli, doc);
    rc = print_status(cli, s, doc);
    json_decref(doc);
    return rc;
}

static int show(struct cli *cli, struct weir *w)
{
    struct status status;
    int rc = status_read(w, &status);

    if (rc != 0)
        rc = cli_failed(cli, w);
    else
        rc = print_document(cli, &status);
    status_free(&status);
    return rc;
}

static bool watch;

static const struct flag flags[] = {{"watch", 0, FLAG_BOOL, NULL, "again every second", &watch},
                                    {.name = NULL}};

static int act(struct cli *cli, struct weir *w)
{
    int rc;

    cli_expect_much();
    do {
        if (watch && !cli->json && cli_is_terminal(stdout))
            output("\033[H\033[2J");
        rc = show(cli, w);
        fflush(stdout);
        if (watch && rc == 0)
            sleep(1);
    } while (watch && rc == 0);
    return rc;
}

const struct command command_status = {.name = "status", .run = cli_run, .flags = flags, .act = act};
