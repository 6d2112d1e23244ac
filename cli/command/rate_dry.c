/* weir rate set --dry-run: when what waits now would have started, under the rules that hold and under
 * others. */
#include <inttypes.h>
#include <string.h>

#include "cli/text.h"

#include "cli/command/rate.h"
#include "cli/outlook.h"
#include "queue/inspect/status.h"

#define FORMAT_SIZE 200

struct change {
    const struct limit_type *type;
    struct forecast now, then;
};

static void format_end(int64_t now_us, const struct forecast *f, char out[FORMAT_SIZE])
{
    char when[96], doubt[EARLIEST_SIZE];

    rate_format_when(now_us, f->last_us, when);
    snprintf(out, FORMAT_SIZE, "%s%s", when, f->last_us != GATE_NEVER ? earliest(f->because, doubt) : "");
}

static void print_change(const struct limits *limits, const struct change *o)
{
    char now[FORMAT_SIZE], then[FORMAT_SIZE];

    format_end(limits->now_us, &o->now, now);
    format_end(limits->now_us, &o->then, then);
    output("  %s: %" PRId64 " waiting, %" PRId64 " parked; the last starts %s; it would start %s\n",
           o->type->name, o->type->waiting, o->type->parked, now, then);
}

static json_t *change_json(const struct change *o)
{
    return json_pack("{s:I,s:I,s:o,s:b,s:o,s:b}", "waiting", (json_int_t)o->type->waiting, "parked",
                     (json_int_t)o->type->parked, "finish_at", json_time(o->now.last_us), "at_the_earliest",
                     o->now.because != 0, "new_finish_at", json_time(o->then.last_us), "new_at_the_earliest",
                     o->then.because != 0);
}

/* Both forecasts of each type that the limit holds and that has jobs waiting; *count of them. */
static int forecast_both(struct cli *cli, const struct limits *limits, const struct limit *after,
                         struct change *changes, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < limits->type_count; i++) {
        const struct limit_type *type = &limits->types[i];
        struct change *o = &changes[*count];

        if (!limit_holds(type, after->name) || type->waiting + type->parked == 0)
            continue;
        o->type = type;
        if (forecast_type(limits, type, NULL, &o->now, &cli->error) < 0 ||
            forecast_type(limits, type, after, &o->then, &cli->error) < 0)
            return cli->error.status;
        ++*count;
    }
    return 0;
}

static int print_json(struct cli *cli, const struct limit *after, const struct change *changes, size_t count)
{
    json_t *types = json_object();

    for (size_t i = 0; i < count; i++)
        json_object_set_new(types, changes[i].type->name, change_json(&changes[i]));
    return json_print(cli, json_pack("{s:s,s:b,s:o,s:o}", "name", after->name, "dry_run", 1, "rules",
                                     rate_rules_json(&after->set), "types", types));
}

static void print_text(const struct limits *limits, const struct limit *after, const struct change *changes,
                       size_t count)
{
    const struct limit *before = limits_find(limits, after->name);
    char old[RULE_SET_TEXT_SIZE] = "no rules", new[RULE_SET_TEXT_SIZE];

    rule_set_format(&after->set, new);
    if (before && before->readable)
        rule_set_format(&before->set, old);
    output("%s: nothing was changed; now: %s; then: %s\n", after->name, old, new);
    for (size_t i = 0; i < count; i++)
        print_change(limits, &changes[i]);
    if (count == 0)
        puts("  no job that it holds is waiting");
}

static int print_changes(struct cli *cli, const struct limits *limits, const struct limit *after)
{
    struct change *changes = calloc(limits->type_count + 1, sizeof *changes);
    size_t count;
    int status;

    if (!changes)
        return error_set(&cli->error, WEIR_EINTERNAL, "rate set: out of memory; free some and try again");
    status = forecast_both(cli, limits, after, changes, &count);
    if (status == 0 && cli->json)
        status = print_json(cli, after, changes, count);
    else if (status == 0)
        print_text(limits, after, changes, count);
    free(changes);
    return status;
}

int rate_print_dry(struct cli *cli, struct weir *w, const char *name, const struct rate_kept *kept)
{
    struct limits limits;
    struct limit after;
    int status = status_limits(w, &limits);

    if (status < 0) {
        limits_free(&limits);
        return cli_failed(cli, w);
    }
    status = limit_change(limits_find(&limits, name), name, kept, limits.now_us, &after, &cli->error);
    if (status == 0) {
        status = print_changes(cli, &limits, &after);
        limit_free(&after);
    }
    limits_free(&limits);
    return status;
}
