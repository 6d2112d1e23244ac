/* sliding-window: the two-bucket estimate of how many slots the last period saw, for counts too high for a
 * log:
 *
 *   previous * (1 - part of this window that has passed) + current + slots <= count
 *
 * Windows begin at n * period since 1970. The estimate takes it that the previous window's starts were spread
 * evenly.
 *
 * Worst case: all of the previous window's starts at its very end, of which the estimate forgets count * x by
 * the part x of this window: 2 count - 1 in a period. */
#include <assert.h>

#include "throttle/algorithm/algorithm.h"

enum word {
    LAST_US,
    CURRENT,
    PREVIOUS
}; /* the last start; slots used in its window, and in the one before */

struct buckets {
    int64_t begin_us; /* when the window of that time began */
    int64_t current, previous;
};

static int64_t most_in_period(const struct rule *rule)
{
    return 2 * rule->count - 1;
}

static int load(struct gate *g, const char *words)
{
    if (!words_read(words, 3, g->word) || max_i64(g->word[CURRENT], g->word[PREVIOUS]) > SLOTS_MOST)
        return WEIR_EINPUT;
    return 0;
}

static int64_t window_of(const struct rule *rule, int64_t at_us)
{
    return at_us - at_us % rule->period_us;
}

static struct buckets buckets_at(const struct gate *g, int64_t at_us)
{
    int64_t last_us = window_of(&g->rule, g->word[LAST_US]), begin_us = window_of(&g->rule, at_us);

    if (begin_us <= last_us)
        return (struct buckets){last_us, g->word[CURRENT], g->word[PREVIOUS]};
    return (struct buckets){begin_us, 0, begin_us - last_us == g->rule.period_us ? g->word[CURRENT] : 0};
}

/* Finds the first time in a window at which the slots of the previous one leave room: previous * (period - x) <= room *
 * period. */
static int64_t room_at(const struct rule *rule, const struct buckets *b, int64_t room)
{
    assert(room >= 0);
    if (b->previous <= room)
        return b->begin_us;
    return b->begin_us + rule->period_us - (int64_t)((__int128)room * rule->period_us / b->previous);
}

static struct buckets next_window(const struct rule *rule, const struct buckets *b)
{
    return (struct buckets){b->begin_us + rule->period_us, 0, b->current};
}

static int64_t start(const struct gate *g, int64_t now_us, int64_t slots)
{
    int64_t s_us = max_i64(now_us, g->word[LAST_US]);
    struct buckets b = buckets_at(g, s_us);

    if (b.current + slots > g->rule.count)
        b = next_window(&g->rule, &b);
    return max_i64(s_us, room_at(&g->rule, &b, g->rule.count - b.current - slots));
}

static int64_t used(const struct gate *g, int64_t at_us)
{
    int64_t looked_us = max_i64(at_us, g->word[LAST_US]);
    struct buckets b = buckets_at(g, looked_us);
    __int128 left = (__int128)b.previous * (g->rule.period_us - (looked_us - b.begin_us));

    if (left <= 0)
        return b.current;
    return min_i64(SLOTS_MOST, b.current + (int64_t)((left + g->rule.period_us - 1) / g->rule.period_us));
}

static int take(struct gate *g, int64_t s_us, int64_t slots)
{
    struct buckets b = buckets_at(g, s_us);

    g->word[LAST_US] = s_us;
    g->word[CURRENT] = min_i64(SLOTS_MOST, b.current + slots);
    g->word[PREVIOUS] = b.previous;
    return 0;
}

static int note(struct gate *g, int64_t s_us, int64_t slots)
{
    int64_t at_us = max_i64(s_us, g->word[LAST_US]);
    struct buckets b = buckets_at(g, at_us);

    g->word[LAST_US] = at_us;
    g->word[CURRENT] = max_i64(b.current, min_i64(g->rule.count, b.current + slots));
    g->word[PREVIOUS] = b.previous;
    return 0;
}

static void give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots)
{
    int64_t passed = window_of(&g->rule, g->word[LAST_US]) - window_of(&g->rule, s_us);

    (void)now_us;
    if (passed == 0)
        g->word[CURRENT] = max_i64(0, g->word[CURRENT] - slots);
    else if (passed == g->rule.period_us)
        g->word[PREVIOUS] = max_i64(0, g->word[PREVIOUS] - slots);
}

static int fill(struct gate *g, int64_t at_us, int64_t slots)
{
    g->word[LAST_US] = at_us;
    g->word[CURRENT] = slots;
    g->word[PREVIOUS] = 0;
    return 0;
}

static int64_t resets(const struct gate *g)
{
    int64_t begin_us = window_of(&g->rule, g->word[LAST_US]);

    if (g->word[CURRENT])
        return begin_us + 2 * g->rule.period_us;
    return g->word[PREVIOUS] ? begin_us + g->rule.period_us : 0;
}

/* Counts the jobs that still start within the window: room_at the last one's room is before its end. */
static int64_t jobs_within(const struct rule *rule, const struct buckets *b, int64_t slots)
{
    int64_t kept = b->previous ? (b->previous - 1) / rule->period_us + 1 : 0;

    return max_i64(0, rule->count - b->current - kept) / slots;
}

/* Goes from window to window and counts the jobs that start in two. Once two windows begin as the two before did, all later ones do: whole
 * pairs are passed over at once. */
static int64_t nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t slots)
{
    const struct rule *rule = &g->rule;
    int64_t s_us = max_i64(now_us, g->word[LAST_US]), begun_with[2] = {-1, -1}, started[2] = {0, 0};
    struct buckets b = buckets_at(g, s_us);

    for (int i = 0;; i = !i) {
        int64_t jobs = jobs_within(rule, &b, slots), pairs, in_pair = started[0] + started[1];

        if (b.current == 0 && b.previous == begun_with[i] && in_pair > 0 && n > in_pair) {
            pairs = (n - 1) / in_pair;
            n -= pairs * in_pair;
            if ((__int128)pairs * 2 * rule->period_us + b.begin_us > GATE_NEVER / 2)
                return GATE_NEVER;
            b.begin_us += pairs * 2 * rule->period_us;
        }
        if (n <= jobs)
            return max_i64(s_us, room_at(rule, &b, rule->count - b.current - n * slots));
        n -= jobs;
        begun_with[i] = b.current ? -1 : b.previous;
        started[i] = jobs;
        b.current += jobs * slots;
        b = next_window(rule, &b);
    }
}

const struct algorithm_ops sliding_window_ops = {
    .name = "sliding-window",
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
