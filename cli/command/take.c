/* weir take: a slot for a caller of any kind; with --from many, one answer a line in the order of the lines.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/document/json.h"
#include "cli/lines.h"
#include "cli/signals.h"
#include "throttle/rule.h"
#include "throttle/take/take.h"
#include "view/format.h"
#include "view/text.h"

#define LINE_MOST (64 * 1024) /* bytes of NAME/KEY COST; a thousand of them are held at a time */

struct take_flags {
    struct flag_values rules;
    char rule[RULE_SET_TEXT_SIZE]; /* all rules; "": none */
    const char *cost;
    bool peek;
    const char *wait;    /* NULL: do not wait */
    int64_t wait_max_us; /* INT64_MAX: as long as it takes */
    const char *on_error;
    const char *from;
    int weir_flags;
};

/* ---- The flags */

static int join_rules(struct cli *cli, struct take_flags *f)
{
    size_t len = 0;

    for (int i = 0; i < f->rules.count; i++) {
        size_t more = strlen(f->rules.at[i]);

        if (len + more + 2 > sizeof f->rule)
            return cli_usage(cli, "take --rule: too many; give up to %d", RULES_MAX);
        if (len > 0)
            f->rule[len++] = ' ';
        memcpy(f->rule + len, f->rules.at[i], more + 1);
        len += more;
    }
    return 0;
}

static int read_on_error(struct cli *cli, struct take_flags *f)
{
    if (!f->on_error)
        return 0;
    if (strcmp(f->on_error, "allow") == 0)
        f->weir_flags |= WEIR_TAKE_OR_ALLOW;
    else if (strcmp(f->on_error, "deny") == 0)
        f->weir_flags |= WEIR_TAKE_OR_DENY;
    else
        return cli_usage(cli, "take --on-error %.60s: unknown word; give allow or deny", f->on_error);
    return 0;
}

static int read_wait(struct cli *cli, struct take_flags *f)
{
    struct error why;

    f->wait_max_us = INT64_MAX;
    if (f->wait && f->peek)
        return cli_usage(cli, "take --peek --wait: a peek takes nothing to wait for; leave one out");
    if (f->wait && f->from)
        return cli_usage(cli, "take --from --wait: many lines are answered at once; leave one out");
    if (f->wait && *f->wait && duration_parse(f->wait, &f->wait_max_us, &why) < 0)
        return cli_usage(cli, "take --wait: %s", why.text);
    return 0;
}

static int check_flags(struct cli *cli, struct take_flags *f, int operands)
{
    if (operands != (f->from ? 0 : 1))
        return cli_usage(cli, f->from ? "take --from: the names come from the file; leave out the one given"
                                      : "take: needs one NAME or NAME/KEY; weir help take has examples");
    if (f->peek)
        f->weir_flags |= WEIR_TAKE_PEEK;
    if (read_wait(cli, f) < 0 || read_on_error(cli, f) < 0)
        return cli->error.status;
    return join_rules(cli, f);
}

static const char *rule_of(const struct take_flags *f)
{
    return f->rules.count > 0 ? f->rule : NULL;
}

/* Says what is asked for; a number alone, as most are, can be remembered as denied. */
static struct weir_take_item item_of(const char *target, const char *cost)
{
    long long number = cost[strspn(cost, "0123456789")] ? 0 : strtoll(cost, NULL, 10);

    return (struct weir_take_item){.target = target, .cost = number, .costs = number > 0 ? NULL : cost};
}

/* ---- Answers: a document each, printed as JSON or as a line */

/* The cost of a question that could be asked. */
static json_t *cost_json(const struct weir_take_item *item)
{
    char text[COST_JSON_SIZE];
    struct job_cost cost;
    struct error ignored;

    if (!item->costs || cost_read(item->costs, COST_TAKEN, &cost, &ignored) < 0)
        return json_integer(item->cost);
    cost_write_json(&cost, text);
    return json_loads(text, JSON_DECODE_ANY, NULL);
}

static json_t *answer_json(const struct weir_take_item *item)
{
    const struct weir_take *t = &item->take;
    json_t *doc =
        json_pack("{s:o,s:o,s:b,s:I,s:I,s:o,s:f}", "target", text_word(item->target), "cost", cost_json(item),
                  "allowed", t->allowed, "limit", (json_int_t)t->limit, "remaining", (json_int_t)t->remaining,
                  "retry_after", t->retry_after_s < 0 ? json_null() : json_real(t->retry_after_s),
                  "reset_after", t->reset_after_s);

    if (t->never)
        json_object_set_new(doc, "never", json_true());
    if (t->assumed)
        json_object_set_new(doc, "assumed", json_true());
    return doc;
}

