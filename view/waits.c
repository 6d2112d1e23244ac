#include "view/waits.h"

#include <string.h>

#include "throttle/algorithm/calendar.h"
#include "view/format.h"
#include "view/output.h"

const struct member gate_members[] = {
    MEMBER("gate", WORD),
    MEMBER("limit_name", WORD),
    MEMBER("rule", WORD),
    MEMBER("count", NUMBER, .optional = true),
    MEMBER("period", SPAN),
    MEMBER("zone", WORD, .optional = true),
    MEMBER("counts", WORD, .optional = true),
    MEMBER("open", FLAG),
    MEMBER("opens_at", TIME),
    MEMBER("never", FLAG, .optional = true),
    MEMBER("paused", PAUSE),
    MEMBER("throttled_until", TIME),
    MEMBER("own_rule", FLAG, .optional = true),
    MEMBER("own_until", TIME, .optional = true),
    MEMBER("closed", FLAG, .optional = true),
    MEMBER("held_until", TIME),
    MEMBER("holders", NUMBER, .optional = true),
    MEMBER("lease_ends", TIME, .optional = true),
    MEMBER("holds_it", FLAG, .optional = true),
    {.name = NULL},
};

// clang-format off
const struct member waits_members[] = {
    MEMBER("gate", WORD, .optional = true),
    MEMBER("limit_name", WORD, .optional = true),
    MEMBER("rule", WORD, .optional = true),
    MEMBER("count", NUMBER, .optional = true),
    MEMBER("period", SPAN, .optional = true),
    MEMBER("zone", WORD, .optional = true),
    MEMBER("counts", WORD, .optional = true),
    MEMBER("by", WORD, .optional = true),
    MEMBER("until", TIME, .optional = true),
    MEMBER("never", FLAG, .optional = true),
    MEMBER("throttled_until", TIME, .optional = true),
    MEMBER("own_rule", FLAG, .optional = true),
    MEMBER("own_until", TIME, .optional = true),
    MEMBER("closed", FLAG, .optional = true),
    MEMBER("holders", NUMBER, .optional = true),
    MEMBER("lease_ends", TIME, .optional = true),
    MEMBER("queue", WORD, .optional = true),
    MEMBER("batch", WORD, .optional = true),
    MEMBER("paused", PAUSE, .optional = true),
    MEMBER("type", WORD, .optional = true),
    MEMBER("resting", NUMBER, .optional = true),
    MEMBER("resting_since", TIME, .optional = true),
    MEMBER("executors", NUMBER, .optional = true),
    {.name = NULL},
};
// clang-format on

/* Puts "5,000 a day", "10 in 5m", "3 at once". */
static void put_rate(FILE *to, const json_t *gate)
{
    static const struct {
        int64_t us;
        const char *name;
    } units[] = {{1000000, "second"},
                 {60 * INT64_C(1000000), "minute"},
                 {3600 * INT64_C(1000000), "hour"},
                 {86400 * INT64_C(1000000), "day"},
                 {7 * 86400 * INT64_C(1000000), "week"}};
    const json_t *period = json_object_get(gate, "period");
    const char *zone = json_string_value(json_object_get(gate, "zone"));
    char count[32], span[PHRASE_SIZE];

    output_to(to, ", %s", grouped((uint64_t)answer_int(gate, "count"), count));
    if (!json_is_number(period)) {
        output_to(to, " at once");
        return;
    }
    if (zone) {
        output_to(to, " a %s of %s", calendar_unit(json_us(period)), zone);
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].us == json_us(period)) {
            output_to(to, " a%s %s", *units[i].name == 'h' ? "n" : "", units[i].name);
            return;
        }
    output_to(to, " in %s", format_span(json_us(period), span));
}

/* Puts who hold slots of it on lease, where somebody does. */
static void put_holders(FILE *to, const json_t *gate, int64_t now_us)
{
    int64_t holders = answer_int(gate, "holders");
    char number[32], of[32], span[PHRASE_SIZE];

    if (holders > 0)
        output_to(to, ": %s %s %s of %s %s; the next lease ends %s", grouped((uint64_t)holders, number),
                  holders == 1 ? "holder has" : "holders have", number,
                  grouped((uint64_t)answer_int(gate, "count"), of),
                  answer_int(gate, "count") == 1 ? "slot" : "slots",
                  format_when(now_us, json_us(json_object_get(gate, "lease_ends")), span));
}

