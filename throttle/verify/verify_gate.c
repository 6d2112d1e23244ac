/* One gate of verify: its starts are replayed, its use measured. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "throttle/algorithm/algorithms.h"
#include "throttle/gate.h"
#include "throttle/verify/verify_input.h"

static const int64_t fixed_window_us[VERIFY_WINDOWS - 1] = {1000000, 100000};

struct charge {
    int64_t at_us, slots;
};

/* A replay has the gate as it is by then. What a job spent above its cost, a charge, is taken when it ended. Redis heard of it by VERIFY_SETTLE_US
 * later: a start that was granted before that is judged as if the charge were not there. */
struct replay {
    const struct verify_input *input;
    struct verify_use *use;
    struct broken_list *broken;
    struct error *error;
    struct gate gate;
    bool has_gate;
    bool in_order;          /* all starts say when they were granted */
    int64_t last_us;        /* the last start */
    int64_t granted_us;     /* when the last start of a stretch was; its rule held until then */
    struct charge *charges; /* by time; those before next_charge are taken */
    size_t next_charge, charge_count, charge_capacity;
    int64_t *ends; /* of what is in flight, ascending */
    size_t end_count, end_capacity;
    double beyond, earned; /* slots taken beyond the first bursts; slots that came open after those */
};

const struct input_rule *event_rule(const struct verify_input *input, const struct event *event)
{
    return &input->limits[input->starts[event->start].limits - 1].at[event->place];
}

static const struct start *event_start(const struct replay *r, const struct event *event)
{
    return &r->input->starts[event->start];
}

static bool counts_jobs(const struct replay *r, const struct event *event)
{
    return event_rule(r->input, event)->rule.of_jobs;
}

/* Returns the slots that a start took. */
static int64_t slots_taken(const struct replay *r, const struct event *event)
{
    const struct start *s = event_start(r, event);

    if (counts_jobs(r, event))
        return 1;
    return s->spent >= 0 && s->spent < s->cost ? s->spent : s->cost;
}

/* Return when a start was granted at the earliest, and at the latest, as far as is known. */
static int64_t granted_from_us(const struct start *s)
{
    return s->at_us - (s->ahead_us >= 0 ? s->ahead_us : GATE_AHEAD_US);
}

static int64_t granted_until_us(const struct start *s)
{
    return s->at_us - max_i64(s->ahead_us, 0);
}

/* ---- Order */

/* Compares starts by their slots, in whose order they stand. */
static int by_slot(const void *a, const void *b)
{
    return by_number(((const struct event *)a)->start, ((const struct event *)b)->start);
}

static int by_grant(const void *a, const void *b, void *arg)
{
    const struct verify_input *input = arg;
    int order = by_number(granted_from_us(&input->starts[((const struct event *)a)->start]),
                          granted_from_us(&input->starts[((const struct event *)b)->start]));

    return order ? order : by_slot(a, b);
}

static int by_start(const void *a, const void *b, void *arg)
{
    const struct verify_input *input = arg;
    int order = by_number(input->starts[((const struct event *)a)->start].start_us,
                          input->starts[((const struct event *)b)->start].start_us);

    return order ? order : by_slot(a, b);
}

static int add_broken(struct replay *r, const struct event *event, bool started, int64_t early_us)
{
    struct broken_list *list = r->broken;

    if (input_grow(&list->at, list->count, &list->capacity, sizeof *list->at, r->error) < 0)
        return r->error->status;
    list->at[list->count++] = (struct broken){.start = event->start,
                                              .line = event->line,
                                              .place = event->place,
                                              .started = started,
                                              .early_us = early_us};
    *(started ? &r->use->crowded : &r->use->violations) += 1;
    return 0;
}

static void drop_gate(struct replay *r)
{
    if (r->has_gate)
        gate_free(&r->gate);
    r->has_gate = false;
}

/* A start that was rounded up counts as the exact time, which the gate that granted it knew. That of the
 * replay does not, where what it knows of is less than what was in use: before the traces begin, at a change
 * of the rule, by jobs that spent another cost, by slots that were not used. */
static int64_t rounding_us(const struct rule *rule)
{
    return algorithm_of(rule->algorithm)->bursts && rule->period_us % rule->count != 0;
}

/* ---- Another rule */

/* Changes the rule; nobody knows when, only between which two times. What was in use then stayed in use: at least what still was at the
 * second of them, and no gate that was filled with more or later lets more through than one that was filled with that at the first. A start
 * under the new rule may lie before the last one under the old rule, at which what is in use was counted. */
