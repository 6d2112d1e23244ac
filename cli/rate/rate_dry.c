/* weir rate set --dry-run: when what waits now would have started, under the rules that hold and under
 * others. */
#include "view/rate_dry.h"
#include "cli/document/json.h"
#include "cli/document/table.h"
#include "cli/rate/rate.h"

/* A reason that both times have stands behind the second. */
static void put_now(FILE *to, const json_t *row, int64_t now_us)
{
    const json_t *at = json_object_get(row, "finish_at"), *because = json_object_get(row, "because");

    if (json_is_number(at) && json_equal(because, json_object_get(row, "new_because")))
        because = NULL;
    rate_put_end(to, at, because, now_us);
}

static void put_then(FILE *to, const json_t *row, int64_t now_us)
{
    rate_put_end(to, json_object_get(row, "new_finish_at"), json_object_get(row, "new_because"), now_us);
}

static const struct column columns[] = {
    COLUMN("type", ""),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT, .drop = 1),
    COLUMN("parked", "parked", .show = SHOW_COUNT, .drop = 2),
    {.heading = "last start", .put_at = put_now, .show = SHOW_WHEN},
    {.heading = "it would be", .put_at = put_then, .show = SHOW_WHEN, .rest = true},
    {.heading = NULL},
};

static int print_text(struct cli *cli, const struct limits *limits, const struct limit *after, int64_t lost,
                      const json_t *types)
{
    const struct limit *before = limits_find(limits, after->name);
    char old[RULE_SET_TEXT_SIZE] = "no rules", new[RULE_SET_TEXT_SIZE];

    rule_set_format(&after->set, new);
    if (before && before->readable)
        rule_set_format(&before->set, old);
    output("%s: nothing was changed; now: %s; then: %s\n", after->name, old, new);
    rate_print_lost(after->name, lost);
    if (json_object_size(types) > 0)
        return table_print(cli, stdout, columns, types, limits->now_us);
    output("no job that it holds is waiting\n");
    return 0;
}

static int print_changes(struct cli *cli, const struct limits *limits, const struct limit *after,
                         const char *dropped, int64_t lost)
{
    json_t *doc;
    int status = rate_dry_document(limits, after, dropped, &doc, &cli->error);

    if (status == 0 && cli->json)
        return json_print(cli, doc);
    if (status == 0)
        status = print_text(cli, limits, after, lost, json_object_get(doc, "types"));
    if (status == 0)
        rate_print_dropped(
            after->name, dropped,
            json_string_value(json_object_get(json_array_get(json_object_get(doc, "rules"), 0), "rule")));
    json_decref(doc);
    return status;
}

int rate_print_dry(struct cli *cli, struct weir *w, const char *name, const struct rule_set *kept,
                   const char *dropped, int64_t lost)
{
    struct limits limits;
    struct limit after;
    int status = rate_dry_look(w, name, kept, &limits, &after);

    status = status < 0 ? cli_failed(cli, w) : print_changes(cli, &limits, &after, dropped, lost);
    limit_free(&after);
    limits_free(&limits);
    return status;
}
