/* weir verify: were the rates kept? */
#include "throttle/verify/verify.h"

#include <inttypes.h>

#include "cli/command/commands.h"
#include "cli/json.h"

static int run_verify(struct cli *cli, int argc, char **argv);

const struct command command_verify = {.name = "verify", .run = run_verify};

/* The last window is the rule's own period, which may be one of those before it. */
static size_t window_count(const struct verify_use *use)
{
    for (size_t i = 0; i + 1 < VERIFY_WINDOWS; i++)
        if (use->windows[i].window_us == use->windows[VERIFY_WINDOWS - 1].window_us)
            return VERIFY_WINDOWS - 1;
    return VERIFY_WINDOWS;
}

static bool starts_hold(const struct verify *v)
{
    return v->before_slot + v->after_slot + v->crowded == 0;
}

static double rate_of(const struct rule *rule)
{
    return (double)rule->count * 1e6 / (double)rule->period_us;
}

static void print_lateness(const struct verify_lateness *l)
{
    const struct {
        const char *name;
        int64_t us;
    } rows[] = {{"min", l->min_us},
                {"p50", l->p50_us},
                {"p99", l->p99_us},
                {"p99.9", l->p999_us},
                {"max", l->max_us}};

    output("  handlers started after their slot:");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        output("%s %s %.2fms", i ? "," : "", rows[i].name, (double)rows[i].us / 1e3);
    putchar('\n');
}

static void print_windows(const struct verify_use *use)
{
    size_t count = window_count(use);
    char window[32];

    for (size_t i = 0; i < count; i++) {
        duration_format(use->windows[i].window_us, window);
        output("%s in any %s: %" PRId64 " of %" PRId64 " allowed", i ? ";" : "  most", window,
               use->windows[i].most, use->windows[i].allowed);
    }
    putchar('\n');
}

static void print_rate_use(const struct verify_use *use, const struct rule *rule)
{
    char window[32];

    if (use->kept >= 0)
        output("  rate kept %.6g/s of %.6g/s: %.4f beyond the first burst\n", use->kept * rate_of(rule),
               rate_of(rule), use->kept);
    if (use->gap >= 0)
        output("  smallest gap %.4f T\n", use->gap);
    print_windows(use);
    duration_format(use->started.window_us, window);
    output("  most started in any %s: %" PRId64 " of %" PRId64 " allowed\n", window, use->started.most,
           use->started.allowed);
}

static void print_crowded(uint64_t crowded)
{
    if (crowded)
        output(", %" PRIu64 " where too many had started", crowded);
    putchar('\n');
}

static void print_rule(const struct verify_rule *r)
{
    const struct verify_use *use = &r->worst;
    char rule[RULE_TEXT_SIZE];

    rule_format(&r->rule, rule);
    output("limit %s, %s%s: %" PRIu64 " starts, %" PRIu64 " too early", r->limit, rule,
           use->stretches > 1 ? " at last" : "", r->starts, r->violations);
    print_crowded(r->crowded);
    if (*r->rule.by)
        output("  %zu keys; the fullest is %s: %" PRIu64 " starts, %" PRIu64 " too early\n", r->keys,
               *r->worst_key ? r->worst_key : "that without a key", use->starts, use->violations);
    if (use->allowed_at_once)
        output("  most at once: %" PRId64 " of %" PRId64 " allowed\n", use->most_at_once,
               use->allowed_at_once);
    else
        print_rate_use(use, &r->rule);
}

static void print_type(const struct verify_type *t)
{
    output("%s: %" PRIu64 " starts in %.3fs, ", t->name, t->starts, (double)t->span_us / 1e6);
    if (!t->limited) {
        puts("no limit");
        return;
    }
    output("%" PRIu64 " too early", t->violations);
    print_crowded(t->crowded);
    print_lateness(&t->lateness);
    if (t->before_slot)
        output("  %" PRIu64 " handlers started more than 1 s before their slots\n", t->before_slot);
    if (t->after_slot)
        output("  %" PRIu64 " handlers started more than 1 s after their slots\n", t->after_slot);
}

static void print_violation(const struct verify_violation *violation)
{
    char rule[RULE_TEXT_SIZE];

    rule_format(&violation->rule, rule);
    output("%s:%zu: %s: limit %s, %s%s%s: ", violation->file, violation->line, violation->type,
           violation->limit, rule, *violation->key ? ", key " : "", violation->key);
    if (violation->started)
        puts("started where too many had");
    else if (violation->early_us == VERIFY_NEVER)
        puts("its cost never fits");
    else
        output("%" PRId64 "us too early\n", violation->early_us);
}