static int change_rule(struct replay *r, const struct rule *rule, const struct start *s)
{
    int64_t from_us = max_i64(r->granted_us, 0), to_us = max_i64(r->last_us, granted_until_us(s));

    if (!r->has_gate)
        gate_init(&r->gate, rule);
    else if (gate_change_between(&r->gate, rule, from_us, to_us + rounding_us(&r->gate.rule), r->in_order) <
             0)
        return verify_out_of_memory(r->error);
    r->has_gate = true;
    return 0;
}

/* ---- True costs */

/* Inserts a charge by its time, from the back: they come nearly in order. */
static int add_charge(struct replay *r, const struct start *s)
{
    size_t i;

    if (input_grow(&r->charges, r->charge_count, &r->charge_capacity, sizeof *r->charges, r->error) < 0)
        return r->error->status;
    for (i = r->charge_count++; i > r->next_charge; i--) {
        if (r->charges[i - 1].at_us <= s->at_us + s->end_us - s->start_us)
            break;
        r->charges[i] = r->charges[i - 1];
    }
    r->charges[i] = (struct charge){s->at_us + s->end_us - s->start_us, s->spent - s->cost};
    return 0;
}

static int take_charges(struct replay *r, int64_t now_us)
{
    for (; r->next_charge < r->charge_count && r->charges[r->next_charge].at_us <= now_us; r->next_charge++) {
        const struct charge *charge = &r->charges[r->next_charge];

        if (gate_charge(&r->gate, charge->at_us, charge->slots) < 0)
            return verify_out_of_memory(r->error);
    }
    return 0;
}

/* Sums the slots of charges that may not have been known when a start was granted. */
static int64_t slots_unheard(const struct replay *r, const struct start *s)
{
    int64_t slots = 0;

    for (size_t i = r->next_charge; i > 0 && r->charges[i - 1].at_us > granted_from_us(s) - VERIFY_SETTLE_US;
         i--)
        slots += r->charges[i - 1].slots;
    return slots;
}

/* ---- Rates */

/* Returns when the gate opens for a start, without those charges. At the start's time or before: it is not too early. */
static int64_t opens_at(const struct replay *r, const struct start *s, int64_t slots)
{
    const struct rule *rule = &r->gate.rule;
    int64_t until_us = s->at_us + rounding_us(rule), opens_us = gate_start(&r->gate, s->at_us, slots), used;

    if (opens_us <= until_us)
        return opens_us;
    used = algorithm_of(rule->algorithm)->used(&r->gate, until_us) - slots_unheard(r, s);
    return max_i64(used, 0) + slots <= rule->burst ? s->at_us : opens_us;
}

/* Takes slots, though the gate may be full of what Redis did not know. */
static int take_slots(struct replay *r, int64_t at_us, int64_t slots)
{
    struct gate *g = &r->gate;
    int status =
        gate_start(g, at_us, slots) > at_us ? gate_charge(g, at_us, slots) : gate_take(g, at_us, 1, slots);

    return status < 0 ? verify_out_of_memory(r->error) : 0;
}

/* Replays a start at a rate. One that comes too early takes nothing (I.371: a cell that does not conform): so it is one violation and
 * does not make all that follow it wrong. */
static int replay_rate(struct replay *r, struct event *event)
{
    const struct start *s = event_start(r, event);
    int64_t slots = slots_taken(r, event), opens_us = s->at_us;

    if (take_charges(r, s->at_us) < 0)
        return r->error->status;
    if (slots > 0)
        opens_us = opens_at(r, s, slots);
    event->failed = opens_us > s->at_us + rounding_us(&r->gate.rule);
    if (event->failed)
        return add_broken(r, event, false, opens_us == GATE_NEVER ? VERIFY_NEVER : opens_us - s->at_us);
    if (slots > 0 && take_slots(r, s->at_us, slots) < 0)
        return r->error->status;
    return s->spent > s->cost && !counts_jobs(r, event) ? add_charge(r, s) : 0;
}

/* ---- Jobs in flight */

static int add_end(struct replay *r, int64_t end_us)
{
    size_t i;

    if (input_grow(&r->ends, r->end_count, &r->end_capacity, sizeof *r->ends, r->error) < 0)
        return r->error->status;
    for (i = r->end_count++; i > 0 && r->ends[i - 1] > end_us; i--)
        r->ends[i] = r->ends[i - 1];
    r->ends[i] = end_us;
    return 0;
}

