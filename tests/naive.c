#include "tests/naive.h"

#include "throttle/algorithm/calendar.h"
#include "throttle/zone_rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __int128 ticks; /* 1/count us */

#define TEN_YEARS_US (INT64_C(3650) * 86400 * 1000000)

/* ---- Rules */

static const struct {
    const char *name;
    enum naive_kind kind;
    int numbers;
} forms[] = {
    {"gcra", NAIVE_GCRA, 3},
    {"token-bucket", NAIVE_TOKEN_BUCKET, 3},
    {"fixed-window", NAIVE_FIXED_WINDOW, 3},
    {"sliding-log", NAIVE_SLIDING_LOG, 2},
    {"sliding-window", NAIVE_SLIDING_WINDOW, 2},
    {"concurrency", NAIVE_CONCURRENCY, 1},
};

/* Reads the local clocks of a fixed window. */
static const char *naive_calendar_read(const int64_t numbers[3], const char *text, struct naive_rule *rule)
{
    *rule = (struct naive_rule){NAIVE_FIXED_WINDOW, numbers[0], numbers[1], numbers[0], numbers[2], {0}};
    return zone_rule_read(&text, &rule->zone) ? text : NULL;
}

const char *naive_rule_read(const char *text, struct naive_rule *rule)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t len = strlen(forms[i].name);
        int64_t numbers[3] = {0};
        int n = 0;
        char *end;

        if (strncmp(text, forms[i].name, len) != 0 || text[len] != ':')
            continue;
        text += len;
        do
            numbers[n++] = strtoll(text + 1, &end, 10);
        while (n < 3 && *(text = end) == '/');
        if (n != forms[i].numbers)
            return NULL;
        if (*end == '/')
            return naive_calendar_read(numbers, end + 1, rule);
        *rule = (struct naive_rule){
            .kind = forms[i].kind, .count = numbers[0], .period_us = numbers[1], .burst = numbers[0]};
        if (rule->kind <= NAIVE_TOKEN_BUCKET)
            rule->burst = numbers[2];
        if (rule->kind == NAIVE_FIXED_WINDOW)
            rule->offset_us = numbers[2];
        return end;
    }
    return NULL;
}

bool naive_rule_equal(const struct naive_rule *a, const struct naive_rule *b)
{
    return a->kind == b->kind && a->count == b->count && a->period_us == b->period_us &&
           a->burst == b->burst && a->offset_us == b->offset_us && zone_rule_equal(&a->zone, &b->zone);
}

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

static bool is_bucket(const struct naive *n)
{
    return n->rule.kind <= NAIVE_TOKEN_BUCKET;
}

/* ---- The list */

void naive_init(struct naive *n, const struct naive_rule *rule)
{
    *n = (struct naive){.rule = *rule};
}

void naive_begin(struct naive *n, const char *stored)
{
    struct naive_rule rule;

    if (!naive_rule_read(stored, &rule))
        abort();
    naive_init(n, &rule);
}

void naive_free(struct naive *n)
{
    free(n->starts);
    n->starts = NULL;
    while (n->former_count > 0)
        naive_free(&n->former[--n->former_count]);
    free(n->former);
    n->former = NULL;
}

static struct naive *add_former(struct naive *n)
{
    n->former = realloc(n->former, (n->former_count + 1) * sizeof *n->former);
    return &n->former[n->former_count++];
}

void naive_copy(struct naive *to, const struct naive *from)
{
    *to = *from;
    to->former = NULL;
    to->former_count = 0;
    while (to->former_count < from->former_count) {
        const struct naive *f = &from->former[to->former_count];

        naive_copy(add_former(to), f);
    }
    to->starts = malloc((from->count + 1) * sizeof *to->starts);
    to->capacity = from->count + 1;
    if (from->count > 0)
        memcpy(to->starts, from->starts, from->count * sizeof *to->starts);
}