static void print_report(const struct verify *v)
{
    for (size_t i = 0; i < v->type_count; i++)
        print_type(&v->types[i]);
    for (size_t i = 0; i < v->rule_count; i++)
        print_rule(&v->rules[i]);
    for (size_t i = 0; i < v->violations + v->crowded && i < VERIFY_NAMED_MAX; i++)
        print_violation(&v->named[i]);
    if (v->violations + v->crowded > VERIFY_NAMED_MAX)
        output("and %" PRIu64 " more\n", v->violations + v->crowded - VERIFY_NAMED_MAX);
    if (v->starts == 0)
        puts("no starts");
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

static json_t *windows_json(const struct verify_use *use)
{
    json_t *windows = json_array();
    size_t count = window_count(use);

    for (size_t i = 0; i < count; i++)
        json_array_append_new(windows, window_json(&use->windows[i]));
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
    if (*r->rule.by) {
        json_object_set_new(json, "keys", json_integer((json_int_t)r->keys));
        json_object_set_new(json, "fullest_key", json_string(r->worst_key));
    }
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

static json_t *type_json(const struct verify_type *t)
{
    const struct verify_lateness *l = &t->lateness;

    if (!t->limited)
        return json_pack("{s:I,s:o,s:n,s:I,s:I,s:I,s:I}", "starts", (json_int_t)t->starts, "span",
                         json_seconds(t->span_us), "lateness", "violations", (json_int_t)0, "before_slot",
                         (json_int_t)0, "after_slot", (json_int_t)0, "crowded", (json_int_t)0);
    return json_pack("{s:I,s:o,s:{s:o,s:o,s:o,s:o,s:o},s:I,s:I,s:I,s:I}", "starts", (json_int_t)t->starts,
                     "span", json_seconds(t->span_us), "lateness", "min", json_seconds(l->min_us), "p50",
                     json_seconds(l->p50_us), "p99", json_seconds(l->p99_us), "p999",
                     json_seconds(l->p999_us), "max", json_seconds(l->max_us), "violations",
                     (json_int_t)t->violations, "before_slot", (json_int_t)t->before_slot, "after_slot",
                     (json_int_t)t->after_slot, "crowded", (json_int_t)t->crowded);
}

static json_t *violation_json(const struct verify_violation *violation)
{
    json_t *file = json_string(violation->file); /* NULL when it is not UTF-8 */
    char rule[RULE_TEXT_SIZE];

    rule_format(&violation->rule, rule);
    return json_pack("{s:o,s:I,s:s,s:s,s:s,s:I,s:s,s:s,s:o}", "file", file ? file : json_null(), "line",
                     (json_int_t)violation->line, "failed_by", violation->started ? "start" : "slot", "type",
                     violation->type, "limit_name", violation->limit, "index", (json_int_t)violation->index,
                     "rule", rule, "key", violation->key, "early",
                     violation->early_us == VERIFY_NEVER ? json_null() : json_seconds(violation->early_us));
}

static json_t *report_json(const struct verify *v)
{
    json_t *types = json_object(), *named = json_array();

    for (size_t i = 0; i < v->type_count; i++)
        json_object_set_new(types, v->types[i].name, type_json(&v->types[i]));
    for (size_t i = 0; i < v->violations + v->crowded && i < VERIFY_NAMED_MAX; i++)
        json_array_append_new(named, violation_json(&v->named[i]));
    return json_pack("{s:b,s:b,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o}", "ok",
                     v->violations == 0 && starts_hold(v), "slots_hold", v->violations == 0, "starts_hold",
                     starts_hold(v), "starts", (json_int_t)v->starts, "violations", (json_int_t)v->violations,
                     "before_slot", (json_int_t)v->before_slot, "after_slot", (json_int_t)v->after_slot,
                     "crowded", (json_int_t)v->crowded, "lost", (json_int_t)v->lost, "types", types, "rules",
                     rules_json(v), "named", named);
}

static int read_traces(struct cli *cli, struct verify *v, char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t lost = v->lost;
        size_t torn_line;

        if (verify_read(v, paths[i], &torn_line, &cli->error) < 0)
            return cli->error.status;
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

/* Which of the two failed. */
static int verdict(const struct verify *v, struct error *e)
{
    char slots[128] = "", starts[256] = "";
    uint64_t wrong = v->before_slot ? v->before_slot : v->after_slot ? v->after_slot : v->crowded;

    if (v->violations)
        snprintf(slots, sizeof slots,
                 "slots: %" PRIu64 " times in %" PRIu64 " starts a gate was not open yet", v->violations,
                 v->starts);
    if (!starts_hold(v))
        snprintf(starts, sizeof starts, "starts: %" PRIu64 " of %" PRIu64 " handlers started %s", wrong,
                 v->starts,
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
    int status = 0;

    if (cli->json)
        status = json_print(cli, report_json(v));
    else
        print_report(v);
    return status == 0 ? verdict(v, &cli->error) : status;
}

static int run_verify(struct cli *cli, int argc, char **argv)
{
    struct verify v;
    int operands, status;

    if (cli_parse(cli, NULL, argc, argv, &operands) < 0)
        return cli->error.status;
    if (operands == 0)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "verify: no trace; give the files that weir worker --trace wrote");
    status = verify_init(&v, &cli->error);
    if (status == 0)
        status = read_traces(cli, &v, argv, operands);
    if (status == 0)
        status = report(cli, &v);
    verify_free(&v);
    return status;
}
