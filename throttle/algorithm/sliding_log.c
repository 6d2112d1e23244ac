/* sliding-log: never more than count slots in any period, exactly: a log of the starts of the last period.
 *
 * In Redis the log is text, written at each take, so the count is at most 10,000; for more there is
 * sliding-window.
 *
 * Worst case: count in any period. */
#include <stdlib.h>
#include <string.h>

#include "core/duration.h"
#include "throttle/algorithm/algorithm.h"

#define COUNT_MAX 10000
#define AHEAD_US (GATE_AHEAD_MOST_US + 10000) /* is more than any slot is granted ahead */

enum word { LAST_US, USED }; /* the last start; the slots in the log */

static int64_t most_in_period(const struct rule *rule)
{
    return rule->count;
}

static int make_room(struct gate *g)
{
    size_t capacity = g->log_capacity ? 2 * g->log_capacity : 16;
    struct gate_entry *grown;

    if (g->log_first > g->log_count / 2) {
        memmove(g->log, g->log + g->log_first, (g->log_count - g->log_first) * sizeof *g->log);
        g->log_count -= g->log_first;
        g->log_first = 0;
    }
    if (g->log_count < g->log_capacity)
        return 0;
    grown = reallocarray(g->log, capacity, sizeof *grown);
    if (!grown)
        return WEIR_EINTERNAL;
    g->log = grown;
    g->log_capacity = capacity;
    return 0;
}

static int add(struct gate *g, int64_t at_us, int64_t slots)
{
    if (make_room(g) < 0)
        return WEIR_EINTERNAL;
    g->log[g->log_count++] = (struct gate_entry){at_us, slots};
    g->word[LAST_US] = at_us;
    g->word[USED] += slots;
    return 0;
}

/* Reads "DELTA_US;" or "DELTA_US*SLOTS;": so long after the entry before. */
static bool read_entry(const char **at, int64_t *delta_us, int64_t *slots)
{
    *slots = 1;
    if (!number_read(at, INT64_C(1) << 53, delta_us))
        return false;
    if (**at == '*') {
        ++*at;
        if (!number_read(at, SLOTS_MOST, slots))
            return false;
    }
    return *(*at)++ == ';';
}

/* Reads LAST_US USED ORIGIN_US ENTRIES; the first entry is so long after the origin. */
static int load(struct gate *g, const char *words)
{
    int64_t last_us, all, at_us, delta_us, slots;

    if (!number_read(&words, INT64_C(1) << 53, &last_us) || *words++ != ' ' ||
        !number_read(&words, SLOTS_MOST, &all) || *words++ != ' ' ||
        !number_read(&words, INT64_C(1) << 53, &at_us) || *words++ != ' ')
        return WEIR_EINPUT;
    while (*words) {
        if (!read_entry(&words, &delta_us, &slots))
            return WEIR_EINPUT;
        at_us += delta_us;
        if (add(g, at_us, slots) < 0)
            return WEIR_EINTERNAL;
    }
    g->word[LAST_US] = last_us;
    return g->word[USED] == all ? 0 : WEIR_EINPUT;
}

/* Returns the slots of the entries that are over at a time; *entries is how many these are. */
static int64_t over(const struct gate *g, int64_t at_us, size_t *entries)
{
    int64_t slots = 0;
    size_t i = g->log_first;

    for (; i < g->log_count && g->log[i].at_us + g->rule.period_us <= at_us; i++)
        slots += g->log[i].slots;
    *entries = i - g->log_first;
    return slots;
}

static int64_t used(const struct gate *g, int64_t at_us)
{
    size_t entries;

    return g->word[USED] - over(g, at_us, &entries);
}

static int64_t start(const struct gate *g, int64_t now_us, int64_t slots)
{
    int64_t excess = g->word[USED] + slots - g->rule.count, s_us = max_i64(now_us, g->word[LAST_US]);

    for (size_t i = g->log_first; excess > 0 && i < g->log_count; i++) {
        excess -= g->log[i].slots;
        if (excess <= 0)
            s_us = max_i64(s_us, g->log[i].at_us + g->rule.period_us);
    }
    return s_us;
}

/* Takes slots, and forgets what is over. A start may be taken ahead of time, so what is only just over is left for those who ask
 * at a time before it. */
static int take(struct gate *g, int64_t s_us, int64_t slots)
{
    size_t entries;

    g->word[USED] -= over(g, s_us - AHEAD_US, &entries);
    g->log_first += entries;
    return add(g, s_us, slots);
}

/* Notes slots under another rule. Only the last `count` slots decide when the next job may start: older ones make room, and no more are kept
 * than before. */
static int note(struct gate *g, int64_t s_us, int64_t slots)
{
    int64_t at_us = max_i64(s_us, g->word[LAST_US]), most_slots = max_i64(g->rule.count, used(g, at_us)),
            excess;
    int status = take(g, at_us, min_i64(slots, most_slots));

    for (size_t i = g->log_first; (excess = used(g, at_us) - most_slots) > 0; i++) {
        int64_t dropped = min_i64(excess, g->log[i].slots);

        g->log[i].slots -= dropped;
        g->word[USED] -= dropped;
    }
    return status;
}

/* Charges slots, at most the count, so that the log stays bounded. They stand at the start that is charged: what is over by then may be
 * forgotten already. */
static int charge(struct gate *g, int64_t now_us, int64_t slots)
{
    int64_t at_us = max_i64(now_us, g->word[LAST_US]);
    int64_t taken = min_i64(slots, 2 * g->base.count - used(g, at_us));

    return taken > 0 ? take(g, at_us, taken) : 0;
}

/* Gives slots back. An entry without slots may stay: it says nothing. */
static void give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots)
{
    (void)now_us;
    for (size_t i = g->log_first; i < g->log_count; i++) {
        int64_t back = g->log[i].at_us == s_us ? min_i64(slots, g->log[i].slots) : 0;

        g->log[i].slots -= back;
        g->word[USED] -= back;
        slots -= back;
    }
}

static int64_t last(const struct gate *g)
{
    return g->word[LAST_US];
}

static int fill(struct gate *g, int64_t at_us, int64_t slots)
{
    g->word[LAST_US] = at_us;
    return slots ? add(g, at_us, slots) : 0;
}

static void step_back(struct gate *g, int64_t us)
{
    g->word[LAST_US] = max_i64(0, g->word[LAST_US] - us);
    for (size_t i = g->log_first; i < g->log_count; i++)
        g->log[i].at_us = max_i64(0, g->log[i].at_us - us);
}

static int64_t resets(const struct gate *g)
{
    return g->word[USED] ? g->word[LAST_US] + g->rule.period_us : 0;
}

/* Computes the start of job n. Of the jobs that fit a period the last one starts when there is room for all of them; by then the log holds
 * nothing else, and each later job starts one period after the one so many before it. */
static int64_t nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t slots)
{
    int64_t each = g->rule.count / slots, periods = (n - 1) / each, jobs = (n - 1) % each + 1;

    return time_or_never((__int128)periods * g->rule.period_us + start(g, now_us, jobs * slots));
}

const struct algorithm_ops sliding_log_ops = {
    .name = "sliding-log",
    .count_max = COUNT_MAX,
    .most_in_period = most_in_period,
    .scale = scale_count,
    .load = load,
    .start = start,
    .used = used,
    .take = take,
    .note = note,
    .charge = charge,
    .give = give,
    .last = last,
    .fill = fill,
    .step_back = step_back,
    .resets = resets,
    .nth_start = nth_start,
};
