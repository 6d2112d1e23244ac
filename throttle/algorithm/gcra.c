/* gcra: the generic cell rate algorithm in exact integers, as in throttle/algorithm/gcra.lua.
 *
 * Source: ITU-T I.371 (virtual scheduling). A start of cost slots at s is allowed when s >= TAT - (burst -
 * cost) T; then TAT = max(s, TAT) + cost T. A time is whole microseconds and a remainder in units of 1/count
 * us, so 7/s does not drift. Starts happen at whole microseconds: s = the exact opening time rounded up, and
 * while s <= TAT rounded up it counts as the exact time, so that rounding loses nothing. A product that would
 * not fit 64 bits is made in 128. What is given back, and what is remembered for it, is said in gcra.lua.
 *
 * Worst case: burst - 1 slots, and one for each T that begins in the window: count + burst - 1 in any period.
 */
#include "core/duration.h"

#include <string.h>

#include "throttle/algorithm/algorithm.h"

typedef __int128 wide;

enum word {
    TAT_US,
    TAT_REM,
    LAST_US
}; /* TAT = TAT_US + TAT_REM / count; the last start, as far as it counts */

/* Debt can put TAT so far ahead. All that a rule can grant is half of it at most. */
#define FAR_US (2 * TEN_YEARS_US)

static int64_t most_in_period(const struct rule *rule)
{
    return rule->count + rule->burst - 1;
}

/* Scales the rate by T. The count stays, so TAT remains what it is. */
static void scale(struct rule *rule, int thousandths)
{
    rule->period_us = min_i64(TEN_YEARS_US, (rule->period_us * 1000 + thousandths - 1) / thousandths);
    rule->burst = min_i64(rule->burst, (int64_t)((wide)TEN_YEARS_US * rule->count / rule->period_us) + 1);
}

static int64_t tat_rounded_up(const struct gate *g)
{
    return g->word[TAT_US] + (g->word[TAT_REM] > 0);
}

/* Returns TAT in 1/count us. */
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

static void forget(struct gate *g)
{
    g->remembers = false;
    g->low_count = 0;
}

static void cut(struct gate *g, int64_t now_us)
{
    if (g->word[TAT_US] > now_us + FAR_US) {
        g->word[TAT_US] = now_us + FAR_US;
        g->word[TAT_REM] = 0;
        forget(g);
    }
}

/* ---- What starts found in use: LOWS of gcra.lua */

static bool is_less(const struct gate_low *a, const struct gate_low *b)
{
    return a->us < b->us || (a->us == b->us && a->rem < b->rem);
}

static void drop_low(struct gate *g, int i)
{
    g->low_count--;
    memmove(&g->lows[i], &g->lows[i + 1], (size_t)(g->low_count - i) * sizeof *g->lows);
}

/* Makes one of the two lows that differ least: as late as the later, as low as the lower. */
static void merge_lows(struct gate *g)
{
    int best = 0;

    for (int i = 1; i + 1 < g->low_count; i++)
        if (g->lows[i + 1].us - g->lows[i].us < g->lows[best + 1].us - g->lows[best].us)
            best = i;
    g->lows[best].start_us = g->lows[best + 1].start_us;
    drop_low(g, best + 1);
}

static void add_low(struct gate *g, struct gate_low low)
{
    if (g->low_count > 0 && low.start_us <= g->lows[g->low_count - 1].start_us)
        return; /* this start found more in use than that one */
    while (g->low_count > 0 && !is_less(&g->lows[g->low_count - 1], &low))
        g->low_count--;
    g->lows[g->low_count++] = low;
    if (g->low_count > GATE_LOWS)
        merge_lows(g);
}

static int find_low(const struct gate *g, int64_t s_us)
{
    int i = 0;

    while (i < g->low_count && g->lows[i].start_us <= s_us)
        i++;
    return i;
}

static void subtract_lows(struct gate *g, int first, const struct gate_low *given)
{
    for (int i = first; i < g->low_count; i++) {
        struct gate_low *low = &g->lows[i];

        low->us -= given->us + (low->rem < given->rem);
        low->rem += low->rem < given->rem ? g->rule.count - given->rem : -given->rem;
        if (low->us < 0)
            low->us = low->rem = 0;
    }
    while (first > 0 && first < g->low_count && !is_less(&g->lows[first - 1], &g->lows[first]))
        drop_low(g, --first);
}

static void remember(struct gate *g, int64_t now_us)
{
    if (g->remembers)
        return;
    g->remembers = true;
    g->low_count = 0;
    if (g->word[TAT_US] >= now_us)
        add_low(g, (struct gate_low){.start_us = max_i64(now_us, g->word[LAST_US])});
}

/* Reads "S,US,REM;" one or more times. */
static bool read_lows(struct gate *g, const char *words)
{
    const int64_t time_most = INT64_C(1) << 53;

    for (g->low_count = 0; *words; g->low_count++) {
        struct gate_low *low = &g->lows[g->low_count];

        if (g->low_count == GATE_LOWS || !number_read(&words, time_most, &low->start_us) || *words++ != ',' ||
            !number_read(&words, time_most, &low->us) || *words++ != ',' ||
            !number_read(&words, g->rule.count - 1, &low->rem) || *words++ != ';')
            return false;
    }
    g->remembers = g->low_count > 0;
    return g->remembers;
}

/* ---- Words */

/* Reads TAT_US TAT_REM[ LAST_US[ LOWS]]. */
static bool read_words(struct gate *g, const char *words)
{
    for (int i = 0; i <= LAST_US; i++) {
        if (!number_read(&words, INT64_C(1) << 53, &g->word[i]))
            return false;
        if (!*words && i >= TAT_REM)
            return true;
        if (*words++ != ' ')
            return false;
    }
    return read_lows(g, words);
}

