#include <string.h>

#include "cli/command/job.h"
#include "cli/document/table.h"
#include "view/json.h"
#include "view/text.h"
#include "view/waits.h"

/* ---- Text */

static bool is_over(const json_t *doc)
{
    return json_has(doc, "since") && !json_object_get(doc, "lease_until");
}

static void put_unique(FILE *to, const json_t *doc)
{
    if (json_is_string(json_object_get(doc, "unique")))
        output_to(to, "%s, until it %ss", answer_text(doc, "unique"), answer_text(doc, "unique_until"));
}

static void put_place(FILE *to, const json_t *doc)
{
    const char *list = answer_text(doc, "list");
    int64_t ahead = answer_int(doc, "ahead"), turns = answer_int(doc, "turns_before");
    char place[32], of[32], text[PHRASE_SIZE];

    if (!*list)
        return;
    output_to(to, "%s of %s %s", grouped((uint64_t)answer_int(doc, "place"), place),
              grouped((uint64_t)answer_int(doc, "of"), of),
              strncmp(list, "queue:", 6) == 0  ? "in its queue"
              : strncmp(list, "lane:", 5) == 0 ? "in its lane"
                                               : "set aside");
    if (ahead > 0 && strncmp(list, "queue:", 6) == 0)
        output_to(to, "; %s of its type before it", grouped((uint64_t)ahead, place));
    if (turns > 0)
        output_to(to, "; %s %s a turn before its own", counted(turns, "other key", text),
                  turns == 1 ? "has" : "have");
}

static void put_cost(FILE *to, const json_t *doc)
{
    const json_t *cost = json_object_get(doc, "cost");
    char text[COST_TEXT_SIZE];

    if (json_integer_value(cost) > 1)
        output_to(to, "%s", counted(json_integer_value(cost), "slot", text));
    else if (json_is_object(cost))
        output_to(to, "%s", text_cost(cost, text));
}

/* True when it is a key that is closed that holds the job. */
static bool holds_closed(const json_t *gates)
{
    const json_t *gate;
    size_t i;

    json_array_foreach(gates, i, gate)
        if (json_is_true(json_object_get(gate, "closed")))
            return true;
    return false;
}

/* Nothing is said where what it waits for says it. */
static void put_start(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *start = json_object_get(doc, "start"), *gates = json_object_get(doc, "gates"),
                 *halt = json_object_get(doc, "waits_for");
    const char *because = answer_text(doc, "because");
    char when[PHRASE_SIZE];

    if (is_over(doc) || json_has(doc, "lease_until"))
        return;
    if (json_has(doc, "cancelled_at") || json_has(doc, "batch_cancelled_at") ||
        json_is_string(json_object_get(doc, "unreadable")))
        output_to(to, "never");
    else if (json_has(doc, "start"))
        output_to(to, "%s%s%s%s%s",
                  format_when(now_us, json_us(start) > now_us ? json_us(start) : now_us, when),
                  json_is_true(json_object_get(doc, "at_the_earliest")) ? ", at the earliest" : "",
                  *because ? " (" : "", because, *because ? ")" : "");
    else if (json_array_size(gates) > 0 && (json_object_get(halt, "gate") || !json_is_object(halt)))
        output_to(to, holds_closed(gates) ? "when rules of its own are set again" : "when others end");
    else if (json_is_array(gates) && !json_is_object(halt))
        output_to(to, "as soon as a worker takes it: its type has no limit");
}

static void put_worker(FILE *to, const json_t *doc)
{
    const json_t *worker = json_object_get(doc, "worker");

    output_to(to, "%s", answer_text(worker, "name"));
    if (*answer_text(worker, "host"))
        output_to(to, ", process %lld on %s", (long long)answer_int(worker, "pid"),
                  answer_text(worker, "host"));
}

static void put_since(FILE *to, const json_t *doc, const char *state, int64_t now_us)
{
    char when[PHRASE_SIZE];

    if (json_has(doc, "since") && strcmp(answer_text(doc, "state"), state) == 0)
        output_to(to, "%s", format_when(now_us, json_us(json_object_get(doc, "since")), when));
}

static void put_started(FILE *to, const json_t *doc, int64_t now_us)
{
    put_since(to, doc, "running", now_us);
}

static void put_died(FILE *to, const json_t *doc, int64_t now_us)
{
    put_since(to, doc, "dead", now_us);
}

static void put_ended(FILE *to, const json_t *doc, int64_t now_us)
{
    put_since(to, doc, "finished", now_us);
}

static void put_lease(FILE *to, const json_t *doc, int64_t now_us)
{
    int64_t until_us = json_us(json_object_get(doc, "lease_until"));
    char when[PHRASE_SIZE];

    if (!json_object_get(doc, "lease_until"))
        return;
    if (until_us > now_us)
        output_to(to, "ends %s, unless its worker prolongs it", format_when(now_us, until_us, when));
    else
        output_to(to, "over: its worker is silent, and another one takes the job back");
}

static void put_unreadable(FILE *to, const json_t *doc)
{
    if (json_is_string(json_object_get(doc, "unreadable")))
        output_to(to, is_over(doc) ? "%s" : "%s\nit ends among the dead when a worker comes to it",
                  answer_text(doc, "unreadable"));
}

static void put_cancelled(FILE *to, const json_t *doc, int64_t now_us)
{
    bool alone = json_has(doc, "cancelled_at");
    const json_t *at = json_object_get(doc, alone ? "cancelled_at" : "batch_cancelled_at");
    char when[PHRASE_SIZE];

    if (json_is_number(at))
        output_to(to, "%s%s; %s", alone ? "" : "its batch, ", format_when(now_us, json_us(at), when),
                  json_has(doc, "lease_until") ? "its worker was asked to stop it"
                                               : "it ends when a worker comes to it");
}