static void put_gate(FILE *to, const json_t *gate, int64_t now_us)
{
    const json_t *until = json_object_get(gate, "until"), *by = json_object_get(gate, "by"),
                 *paused = json_object_get(gate, "paused");
    bool rule = json_is_string(json_object_get(gate, "rule"));
    const char *reason = answer_text(paused, "reason");
    char clock[PHRASE_SIZE];

    output_to(to, "%s", answer_text(gate, "gate"));
    if (rule)
        put_rate(to, gate);
    if (by)
        output_to(to, " for each %s%s", json_string_value(by),
                  json_is_true(json_object_get(gate, "own_rule")) ? " with rules of its own" : "");
    if (json_is_object(paused))
        output_to(to, ", paused by hand");
    else if (json_us(json_object_get(gate, "throttled_until")) > now_us)
        output_to(to, ", paused for a provider");
    if (json_is_true(json_object_get(gate, "never")))
        output_to(to, ", which can never hold what it costs");
    else if (json_is_number(until))
        output_to(to, ", until %s%s%s", format_clock(now_us, json_us(until), clock), *reason ? ": " : "",
                  reason);
    else if (json_is_true(json_object_get(gate, "closed")))
        output_to(to, ", closed until rules of its own are set again");
    else if (!by)
        output_to(to, !rule ? ", whose rules cannot be read; set it again with weir rate set"
                      : json_object_get(gate, "holders") ? ", until others end"
                                                         : ", until a job ends");
    put_holders(to, gate, now_us);
}

static void put_worker(FILE *to, const json_t *waits_for, int64_t now_us)
{
    const char *queue = answer_text(waits_for, "queue");
    int64_t resting = answer_int(waits_for, "resting");
    const json_t *since = json_object_get(waits_for, "resting_since");
    char workers[32], clock[PHRASE_SIZE] = "";

    if (json_is_number(since))
        format_clock(now_us, json_us(since), clock);
    output_to(to, "a worker that takes %s%s%s: ", answer_text(waits_for, "type"),
              *queue ? " from queue " : "", queue);
    if (resting == 0)
        output_to(to, "none does; start one");
    else if (resting == 1)
        output_to(to, "the only one is quiet%s%s, or stops; weir worker resume, or start one",
                  since ? " since " : "", clock);
    else
        output_to(to, "all %s are quiet%s%s, or stop; weir worker resume, or start one",
                  grouped((uint64_t)resting, workers), since ? " since " : "", clock);
}

static void put_paused(FILE *to, const char *what, const json_t *waits_for, int64_t now_us)
{
    const json_t *paused = json_object_get(waits_for, "paused"), *since = json_object_get(paused, "since"),
                 *until = json_object_get(paused, "until");
    const char *name = answer_text(waits_for, what), *reason = answer_text(paused, "reason");
    char clock[PHRASE_SIZE];

    output_to(to, "%s %s, paused", what, name);
    if (json_number_value(since) > 0)
        output_to(to, " since %s", format_clock(now_us, json_us(since), clock));
    if (json_is_number(until))
        output_to(to, " until %s", format_clock(now_us, json_us(until), clock));
    output_to(to, "%s%s; weir %s resume %s", *reason ? ": " : "", reason, what, name);
}

void waits_put(FILE *to, const json_t *waits_for, int64_t now_us)
{
    static const char *const halts[] = {"batch", "queue", "type"};
    bool paused = json_object_get(waits_for, "paused");
    char executors[32];

    for (size_t i = 0; paused && i < sizeof halts / sizeof *halts; i++)
        if (json_object_get(waits_for, halts[i]))
            put_paused(to, halts[i], waits_for, now_us);
    if (!paused && json_object_get(waits_for, "type"))
        put_worker(to, waits_for, now_us);
    if (json_object_get(waits_for, "executors"))
        output_to(to,
                  answer_int(waits_for, "executors") == 1 ? "a free executor: the only one is busy"
                                                          : "a free executor: all %s are busy",
                  grouped((uint64_t)answer_int(waits_for, "executors"), executors));
    if (json_object_get(waits_for, "gate"))
        put_gate(to, waits_for, now_us);
}

void gate_put_opening(FILE *to, const json_t *gate, int64_t now_us)
{
    const json_t *opens = json_object_get(gate, "opens_at"), *held = json_object_get(gate, "held_until"),
                 *throttled = json_object_get(gate, "throttled_until");
    char when[PHRASE_SIZE];

    if (json_is_true(json_object_get(gate, "open")))
        output_to(to, "open");
    else if (json_is_true(json_object_get(gate, "never")))
        output_to(to, "never: the next job costs more than it can hold");
    else if (json_is_true(json_object_get(gate, "closed")))
        output_to(to, "when rules of its own are set again");
    else if (json_is_number(opens))
        output_to(to, "%s", format_when(now_us, json_us(opens), when));
    else
        output_to(to, json_is_string(json_object_get(gate, "rule"))
                          ? "when others end"
                          : "when it is set again with weir rate set");
    put_holders(to, gate, now_us);
    if (json_is_object(json_object_get(gate, "paused")) || json_us(throttled) > now_us)
        output_to(to, ", paused");
    else if (json_is_number(held) && json_us(held) > now_us)
        output_to(to, ", held for one that waits longer");
}