/* Returns its place. */
static size_t insert(struct naive *n, struct naive_start start)
{
    size_t at = n->count;

    if (n->count == n->capacity) {
        n->capacity = n->capacity ? 2 * n->capacity : 8;
        n->starts = realloc(n->starts, n->capacity * sizeof *n->starts);
    }
    for (; at > 0 && n->starts[at - 1].at_us > start.at_us; at--)
        n->starts[at] = n->starts[at - 1];
    n->starts[at] = start;
    n->count++;
    if (start.at_us > n->last_us)
        n->last_us = start.at_us;
    return at;
}

/* What was taken in [from, to). */
static int64_t taken(const struct naive *n, int64_t from_us, int64_t to_us, bool most)
{
    int64_t sum = 0;

    for (size_t i = n->count; i-- > 0 && n->starts[i].at_us >= from_us;)
        if (n->starts[i].at_us < to_us)
            sum += most ? n->starts[i].most : n->starts[i].least;
    return sum;
}

static int64_t calendar_at(const struct naive *n, int64_t s_us, int64_t windows)
{
    struct rule rule = {.period_us = n->rule.period_us, .offset_us = n->rule.offset_us, .zone = n->rule.zone};

    return calendar_window(&rule, s_us, windows);
}

/* Where the window of s begins. */
static int64_t window_of(const struct naive *n, int64_t s_us)
{
    if (n->rule.zone.is_set)
        return calendar_at(n, s_us, 0);
    return s_us - (s_us - n->rule.offset_us) % n->rule.period_us;
}

/* Where the next one begins. That of local clocks is what tests/test_calendar.c has checked. */
static int64_t next_window(const struct naive *n, int64_t s_us)
{
    return n->rule.zone.is_set ? calendar_at(n, s_us, 1) : window_of(n, s_us) + n->rule.period_us;
}

/* Both buckets weighed: the whole of this one, of the one before the part that still counts; in 1/period. */
static ticks weighed(const struct naive *n, int64_t s_us, bool most)
{
    int64_t begin_us = window_of(n, s_us), period_us = n->rule.period_us;

    return (ticks)taken(n, begin_us - period_us, begin_us, most) * (period_us - (s_us - begin_us)) +
           (ticks)taken(n, begin_us, begin_us + period_us, most) * period_us;
}

/* ---- Is too much started? */

static const char *too_much(const char *what, int64_t at_us, int64_t sum, int64_t allowed)
{
    static char text[200];

    snprintf(text, sizeof text, "%s: %" PRId64 " at %" PRId64 ", %" PRId64 " are allowed", what, sum, at_us,
             allowed);
    return text;
}

/* GCRA by its definition: in no window of starts i..j, however long, more than fits above what drains in it.
 * A start that was rounded up to the next microsecond counts as the exact time. */
static const char *bucket_exceeded(const struct naive *n, size_t added)
{
    for (size_t j = added; j < n->count; j++) {
        int64_t sum = 0;

        if (n->starts[j].forced)
            continue;
        for (size_t i = j + 1; i-- > 0;) {
            int64_t between_us = n->starts[j].at_us - n->starts[i].at_us;

            sum += n->starts[i].least;
            if (i <= added && (ticks)sum * n->rule.period_us > (ticks)(between_us + 1) * n->rule.count +
                                                                   (ticks)n->rule.burst * n->rule.period_us)
                return too_much("bucket", n->starts[j].at_us, sum, n->rule.burst);
        }
    }
    return NULL;
}

static const char *log_exceeded(const struct naive *n, size_t added)
{
    for (size_t j = added; j < n->count; j++) {
        int64_t end_us = n->starts[j].at_us + 1, sum = taken(n, end_us - n->rule.period_us, end_us, false);

        if (!n->starts[j].forced && sum > n->rule.count)
            return too_much("sliding log", end_us - 1, sum, n->rule.count);
    }
    return NULL;
}

