/* weir rate list, show and log: limits as they are, and how they came to be so. */
#include <math.h>
#include <string.h>

#include "cli/document/json.h"
#include "cli/document/outlook.h"
#include "cli/document/table.h"
#include "cli/rate/rate.h"
#include "core/clock.h"
#include "queue/limits/rate.h"
#include "throttle/algorithm/calendar.h"
#include "view/format.h"
#include "view/json.h"
#include "view/limits.h"
#include "view/paused_keys.h"
#include "view/rate_keys.h"
#include "view/text.h"

#define PAUSED_SHOWN 5 /* keys */
#define HOLDS_SHOWN 20

/* ---- Words */

static const char *count_text(const json_t *doc, const char *member, char out[32])
{
    return grouped((uint64_t)json_integer_value(json_object_get(doc, member)), out);
}

/* Seconds that may be parts of a microsecond: "100ms", "0.333333333s". */
static const char *exact_span(const json_t *seconds, char out[32])
{
    int64_t us = json_us(seconds);

    if (fabs(json_number_value(seconds) - (double)us / 1e6) < 1e-12)
        duration_format(us, out);
    else
        snprintf(out, 32, "%.9gs", json_number_value(seconds));
    return out;
}

void rate_format_when(int64_t now_us, int64_t us, char out[96])
{
    if (us == GATE_NEVER)
        snprintf(out, PHRASE_SIZE, "when others end");
    else
        format_when(now_us, us > now_us ? us : now_us, out);
}

/* Tells the time of a member; null: GATE_NEVER. */
static const char *when_text(const json_t *at, int64_t now_us, char out[PHRASE_SIZE])
{
    rate_format_when(now_us, json_is_number(at) ? json_us(at) : GATE_NEVER, out);
    return out;
}

void rate_put_end(FILE *to, const json_t *at, const json_t *because, int64_t now_us)
{
    bool known = json_is_number(at), doubted = json_is_string(because);
    char when[PHRASE_SIZE];

    output_to(to, "%s", known || !doubted ? when_text(at, now_us, when) : "not known");
    if (doubted)
        output_to(to, known ? " at the earliest (%s)" : " (%s)", json_string_value(because));
}

void rate_put_most(FILE *to, const json_t *rule)
{
    const char *by = json_string_value(json_object_get(rule, "by")),
               *zone = json_string_value(json_object_get(rule, "zone"));
    char most[32], period[32];

    if (zone)
        output_to(to, "at most %s in a %s of %s", count_text(rule, "count", most),
                  calendar_unit(json_us(json_object_get(rule, "period"))), zone);
    else
        output_to(to, "at most %s", count_text(rule, "most_in_period", most));
    if (!zone && json_has(rule, "period"))
        output_to(to, " in any %s", exact_span(json_object_get(rule, "period"), period));
    else if (!zone)
        output_to(to, " at once");
    if (by)
        output_to(to, " for each %s", by);
}

/* Puts "every 100ms, burst 2". */
static void put_pace(FILE *to, const json_t *rule)
{
    const char *by = json_string_value(json_object_get(rule, "by"));
    char span[32], burst[32];

    if (!json_has(rule, "t")) {
        rate_put_most(to, rule);
        return;
    }
    output_to(to, "every %s, burst %s", exact_span(json_object_get(rule, "t"), span),
              count_text(rule, "burst", burst));
    if (by)
        output_to(to, ", for each %s", by);
}

/* What its gate has left, and what closes it; paused: the limit is, which says enough. */
static void put_state(FILE *to, const json_t *rule, bool paused, int64_t now_us)
{
    const json_t *stopped = json_object_get(rule, "throttled_until"),
                 *held = json_object_get(rule, "held_until");
    bool open = !paused && !json_is_number(stopped);
    char left[32], when[PHRASE_SIZE];

    output_to(to, ", %s free %s", count_text(rule, "slots_left", left), open ? "now" : "after the pause");
    if (json_is_number(stopped))
        output_to(to, ", paused for a provider: resumes %s", when_text(stopped, now_us, when));
    if (json_is_number(held))
        output_to(to, ", held for a job that waits at other gates too: to be released %s",
                  when_text(held, now_us, when));
    else if (open && json_integer_value(json_object_get(rule, "slots_left")) == 0)
        output_to(to, ", the next %s", when_text(json_object_get(rule, "next_start"), now_us, when));
    if (json_has(rule, "factor"))
        output_to(to, ", at %.3g of its rate", json_number_value(json_object_get(rule, "factor")));
}

