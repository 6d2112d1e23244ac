/* weir why: where a job is, what holds it, and when it starts. */
#include <inttypes.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/document/outlook.h"
#include "cli/document/text.h"
#include "cli/rate/rate.h"
#include "queue/inspect/why.h"

static int run_why(struct cli *cli, int argc, char **argv);

const struct command command_why = {.name = "why", .run = run_why};

static bool stands_in_line(const struct why *why)
{
    return why->job.state == JOB_WAITING || why->job.state == JOB_PARKED;
}

#define GATE_NAME_SIZE (2 * LIMIT_NAME_SIZE + 8)

/* "mailgun#0/42"; of what is no gate the limit's name. */
static void name_gate(const struct why *why, const struct why_gate *g, char out[GATE_NAME_SIZE])
{
    bool keyed = g->kind == WHY_GATE && *g->rule.by;

    if (g->kind == WHY_GATE)
        snprintf(out, GATE_NAME_SIZE, "%s#%d%s%s", g->limit, g->index, keyed ? "/" : "",
                 keyed ? why->job.key : "");
    else
        snprintf(out, GATE_NAME_SIZE, "%s", g->limit);
}

static void format_rule(const struct why_gate *g, char out[RULE_TEXT_SIZE])
{
    if (g->kind == WHY_GATE)
        rule_format(&g->rule, out);
    else
        snprintf(out, RULE_TEXT_SIZE, "%s", g->kind == WHY_PAUSE ? "paused" : "cannot be read");
}

/* ---- Text */

static void format_opening(const struct why *why, const struct why_gate *g, char out[160])
{
    char when[96];

    rate_format_when(why->now_us, g->opens_us, when);
    if (g->kind == WHY_UNREADABLE)
        snprintf(out, 160, "opens when it is set again with weir rate set");
    else if (g->unfit)
        snprintf(out, 160, "never opens: the next job costs more than it can hold");
    else if (g->opens_us <= why->now_us)
        snprintf(out, 160, "open");
    else if (g->pause_until_us > why->now_us)
        snprintf(out, 160, "paused until %s", when);
    else if (g->held_until_us > why->now_us)
        snprintf(out, 160, "opens %s; held for one that waits longer", when);
    else
        snprintf(out, 160, "opens %s", when);
}

static void print_gates(const struct why *why)
{
    int name_width = 0, rule_width = 0;
    char name[GATE_NAME_SIZE], rule[RULE_TEXT_SIZE], opening[160];

    for (size_t i = 0; i < why->gate_count; i++) {
        name_gate(why, &why->gates[i], name);
        format_rule(&why->gates[i], rule);
        name_width = (int)strlen(name) > name_width ? (int)strlen(name) : name_width;
        rule_width = (int)strlen(rule) > rule_width ? (int)strlen(rule) : rule_width;
    }
    for (size_t i = 0; i < why->gate_count; i++) {
        name_gate(why, &why->gates[i], name);
        format_rule(&why->gates[i], rule);
        format_opening(why, &why->gates[i], opening);
        output("%-10s %-*s  %-*s  %s%s\n", i ? "" : "gates", name_width, name, rule_width, rule, opening,
               (int)i == why->holder && !why->job.held ? "  <- holds it" : "");
    }
}

static void print_place(const struct why *why)
{
    output("%-10s %" PRId64 " of %" PRId64 " in its %s", "place", why->job.before + 1, why->job.length,
           why->job.state == JOB_PARKED ? "lane" : "queue");
    if (why->job.state == JOB_WAITING && why->limited)
        output("; %" PRId64 " of its type are before it", why->ahead);
    if (why->turns > 0)
        output("; %" PRId64 " other key%s their turn before its own", why->turns,
               why->turns == 1 ? " has" : "s have");
    putchar('\n');
}

/* What keeps it besides its gates; "": nothing does. */
static void format_halt(const struct found_job *job, char out[200])
{
    *out = '\0';
    if (job->cancelled_us > 0 || job->batch_cancelled_us > 0)
        snprintf(out, 200, "never: it is cancelled, and ends when a worker comes to it");
    else if (*job->wrong)
        snprintf(out, 200, "never: it ends among the dead when a worker comes to it");
    else if (job->batch_paused_us > 0)
        snprintf(out, 200, "not before its batch is resumed: weir batch resume %s", job->batch);
    else if (job->queue_paused_us > 0)
        snprintf(out, 200, "not before its queue is resumed: weir queue resume %s", job->queue);
}