static const char *exceeded(const struct naive *n, size_t added)
{
    int64_t at_us = n->starts[added].at_us, begin_us, sum;

    switch (n->rule.kind) {
    case NAIVE_GCRA:
    case NAIVE_TOKEN_BUCKET:
        return bucket_exceeded(n, added);
    case NAIVE_FIXED_WINDOW:
        begin_us = window_of(n, at_us);
        sum = taken(n, begin_us, next_window(n, at_us), false);
        return sum > n->rule.count ? too_much("fixed window", at_us, sum, n->rule.count) : NULL;
    case NAIVE_SLIDING_LOG:
        return log_exceeded(n, added);
    case NAIVE_SLIDING_WINDOW:
        if (weighed(n, at_us, false) <= (ticks)n->rule.count * n->rule.period_us)
            return NULL;
        return too_much("sliding window", at_us, (int64_t)(weighed(n, at_us, false) / n->rule.period_us) + 1,
                        n->rule.count);
    default:
        return NULL;
    }
}

/* ---- When is the next start possible? */

/* What is in the bucket at s; below 0: empty for that long. */
static ticks bucket_left(const struct naive *n, int64_t s_us)
{
    return n->level - ((ticks)s_us * n->rule.count - n->level_at);
}

static void bucket_pour(struct naive *n, int64_t s_us, int64_t cost)
{
    ticks left = bucket_left(n, s_us);

    n->level = left > 0 ? left : 0;
    n->level_at = (ticks)s_us * n->rule.count;
    /* That start was rounded up, and counts from the moment when the bucket became empty. */
    if (left < 0 && -left < n->rule.count)
        n->level_at += left;
    n->level += (ticks)cost * n->rule.period_us;
}

static bool fits(const struct naive *n, int64_t s_us, int64_t cost)
{
    int64_t period_us = n->rule.period_us, begin_us;
    ticks left;

    switch (n->rule.kind) {
    case NAIVE_GCRA:
    case NAIVE_TOKEN_BUCKET:
        left = bucket_left(n, s_us);
        return (left > 0 ? left : 0) + (ticks)cost * period_us <= (ticks)n->rule.burst * period_us;
    case NAIVE_FIXED_WINDOW:
        begin_us = window_of(n, s_us);
        return taken(n, begin_us, next_window(n, s_us), true) + cost <= n->rule.count;
    case NAIVE_SLIDING_LOG:
        return taken(n, s_us - period_us + 1, s_us + 1, true) + cost <= n->rule.count;
    case NAIVE_SLIDING_WINDOW:
        return weighed(n, s_us, true) + (ticks)cost * period_us <= (ticks)n->rule.count * period_us;
    default:
        return true;
    }
}

/* The first moment from low on at which it fits, when it does at high. */
static int64_t halve(const struct naive *n, int64_t low_us, int64_t high_us, int64_t cost)
{
    while (low_us < high_us) {
        int64_t middle_us = low_us + (high_us - low_us) / 2;

        if (fits(n, middle_us, cost))
            high_us = middle_us;
        else
            low_us = middle_us + 1;
    }
    return low_us;
}

static int64_t bucket_opens(const struct naive *n, int64_t from_us, int64_t cost)
{
    int64_t empty_us = (int64_t)((n->level_at + n->level) / n->rule.count) + 1;

    return halve(n, from_us, empty_us > from_us ? empty_us : from_us, cost);
}

static int64_t log_opens(const struct naive *n, int64_t from_us, int64_t cost)
{
    if (fits(n, from_us, cost))
        return from_us;
    for (size_t i = 0; i < n->count; i++) {
        int64_t out_us = n->starts[i].at_us + n->rule.period_us;

        if (out_us > from_us && fits(n, out_us, cost))
            return out_us;
    }
    return INT64_MAX;
}

/* Within a window what counts only falls, so the first that has room at its end has the moment. */
static int64_t window_opens(const struct naive *n, int64_t from_us, int64_t cost)
{
    for (int tries = 0; tries < 4; tries++) {
        int64_t end_us = next_window(n, from_us);

        if (fits(n, end_us - 1, cost))
            return halve(n, from_us, end_us - 1, cost);
        from_us = end_us;
    }
    return INT64_MAX;
}