/* Puts the terms of GCRA (doc/design-limits.md). */
static void put_terms(FILE *to, const json_t *rule, int64_t now_us)
{
    char t[32], tau[32], tat[PHRASE_SIZE];

    output_to(to, "\n  ");
    rate_put_most(to, rule);
    if (!json_has(rule, "t"))
        return;
    output_to(to, "; T %s, tau %s", exact_span(json_object_get(rule, "t"), t),
              exact_span(json_object_get(rule, "tau"), tau));
    if (json_has(rule, "slots_left"))
        output_to(to, ", TAT %s",
                  json_has(rule, "tat") ? when_text(json_object_get(rule, "tat"), now_us, tat) : "passed");
}

static void put_rules(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *rules = json_object_get(doc, "rules"), *rule;

    for (size_t i = 0; (rule = json_array_get(rules, i)); i++) {
        if (i)
            fputc('\n', to);
        output_to(to, "%s: ", json_string_value(json_object_get(rule, "rule")));
        put_pace(to, rule);
        if (json_has(rule, "slots_left"))
            put_state(to, rule, json_is_object(json_object_get(doc, "paused")), now_us);
        if (rate_given.verbose)
            put_terms(to, rule, now_us);
    }
    if (!json_is_array(rules))
        output_to(to, "cannot be read, and no job that it holds starts; set it again with weir rate set");
}

/* ---- show */

/* The first of the keys that somebody has paused. */
static void put_paused_keys(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *rows = json_object_get(doc, "paused_keys");
    int64_t more = json_int_of(doc, "paused_key_count"), i = 0;
    char text[384], count[32];

    for (; i < PAUSED_SHOWN && i < (int64_t)json_array_size(rows); i++) {
        if (i > 0)
            output_to(to, "\n");
        paused_key_text(json_array_get(rows, (size_t)i), now_us, text, sizeof text);
        output_to(to, "%s", text);
    }
    if (more > i)
        output_to(to, "\nand %s more; weir rate keys NAME", grouped((uint64_t)(more - i), count));
}

static void put_own_keys(FILE *to, const json_t *doc)
{
    int64_t count = json_int_of(doc, "own_key_count");
    char keys[PHRASE_SIZE];

    if (count > 0)
        output_to(to, "%s %s rules of %s own; weir rate list %s --keys", counted(count, "key", keys),
                  count == 1 ? "has" : "have", count == 1 ? "its" : "their", json_text_of(doc, "name"));
}

/* Puts who holds slots of it, for how long, and the token that ends that. */
static void put_holds(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *rows = json_object_get(doc, "held_by"), *row;
    char since[PHRASE_SIZE], count[32], cost[COST_TEXT_SIZE];
    size_t i;

    for (i = 0; i < HOLDS_SHOWN && (row = json_array_get(rows, i)); i++) {
        if (i > 0)
            output_to(to, "\n");
        format_span(now_us - json_us(json_object_get(row, "since")), since);
        output_to(to, "%s%s%s, for %s, cost %s: %s", answer_text(row, "who"),
                  *answer_text(row, "key") ? ", key " : "", answer_text(row, "key"), since,
                  text_cost(json_object_get(row, "cost"), cost), answer_text(row, "token"));
    }
    if (json_array_size(rows) > i)
        output_to(to, "\nand %s more; --json lists them",
                  grouped((uint64_t)(json_array_size(rows) - i), count));
}

static void put_next(FILE *to, const json_t *doc, int64_t now_us)
{
    char when[PHRASE_SIZE];

    if (json_is_true(json_object_get(doc, "quiet")))
        output_to(to, "when a quiet worker is resumed");
    else if (json_is_true(json_object_get(doc, "closed")))
        output_to(to, "when rules of its keys are set again");
    else if (json_is_array(json_object_get(doc, "rules")))
        output_to(to, "%s", when_text(json_object_get(doc, "next_start"), now_us, when));
}

