/* gcra: the generic cell rate algorithm in exact integers, as in throttle/gcra.lua.
 *
 * Source: ITU-T I.371 (virtual scheduling). A start of cost slots at s is allowed when s >= TAT - (burst -
 * cost) T; then TAT = max(s, TAT) + cost T. A time is whole microseconds and a remainder in units of 1/count
 * us, so 7/s does not drift. Starts happen at whole microseconds: s = the exact opening time rounded up, and
 * while s <= TAT rounded up it counts as the exact time, so that rounding loses nothing. A product that would
 * not fit 64 bits is made in 128.
 *
 * Worst case: burst - 1 slots, and one for each T that begins in the window: count + burst - 1 in any period.
 */
#include "throttle/gcra.h"

#include "throttle/algorithm.h"

typedef __int128 wide;

enum word {
    TAT_US,
    TAT_REM,
    LAST_US
}; /* TAT = TAT_US + TAT_REM / count; the last start, as far as it counts */

#define TEN_YEARS_US (INT64_C(3650) * 86400 * 1000000)
/* How far ahead debt can put TAT. All that a rule can grant is half of it at most. */
#define FAR_US (2 * TEN_YEARS_US)

int64_t gcra_most_in_period(const struct rule *rule)
{
    return rule->count + rule->burst - 1;
}

/* T grows, the count stays: TAT remains what it is. */
void gcra_scale(struct rule *rule, int thousandths)
{
    rule->period_us = least(TEN_YEARS_US, (rule->period_us * 1000 + thousandths - 1) / thousandths);
    rule->burst = least(rule->burst, (int64_t)((wide)TEN_YEARS_US * rule->count / rule->period_us) + 1);
}

static int64_t tat_rounded_up(const struct gate *g)
{
    return g->word[TAT_US] + (g->word[TAT_REM] > 0);
}

/* TAT in 1/count us. */
static wide tat_parts(const struct gate *g)
{
    return (wide)g->word[TAT_US] * g->rule.count + g->word[TAT_REM];
}

static void set_tat(struct gate *g, wide parts)
{
    g->word[TAT_US] = (int64_t)(parts / g->rule.count);
    g->word[TAT_REM] = (int64_t)(parts % g->rule.count);
}

static wide rounded_up(wide parts, int64_t count)
{
    return parts / count + (parts % count > 0);
}

static void cut(struct gate *g, int64_t now_us)
{
    if (g->word[TAT_US] >= now_us + FAR_US) {
        g->word[TAT_US] = now_us + FAR_US;
        g->word[TAT_REM] = 0;
    }
}

int gcra_load(struct gate *g, const char *words, int64_t now_us)
{
    if ((!words_read(words, 2, g->word) && !words_read(words, 3, g->word)) ||
        g->word[TAT_REM] >= g->rule.count)
        return WEIR_EINPUT;
    cut(g, now_us);
    return 0;
}

int64_t gcra_start(const struct gate *g, int64_t now_us, int64_t slots)
{
    wide opens = tat_parts(g) - (wide)(g->rule.burst - slots) * g->rule.period_us;

    return most(now_us, (int64_t)rounded_up(opens, g->rule.count));
}

/* (TAT - at) / T; T is period parts of 1/count us. */
int64_t gcra_used(const struct gate *g, int64_t at_us)
{
    wide left = tat_parts(g) - (wide)at_us * g->rule.count;

    return left <= 0 ? 0 : (int64_t)rounded_up(left, g->rule.period_us);
}

int gcra_take(struct gate *g, int64_t s_us, int64_t slots)
{
    wide tat = s_us > tat_rounded_up(g) ? (wide)s_us * g->rule.count : tat_parts(g);

    set_tat(g, tat + (wide)slots * g->rule.period_us);
    g->word[LAST_US] = most(g->word[LAST_US], s_us);
    return 0;
}

int gcra_charge(struct gate *g, int64_t now_us, int64_t slots)
{
    int status = gcra_take(g, now_us, slots);

    cut(g, now_us);
    return status;
}

/* With a smaller cost at s the gate could have been empty since, until the last start, which may lie ahead of
 * now: that long is not given back. */
void gcra_give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots)
{
    wide given =
        (wide)slots * g->rule.period_us - (wide)most(0, now_us + GATE_AHEAD_US - s_us) * g->rule.count;
    wide tat = tat_parts(g) - given;

    if (given > 0)
        set_tat(g, tat > 0 ? tat : 0);
}

int64_t gcra_last(const struct gate *g)
{
    return g->word[LAST_US];
}

int gcra_fill(struct gate *g, int64_t at_us, int64_t slots)
{
    g->word[LAST_US] = at_us;
    set_tat(g, (wide)at_us * g->rule.count + (wide)slots * g->rule.period_us);
    return 0;
}

void gcra_step_back(struct gate *g, int64_t us)
{
    g->word[TAT_US] = most(0, g->word[TAT_US] - us);
    g->word[LAST_US] = most(0, g->word[LAST_US] - us);
}

/* At TAT itself its remainder still counts. */
int64_t gcra_resets(const struct gate *g)
{
    return tat_rounded_up(g);
}

/* What starts at once does so from now; each later one when the slots of those before it are back: TAT after
 * n - 1 of them, less (burst - slots) T. */
int64_t gcra_nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t slots)
{
    wide tat = now_us > tat_rounded_up(g) ? (wide)now_us * g->rule.count : tat_parts(g);
    wide opens = tat + ((wide)n * slots - g->rule.burst) * g->rule.period_us;

    return most(now_us, time_or_never(rounded_up(opens, g->rule.count)));
}

const struct algorithm_ops gcra_ops = {
    .name = "gcra",
    .bursts = true,
    .count_max = SLOTS_MOST,
    .most_in_period = gcra_most_in_period,
    .scale = gcra_scale,
    .load = gcra_load,
    .start = gcra_start,
    .used = gcra_used,
    .take = gcra_take,
    .charge = gcra_charge,
    .give = gcra_give,
    .last = gcra_last,
    .fill = gcra_fill,
    .step_back = gcra_step_back,
    .resets = gcra_resets,
    .nth_start = gcra_nth_start,
};