int64_t naive_opens(const struct naive *n, int64_t now_us, int64_t cost)
{
    int64_t from_us = now_us > n->last_us ? now_us : n->last_us;

    if (cost > n->rule.burst && n->rule.kind != NAIVE_CONCURRENCY)
        return INT64_MAX;
    if (is_bucket(n))
        return bucket_opens(n, now_us, cost);
    if (n->rule.kind == NAIVE_SLIDING_LOG)
        return log_opens(n, from_us, cost);
    return window_opens(n, from_us, cost);
}

/* ---- What happens */

/* Under another rule. It makes a bucket no fuller than full, and a window no more than used up; of a log the oldest makes room. */
static void bucket_note(struct naive *n, int64_t at_us, int64_t cost)
{
    ticks before = bucket_left(n, at_us), full = (ticks)n->rule.burst * n->rule.period_us, left;

    bucket_pour(n, at_us, at_most(cost, n->rule.burst + 1));
    left = bucket_left(n, at_us);
    before = before > full ? before : full;
    if (left > before)
        n->level -= left - before;
    n->last_us = n->last_us > at_us ? n->last_us : at_us;
}

static int64_t room(const struct naive *n, int64_t at_us, int64_t cost, bool most)
{
    int64_t begin_us = window_of(n, at_us), free = n->rule.count - taken(n, begin_us, INT64_MAX, most);

    return free < 0 ? 0 : at_most(cost, free);
}

static void log_drop(struct naive *n, int64_t at_us, int64_t kept, bool most)
{
    int64_t excess = taken(n, at_us - n->rule.period_us + 1, INT64_MAX, most) - kept;

    for (size_t i = 0; i < n->count && excess > 0; i++) {
        int64_t *slots = most ? &n->starts[i].most : &n->starts[i].least, dropped = at_most(*slots, excess);

        if (n->starts[i].at_us <= at_us - n->rule.period_us)
            continue;
        *slots -= dropped;
        excess -= dropped;
    }
}

static void log_note(struct naive *n, int64_t at_us, int64_t cost)
{
    int64_t kept[2];

    for (int most = 0; most < 2; most++) {
        kept[most] = taken(n, at_us - n->rule.period_us + 1, INT64_MAX, most);
        kept[most] = kept[most] > n->rule.count ? kept[most] : n->rule.count;
    }
    insert(n, (struct naive_start){at_us, cost, cost, -1, true});
    for (int most = 0; most < 2; most++)
        log_drop(n, at_us, kept[most], most);
}

void naive_note(struct naive *n, int64_t start_us, int64_t cost)
{
    for (size_t i = 0; i < n->former_count; i++) {
        struct naive *f = &n->former[i];
        int64_t at_us = start_us > f->last_us ? start_us : f->last_us;

        if (is_bucket(f))
            bucket_note(f, start_us, cost);
        else if (f->rule.kind == NAIVE_SLIDING_LOG)
            log_note(f, at_us, cost);
        else
            insert(f, (struct naive_start){at_us, room(f, at_us, cost, false), room(f, at_us, cost, true), -1,
                                           true});
    }
}

const char *naive_start(struct naive *n, int64_t at_us, int64_t cost, int job)
{
    size_t added;

    if (!is_bucket(n) && at_us < n->last_us)
        return too_much("a window goes back", at_us, 1, 0);
    added = insert(n, (struct naive_start){at_us, cost, cost, job, false});
    bucket_pour(n, at_us, cost);
    naive_note(n, at_us, cost);
    return exceeded(n, added);
}

int64_t naive_count(const struct naive *n, int64_t s_us, int64_t most, int64_t cost)
{
    struct naive tried;
    int64_t k = 0;

    naive_copy(&tried, n);
    for (; k < most && naive_opens(&tried, s_us, cost) == s_us; k++)
        naive_start(&tried, s_us, cost, -1);
    naive_free(&tried);
    return k;
}

static int64_t rounded_up(ticks whole, int64_t part)
{
    return whole <= 0 ? 0 : (int64_t)((whole + part - 1) / part);
}

