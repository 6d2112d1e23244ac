/* weir verify: were the rates kept? */
#include "throttle/verify/verify.h"

#include <inttypes.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/document/table.h"
#include "cli/document/text.h"
#include "view/format.h"

static bool starts_hold(const struct verify *v)
{
    return v->before_slot + v->after_slot + v->crowded == 0;
}

static double rate_of(const struct rule *rule)
{
    return (double)rule->count * 1e6 / (double)rule->period_us;
}

/* ---- JSON */

static json_t *real_or_null(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

static json_t *window_json(const struct verify_window *w)
{
    return json_pack("{s:o,s:I,s:I}", "window", json_seconds(w->window_us), "most", (json_int_t)w->most,
                     "most_allowed", (json_int_t)w->allowed);
}

/* The last window is the rule's own period, which may be one of those before it. */
static json_t *windows_json(const struct verify_use *use)
{
    const struct verify_window *own = &use->windows[VERIFY_WINDOWS - 1];
    json_t *windows = json_array();
    bool have_own = false;

    for (const struct verify_window *w = use->windows; w < own; w++) {
        json_array_append_new(windows, window_json(w));
        have_own |= w->window_us == own->window_us;
    }
    if (!have_own)
        json_array_append_new(windows, window_json(own));
    return windows;
}

/* Of the gate that is used most. */
static json_t *use_json(const struct verify_use *use, const struct rule *rule)
{
    if (use->allowed_at_once)
        return json_pack("{s:I,s:I}", "most_at_once", (json_int_t)use->most_at_once, "allowed_at_once",
                         (json_int_t)use->allowed_at_once);
    return json_pack("{s:f,s:o,s:o,s:o,s:o,s:o}", "rate_set", rate_of(rule), "rate_kept",
                     real_or_null(use->kept < 0 ? -1 : use->kept * rate_of(rule)), "kept",
                     real_or_null(use->kept), "smallest_gap", real_or_null(use->gap), "windows",
                     windows_json(use), "started", window_json(&use->started));
}

static json_t *rule_json(const struct verify_rule *r)
{
    char rule[RULE_TEXT_SIZE];
    json_t *json;

    rule_format(&r->rule, rule);
    json = json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "limit_name", r->limit, "rule", rule, "starts",
                     (json_int_t)r->starts, "violations", (json_int_t)r->violations, "crowded",
                     (json_int_t)r->crowded, "stretches", (json_int_t)r->worst.stretches);
    if (*r->rule.by)
        json_object_update_new(json, json_pack("{s:I,s:s,s:I}", "keys", (json_int_t)r->keys, "fullest_key",
                                               r->worst_key, "fullest_starts", (json_int_t)r->worst.starts));
    json_object_update_new(json, use_json(&r->worst, &r->rule));
    return json;
}

static json_t *rules_json(const struct verify *v)
{
    json_t *rules = json_array();

    for (size_t i = 0; i < v->rule_count; i++)
        json_array_append_new(rules, rule_json(&v->rules[i]));
    return rules;
}

static json_t *lateness_json(const struct verify_lateness *l)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "min", json_seconds(l->min_us), "p50", json_seconds(l->p50_us),
                     "p99", json_seconds(l->p99_us), "p999", json_seconds(l->p999_us), "max",
                     json_seconds(l->max_us));
}

static json_t *type_json(const struct verify_type *t)
{
    return json_pack("{s:I,s:o,s:o,s:I,s:I,s:I,s:I}", "starts", (json_int_t)t->starts, "span",
                     json_seconds(t->span_us), "lateness",
                     t->limited ? lateness_json(&t->lateness) : json_null(), "violations",
                     (json_int_t)t->violations, "before_slot", (json_int_t)t->before_slot, "after_slot",
                     (json_int_t)t->after_slot, "crowded", (json_int_t)t->crowded);
}

static json_t *violation_json(const struct verify_violation *violation)
{
    char rule[RULE_TEXT_SIZE];

    rule_format(&violation->rule, rule);
    return json_pack("{s:o,s:I,s:s,s:s,s:s,s:I,s:s,s:s,s:o}", "file", text_word(violation->file), "line",
                     (json_int_t)violation->line, "failed_by", violation->started ? "start" : "slot", "type",
                     violation->type, "limit_name", violation->limit, "index", (json_int_t)violation->index,
                     "rule", rule, "key", violation->key, "early",
                     violation->early_us == VERIFY_NEVER ? json_null() : json_seconds(violation->early_us));
}