static void put_last(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *because = json_object_get(doc, "because");

    if (json_has(doc, "finish_at") || json_is_string(because))
        rate_put_end(to, json_object_get(doc, "finish_at"), because, now_us);
}

static json_int_t sum_of(const json_t *counts)
{
    const char *name;
    json_t *count;
    json_int_t sum = 0;

    json_object_foreach((json_t *)counts, name, count)
        sum += json_integer_value(count);
    return sum;
}

/* Puts ", 310 wasted: 300 no job, 10 no executor". */
static void put_reasons(FILE *to, const json_t *counts, const char *what)
{
    const char *name, *between = ":";
    char count[32], words[PHRASE_SIZE];
    json_t *n;

    output_to(to, ", %s %s", grouped((uint64_t)sum_of(counts), count), what);
    json_object_foreach((json_t *)counts, name, n) {
        if (json_integer_value(n) == 0)
            continue;
        output_to(to, "%s %s %s", between, count_text(counts, name, count), worded(name, words));
        between = ",";
    }
}

/* Puts "1,200 granted, 310 wasted: 300 no job, 10 no executor, 2 given back: 2 no handler; 2 jobs throttled" */
static void put_hour(FILE *to, const json_t *doc)
{
    const json_t *hour = json_object_get(doc, "last_hour"), *wasted = json_object_get(hour, "wasted"),
                 *back = json_object_get(hour, "given_back");
    json_int_t throttled = json_integer_value(json_object_get(hour, "throttled"));
    char count[32], jobs[PHRASE_SIZE];

    if (sum_of(wasted) + sum_of(back) + throttled + json_integer_value(json_object_get(hour, "granted")) == 0)
        return;
    output_to(to, "%s granted", count_text(hour, "granted", count));
    put_reasons(to, wasted, "wasted");
    if (sum_of(back) > 0)
        put_reasons(to, back, "given back");
    if (throttled > 0)
        output_to(to, "; %s throttled", counted(throttled, "job", jobs));
}

static void put_types(FILE *to, const json_t *doc)
{
    bool any = false;
    const char *name;
    char waiting[32], parked[32], held[32], cost[COST_TEXT_SIZE];
    json_t *type;

    json_object_foreach(json_object_get(doc, "types"), name, type) {
        if (any)
            fputc('\n', to);
        output_to(to, "%s: %s waiting, %s parked", name, count_text(type, "waiting", waiting),
                  count_text(type, "parked", parked));
        if (json_integer_value(json_object_get(type, "held")) > 0)
            output_to(to, ", %s held: no worker has a handler", count_text(type, "held", held));
        if (strcmp(text_cost(json_object_get(type, "cost"), cost), "1") != 0)
            output_to(to, ", each costs %s", cost);
        any = true;
    }
    if (!any)
        output_to(to, "none yet");
}

static void print_keyless(const struct limits *limits, const char *limit)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, limit, &count);

    for (size_t i = 0; i < count; i++)
        if (holds[i].type->keyless.jobs > 0)
            keyless_print(stdout, holds[i].type->name, &holds[i].type->keyless);
}

static const struct column sheet[] = {
    COLUMN("limit", "name"),
    {.heading = "rules", .put_at = put_rules},
    COLUMN("paused", "paused", .show = SHOW_PAUSE, .drop = 1, .tone = TONE_WARNING),
    COLUMN("parked", "parked", .show = SHOW_COUNT),
    COLUMN("keys asleep", "keys_asleep", .show = SHOW_COUNT, .drop = 1),
    {.heading = "keys paused", .put_at = put_paused_keys, .drop = 1, .tone = TONE_WARNING},
    {.heading = "own rules", .put = put_own_keys, .drop = 1},
    {.heading = "held by", .put_at = put_holds, .drop = 1},
    {.heading = "next start", .put_at = put_next},
    {.heading = "last start", .put_at = put_last, .drop = 1},
    {.heading = "last hour", .put = put_hour, .drop = 1},
    {.heading = "types", .put = put_types},
    {.heading = NULL},
};