static struct naive_start *start_of(struct naive *n, int64_t at_us, int job)
{
    for (size_t i = n->count; i-- > 0;)
        if (n->starts[i].job == job && n->starts[i].at_us == at_us && !n->starts[i].forced)
            return &n->starts[i];
    return NULL;
}

void naive_give(struct naive *n, int64_t now_us, int64_t at_us, int64_t cost, int job)
{
    struct naive_start *start = start_of(n, at_us, job);
    ticks given = (ticks)cost * n->rule.period_us;

    if (start) {
        start->least -= cost;
        start->most -= cost;
        int64_t last_us = n->last_us > now_us ? n->last_us : now_us;

        if (last_us > at_us) /* for so long it could have been empty before the last start */
            given -= (ticks)(last_us - at_us) * n->rule.count;
        if (given > 0)
            n->level -= given;
        if (is_bucket(n)) /* each start is followed by one slot at least */
            n->last_us =
                at_most(n->last_us, rounded_up(n->level_at + n->level - n->rule.period_us, n->rule.count));
        return;
    }
    for (size_t i = 0; i < n->count; i++)
        if (n->starts[i].forced)
            n->starts[i].least -= at_most(cost, n->starts[i].least);
}

/* What a log owes is bounded; beside the most that can be in use the least is charged. */
static int64_t charged(const struct naive *n, int64_t at_us, int64_t cost, bool most)
{
    int64_t room = 2 * n->rule.count - taken(n, at_us - n->rule.period_us + 1, INT64_MAX, !most);

    if (n->rule.kind != NAIVE_SLIDING_LOG)
        return cost;
    return room < 0 ? 0 : at_most(cost, room);
}

void naive_charge(struct naive *n, int64_t now_us, int64_t cost)
{
    int64_t at_us = is_bucket(n) || now_us > n->last_us ? now_us : n->last_us;

    insert(n, (struct naive_start){at_us, charged(n, at_us, cost, false), charged(n, at_us, cost, true), -1,
                                   true});
    bucket_pour(n, at_us, cost);
    naive_note(n, now_us, cost);
}

/* What is in use at least at a time that is not before the last start: so much does not fit any more. */
static int64_t used_at_least(const struct naive *n, int64_t at_us)
{
    int64_t low = 0, high = n->rule.burst;

    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        struct naive tried;

        naive_copy(&tried, n);
        if (exceeded(&tried, insert(&tried, (struct naive_start){at_us, middle, middle, -1, false})))
            high = middle - 1;
        else
            low = middle;
        naive_free(&tried);
    }
    return n->rule.burst - low;
}

/* And at most; that can be more than ever fits, where a job cost more. */
static int64_t used_at_most(const struct naive *n, int64_t at_us)
{
    int64_t period_us = n->rule.period_us;

    if (is_bucket(n))
        return rounded_up(bucket_left(n, at_us), period_us);
    if (n->rule.kind == NAIVE_SLIDING_WINDOW)
        return rounded_up(weighed(n, at_us, true), period_us);
    if (n->rule.kind == NAIVE_SLIDING_LOG)
        return taken(n, at_us - period_us + 1, INT64_MAX, true);
    return taken(n, window_of(n, at_us), INT64_MAX, true);
}

/* Slots are granted ahead: what is in use starts by then. */
static int64_t last_of(const struct naive *n, int64_t now_us)
{
    return now_us > n->last_us ? now_us : n->last_us;
}

/* So much is in use, though it be more than ever fits. */
static void pour_all(struct naive *n, int64_t at_us, int64_t least, int64_t most)
{
    n->count = 0;
    n->last_us = at_us; /* starts do not go back, whatever is in use */
    n->level = n->level_at = 0;
    if (most > 0)
        insert(n, (struct naive_start){at_us, least, most, -1, true});
    bucket_pour(n, at_us, most);
}