static json_t *report_json(const struct verify *v)
{
    json_t *types = json_object(), *named = json_array(), *backs = json_object();

    for (size_t i = 0; i < v->type_count; i++)
        json_object_set_new(types, v->types[i].name, type_json(&v->types[i]));
    for (size_t i = 0; i < v->violations + v->crowded && i < VERIFY_NAMED_MAX; i++)
        json_array_append_new(named, violation_json(&v->named[i]));
    for (const struct verify_back *b = v->backs; b < v->backs + VERIFY_BACKS; b++)
        if (b->slots > 0)
            json_object_set_new(backs, b->why, json_integer((json_int_t)b->slots));
    return json_pack("{s:b,s:b,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o,s:o}", "ok",
                     v->violations == 0 && starts_hold(v), "slots_hold", v->violations == 0, "starts_hold",
                     starts_hold(v), "starts", (json_int_t)v->starts, "violations", (json_int_t)v->violations,
                     "before_slot", (json_int_t)v->before_slot, "after_slot", (json_int_t)v->after_slot,
                     "crowded", (json_int_t)v->crowded, "lost", (json_int_t)v->lost, "given_back", backs,
                     "types", types, "rules", rules_json(v), "named", named);
}

/* ---- Text */

static void put_rule(FILE *to, const json_t *row)
{
    output_to(to, "%s%s", json_text_of(row, "rule"), json_int_of(row, "stretches") > 1 ? " at last" : "");
}

static void put_window(FILE *to, const json_t *window)
{
    char most[32], allowed[32], span[32];

    duration_format(json_us(json_object_get(window, "window")), span);
    output_to(to, "%s of %s in %s", grouped((uint64_t)json_int_of(window, "most"), most),
              grouped((uint64_t)json_int_of(window, "most_allowed"), allowed), span);
}

static void put_most(FILE *to, const json_t *row)
{
    const json_t *windows = json_object_get(row, "windows");

    for (size_t i = 0; i < json_array_size(windows); i++) {
        output_to(to, "%s", i ? ", " : "");
        put_window(to, json_array_get(windows, i));
    }
    if (!windows)
        output_to(to, "%" PRId64 " of %" PRId64 " at once", json_int_of(row, "most_at_once"),
                  json_int_of(row, "allowed_at_once"));
}

static void put_started(FILE *to, const json_t *row)
{
    const json_t *started = json_object_get(row, "started");

    if (started)
        put_window(to, started);
}

static const struct column type_columns[] = {
    COLUMN("type", ""),
    COLUMN("starts", "starts", .show = SHOW_COUNT),
    COLUMN("time", "span", .show = SHOW_SPAN, .drop = 3),
    COLUMN("too early", "violations", .show = SHOW_COUNT, .tone = TONE_WRONG),
    COLUMN("crowded", "crowded", .show = SHOW_COUNT, .drop = 1, .tone = TONE_WRONG),
    COLUMN("before slot", "before_slot", .show = SHOW_COUNT, .drop = 1, .tone = TONE_WRONG),
    COLUMN("after slot", "after_slot", .show = SHOW_COUNT, .drop = 1, .tone = TONE_WRONG),
    COLUMN("late p50", "lateness.p50", .show = SHOW_SPAN, .drop = 4),
    COLUMN("p99", "lateness.p99", .show = SHOW_SPAN, .drop = 5),
    COLUMN("max", "lateness.max", .show = SHOW_SPAN, .drop = 2),
    {.heading = NULL},
};

static const struct column rule_columns[] = {
    COLUMN("limit", "limit_name"),
    COLUMN("rule", NULL, .put = put_rule),
    COLUMN("starts", "starts", .show = SHOW_COUNT, .drop = 3),
    COLUMN("too early", "violations", .show = SHOW_COUNT, .tone = TONE_WRONG),
    COLUMN("crowded", "crowded", .show = SHOW_COUNT, .drop = 1, .tone = TONE_WRONG),
    COLUMN("keys", "keys", .show = SHOW_COUNT, .drop = 5),
    COLUMN("fullest key", "fullest_key", .drop = 6),
    COLUMN("its starts", "fullest_starts", .show = SHOW_COUNT, .drop = 9),
    COLUMN("kept", "kept", .drop = 2),
    COLUMN("least gap in T", "smallest_gap", .drop = 8),
    COLUMN("most slots", NULL, .put = put_most, .drop = 7),
    COLUMN("most starts", NULL, .put = put_started, .drop = 4),
    {.heading = NULL},
};

static void print_violation(const json_t *named)
{
    const json_t *early = json_object_get(named, "early");
    const char *key = json_text_of(named, "key");
    char span[32];

    output("%s:%" PRId64 ": %s: limit %s, %s%s%s: ", json_text_of(named, "file"), json_int_of(named, "line"),
           json_text_of(named, "type"), json_text_of(named, "limit_name"), json_text_of(named, "rule"),
           *key ? ", key " : "", key);
    if (strcmp(json_text_of(named, "failed_by"), "start") == 0) {
        puts("started where too many had");
    } else if (!json_is_number(early)) {
        puts("its cost never fits");
    } else {
        duration_format(json_us(early), span);
        output("%s too early\n", span);
    }
}

