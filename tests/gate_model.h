/* An independent model of a gate, for tests: GCRA in I.371's other form, the leaky bucket, in exact integers.
 *
 * A tick is 1/count us. The bucket drains one tick in a tick; a slot pours in T = period ticks; cost slots
 * may start when they fit above what is left: left + cost T <= burst T. Nothing here is shared with gcra.c or
 * gate.lua, which keep a theoretical arrival time instead. */
#ifndef TESTS_GATE_MODEL_H
#define TESTS_GATE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/random.h"
#include "throttle/rule.h"

/* A rule of gcra, the algorithm of rules that name none. */
#define GCRA(n, period, at_once)                                                                             \
    {                                                                                                        \
        .count = (n), .period_us = (period), .burst = (at_once)                                              \
    }

typedef __int128 ticks;

struct model {
    struct rule rule;
    ticks level, last; /* what was in the bucket at that time */
    int64_t latest_us; /* the latest start */
};

static inline void model_init(struct model *m, const struct rule *rule)
{
    *m = (struct model){.rule = *rule};
}

/* What is left at s; negative: empty for that long. */
static inline ticks model_left(const struct model *m, int64_t s_us)
{
    return m->level - ((ticks)s_us * m->rule.count - m->last);
}

static inline bool model_allows(const struct model *m, int64_t s_us, int64_t cost)
{
    ticks left = model_left(m, s_us);

    return (left > 0 ? left : 0) + (ticks)cost * m->rule.period_us <=
           (ticks)m->rule.burst * m->rule.period_us;
}

static inline void model_take(struct model *m, int64_t s_us, int64_t cost)
{
    ticks left = model_left(m, s_us);

    if (left >= 0)
        m->level = left;
    else
        m->level = 0;
    /* Empty for less than a microsecond: that start was rounded up, and counts from the moment it became
     * empty. */
    if (left >= 0 || -left >= m->rule.count)
        m->last = (ticks)s_us * m->rule.count;
    else
        m->last = (ticks)s_us * m->rule.count + left;
    m->level += (ticks)cost * m->rule.period_us;
    if (s_us > m->latest_us)
        m->latest_us = s_us;
}

/* Found by halving, not by a formula; INT64_MAX: never. */
static inline int64_t model_start(const struct model *m, int64_t now_us, int64_t cost)
{
    int64_t low = now_us, high;

    if (cost > m->rule.burst)
        return INT64_MAX;
    high = (int64_t)((m->last + m->level) / m->rule.count) + 1;
    if (high < now_us)
        high = now_us;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (model_allows(m, middle, cost))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Counted one by one. */
static inline int64_t model_count(const struct model *m, int64_t s_us, int64_t most, int64_t cost)
{
    struct model tried = *m;
    int64_t k = 0;

    while (k < most && model_allows(&tried, s_us, cost)) {
        model_take(&tried, s_us, cost);
        k++;
    }
    return k;
}

static inline void model_step_back(struct model *m, int64_t us)
{
    m->last -= (ticks)us * m->rule.count;
    m->latest_us -= us;
}

static inline void model_change(struct model *m, const struct rule *rule, int64_t now_us)
{
    int64_t at_us = now_us > m->latest_us ? now_us : m->latest_us;
    ticks left = model_left(m, at_us);
    ticks used = 0;

    while (left > 0 && used < rule->burst) {
        ticks slots = left / m->rule.period_us; /* whole ones, then the one that has begun */

        if (slots == 0)
            slots = 1;
        if (slots > rule->burst - used)
            slots = rule->burst - used;
        left -= slots * m->rule.period_us;
        used += slots;
    }
    *m = (struct model){.rule = *rule,
                        .last = (ticks)at_us * rule->count,
                        .level = used * rule->period_us,
                        .latest_us = at_us};
}

/* ---- Random rules */

/* 1 to high, each magnitude about as likely. */
static inline int64_t random_magnitude(uint64_t *state, int64_t high)
{
    int bits = 0;
    int64_t top;

    while (bits < 61 && (INT64_C(2) << bits) <= high)
        bits++;
    top = INT64_C(2) << random_in(state, 0, bits);
    return random_in(state, 1, top < high ? top : high);
}

/* The rates that must be exact, with a burst of their own half of the time, and any rule that is valid. */
static inline struct rule random_rule(uint64_t *state)
{
    static const struct rule known[] = {
        GCRA(7, 1000000, 7),
        GCRA(30000, 1000000, 30000),
        GCRA(1000000, 1000000, 1000000),
        GCRA(1, 1500000, 1),
        GCRA(1, 86400000000, 1),
        GCRA(100, 1000000, 10),
        GCRA(1000, 1000000, 1),
        GCRA(5000, 1000000, 1),
        GCRA(1000000000, 1000000001, 1000000000),
        GCRA(3, 315360000000000, 2),
        GCRA(10000, 86400000000, 10000),
    };
    const int64_t ten_years = INT64_C(3650) * 86400 * 1000000;
    struct rule r = known[random_in(state, 0, sizeof known / sizeof *known - 1)];
    ticks burst_max;

    if (random_in(state, 0, 2) == 0) {
        r.count = random_magnitude(state, 1000000000);
        r.period_us = r.count - 1 + random_magnitude(state, ten_years - r.count + 1);
    }
    burst_max = (ticks)ten_years * r.count / r.period_us + 1;
    if (burst_max > 1000000000)
        burst_max = 1000000000;
    if (r.burst > burst_max || random_in(state, 0, 1))
        r.burst = random_magnitude(state, (int64_t)burst_max);
    return r;
}

#endif
