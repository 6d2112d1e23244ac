/* weir dead list and show: what died, and why. */
#include <stdlib.h>

#include "cli/dead/dead.h"
#include "cli/document/table.h"
#include "cli/document/text.h"
#include "cli/print/terminal.h"
#include "core/clock.h"
#include "view/dead.h"

#define REASON_MOST 120 /* characters of a reason in a line of a list, about */
#define ENOUGH 1        /* ends a walk */
#define ROWS_MOST 1000  /* that are held, and by which the columns of a list are chosen */

/* ---- list */

struct list {
    struct cli *cli;
    int64_t limit, met;
    json_t *rows; /* of the table, that are not printed yet */
    struct table_shape shape;
};

static void put_reason(FILE *to, const json_t *doc)
{
    char *reason = text_of_ends(text_bytes(json_object_get(doc, "reason")), REASON_MOST);

    if (reason)
        output_to(to, "%s", reason);
    free(reason);
}

static const struct column columns[] = {
    COLUMN("died", "since", .show = SHOW_WHEN, .drop = 1),
    COLUMN("type", "type"),
    COLUMN("job", "id"),
    COLUMN("attempts", "attempts", .show = SHOW_COUNT, .drop = 2),
    {.heading = "reason", .put = put_reason, .rest = true},
    {.heading = NULL},
};

static int print_rows(struct list *list)
{
    int status = json_array_size(list->rows) == 0 ? 0
                                                  : table_print_part(list->cli, stdout, columns, list->rows,
                                                                     clock_wall_us(), &list->shape);

    json_array_clear(list->rows);
    return status;
}

static int add_row(struct list *list, const json_t *page, size_t i)
{
    json_array_append_new(list->rows, dead_document(page, i));
    return json_array_size(list->rows) < ROWS_MOST ? 0 : print_rows(list);
}

/* Documents are printed as they come: their bodies may be large. */
static int list_page(const json_t *page, void *arg)
{
    const json_t *found = json_object_get(page, "found");
    struct list *list = arg;
    int status = 0;

    for (size_t i = 0; status == 0 && i < json_array_size(found); i++) {
        if (list->met++ == list->limit)
            status = ENOUGH;
        else if (list->cli->json)
            status = json_print(list->cli, dead_document(page, i));
        else
            status = add_row(list, page, i);
    }
    return status;
}

int dead_run_list(struct cli *cli, struct weir *w)
{
    struct list list = {.cli = cli, .limit = dead_given.limit, .rows = json_array()};
    struct dead_walk walk = {.w = w,
                             .verb = "list",
                             .filter = dead_given.filter,
                             .body_bytes = cli->json ? INT32_MAX : 0,
                             .take = list_page,
                             .arg = &list};
    char shown[PHRASE_SIZE];
    int status;

    if (dead_given.group) {
        json_decref(list.rows);
        return dead_run_groups(cli, w);
    }
    status = dead_go(cli, &walk);
    if (status >= 0)
        status = print_rows(&list);
    json_decref(list.rows);
    if (status == 0 && list.met == 0 && !cli->json)
        output_to(stderr, "no dead jobs there\n");
    if (status == 0 && list.met > list.limit)
        output_to(stderr, "%s shown, the newest; --limit N shows more\n",
                  counted(list.limit, "dead job", shown));
    return status;
}

/* ---- show */

struct view {
    struct cli *cli;
    bool raw, met;
};

/* "3; interrupted 1 time, throttled 2 times" */
static void put_attempts(FILE *to, const json_t *doc)
{
    int64_t interrupted = answer_int(doc, "interrupted"), throttled = answer_int(doc, "throttled");
    char text[PHRASE_SIZE];

    output_to(to, "%s", grouped((uint64_t)answer_int(doc, "attempts"), text));
    if (interrupted > 0)
        output_to(to, "; interrupted %s", counted(interrupted, "time", text));
    if (throttled > 0)
        output_to(to, "%s throttled %s", interrupted > 0 ? "," : ";", counted(throttled, "time", text));
}

static void put_failure(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *at = json_object_get(doc, "failed_at");
    char when[PHRASE_SIZE];

    if (json_is_number(at))
        output_to(to, "%s: %s", format_when(now_us, json_us(at), when), answer_text(doc, "failure"));
}

static const struct column sheet[] = {
    COLUMN("job", "id"),
    COLUMN("enqueued", "enqueued_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("due", "due_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("died", "since", .show = SHOW_WHEN),
    COLUMN("reason", "reason", .drop = 1, .tone = TONE_WRONG),
    COLUMN("type", "type", .drop = 1),
    COLUMN("queue", "queue", .drop = 1),
    COLUMN("key", "key", .drop = 1),
    {.heading = "attempts", .put = put_attempts},
    {.heading = "failed before", .put_at = put_failure, .drop = 1},
    COLUMN("batch", "batch", .drop = 1),
    COLUMN("unique", "unique", .drop = 1),
    COLUMN("body", "bytes", .show = SHOW_BYTES),
    {.heading = NULL},
};

static int print_sheet(struct cli *cli, json_t *doc, struct span body)
{
    int status = sheet_print(cli, stdout, sheet, doc, clock_wall_us());

    json_decref(doc);
    text_print(body, 0);
    putchar('\n');
    return status;
}

static int show_page(const json_t *page, void *arg)
{
    const json_t *found = json_object_get(page, "found");
    struct view *view = arg;
    int status = 0;

    for (size_t i = 0; status == 0 && i < json_array_size(found); i++) {
        struct span body = dead_body(page, i);

        view->met = true;
        if (view->raw && cli_is_terminal(stdout))
            text_print(body, 0);
        else if (view->raw)
            fwrite(body.at, 1, body.len, stdout);
        else if (view->cli->json)
            status = json_print(view->cli, dead_document(page, i));
        else
            status = print_sheet(view->cli, dead_document(page, i), body);
    }
    return status;
}

int dead_run_show(struct cli *cli, struct weir *w)
{
    struct view view = {.cli = cli, .raw = dead_given.raw};
    struct dead_walk walk = {.w = w,
                             .verb = "list",
                             .filter = dead_given.filter,
                             .body_bytes = INT32_MAX,
                             .take = show_page,
                             .arg = &view};
    int status = dead_go(cli, &walk);

    if (status == 0 && !view.met)
        return error_set(&cli->error, WEIR_ENOTFOUND,
                         "dead show %.150s: not among the dead jobs; weir dead list names them",
                         cli->operands[0]);
    return status;
}
