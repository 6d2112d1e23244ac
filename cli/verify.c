/* weir verify: were the rates kept? */
#include "throttle/verify.h"

#include <inttypes.h>

#include "cli/cli.h"
#include "cli/json.h"

static int run_verify(struct cli *cli, int argc, char **argv);

const struct command command_verify = {
    .name = "verify",
    .usage = "TRACE...",
    .summary = "Replays the starts in traces of weir worker --trace; exit 65 when any came too early.",
    .text = "Give the traces of all workers at once: together they are the rate. Every start is held against "
            "GCRA in\n"
            "exact time; each that came before its gate opened is named. A trace cannot tell when Redis's "
            "own clock was\n"
            "set back: what was started on both sides of that looks too early.\n",
    .run = run_verify,
};

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

    printf("  handlers started after their slot:");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%s %s %.2fms", i ? "," : "", rows[i].name, (double)rows[i].us / 1e3);
    putchar('\n');
}

static void print_windows(const struct verify_type *t)
{
    char window[32];

    for (size_t i = 0; i < VERIFY_WINDOWS; i++) {
        duration_format(t->windows[i].window_us, window);
        printf("%s in any %s: %" PRIu64 " of %" PRIu64 " allowed", i ? ";" : "  most", window,
               t->windows[i].most, t->windows[i].allowed);
    }
    putchar('\n');
}

static void print_type(const struct verify_type *t)
{
    char rule[RULE_TEXT_SIZE];

    printf("%s: %" PRIu64 " starts in %.3fs, ", t->name, t->starts, (double)t->span_us / 1e6);
    if (!t->limited) {
        puts("no limit");
        return;
    }
    rule_format(&t->rule, rule);
    printf("%s%s, %" PRIu64 " too early\n", rule, t->stretches > 1 ? " at last" : "", t->violations);
    if (t->kept >= 0)
        printf("  rate kept %.6g/s of %.6g/s: %.4f beyond the first burst\n", t->kept * rate_of(&t->rule),
               rate_of(&t->rule), t->kept);
    if (t->gap >= 0)
        printf("  smallest gap %.4f T\n", t->gap);
    print_windows(t);
    print_lateness(&t->lateness);
}

static void print_report(const struct verify *v)
{
    for (size_t i = 0; i < v->type_count; i++)
        print_type(&v->types[i]);
    for (size_t i = 0; i < v->violations && i < VERIFY_NAMED_MAX; i++)
        printf("%s:%zu: %s: %" PRId64 "us too early\n", v->named[i].file, v->named[i].line, v->named[i].type,
               v->named[i].early_us);
    if (v->violations > VERIFY_NAMED_MAX)
        printf("and %" PRIu64 " more\n", v->violations - VERIFY_NAMED_MAX);
    if (v->starts == 0)
        puts("no starts");
}

/* ---- JSON */

static json_t *real_or_null(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

static json_t *windows_json(const struct verify_type *t)
{
    json_t *windows = json_array();

    for (size_t i = 0; i < VERIFY_WINDOWS; i++)
        json_array_append_new(
            windows, json_pack("{s:o,s:I,s:I}", "window", json_seconds(t->windows[i].window_us), "most",
                               (json_int_t)t->windows[i].most, "allowed", (json_int_t)t->windows[i].allowed));
    return windows;
}

static json_t *type_json(const struct verify_type *t)
{
    const struct verify_lateness *l = &t->lateness;
    char rule[RULE_TEXT_SIZE];

    if (!t->limited)
        return json_pack("{s:I,s:o,s:n}", "starts", (json_int_t)t->starts, "span", json_seconds(t->span_us),
                         "rule");
    rule_format(&t->rule, rule);
    return json_pack("{s:I,s:o,s:s,s:I,s:f,s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o,s:o},s:I}", "starts",
                     (json_int_t)t->starts, "span", json_seconds(t->span_us), "rule", rule, "stretches",
                     (json_int_t)t->stretches, "rate_set", rate_of(&t->rule), "rate_kept",
                     real_or_null(t->kept < 0 ? -1 : t->kept * rate_of(&t->rule)), "kept",
                     real_or_null(t->kept), "smallest_gap", real_or_null(t->gap), "windows", windows_json(t),
                     "lateness", "min", json_seconds(l->min_us), "p50", json_seconds(l->p50_us), "p99",
                     json_seconds(l->p99_us), "p999", json_seconds(l->p999_us), "max",
                     json_seconds(l->max_us), "violations", (json_int_t)t->violations);
}

static json_t *violation_json(const struct verify_violation *violation)
{
    json_t *file = json_string(violation->file); /* NULL when it is not UTF-8 */

    return json_pack("{s:o,s:I,s:s,s:o}", "file", file ? file : json_null(), "line",
                     (json_int_t)violation->line, "type", violation->type, "early",
                     json_seconds(violation->early_us));
}

static json_t *report_json(const struct verify *v)
{
    json_t *types = json_object(), *named = json_array();

    for (size_t i = 0; i < v->type_count; i++)
        json_object_set_new(types, v->types[i].name, type_json(&v->types[i]));
    for (size_t i = 0; i < v->violations && i < VERIFY_NAMED_MAX; i++)
        json_array_append_new(named, violation_json(&v->named[i]));
    return json_pack("{s:b,s:I,s:I,s:o,s:o}", "ok", v->violations == 0, "starts", (json_int_t)v->starts,
                     "violations", (json_int_t)v->violations, "types", types, "named", named);
}

static int read_traces(struct cli *cli, struct verify *v, char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        size_t torn_line;

        if (verify_read(v, paths[i], &torn_line, &cli->error) < 0)
            return cli->error.status;
        if (torn_line)
            fprintf(stderr, "weir: %s:%zu: torn last line: its worker was killed; passed over\n", paths[i],
                    torn_line);
    }
    return verify_replay(v, &cli->error);
}

static int report(struct cli *cli, const struct verify *v)
{
    int status = 0;

    if (cli->json)
        status = json_print(cli, report_json(v));
    else
        print_report(v);
    if (status < 0 || v->violations == 0)
        return status;
    return error_set(&cli->error, WEIR_EINPUT,
                     "verify: %" PRIu64 " of %" PRIu64 " starts came before their gate opened", v->violations,
                     v->starts);
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