static void print_start(const struct why *why)
{
    bool told = why->limited && why->start_us != GATE_NEVER;
    char when[96], halt[200], doubt[EARLIEST_SIZE];

    format_halt(&why->job, halt);
    if (*halt)
        output("%-10s %s\n", "starts", halt);
    if (why->job.held || *halt)
        return;
    rate_format_when(why->now_us, why->start_us, when);
    if (!why->limited)
        snprintf(when, sizeof when, "as soon as a worker takes it: its type has no limit");
    output("%-10s %s%s%s\n", "starts", when, told && why->because ? "," : "",
           told ? earliest(why->because, doubt) : "");
}

static void print_line(const struct why *why)
{
    print_place(why);
    if (why->cost > 1)
        output("%-10s %" PRId64 " slots\n", "cost", why->cost);
    print_gates(why);
    if (why->job.held)
        output("%-10s by its type: no worker that looked can run it; start one that has a handler for %s\n",
               "held", why->job.type);
    else if (!why->served && *why->job.type)
        output("%-10s takes %s from queue %s now; start one\n", "no worker", why->job.type, why->job.queue);
    print_start(why);
}

static void print_running(const struct why *why)
{
    const struct found_job *job = &why->job;
    char when[96], since[40];

    output("%-10s %s", "worker", job->worker);
    if (*job->host)
        output(", process %" PRId64 " on %s", job->pid, job->host);
    putchar('\n');
    if (job->at_us > 0) {
        cli_format_time(job->at_us, since);
        output("%-10s %s\n", "since", since);
    }
    if (job->lease_us > why->now_us) {
        rate_format_when(why->now_us, job->lease_us, when);
        output("%-10s %s, unless its worker prolongs it\n", "lease to", when);
    } else {
        output("%-10s over: its worker is silent, and another one takes the job back\n", "lease");
    }
}

static void print_aside(const struct why *why)
{
    output("%-10s %" PRId64 " of %" PRId64 " that are aside\n", "place", why->job.before + 1,
           why->job.length);
    print_start(why);
}

/* What there is to say of a job besides its type and state. */
static void print_rest(const struct why *why)
{
    char when[96];

    if (stands_in_line(why))
        print_line(why);
    else if (why->job.state == JOB_RUNNING)
        print_running(why);
    else if (why->job.state == JOB_ASIDE)
        print_aside(why);
    else if (why->job.state == JOB_DEAD || why->job.state == JOB_FINISHED) {
        cli_format_time(why->job.at_us, when);
        output("%-10s %s\n", "since", when);
        if (why->job.state == JOB_DEAD) {
            output("%-10s ", "reason");
            text_print(span_str(why->job.reason), 0);
            putchar('\n');
        }
    } else {
        rate_format_when(why->now_us, why->job.at_us, when);
        output("%-10s %s, at the earliest\n", "starts", when);
    }
}

static void print_why(const char *id, const struct why *why)
{
    const struct found_job *job = &why->job;
    bool over = job->state == JOB_DEAD || job->state == JOB_FINISHED;

    output("%-10s %s\n%-10s %s", "job", id, "type", *job->type ? job->type : "-");
    if (*job->key)
        output(", key %s", job->key);
    if (*job->queue)
        output(", queue %s", job->queue);
    output("\n%-10s %s\n", "state", found_job_word(job));
    if (job->attempts > 0)
        output("%-10s %" PRId64 " used\n", "attempts", job->attempts);
    if (*job->wrong && !over)
        output("%-10s %s\n", "unreadable", job->wrong);
    print_rest(why);
}

/* ---- JSON */