static void print_violations(const json_t *doc)
{
    const json_t *named = json_object_get(doc, "named");
    size_t count = json_array_size(named);
    uint64_t all = (uint64_t)(json_int_of(doc, "violations") + json_int_of(doc, "crowded"));
    char more[32];

    if (count > 0)
        putchar('\n');
    for (size_t i = 0; i < count; i++)
        print_violation(json_array_get(named, i));
    if (all > count)
        output("and %s more\n", grouped(all - count, more));
}

static void print_backs(const json_t *backs)
{
    const char *why, *before = "slots that came back, as no handler was called: ";
    char count[32], words[PHRASE_SIZE];
    json_t *slots;

    if (json_object_size(backs) > 0)
        putchar('\n');
    json_object_foreach((json_t *)backs, why, slots) {
        output("%s%s %s", before, grouped((uint64_t)json_integer_value(slots), count), worded(why, words));
        before = ", ";
    }
    if (json_object_size(backs) > 0)
        putchar('\n');
}

static int print_report(struct cli *cli, const json_t *doc)
{
    const json_t *types = json_object_get(doc, "types"), *rules = json_object_get(doc, "rules");
    int status = 0;

    if (json_object_size(types) == 0)
        output_to(stderr, "no starts in these traces\n");
    else
        status = table_print(cli, stdout, type_columns, types, 0);
    if (status == 0 && json_array_size(rules) > 0) {
        putchar('\n');
        status = table_print(cli, stdout, rule_columns, rules, 0);
    }
    print_backs(json_object_get(doc, "given_back"));
    print_violations(doc);
    return status;
}

/* ---- The command */

static int read_traces(struct cli *cli, struct verify *v, char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t lost = v->lost;
        size_t torn_line;

        if (verify_read(v, paths[i], &torn_line, &cli->error) < 0)
            return cli->error.status;
        if (v->torn_first)
            output_to(
                stderr,
                "weir: %s:1: torn first line: the file was cut; read from line 2 on, and starts before it "
                "are not judged\n",
                paths[i]);
        if (torn_line)
            output_to(stderr, "weir: %s:%zu: torn last line: its worker was killed; passed over\n", paths[i],
                      torn_line);
        if (v->lost > lost)
            output_to(stderr,
                      "weir: %s: it has a gap: %" PRIu64
                      " lines could not be written; starts that are missing are not judged\n",
                      paths[i], v->lost - lost);
    }
    return verify_replay(v, &cli->error);
}

/* Says whether slots or starts failed. */
static int verdict(const struct verify *v, struct error *e)
{
    char slots[PHRASE_SIZE + 64] = "", starts[PHRASE_SIZE + 64] = "", count[PHRASE_SIZE];
    uint64_t wrong = v->before_slot ? v->before_slot : v->after_slot ? v->after_slot : v->crowded;

    if (v->violations)
        snprintf(slots, sizeof slots, "slots: %s among %" PRIu64 " starts: a gate was not open yet",
                 counted((int64_t)v->violations, "violation", count), v->starts);
    if (!starts_hold(v))
        snprintf(starts, sizeof starts, "starts: %" PRIu64 " of %s began %s", wrong,
                 counted((int64_t)v->starts, "handler", count),
                 v->before_slot  ? "more than 1 s before their slots"
                 : v->after_slot ? "more than 1 s after their slots"
                                 : "where too many had");
    if (!*slots && !*starts)
        return 0;
    return error_set(e, WEIR_EINPUT, "verify: %s%s%s%s", slots, *slots && *starts ? "; " : "", starts,
                     *slots ? ""
                            : "; the slots keep the rates; compare the clocks of these machines with "
                              "that of Redis");
}

static int report(struct cli *cli, const struct verify *v)
{
    json_t *doc = report_json(v);
    int status;

    if (cli->json || !doc)
        return json_print(cli, doc);
    status = print_report(cli, doc);
    json_decref(doc);
    return status;
}

static int act(struct cli *cli, struct weir *w)
{
    struct verify v;
    int status;

    (void)w;
    if (cli->operand_count == 0)
        return cli_usage(cli, "verify: no trace; give the files that weir worker --trace wrote");
    status = verify_init(&v, &cli->error);
    if (status == 0)
        status = read_traces(cli, &v, cli->operands, cli->operand_count);
    if (status == 0)
        status = report(cli, &v);
    if (status == 0)
        status = verdict(&v, &cli->error);
    verify_free(&v);
    return status;
}

const struct command command_verify = {
    .name = "verify", .run = cli_run, .no_redis = true, .takes_operands = true, .act = act};
