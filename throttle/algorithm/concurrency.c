/* concurrency: at most count jobs in flight, whatever they cost. It opens when one of them ends, not by time:
 * what it keeps is gate.in_flight, which outlives a change of the rule.
 *
 * Worst case: count at any time; how many start in a period depends on how long they take. */
#include "throttle/algorithm/algorithm.h"

static int64_t most_in_period(const struct rule *rule)
{
    return rule->count;
}

static int load(struct gate *g, const char *words)
{
    return words_read(words, 1, &g->in_flight) ? 0 : WEIR_EINPUT;
}

static int64_t used(const struct gate *g, int64_t at_us)
{
    (void)at_us;
    return g->in_flight;
}

static int64_t last(const struct gate *g)
{
    (void)g;
    return 0;
}

static int64_t nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t slots)
{
    (void)slots;
    return n <= g->rule.count - g->in_flight ? now_us : GATE_NEVER;
}

static int64_t start(const struct gate *g, int64_t now_us, int64_t slots)
{
    return nth_start(g, now_us, 1, slots);
}

static int take(struct gate *g, int64_t s_us, int64_t slots)
{
    (void)s_us;
    g->in_flight += slots;
    return 0;
}

static int charge(struct gate *g, int64_t now_us, int64_t slots)
{
    (void)g, (void)now_us, (void)slots;
    return 0;
}

static void give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots)
{
    (void)g, (void)now_us, (void)s_us, (void)slots;
}

static void step_back(struct gate *g, int64_t us)
{
    (void)g, (void)us;
}

static int64_t resets(const struct gate *g)
{
    return g->in_flight ? GATE_NEVER : 0;
}

const struct algorithm_ops concurrency_ops = {
    .name = "concurrency",
    .count_max = SLOTS_MOST,
    .most_in_period = most_in_period,
    .load = load,
    .start = start,
    .used = used,
    .take = take,
    .charge = charge,
    .give = give,
    .last = last,
    .fill = charge, /* other slots in use are no jobs in flight */
    .step_back = step_back,
    .resets = resets,
    .nth_start = nth_start,
};