static json_t *gate_json(const struct why *why, size_t i)
{
    const struct why_gate *g = &why->gates[i];
    char name[GATE_NAME_SIZE], rule[RULE_TEXT_SIZE];
    bool open = g->opens_us <= why->now_us;

    name_gate(why, g, name);
    format_rule(g, rule);
    return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:b}", "gate", text_word(name), "limit_name",
                     text_word(g->limit), "rule", g->kind == WHY_GATE ? text_word(rule) : json_null(), "open",
                     open, "opens_at", open ? json_null() : json_time(g->opens_us), "paused_until",
                     json_time(g->pause_until_us), "held_until", json_time(g->held_until_us), "holds_it",
                     (int)i == why->holder && !why->job.held);
}

static void add_line_json(json_t *doc, const struct why *why)
{
    json_t *gates = json_array(), *line;
    bool told = why->limited && !why->job.held;

    for (size_t i = 0; i < why->gate_count; i++)
        json_array_append_new(gates, gate_json(why, i));
    line =
        json_pack("{s:I, s:I, s:o, s:o, s:I, s:b, s:o, s:o, s:b}", "place", (json_int_t)why->job.before + 1,
                  "of", (json_int_t)why->job.length, "ahead", told ? json_integer(why->ahead) : json_null(),
                  "turns_before", why->turns < 0 ? json_null() : json_integer(why->turns), "cost",
                  (json_int_t)why->cost, "served", why->served, "gates", gates, "start",
                  told ? json_time(why->start_us) : json_null(), "at_the_earliest", why->because != 0);
    json_object_update(doc, line);
    json_decref(line);
}

static void add_running_json(json_t *doc, const struct found_job *job)
{
    json_object_set_new(doc, "worker",
                        json_pack("{s:o, s:o, s:I}", "name", text_word(job->worker), "host",
                                  text_json(span_str(job->host)), "pid", (json_int_t)job->pid));
    json_object_set_new(doc, "since", json_time(job->at_us));
    json_object_set_new(doc, "lease_until", json_time(job->lease_us));
}

/* What keeps it besides its gates. */
static void add_halt_json(json_t *doc, const struct found_job *job)
{
    json_object_set_new(doc, "queue_paused_since", json_since(job->queue_paused_us));
    json_object_set_new(doc, "batch_paused_since", json_since(job->batch_paused_us));
    json_object_set_new(doc, "cancelled_at",
                        json_time(job->cancelled_us ? job->cancelled_us : job->batch_cancelled_us));
}

static json_t *why_json(const char *id, const struct why *why)
{
    const struct found_job *job = &why->job;
    json_t *doc = json_pack("{s:s, s:s, s:o, s:o, s:o, s:I}", "id", id, "state", found_job_word(job), "type",
                            text_json(span_str(job->type)), "queue", text_json(span_str(job->queue)), "key",
                            text_json(span_str(job->key)), "attempts", (json_int_t)job->attempts);

    json_object_set_new(doc, "unreadable", text_json(span_str(job->wrong)));
    add_halt_json(doc, job);
    if (stands_in_line(why)) {
        add_line_json(doc, why);
    } else if (job->state == JOB_ASIDE) {
        json_object_set_new(doc, "place", json_integer(job->before + 1));
        json_object_set_new(doc, "of", json_integer(job->length));
    } else if (job->state == JOB_FINISHED) {
        json_object_set_new(doc, "since", json_time(job->at_us));
    } else if (job->state == JOB_RUNNING) {
        add_running_json(doc, job);
    } else if (job->state == JOB_DEAD) {
        json_object_set_new(doc, "since", json_time(job->at_us));
        json_object_set_new(doc, "reason", text_json(span_str(job->reason)));
    } else {
        json_object_set_new(doc, "start", json_time(job->at_us));
        json_object_set_new(doc, "at_the_earliest", json_true());
    }
    return doc;
}

static int run_why(struct cli *cli, int argc, char **argv)
{
    const struct flag flags[] = {{.name = NULL}};
    struct weir *w;
    struct why why;
    int operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status != 0)
        return status;
    if (operands != 1)
        return error_set(&cli->error, WEIR_EUSAGE, "why: wants the id of one job; weir enqueue prints it");
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    if (why_read(w, -1, argv[0], &why) < 0)
        status = cli_failed(cli, w);
    else if (cli->json)
        status = json_print(cli, why_json(argv[0], &why));
    else
        print_why(argv[0], &why);
    why_free(&why);
    weir_free(w);
    return status;
}