/* Prints "1 of 2 slots left; retry in 8m 2s". */
static void print_slots(const json_t *doc)
{
    const json_t *retry = json_object_get(doc, "retry_after");
    char left[32], limit[32], again[PHRASE_SIZE], cost[COST_TEXT_SIZE];

    output("%s of %s slots left", grouped((uint64_t)json_int_of(doc, "remaining"), left),
           grouped((uint64_t)json_int_of(doc, "limit"), limit));
    if (json_object_get(doc, "never"))
        output("; cost %s can never fit", text_cost(json_object_get(doc, "cost"), cost));
    else if (json_is_number(retry))
        output("; retry %s", format_retry(json_number_value(retry), again));
}

static void print_line(const json_t *doc, bool peek)
{
    bool allowed = json_is_true(json_object_get(doc, "allowed"));

    if (json_is_string(json_object_get(doc, "target")))
        output("%s: ", json_text_of(doc, "target"));
    else
        output("line %" PRId64 ": ", json_int_of(doc, "line"));
    if (json_object_get(doc, "error")) {
        output("no answer: %s\n", json_text_of(doc, "error"));
        return;
    }
    output("%s%s; ", allowed ? "allowed" : "denied", allowed && peek ? ", nothing taken" : "");
    if (json_object_get(doc, "assumed"))
        output("Redis is away, nothing was counted");
    else
        print_slots(doc);
    putchar('\n');
}

/* Frees doc; NULL: there was no memory to make it. */
static int print_answer(struct cli *cli, json_t *doc, bool peek)
{
    if (cli->json || !doc)
        return json_print(cli, doc);
    print_line(doc, peek);
    json_decref(doc);
    return 0;
}

/* What Redis says when --on-error answers for it. */
static void tell_assumed(const struct weir *w)
{
    output_to(stderr, "weir: take --on-error: %s\n", weir_message(w));
}

/* ---- One */

static volatile sig_atomic_t stopped; /* by that signal */

static void on_signal(int number)
{
    stopped = number;
}

static int take_or_wait(struct weir *w, struct weir_take_item *item, const struct take_flags *f)
{
    int64_t most_us = f->wait_max_us == INT64_MAX ? -1 : f->wait_max_us;
    int status;

    if (!f->wait && item->costs)
        return weir_take_costs(w, item->target, rule_of(f), item->costs, f->weir_flags, 0, &item->take);
    if (!f->wait)
        return weir_take(w, item->target, rule_of(f), item->cost, f->weir_flags, &item->take);
    signals_catch(on_signal); /* its place in line is given back before it ends */
    status = take_in_line(w, item->target, rule_of(f), item->cost, item->costs, f->weir_flags, most_us,
                          &stopped, &item->take);
    if (stopped && !item->take.allowed)
        raise(stopped);
    return status;
}

static int run_one(struct cli *cli, struct weir *w, const char *target, const struct take_flags *f)
{
    struct weir_take_item item = item_of(target, f->cost);
    const struct weir_take *take = &item.take;
    int status = take_or_wait(w, &item, f);

    if (status < 0)
        return cli_failed(cli, w);
    if (take->assumed)
        tell_assumed(w);
    if (cli->json || !take->never)
        status = print_answer(cli, answer_json(&item), f->peek);
    if (status < 0)
        return status;
    if (take->never)
        return error_set(&cli->error, WEIR_EINPUT,
                         "take %.100s: cost %s can never fit; the burst is %" PRId64, target, f->cost,
                         take->limit);
    return take->allowed ? 0 : WEIR_ENOTNOW;
}

/* ---- Many */

struct many {
    struct cli *cli;
    struct weir *w;
    const struct take_flags *f;
    size_t count;
    struct weir_take_item item[TAKE_MOST];
    char *line[TAKE_MOST]; /* which the items point into */
    bool denied, told_assumed;
    struct error wrong; /* of the first line without an answer */
};

static int out_of_memory(struct cli *cli)
{
    return error_set(&cli->error, WEIR_EINTERNAL, "take --from: out of memory; free some and try again");
}

static int print_item(struct many *m, const struct weir_take_item *item)
{
    const struct weir_take *t = &item->take;
    char cost[32];

    if (item->status < 0) {
        if (!m->wrong.status)
            error_set(&m->wrong, item->status, "take --from: %.100s: %s", item->target, item->why);
        return print_answer(
            m->cli, json_pack("{s:o,s:o}", "target", text_word(item->target), "error", text_word(item->why)),
            false);
    }
    if (t->never && !m->wrong.status)
        error_set(&m->wrong, WEIR_EINPUT, "take --from: %.100s: cost %s can never fit", item->target,
                  item->costs ? item->costs : (snprintf(cost, sizeof cost, "%" PRId64, item->cost), cost));
    if (t->assumed && !m->told_assumed)
        tell_assumed(m->w);
    m->told_assumed |= t->assumed;
    m->denied |= !t->allowed;
    return print_answer(m->cli, answer_json(item), m->f->peek);
}

static void forget_lines(struct many *m)
{
    while (m->count > 0)
        free(m->line[--m->count]);
}

