/* weir rate set --dry-run: when what waits now would have started, under the rules that hold and under
 * others. */
#include "cli/document/json.h"
#include "cli/document/table.h"
#include "cli/rate/rate.h"
#include "queue/inspect/status.h"

static json_t *change_json(const struct limit_type *type, const struct forecast *now,
                           const struct forecast *then)
{
    return json_pack("{s:I,s:I,s:o,s:b,s:o,s:o,s:b,s:o}", "waiting", (json_int_t)type->waiting, "parked",
                     (json_int_t)type->parked, "finish_at", json_time(now->last_us), "at_the_earliest",
                     now->because != 0, "because", rate_because_json(now->because), "new_finish_at",
                     json_time(then->last_us), "new_at_the_earliest", then->because != 0, "new_because",
                     rate_because_json(then->because));
}

/* Both forecasts of each type that the limit holds and that has jobs waiting, added to types. */
static int forecast_both(struct cli *cli, const struct limits *limits, const struct limit *after,
                         json_t *types)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, after->name, &count);

    for (size_t i = 0; i < count; i++) {
        const struct limit_type *type = holds[i].type;
        struct forecast now, then;

        if (type->waiting + type->parked == 0)
            continue;
        if (forecast_type(limits, type, NULL, &now, &cli->error) < 0 ||
            forecast_type(limits, type, after, &then, &cli->error) < 0)
            return cli->error.status;
        json_object_set_new(types, type->name, change_json(type, &now, &then));
    }
    return 0;
}

/* A reason that both have stands behind the second. */
static void put_now(FILE *to, const json_t *row, int64_t now_us)
{
    const json_t *because = json_object_get(row, "because");

    rate_put_end(to, json_object_get(row, "finish_at"),
                 json_equal(because, json_object_get(row, "new_because")) ? NULL : because, now_us);
}

static void put_then(FILE *to, const json_t *row, int64_t now_us)
{
    rate_put_end(to, json_object_get(row, "new_finish_at"), json_object_get(row, "new_because"), now_us);
}

static const struct column columns[] = {
    COLUMN("type", ""),
    COLUMN("waiting", "waiting", .show = SHOW_COUNT, .drop = 1),
    COLUMN("parked", "parked", .show = SHOW_COUNT, .drop = 2),
    {.heading = "last start", .put = put_now, .show = SHOW_WHEN},
    {.heading = "it would be", .put = put_then, .show = SHOW_WHEN, .rest = true},
    {.heading = NULL},
};

static int print_text(struct cli *cli, const struct limits *limits, const struct limit *after,
                      const json_t *types)
{
    const struct limit *before = limits_find(limits, after->name);
    char old[RULE_SET_TEXT_SIZE] = "no rules", new[RULE_SET_TEXT_SIZE];

    rule_set_format(&after->set, new);
    if (before && before->readable)
        rule_set_format(&before->set, old);
    output("%s: nothing was changed; now: %s; then: %s\n", after->name, old, new);
    if (json_object_size(types) > 0)
        return table_print(cli, stdout, columns, types, limits->now_us);
    output("no job that it holds is waiting\n");
    return 0;
}

static int print_changes(struct cli *cli, const struct limits *limits, const struct limit *after)
{
    json_t *types = json_object();
    int status = forecast_both(cli, limits, after, types);

    if (status == 0 && cli->json)
        return json_print(cli, json_pack("{s:s,s:b,s:o,s:o}", "name", after->name, "dry_run", 1, "rules",
                                         rate_rules_json(&after->set), "types", types));
    if (status == 0)
        status = print_text(cli, limits, after, types);
    json_decref(types);
    return status;
}

int rate_print_dry(struct cli *cli, struct weir *w, const char *name, const struct rate_kept *kept)
{
    struct limits limits;
    struct limit after = {0};
    int status = status_limits(w, -1, &limits);

    status = status < 0
                 ? cli_failed(cli, w)
                 : limit_change(limits_find(&limits, name), name, kept, limits.now_us, &after, &cli->error);
    if (status == 0)
        status = print_changes(cli, &limits, &after);
    limit_free(&after);
    limits_free(&limits);
    return status;
}