void naive_fill(struct naive *n, int64_t at_us, int64_t least, int64_t most)
{
    pour_all(n, at_us, at_most(least, n->rule.burst), at_most(most, n->rule.burst));
}

/* ---- Former rules */

static int64_t drained_us(const struct naive *n)
{
    int64_t begin_us = window_of(n, n->last_us), period_us = n->rule.period_us;

    if (is_bucket(n))
        return rounded_up(n->level_at + n->level, n->rule.count);
    if (n->rule.kind == NAIVE_SLIDING_LOG)
        return taken(n, n->last_us - period_us + 1, INT64_MAX, true) > 0 ? n->last_us + period_us : 0;
    if (taken(n, begin_us, INT64_MAX, true) > 0)
        return next_window(n, n->last_us) + (n->rule.kind == NAIVE_SLIDING_WINDOW ? period_us : 0);
    if (n->rule.kind == NAIVE_SLIDING_WINDOW && taken(n, begin_us - period_us, begin_us, true) > 0)
        return begin_us + period_us;
    return 0;
}

static struct naive take_former(struct naive *n, size_t i)
{
    struct naive f = n->former[i];

    n->former_count--;
    memmove(&n->former[i], &n->former[i + 1], (n->former_count - i) * sizeof f);
    return f;
}

static void forget_former(struct naive *n, int64_t now_us)
{
    for (size_t i = n->former_count; i-- > 0;) {
        const struct naive *f = &n->former[i];
        bool covered = n->rule.kind == NAIVE_CONCURRENCY || f->rule.burst <= n->rule.burst;

        if (now_us >= f->till_us && (covered || drained_us(f) <= now_us)) {
            struct naive gone = take_former(n, i);

            naive_free(&gone);
        }
    }
}

static struct naive take_first_drained(struct naive *n)
{
    size_t first = 0;

    for (size_t i = 1; i < n->former_count; i++)
        if (drained_us(&n->former[i]) < drained_us(&n->former[first]))
            first = i;
    return take_former(n, first);
}

/* The slower and larger of two buckets, the larger of windows that are alike. */
static bool merged_rule(const struct naive_rule *a, const struct naive_rule *b, struct naive_rule *merged)
{
    *merged = a->count > b->count ? *a : *b;
    if (a->kind > NAIVE_TOKEN_BUCKET || b->kind > NAIVE_TOKEN_BUCKET)
        return a->kind == b->kind && a->period_us == b->period_us && a->offset_us == b->offset_us &&
               zone_rule_equal(&a->zone, &b->zone);
    *merged = (ticks)b->period_us * a->count > (ticks)a->period_us * b->count ? *b : *a;
    merged->kind = NAIVE_GCRA;
    merged->burst = a->burst > b->burst ? a->burst : b->burst;
    return (ticks)(merged->burst - 1) * merged->period_us <= (ticks)TEN_YEARS_US * merged->count;
}

/* Of two former ones one that has as much in use as the fuller of them; where no rule says so until neither is needed. */
static void merge_former(struct naive *n, int64_t now_us)
{
    struct naive pair[2] = {take_first_drained(n), take_first_drained(n)}, *f;
    int64_t till_us = pair[0].till_us > pair[1].till_us ? pair[0].till_us : pair[1].till_us, most = 0,
            least = 0;
    int64_t end_us = drained_us(&pair[1]) > till_us ? drained_us(&pair[1]) : till_us;
    struct naive_rule rule;

    for (int i = 0; i < 2; i++) {
        int64_t at_us = last_of(&pair[i], now_us), used = used_at_most(&pair[i], at_us);

        most = used > most ? used : most;
        used = used_at_least(&pair[i], at_us);
        least = used > least ? used : least;
    }
    if (!merged_rule(&pair[0].rule, &pair[1].rule, &rule)) {
        rule = (struct naive_rule){.kind = NAIVE_FIXED_WINDOW, .count = most};
        for (int i = 0; i < 2; i++)
            rule.count = pair[i].rule.burst > rule.count ? pair[i].rule.burst : rule.count;
        rule.burst = rule.count;
        rule.period_us = end_us - now_us > rule.count ? end_us - now_us : rule.count;
        rule.period_us = at_most(rule.period_us, TEN_YEARS_US);
        rule.offset_us = now_us % rule.period_us;
        till_us = now_us + rule.period_us;
    }
    for (int i = 0; i < 2; i++)
        naive_free(&pair[i]);
    f = add_former(n);
    naive_init(f, &rule);
    f->till_us = till_us;
    pour_all(f, now_us, least, most);
}