static int load(struct gate *g, const char *words)
{
    forget(g);
    g->word[LAST_US] = 0;
    if (!read_words(g, words) || g->word[TAT_REM] >= g->rule.count)
        return WEIR_EINPUT;
    return 0;
}

static int64_t start(const struct gate *g, int64_t now_us, int64_t slots)
{
    wide opens = tat_parts(g) - (wide)(g->rule.burst - slots) * g->rule.period_us;

    return max_i64(now_us, (int64_t)rounded_up(opens, g->rule.count));
}

/* Returns (TAT - at) / T; T is period parts of 1/count us. */
static int64_t used(const struct gate *g, int64_t at_us)
{
    wide left = tat_parts(g) - (wide)at_us * g->rule.count;

    return left <= 0 ? 0 : (int64_t)rounded_up(left, g->rule.period_us);
}

static int take(struct gate *g, int64_t s_us, int64_t slots)
{
    wide tat = s_us > tat_rounded_up(g) ? (wide)s_us * g->rule.count : tat_parts(g);
    wide left = tat - (wide)s_us * g->rule.count;

    if (g->remembers)
        add_low(g, (struct gate_low){s_us, (int64_t)(left > 0 ? left / g->rule.count : 0),
                                     (int64_t)(left > 0 ? left % g->rule.count : 0)});
    set_tat(g, tat + (wide)slots * g->rule.period_us);
    g->word[LAST_US] = max_i64(g->word[LAST_US], s_us);
    return 0;
}

static int note(struct gate *g, int64_t s_us, int64_t slots)
{
    wide was = tat_parts(g), full = (wide)s_us * g->rule.count + (wide)g->rule.burst * g->rule.period_us;
    int status =
        take(g, s_us, min_i64(slots, g->rule.burst + 1)); /* a use that was rounded up leaves a little room */

    if (tat_parts(g) > full)
        set_tat(g, was > full ? was : full);
    return status;
}

static int charge(struct gate *g, int64_t now_us, int64_t slots)
{
    int status = take(g, now_us, slots);

    cut(g, now_us);
    return status;
}

/* Returns the latest time at which the last start can have been: each is a T before TAT at least. */
static int64_t latest_start(const struct gate *g)
{
    wide latest = tat_parts(g) - g->rule.period_us;

    return latest > 0 ? (int64_t)rounded_up(latest, g->rule.count) : 0;
}

/* Gives slots back, but no more than any later start found in use: the rest had drained unused by
 * then. Without memory no start is later than the last one that was granted ahead. */
static void give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots)
{
    wide all = (wide)slots * g->rule.period_us, count = g->rule.count;
    wide given = all - (wide)max_i64(0, max_i64(now_us, g->word[LAST_US]) - s_us) * count, tat;
    int first = find_low(g, s_us);

    given = given > 0 ? given : 0;
    if (g->remembers && first == g->low_count)
        given = all;
    else if (g->remembers && g->lows[first].us * count + g->lows[first].rem > given)
        given = g->lows[first].us * count + g->lows[first].rem;
    given = given < all ? given : all;
    tat = tat_parts(g) - given;
    set_tat(g, tat > 0 ? tat : 0);
    g->word[LAST_US] = min_i64(g->word[LAST_US], latest_start(g));
    subtract_lows(g, first,
                  &(struct gate_low){.us = (int64_t)(given / count), .rem = (int64_t)(given % count)});
}

static int64_t last(const struct gate *g)
{
    return g->word[LAST_US];
}

static int fill(struct gate *g, int64_t at_us, int64_t slots)
{
    forget(g);
    g->word[LAST_US] = at_us;
    set_tat(g, (wide)at_us * g->rule.count + (wide)slots * g->rule.period_us);
    return 0;
}

static void step_back(struct gate *g, int64_t us)
{
    g->word[TAT_US] = max_i64(0, g->word[TAT_US] - us);
    g->word[LAST_US] = max_i64(0, g->word[LAST_US] - us);
    for (int i = 0; i < g->low_count; i++)
        g->lows[i].start_us = max_i64(0, g->lows[i].start_us - us);
}

/* Returns when all slots are back. At TAT itself its remainder still counts. */
static int64_t resets(const struct gate *g)
{
    return tat_rounded_up(g);
}

/* Computes the start of job n: now, if it fits the burst; else when the slots of the jobs before it are back, at TAT after
 * n - 1 jobs, less (burst - slots) T. */
static int64_t nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t slots)
{
    wide tat = now_us > tat_rounded_up(g) ? (wide)now_us * g->rule.count : tat_parts(g);
    wide opens = tat + ((wide)n * slots - g->rule.burst) * g->rule.period_us;

    return max_i64(now_us, time_or_never(rounded_up(opens, g->rule.count)));
}

#define GCRA_OPS                                                                                             \
    .bursts = true, .count_max = SLOTS_MOST, .most_in_period = most_in_period, .scale = scale, .load = load, \
    .start = start, .used = used, .take = take, .note = note, .charge = charge, .give = give,                \
    .remember = remember, .last = last, .fill = fill, .step_back = step_back, .resets = resets,              \
    .nth_start = nth_start

const struct algorithm_ops gcra_ops = {.name = "gcra", GCRA_OPS};

/* A bucket of burst tokens, one more every T until it is full, lacks (TAT - now) / T tokens, TAT being the time at which it is full
 * again. So it grants exactly what GCRA grants, and is kept as GCRA is. tests/test_algorithms.c counts the tokens. */
const struct algorithm_ops token_bucket_ops = {.name = "token-bucket", GCRA_OPS};