/* Asks for the lines that were read and prints their answers. */
static int answer_lines(struct many *m)
{
    int status = 0;

    if (weir_take_many(m->w, m->item, m->count, rule_of(m->f), m->f->weir_flags) < 0)
        return cli_failed(m->cli, m->w);
    for (size_t i = 0; status == 0 && i < m->count; i++)
        status = print_item(m, &m->item[i]);
    forget_lines(m);
    if (status == 0 && (fflush(stdout) == EOF || ferror(stdout)))
        status = error_set(&m->cli->error, WEIR_EINTERNAL,
                           "take --from: standard output: %s; what was to be printed is not complete",
                           strerror(errno));
    return status;
}

/* Answers a line that cannot be asked, behind those before it. */
static int refuse_line(struct many *m, uint64_t number, const char *why)
{
    int status = answer_lines(m);

    if (status < 0)
        return status;
    if (!m->wrong.status)
        error_set(&m->wrong, WEIR_EINPUT, "take --from: line %" PRIu64 ": %s", number, why);
    return print_answer(
        m->cli, json_pack("{s:n,s:I,s:o}", "target", "line", (json_int_t)number, "error", text_word(why)),
        false);
}

/* Reads NAME[/KEY] [COST]; a cost that is none weir_take_many refuses. */
static struct weir_take_item read_item(char *line, const char *usual_cost)
{
    char *target = line + strspn(line, " \t\r"), *cost = target + strcspn(target, " \t\r");
    size_t len;

    if (*cost)
        *cost++ = '\0';
    cost += strspn(cost, " \t\r");
    len = strlen(cost);
    while (len > 0 && strchr(" \t\r", cost[len - 1]))
        cost[--len] = '\0';
    return item_of(target, *cost ? cost : usual_cost);
}

static int add_line(struct many *m, const struct span *line, uint64_t number)
{
    char *text;

    if (line->len > LINE_MOST)
        return refuse_line(m, number, "it is longer than 64 KiB; give a shorter key");
    if (memchr(line->at, '\0', line->len))
        return refuse_line(m, number, "it holds a NUL byte; give lines of text");
    text = strndup(line->at, line->len);
    if (!text)
        return out_of_memory(m->cli);
    m->item[m->count] = read_item(text, m->f->cost);
    if (!*m->item[m->count].target) {
        free(text);
        return 0;
    }
    m->line[m->count++] = text;
    return 0;
}

static int read_lines(struct many *m, struct lines *lines)
{
    enum lines_result result;
    struct span line;
    int status = 0;

    while (status == 0 && (result = lines_next(lines, &line, &m->cli->error)) != LINES_END) {
        if (result == LINES_FAILED)
            return m->cli->error.status;
        if (result == LINES_ONE)
            status = add_line(m, &line, lines->number);
        if (status == 0 && (m->count == TAKE_MOST || result == LINES_IDLE))
            status = answer_lines(m);
    }
    return status ? status : answer_lines(m);
}

static int run_many(struct cli *cli, struct weir *w, const struct take_flags *f)
{
    static const volatile sig_atomic_t never_stopped;
    struct many *m = calloc(1, sizeof *m);
    struct lines lines;
    int status;

    if (!m)
        return out_of_memory(cli);
    m->cli = cli;
    m->w = w;
    m->f = f;
    status = lines_open(&lines, f->from, &never_stopped, &cli->error);
    if (status == 0) {
        lines.idle_ms = 0; /* who writes a line and reads its answer waits for nothing */
        status = read_lines(m, &lines);
        lines_close(&lines);
    }
    if (status == 0 && m->wrong.status) {
        cli->error = m->wrong;
        status = m->wrong.status;
    }
    if (status == 0 && m->denied)
        status = WEIR_ENOTNOW;
    forget_lines(m);
    free(m);
    return status;
}

static struct take_flags given = {.cost = "1"};

static const struct flag flags[] = {
    {"rule", 0, FLAG_REPEATED, "RULE", "your own rule, as for weir rate set; up to 8", &given.rules},
    {"cost", 0, FLAG_COST, "N", "how many slots, or tokens=N of rules of=tokens, all or none; default 1",
     &given.cost},
    {"peek", 0, FLAG_BOOL, NULL, "look, take nothing", &given.peek},
    {"wait", 0, FLAG_OPTIONAL_TEXT, "MAX", "wait for the slot; denied at once when it opens after MAX",
     &given.wait},
    {"on-error", 0, FLAG_TEXT, "WORD", "when Redis is away: allow or deny; else exit 69", &given.on_error},
    {"from", 0, FLAG_TEXT, "FILE", "lines of NAME[/KEY] [COST]; - is standard input", &given.from},
    {.name = NULL},
};

static int check(struct cli *cli)
{
    return check_flags(cli, &given, cli->operand_count);
}

static int act(struct cli *cli, struct weir *w)
{
    return given.from ? run_many(cli, w, &given) : run_one(cli, w, cli->operands[0], &given);
}

const struct command command_take = {
    .name = "take", .run = cli_run, .flags = flags, .takes_operands = true, .check = check, .act = act};