static void put_attempts(FILE *to, const json_t *doc)
{
    output_to(to, "%lld of %lld used", (long long)answer_int(doc, "attempts"),
              (long long)answer_int(doc, "max_attempts"));
}

static void put_interrupted(FILE *to, const json_t *doc)
{
    char text[PHRASE_SIZE];

    if (answer_int(doc, "interrupted") > 0)
        output_to(to, "%s, by the death of its worker or handler%s",
                  counted(answer_int(doc, "interrupted"), "time", text),
                  json_is_true(json_object_get(doc, "alone")) ? "; a suspect, so apart from other jobs" : "");
}

/* Puts "key 42 has rules of its own for mail until 14:05:00". */
static void put_own_rules(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *gates = json_object_get(doc, "gates"), *gate, *until;
    const char *last = "";
    char clock[PHRASE_SIZE];
    size_t i;

    json_array_foreach(gates, i, gate) {
        if (!json_is_true(json_object_get(gate, "own_rule")) ||
            strcmp(last, answer_text(gate, "limit_name")) == 0)
            continue;
        output_to(to, "%s%s has rules of its own for %s", *last ? "\n" : "key ", answer_text(doc, "key"),
                  answer_text(gate, "limit_name"));
        last = answer_text(gate, "limit_name");
        until = json_object_get(gate, "own_until");
        if (json_is_number(until))
            output_to(to, " until %s", format_clock(now_us, json_us(until), clock));
    }
}

static void put_throttled(FILE *to, const json_t *doc)
{
    char text[PHRASE_SIZE];

    if (answer_int(doc, "throttled") > 0)
        output_to(to, "%s", counted(answer_int(doc, "throttled"), "time", text));
}

static const struct column sheet[] = {
    COLUMN("job", "id"),
    COLUMN("state", "state"),
    COLUMN("type", "type"),
    COLUMN("key", "key", .drop = 1),
    {.heading = "its rules", .put_at = put_own_rules, .drop = 1},
    COLUMN("queue", "queue", .drop = 1),
    COLUMN("batch", "batch", .drop = 1),
    COLUMN("unique", NULL, .put = put_unique, .drop = 1),
    COLUMN("place", NULL, .put = put_place, .drop = 1),
    COLUMN("cost", NULL, .put = put_cost, .drop = 1),
    COLUMN("worker", NULL, .put = put_worker, .drop = 1),
    COLUMN("enqueued", "enqueued_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("due", "due_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("started", NULL, .put_at = put_started, .drop = 1),
    COLUMN("died", NULL, .put_at = put_died, .drop = 1),
    COLUMN("ended", NULL, .put_at = put_ended, .drop = 1),
    COLUMN("waited", "waited", .show = SHOW_SPAN, .drop = 1),
    COLUMN("ran", "ran", .show = SHOW_SPAN, .drop = 1),
    COLUMN("took", "took", .show = SHOW_SPAN, .drop = 1),
    COLUMN("lease", NULL, .put_at = put_lease, .drop = 1),
    COLUMN("outcome", "outcome", .drop = 1),
    COLUMN("result", "result", .drop = 1),
    COLUMN("reason", "reason", .drop = 1, .tone = TONE_WRONG),
    COLUMN("unreadable", NULL, .put = put_unreadable, .drop = 1, .tone = TONE_WRONG),
    COLUMN("cancelled", NULL, .put_at = put_cancelled, .drop = 1, .tone = TONE_WARNING),
    COLUMN("waits for", "waits_for", .show = SHOW_WAITS, .drop = 1),
    COLUMN("starts", NULL, .put_at = put_start, .drop = 1),
    COLUMN("attempts", NULL, .put = put_attempts),
    COLUMN("interrupted", NULL, .put = put_interrupted, .drop = 1, .tone = TONE_WARNING),
    COLUMN("throttled", NULL, .put = put_throttled, .drop = 1),
    COLUMN("failed last", "failed_at", .show = SHOW_WHEN, .drop = 1),
    COLUMN("as", "failure", .drop = 1, .tone = TONE_WARNING),
    COLUMN("timeout", "timeout", .show = SHOW_SPAN, .drop = 1),
    COLUMN("args", "args", .drop = 1),
    COLUMN("body", "body", .drop = 1),
    {.heading = NULL},
};

static const struct column gate_columns[] = {
    COLUMN("gate", "gate"),
    COLUMN("rule", "rule"),
    {.heading = "opens", .put_at = gate_put_opening},
    COLUMN("holds it", "holds_it", .show = SHOW_FLAG, .tone = TONE_WARNING),
    {.heading = NULL},
};

static const struct column failure_columns[] = {
    COLUMN("failed", "at", .show = SHOW_WHEN),
    COLUMN("after", "after", .show = SHOW_SPAN, .drop = 1),
    COLUMN("ran", "ran", .show = SHOW_SPAN, .drop = 1),
    COLUMN("worker", "worker.name"),
    COLUMN("as", "reason", .rest = true, .tone = TONE_WARNING),
    {.heading = NULL},
};

int job_print(struct cli *cli, json_t *doc, int64_t now_us)
{
    const json_t *gates = json_object_get(doc, "gates"), *failures = json_object_get(doc, "failures");
    int status = sheet_print(cli, stdout, sheet, doc, now_us);

    if (status == 0 && json_array_size(failures) > 1) {
        output("\n");
        status = table_print(cli, stdout, failure_columns, failures, now_us);
    }
    if (status == 0 && json_array_size(gates) > 0) {
        output("\n");
        status = table_print(cli, stdout, gate_columns, gates, now_us);
    }
    json_decref(doc);
    return status;
}
