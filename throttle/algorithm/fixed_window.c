/* fixed-window: count slots in each window [offset + n period, offset + (n + 1) period) since 1970 in UTC, or in each day, week or month
 * of a zone, which begins that long after its midnight (calendar.h). The quota of a provider that counts by calendar.
 *
 * Worst case: all of one window at its end and all of the next at its beginning: 2 count in a period around
 * an edge. */
#include "throttle/algorithm/algorithm.h"
#include "throttle/algorithm/calendar.h"

#define WINDOWS_MOST 100000000 /* of days: beyond all time */

enum word { LAST_US, USED }; /* the last start, and the slots used in its window */

static int64_t most_in_period(const struct rule *rule)
{
    bool fits = rule->zone.is_set &&
                calendar_shortest(rule) < rule->period_us; /* a whole window, between two others */

    return (fits ? 3 : 2) * rule->count;
}

/* Returns when the window of a time began. */
static int64_t window_of(const struct rule *rule, int64_t at_us)
{
    int64_t passed = (at_us - rule->offset_us) % rule->period_us;

    if (rule->zone.is_set)
        return calendar_window(rule, at_us, 0);
    return at_us - (passed < 0 ? passed + rule->period_us : passed);
}

/* Returns when the n-th window behind that of a time begins. */
static int64_t window_behind(const struct rule *rule, int64_t at_us, int64_t n)
{
    if (!rule->zone.is_set)
        return time_or_never((__int128)n * rule->period_us + window_of(rule, at_us));
    return n < WINDOWS_MOST ? calendar_window(rule, at_us, n) : GATE_NEVER;
}

static int load(struct gate *g, const char *words)
{
    return words_read(words, 2, g->word) && g->word[USED] <= SLOTS_MOST ? 0 : WEIR_EINPUT;
}

static int64_t used(const struct gate *g, int64_t at_us)
{
    return window_of(&g->rule, at_us) > window_of(&g->rule, g->word[LAST_US]) ? 0 : g->word[USED];
}

static int64_t start(const struct gate *g, int64_t now_us, int64_t slots)
{
    int64_t s_us = max_i64(now_us, g->word[LAST_US]);

    return used(g, s_us) + slots <= g->rule.count ? s_us : window_behind(&g->rule, s_us, 1);
}

static int take(struct gate *g, int64_t s_us, int64_t slots)
{
    g->word[USED] = min_i64(SLOTS_MOST, used(g, s_us) + slots);
    g->word[LAST_US] = s_us;
    return 0;
}

static int note(struct gate *g, int64_t s_us, int64_t slots)
{
    int64_t at_us = max_i64(s_us, g->word[LAST_US]), in_use = used(g, at_us);

    g->word[USED] = max_i64(in_use, min_i64(g->rule.count, in_use + slots));
    g->word[LAST_US] = at_us;
    return 0;
}

static void give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots)
{
    (void)now_us;
    if (window_of(&g->rule, s_us) == window_of(&g->rule, g->word[LAST_US]))
        g->word[USED] = max_i64(0, g->word[USED] - slots);
}

static int fill(struct gate *g, int64_t at_us, int64_t slots)
{
    g->word[LAST_US] = at_us;
    g->word[USED] = slots;
    return 0;
}

static int64_t resets(const struct gate *g)
{
    return g->word[USED] ? window_behind(&g->rule, g->word[LAST_US], 1) : 0;
}

/* Counts what is left of this window, then whole windows. */
static int64_t nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t slots)
{
    int64_t s_us = max_i64(now_us, g->word[LAST_US]);
    int64_t here = max_i64(0, g->rule.count - used(g, s_us)) / slots, each = g->rule.count / slots;
    int64_t windows = (n - here + each - 1) / each;

    if (n <= here)
        return s_us;
    return window_behind(&g->rule, s_us, windows);
}

const struct algorithm_ops fixed_window_ops = {
    .name = "fixed-window",
    .offsets = true,
    .count_max = SLOTS_MOST,
    .most_in_period = most_in_period,
    .scale = scale_count,
    .load = load,
    .start = start,
    .used = used,
    .take = take,
    .note = note,
    .give = give,
    .last = first_word_last,
    .fill = fill,
    .step_back = first_word_step_back,
    .resets = resets,
    .nth_start = nth_start,
};