/* Replays a start or an end at a concurrency rule. A job that is one too many is in flight like the others. */
static int replay_in_flight(struct replay *r, const struct event *event)
{
    const struct start *s = event_start(r, event);
    const struct rule *rule = &event_rule(r->input, event)->rule;
    size_t ended = 0, most = (size_t)rule->count;

    while (ended < r->end_count && r->ends[ended] <= s->at_us)
        ended++;
    r->end_count -= ended;
    if (ended > 0)
        memmove(r->ends, r->ends + ended, r->end_count * sizeof *r->ends);
    assert(most > 0 && (r->ends || r->end_count == 0));
    if (r->end_count >= most && add_broken(r, event, false, r->ends[r->end_count - most] - s->at_us) < 0)
        return r->error->status;
    if (add_end(r, s->at_us + s->end_us - s->start_us) < 0)
        return r->error->status;
    if ((int64_t)r->end_count - rule->count > r->use->most_at_once - r->use->allowed_at_once ||
        r->use->allowed_at_once == 0) {
        r->use->most_at_once = (int64_t)r->end_count;
        r->use->allowed_at_once = rule->count;
    }
    return 0;
}

/* ---- Measuring */

/* The most slots that a rule lets into any half-open window. A bucket: burst - 1, and as many as drain in
 * it; others: as many as in each of the periods that cover it. */
static int64_t most_allowed(const struct rule *rule, int64_t window_us)
{
    int64_t periods = (window_us + rule->period_us - 1) / rule->period_us;
    __int128 drained = ((__int128)window_us * rule->count + rule->period_us - 1) / rule->period_us;

    if (algorithm_of(rule->algorithm)->bursts)
        return rule->burst - 1 + (int64_t)drained;
    return periods * rule_most_in_period(rule);
}

static int64_t slot_time(const struct start *s)
{
    return s->at_us;
}

static int64_t start_time(const struct start *s)
{
    return s->start_us;
}

/* Events in the order of their times. Of several stretches the one that is closest to its bound, or furthest
 * above it, is kept. */
static void measure_window(const struct replay *r, struct verify_window w,
                           int64_t (*time_of)(const struct start *s), const struct event *events, size_t n,
                           struct verify_window *worst)
{
    int64_t slots = 0;

    for (size_t first = 0, i = 0; i < n; i++) {
        const struct start *s = event_start(r, &events[i]);

        for (; time_of(s) - time_of(event_start(r, &events[first])) >= w.window_us; first++)
            slots -= slots_taken(r, &events[first]);
        slots += slots_taken(r, &events[i]);
        w.most = max_i64(w.most, slots);
    }
    if (worst->allowed == 0 || w.most - w.allowed > worst->most - worst->allowed)
        *worst = w;
}

static void measure_slots(struct replay *r, const struct rule *rule, const struct event *events, size_t n)
{
    for (size_t i = 0; i < VERIFY_WINDOWS; i++) {
        int64_t window_us = i < VERIFY_WINDOWS - 1 ? fixed_window_us[i] : rule->period_us;

        measure_window(r, (struct verify_window){window_us, 0, most_allowed(rule, window_us)}, slot_time,
                       events, n, &r->use->windows[i]);
    }
}

static void measure_gap(struct replay *r, const struct rule *rule, const struct event *events, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int64_t gap_us = event_start(r, &events[i])->at_us - event_start(r, &events[i - 1])->at_us;
        double gap = (double)gap_us * (double)rule->count / (double)rule->period_us;

        if (r->use->gap < 0 || gap < r->use->gap)
            r->use->gap = gap;
    }
}

static void measure_stretch(struct replay *r, const struct rule *rule, const struct event *events, size_t n)
{
    double span_us = (double)(event_start(r, &events[n - 1])->at_us - event_start(r, &events[0])->at_us);
    double slots = 0;

    r->use->stretches++;
    if (rule->algorithm == ALGORITHM_CONCURRENCY)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct start *s = event_start(r, &events[i]);

        slots += counts_jobs(r, &events[i]) ? 1 : (double)(s->spent >= 0 ? s->spent : s->cost);
    }
    if (slots > (double)rule->burst) {
        r->beyond += slots - (double)rule->burst;
        r->earned += span_us * (double)rule->count / (double)rule->period_us;
    }
    measure_slots(r, rule, events, n);
    measure_gap(r, rule, events, n);
}

/* ---- Starts, whatever their slots */

/* All starts in it have their slots in a time that is longer by what may lie between the two: as long as a
 * slot is good, and as much again for the way from Redis and the clocks of machines. That time is a few
 * periods, one where a period is long. */