static int show(struct cli *cli, struct weir *w, const struct limits *limits, const char *name)
{
    json_t *doc;
    int status;

    if (limit_document_whole(limits, name, &doc, &cli->error) < 0)
        return cli->error.status;
    limit_add_hour(w, name, doc);
    limit_add_paused_keys(w, name, doc);
    limit_add_holds(w, name, doc);
    if (cli->json)
        return json_print(cli, doc);
    status = sheet_print(cli, stdout, sheet, doc, limits->now_us);
    print_keyless(limits, name);
    json_decref(doc);
    return status;
}

int rate_run_show(struct cli *cli, struct weir *w)
{
    char limit[RATE_LIMIT_SIZE];
    struct limits limits;
    const char *key;
    int status;

    rate_part(cli->operands[0], limit, &key);
    if (key)
        return rate_show_key(cli, w, limit, key);
    status = limits_look(w, cli->operands[0], &limits) < 0 ? cli_failed(cli, w)
                                                           : show(cli, w, &limits, cli->operands[0]);
    limits_free(&limits);
    return status;
}

/* ---- list */

static void put_rule_names(FILE *to, const json_t *doc)
{
    const json_t *rules = json_object_get(doc, "rules");

    for (size_t i = 0; i < json_array_size(rules); i++)
        output_to(to, "%s%s", i ? " " : "",
                  json_string_value(json_object_get(json_array_get(rules, i), "rule")));
    if (!json_is_array(rules))
        output_to(to, "cannot be read");
}

/* The fewest slots of the rules that are not keyed. */
static void put_free(FILE *to, const json_t *doc)
{
    const json_t *rules = json_object_get(doc, "rules");
    json_int_t fewest = -1;
    char text[32];

    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *rule = json_array_get(rules, i);
        json_int_t slots = json_integer_value(json_object_get(rule, "slots_left"));

        if (json_has(rule, "slots_left") && (fewest < 0 || slots < fewest))
            fewest = slots;
    }
    if (fewest >= 0)
        output_to(to, "%s", grouped((uint64_t)fewest, text));
}

static void put_who_paused(FILE *to, const json_t *doc)
{
    const json_t *rules = json_object_get(doc, "rules");
    bool stopped = false;

    for (size_t i = 0; i < json_array_size(rules); i++)
        stopped = stopped || json_has(json_array_get(rules, i), "throttled_until");
    output_to(to, "%s",
              json_is_object(json_object_get(doc, "paused")) ? "by hand"
              : stopped                                      ? "for a provider"
                                                             : "");
}

static const struct column columns[] = {
    COLUMN("limit", "name"),
    {.heading = "slots left", .put = put_free, .right = true, .drop = 3},
    COLUMN("parked", "parked", .show = SHOW_COUNT, .drop = 2),
    {.heading = "next start", .put_at = put_next, .show = SHOW_WHEN, .drop = 1},
    {.heading = "paused", .put = put_who_paused, .drop = 1, .tone = TONE_WARNING},
    {.heading = "rules", .put = put_rule_names, .rest = true},
    {.heading = NULL},
};

int rate_run_list(struct cli *cli, struct weir *w)
{
    int64_t now_us;
    json_t *rows;

    if (rate_given.keys)
        return rate_list_keys(cli, w, cli->operands[0]);
    if (view_rates(w, &rows, &now_us) < 0)
        return cli_failed(cli, w);
    return table_list(cli, columns, rows, now_us, "no limits yet; weir rate set NAME RULE sets one");
}

/* ---- log */

static const struct column log_columns[] = {
    COLUMN("when", "at", .show = SHOW_WHEN),
    COLUMN("who", "who", .drop = 1),
    COLUMN("what", "what", .rest = true),
    {.heading = NULL},
};

int rate_print_log(struct cli *cli, struct weir *w, bool all)
{
    json_t *rows;
    int failed = view_rate_log(w, all, &rows), status = 0;

    if (failed == 0 || json_array_size(rows) > 0) /* a line that cannot be read hides no other */
        status = table_list(cli, log_columns, rows, clock_wall_us(), "no changes yet");
    else
        json_decref(rows);
    return status == 0 && failed ? cli_failed(cli, w) : status;
}

int rate_run_log(struct cli *cli, struct weir *w)
{
    return rate_print_log(cli, w, false);
}
