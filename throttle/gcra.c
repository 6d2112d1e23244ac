/* GCRA in exact integers. The numbers are those of gate.lua, where the bounds are shown; a product that would
 * not fit 64 bits is made in 128. */
#include "throttle/gcra.h"

typedef __int128 wide;

/* A time or a span: whole microseconds and 0 <= rem < count in 1/count us. */
struct exact {
    int64_t us, rem;
};

static struct exact exact_of(const struct rule *rule, wide parts)
{
    wide us = parts / rule->count, rem = parts % rule->count;

    if (rem < 0) {
        us--;
        rem += rule->count;
    }
    return (struct exact){.us = us > INT64_MAX ? INT64_MAX : (int64_t)us, .rem = (int64_t)rem};
}

/* TAT in 1/count us. */
static wide tat_parts(const struct gcra *g)
{
    return (wide)g->tat_us * g->rule.count + g->tat_rem;
}

static int64_t tat_rounded_up(const struct gcra *g)
{
    return g->tat_us + (g->tat_rem > 0);
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void gcra_init(struct gcra *g, const struct rule *rule)
{
    *g = (struct gcra){.rule = *rule};
}

/* The slots in use at a time: (TAT - at) / T, rounded up. T is period parts of 1/count us. */
static int64_t slots_used(const struct gcra *g, int64_t at_us)
{
    wide left = tat_parts(g) - (wide)at_us * g->rule.count;

    return left <= 0 ? 0 : (int64_t)((left + g->rule.period_us - 1) / g->rule.period_us);
}

/* TAT + (cost - 1) T - tau = TAT - (burst - cost) T, rounded up to a whole microsecond. */
int64_t gcra_start(const struct gcra *g, int64_t now_us, int64_t cost)
{
    struct exact opens;

    if (cost > g->rule.burst)
        return INT64_MAX;
    opens = exact_of(&g->rule, tat_parts(g) - (wide)(g->rule.burst - cost) * g->rule.period_us);
    return later_of(now_us, opens.us + (opens.rem > 0));
}

int64_t gcra_count(const struct gcra *g, int64_t s_us, int64_t most, int64_t cost)
{
    int64_t jobs = (g->rule.burst - slots_used(g, s_us)) / cost;

    if (jobs > most)
        jobs = most;
    return jobs < 0 ? 0 : jobs;
}

/* A start at TAT rounded up counts as a start at TAT itself, so that rounding loses nothing. */
void gcra_take(struct gcra *g, int64_t s_us, int64_t k, int64_t cost)
{
    struct exact tat;

    if (s_us > tat_rounded_up(g)) {
        g->tat_us = s_us;
        g->tat_rem = 0;
    }
    tat = exact_of(&g->rule, tat_parts(g) + (wide)k * cost * g->rule.period_us);
    g->tat_us = tat.us;
    g->tat_rem = tat.rem;
}

/* What starts at once does so from now; each later one starts when the slots of those before it are back: TAT
 * after n - 1 of them, less (burst - cost) T. */
int64_t gcra_nth_start(const struct gcra *g, int64_t now_us, int64_t n, int64_t cost)
{
    struct gcra before = *g;
    struct exact opens;

    if (cost > g->rule.burst)
        return INT64_MAX;
    if (now_us > tat_rounded_up(g)) {
        before.tat_us = now_us;
        before.tat_rem = 0;
    }
    opens = exact_of(&g->rule, tat_parts(&before) + ((wide)n * cost - g->rule.burst) * g->rule.period_us);
    return later_of(now_us, opens.us == INT64_MAX ? INT64_MAX : opens.us + (opens.rem > 0));
}

void gcra_change(struct gcra *g, const struct rule *rule, int64_t now_us)
{
    int64_t used = slots_used(g, now_us);
    struct exact kept;

    if (used > rule->burst)
        used = rule->burst;
    kept = exact_of(rule, (wide)used * rule->period_us);
    *g = (struct gcra){.rule = *rule, .tat_us = now_us + kept.us, .tat_rem = kept.rem};
}