static struct verify_window start_window(const struct replay *r, const struct rule *rule,
                                         const struct event *events, size_t n)
{
    int64_t apart_us = 0, periods;

    for (size_t i = 0; i < n; i++)
        apart_us = max_i64(apart_us, 2 * (int64_t)event_start(r, &events[i])->good_us);
    periods = max_i64(1, (4 * apart_us + rule->period_us - 1) / rule->period_us);
    return (struct verify_window){periods * rule->period_us - apart_us, 0,
                                  most_allowed(rule, periods * rule->period_us)};
}

/* Finds starts that are too many in a window. Such a start does not count for the next ones; nor does one whose slot has failed already. */
static int find_crowded(struct replay *r, const struct verify_window *w, struct event *events, size_t n)
{
    size_t first = 0, kept = 0;
    int64_t slots = 0;

    for (size_t i = 0; i < n; i++) {
        struct event event = events[i];
        const struct start *s = event_start(r, &event);

        if (event.failed)
            continue;
        for (; first < kept && s->start_us - event_start(r, &events[first])->start_us >= w->window_us;
             first++)
            slots -= slots_taken(r, &events[first]);
        if (slots + slots_taken(r, &event) > w->allowed) {
            if (add_broken(r, &event, true, 0) < 0)
                return r->error->status;
            continue;
        }
        slots += slots_taken(r, &event);
        events[kept++] = event;
    }
    return 0;
}

static int judge_starts(struct replay *r, const struct rule *rule, struct event *events, size_t n)
{
    struct verify_window w = start_window(r, rule, events, n);

    qsort_r(events, n, sizeof *events, by_start, (void *)r->input);
    measure_window(r, w, start_time, events, n, &r->use->started);
    return find_crowded(r, &w, events, n);
}

/* ---- All of it */

/* Finds the end of a stretch: starts under the rule until now that may have been granted before those under the next one were. */
static size_t stretch_end(const struct replay *r, struct event *events, size_t n)
{
    uint32_t same = event_rule(r->input, &events[0])->same;
    int64_t next_us = INT64_MAX; /* by then the rule was another one */
    size_t end = 1;

    for (size_t i = 1; i < n; i++) {
        struct event event = events[i];
        const struct start *s = event_start(r, &event);

        if (granted_from_us(s) > next_us)
            break;
        if (event_rule(r->input, &event)->same != same) {
            next_us = min_i64(next_us, granted_until_us(s));
            continue;
        }
        memmove(&events[end + 1], &events[end], (i - end) * sizeof *events);
        events[end++] = event;
    }
    return end;
}

static int replay_stretch(struct replay *r, struct event *events, size_t n)
{
    const struct rule *rule = &r->input->rules[event_rule(r->input, &events[0])->same];
    bool in_flight = rule->algorithm == ALGORITHM_CONCURRENCY;
    int status = 0;

    if (in_flight) {
        qsort(events, n, sizeof *events, by_slot);
        drop_gate(r);
    } else {
        r->end_count = 0;
        status = change_rule(r, rule, event_start(r, &events[0]));
    }
    for (size_t i = 0; status == 0 && i < n; i++)
        status = in_flight ? replay_in_flight(r, &events[i]) : replay_rate(r, &events[i]);
    r->granted_us = granted_from_us(event_start(r, &events[n - 1]));
    qsort(events, n, sizeof *events, by_slot);
    r->last_us = event_start(r, &events[n - 1])->at_us;
    measure_stretch(r, rule, events, n);
    return status < 0 || in_flight ? status : judge_starts(r, rule, events, n);
}

int gate_replay(const struct verify_input *input, struct event *events, size_t n, struct verify_use *use,
                struct broken_list *broken, struct error *e)
{
    struct replay r = {.input = input, .use = use, .broken = broken, .error = e, .in_order = true};
    int status = 0;

    *use = (struct verify_use){.starts = n, .kept = -1, .gap = -1};
    qsort_r(events, n, sizeof *events, by_grant, (void *)input);
    for (size_t i = 0; i < n; i++)
        r.in_order &= event_start(&r, &events[i])->ahead_us >= 0;
    for (size_t i = 0, count; status == 0 && i < n; i += count) {
        count = stretch_end(&r, events + i, n - i);
        status = replay_stretch(&r, events + i, count);
    }
    if (r.earned > 0)
        use->kept = r.beyond / r.earned;
    drop_gate(&r);
    free(r.charges);
    free(r.ends);
    return status;
}