static bool take_back(struct naive *n, const struct naive_rule *rule, struct naive *same)
{
    for (size_t i = 0; i < n->former_count; i++)
        if (naive_rule_equal(&n->former[i].rule, rule)) {
            *same = take_former(n, i);
            return true;
        }
    return false;
}

static void leave(struct naive *n, int64_t now_us)
{
    struct naive f = *n;

    if (n->rule.kind == NAIVE_CONCURRENCY || used_at_most(n, last_of(n, now_us)) == 0) {
        free(n->starts);
    } else {
        f.former = NULL;
        f.former_count = 0;
        f.till_us = now_us + n->rule.period_us;
        if (drained_us(n) > f.till_us)
            f.till_us = drained_us(n);
        *add_former(n) = f;
    }
    n->starts = NULL;
    n->count = n->capacity = 0;
}

static void begin_rule(struct naive *n, const struct naive *rule)
{
    struct naive began = *rule;

    began.former = n->former;
    began.former_count = n->former_count;
    *n = began;
}

void naive_change(struct naive *n, const struct naive_rule *rule, int64_t now_us, int64_t in_flight)
{
    bool counted = n->rule.kind == NAIVE_CONCURRENCY;
    int64_t at_us = counted ? now_us : last_of(n, now_us), least = counted ? 0 : used_at_least(n, at_us);
    int64_t most = counted ? in_flight : used_at_most(n, at_us);
    struct naive same;
    bool is_back;

    forget_former(n, now_us);
    if (naive_rule_equal(&n->rule, rule))
        return;
    is_back = take_back(n, rule, &same);
    leave(n, now_us);
    if (n->former_count > NAIVE_FORMER)
        merge_former(n, now_us);
    if (!is_back)
        naive_init(&same, rule);
    begin_rule(n, &same);
    if (is_back)
        return;
    for (size_t i = 0; i < n->former_count; i++) {
        const struct naive *f = &n->former[i];
        int64_t last_us = last_of(f, now_us), used = used_at_most(f, last_us);

        at_us = last_us > at_us ? last_us : at_us;
        most = used > most ? used : most;
        used = used_at_least(f, last_us);
        least = used > least ? used : least;
    }
    if (rule->kind != NAIVE_CONCURRENCY)
        naive_fill(n, at_us, least, most);
}

void naive_step_back(struct naive *n, int64_t us)
{
    bool windowed = n->rule.kind == NAIVE_FIXED_WINDOW || n->rule.kind == NAIVE_SLIDING_WINDOW;
    int64_t last_us = n->last_us - us, begin_us = window_of(n, n->last_us), period_us = n->rule.period_us;

    if (windowed) {
        struct naive_start sums[] = {
            {last_us - period_us, taken(n, begin_us - period_us, begin_us, false),
             taken(n, begin_us - period_us, begin_us, true), -1, true},
            {last_us, taken(n, begin_us, INT64_MAX, false), taken(n, begin_us, INT64_MAX, true), -1, true},
        };

        n->count = 0;
        if (n->rule.kind == NAIVE_SLIDING_WINDOW)
            insert(n, sums[0]);
        insert(n, sums[1]);
    }
    for (size_t i = 0; !windowed && i < n->count; i++)
        n->starts[i].at_us -= us;
    n->last_us = last_us;
    n->level_at -= (ticks)us * n->rule.count;
    for (size_t i = 0; i < n->former_count; i++) {
        naive_step_back(&n->former[i], us);
        n->former[i].till_us -= us;
    }
}
