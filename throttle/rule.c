/* Rules, to and from text. The bounds make the arithmetic of the algorithms exact, in C and in Lua: exact.lua
 * has the proof. */
#include "throttle/rule.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/likely.h"
#include "throttle/algorithm/algorithms.h"
#include "throttle/algorithm/calendar.h"
#include "throttle/cost.h"
#include "throttle/zone_rule.h"

#define COUNT_MAX 1000000000 /* of count and burst: below 2^30 */
#define PER_SECOND_MAX "1000000"
#define ADAPT_WHOLE 1000

/* A message repeats at most so much of somebody else's text. */
#define QUOTED "%.80s"
#define ZONE_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/+-"
#define RATE_HINT "write COUNT/PERIOD, as in 100/1m, 10/s,burst=20 or 1/1.5s"

/* A rule that is being read, and what is wrong with it: why, and what would be right. */
struct reading {
    const char *at;
    struct rule *rule;
    unsigned seen; /* one bit for each option */
    char wrong[320];
};

/* Returns false, for the caller to return. */
static bool wrong(struct reading *r, const char *fmt, ...) WEIR_PRINTF(2, 3);
static bool wrong(struct reading *r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(r->wrong, sizeof r->wrong, fmt, args);
    va_end(args);
    return false;
}

/* ---- Bounds, of both forms */

static bool check_burst(struct reading *r)
{
    const struct rule *rule = r->rule;

    if (rule->burst < 1 || rule->burst > COUNT_MAX)
        return wrong(r, "the burst must be 1 to 1000000000; " RATE_HINT);
    if ((__int128)(rule->burst - 1) * rule->period_us > (__int128)TEN_YEARS_US * rule->count)
        return wrong(r,
                     "a burst that takes more than ten years to come back; make it smaller, or " RATE_HINT);
    return true;
}

static bool check_count(struct reading *r)
{
    const struct algorithm_ops *ops = algorithm_of(r->rule->algorithm);

    if (r->rule->count < 1 || r->rule->count > COUNT_MAX)
        return wrong(r, "the count must be 1 to 1000000000; " RATE_HINT);
    if (r->rule->count > ops->count_max)
        return wrong(
            r, "%s keeps each start and takes a count of at most %" PRId64 "; use algorithm=sliding-window",
            ops->name, ops->count_max);
    return true;
}

/* Checks a rule whose windows turn by local clocks. */
static bool check_calendar(struct reading *r)
{
    const struct rule *rule = r->rule;

    if (rule->period_us != CALENDAR_DAY_US && rule->period_us != CALENDAR_WEEK_US &&
        rule->period_us != CALENDAR_MONTH_US)
        return wrong(r, "with zone= the period is 1d, 1w (from Monday) or 1mo; write 1000/1mo,zone=UTC");
    if (rule->offset_us % 1000000 != 0 || rule->offset_us >= min_i64(rule->period_us, 28 * CALENDAR_DAY_US))
        return wrong(r, "the offset must be whole seconds, and shorter than the period (28d in a month); "
                        "write offset=6h");
    return true;
}

static bool check_rate(struct reading *r)
{
    const struct rule *rule = r->rule;

    if (!check_count(r))
        return false;
    if (rule->period_us < 1 || rule->period_us > TEN_YEARS_US)
        return wrong(r, "the period must be above 0 and at most ten years (3650d); " RATE_HINT);
    if (rule->period_us < rule->count)
        return wrong(r, "more than " PER_SECOND_MAX " a second, which is the most; " RATE_HINT);
    if (rule->offset_us < 0 || rule->offset_us >= rule->period_us)
        return wrong(r, "the offset must be shorter than the period: windows repeat; write 5000/1d,"
                        "algorithm=fixed-window,offset=6h");
    return (!rule->zone.is_set || check_calendar(r)) && check_burst(r);
}

static bool check_bounds(struct reading *r)
{
    return r->rule->algorithm == ALGORITHM_CONCURRENCY ? check_count(r) : check_rate(r);
}

/* ---- Paths into a job */

static bool is_member(const char *name, size_t len)
{
    static const char *const members[] = {"args", "meta",    "id",           "type",       "cost",
                                          "key",  "timeout", "max_attempts", "traceparent"};

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strlen(members[i]) == len && memcmp(members[i], name, len) == 0)
            return true;
    return false;
}

/* True for names joined by dots. */
static bool is_path(const char *path, size_t len)
{
    size_t name_len = 0;

    for (size_t i = 0; i < len; i++) {
        if (path[i] == '.' && name_len == 0)
            return false;
        name_len = path[i] == '.' ? 0 : name_len + 1;
    }
    return name_len > 0;
}

static bool keep_path(struct reading *r, size_t len)
{
    if (len >= RULE_PATH_SIZE)
        return wrong(r, "the path behind by= is longer than 128 characters; take a shorter one");
    if (!is_path(r->at, len))
        return wrong(r, "by= wants key, or a path of names joined by dots: [A-Za-z0-9_-]; write by=key or "
                        "by=args.customer");
    memcpy(r->rule->by, r->at, len);
    r->at += len;
    return true;
}

static size_t path_len(const char *at)
{
    return strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
}

/* ---- What may follow the rate: each reads what is behind "=" */

static bool read_burst(struct reading *r)
{
    if (!count_read(&r->at, COUNT_MAX, &r->rule->burst) || !r->rule->burst)
        return wrong(r, "the burst must be 1 to 1000000000; " RATE_HINT);
    return true;
}

static bool read_algorithm(struct reading *r)
{
    const char *names[ALGORITHM_COUNT + 1] = {NULL}, *likely;
    char name[64];
    size_t len = strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    snprintf(name, sizeof name, "%.*s", (int)len, r->at);
    r->at += len;
    if (algorithm_find(name, &r->rule->algorithm) && r->rule->algorithm != ALGORITHM_CONCURRENCY)
        return true;
    if (strcmp(name, "concurrency") == 0)
        return wrong(r, "concurrency is not a rate; write concurrency=5 as a rule of its own");
    for (int i = 0; i < ALGORITHM_CONCURRENCY; i++)
        names[i] = algorithm_of(i)->name;
    likely = likely_word(name, names);
    if (likely)
        return wrong(r, "unknown algorithm '%s'; did you mean %s?", name, likely);
    return wrong(
        r,
        "unknown algorithm '%s'; there are gcra, token-bucket, fixed-window, sliding-log and sliding-window",
        name);
}

static bool read_offset(struct reading *r)
{
    const char *why = duration_read(&r->at, &r->rule->offset_us);

    return why ? wrong(r, "offset=: %s; write a duration, as in offset=6h", why) : true;
}

static bool read_zone(struct reading *r)
{
    struct rule *rule = r->rule;
    size_t len = strcspn(r->at, ",");
    struct error e;

    if (!len)
        return wrong(r, "zone= wants a name; write zone=Europe/Berlin");
    snprintf(rule->zone_name, sizeof rule->zone_name, "%.*s", (int)len, r->at);
    r->at += len;
    if (zone_rule_find(rule->zone_name, &rule->zone, &e) < 0)
        return wrong(r, "%s", e.text);
    return true;
}

static bool read_by(struct reading *r)
{
    size_t len = path_len(r->at), first = strcspn(r->at, ".,");

    if (len && first <= len && r->at[0] != '.' && !is_member(r->at, first))
        return wrong(r, "by=%.*s: a job has no member '%.*s'; its own values are in args: write by=args.%.*s",
                     (int)len, r->at, (int)first, r->at, (int)(len > 40 ? 40 : len), r->at);
    if (first == len && (strncmp(r->at, "args", 4) == 0 || strncmp(r->at, "meta", 4) == 0))
        return wrong(r,
                     "by=%.*s: that is an object, no value; name one of its members, as in by=%.*s.customer",
                     (int)len, r->at, (int)len, r->at);
    return keep_path(r, len);
}

/* A number of 0 to 1 with at most three digits behind the point, in thousandths. */
static bool read_thousandths(const char **at, int *thousandths)
{
    int64_t whole, part = 0;
    int digits = 0;

    if (!number_read(at, 1, &whole))
        return false;
    if ((*at)[0] == '.' && (*at)[1] != '.') {
        const char *begin = ++*at;

        if (!number_read(at, ADAPT_WHOLE - 1, &part))
            return false;
        digits = (int)(*at - begin);
    }
    if (digits > 3)
        return false;
    for (; digits < 3; digits++)
        part *= 10;
    *thousandths = (int)(whole * ADAPT_WHOLE + part);
    return true;
}

static bool read_adapt(struct reading *r)
{
    int low, high;

    if (!read_thousandths(&r->at, &low) || strncmp(r->at, "..", 2) != 0)
        return wrong(r, "adapt= wants LOW..HIGH, parts of the rate; write adapt=0.5..1");
    r->at += 2;
    if (!read_thousandths(&r->at, &high))
        return wrong(
            r, "adapt= wants LOW..HIGH, with at most three digits behind the point; write adapt=0.5..1");
    if (low < 1 || low >= high || high > ADAPT_WHOLE)
        return wrong(r, "adapt= wants 0 < LOW < HIGH <= 1; write adapt=0.5..1");
    r->rule->adapt_low = low;
    r->rule->adapt_high = high;
    return true;
}

/* Reads "jobs" or the name of a part of the cost. */
static bool keep_of(struct reading *r)
{
    size_t len = strcspn(r->at, ",");

    r->rule->of_jobs = len == strlen("jobs") && strncmp(r->at, "jobs", len) == 0;
    if (!r->rule->of_jobs && !cost_is_name(r->at, len))
        return false;
    if (!r->rule->of_jobs)
        memcpy(r->rule->of, r->at, len);
    r->at += len;
    return true;
}

static bool read_of(struct reading *r)
{
    size_t len = strcspn(r->at, ",");

    return keep_of(r) ? true
                      : wrong(r,
                              "of=%.*s: wants jobs, or what jobs name in their cost, [a-z0-9_]; write "
                              "of=jobs or of=tokens",
                              (int)(len > 40 ? 40 : len), r->at);
}

enum { BURST, ALGORITHM, OFFSET, ZONE, OF, BY, ADAPT, OPTIONS };
static const struct option {
    const char *name;
    bool (*read)(struct reading *r);
    const char *wants;
} options[OPTIONS] = {
    [BURST] = {"burst=", read_burst, "a number; write burst=20"},
    [ALGORITHM] = {"algorithm=", read_algorithm, "a name; write algorithm=token-bucket"},
    [OFFSET] = {"offset=", read_offset, "a duration; write offset=6h"},
    [ZONE] = {"zone=", read_zone, "a time zone; write zone=Europe/Berlin"},
    [OF] = {"of=", read_of, "a word; write of=jobs or of=tokens"},
    [BY] = {"by=", read_by, "key, or a path of names; write by=key or by=args.customer"},
    [ADAPT] = {"adapt=", read_adapt, "LOW..HIGH, parts of the rate; write adapt=0.5..1"},
};

static bool has(const struct reading *r, int option)
{
    return r->seen & 1u << option;
}

static bool unknown_option(struct reading *r)
{
    const char *names[OPTIONS + 1] = {NULL}, *likely;
    char name[32];

    if (!*r->at)
        return wrong(r, "nothing follows the last comma; write the rule without blanks, as in 10/s,burst=2");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(r->at, "=,"), r->at);
    strncat(name, "=", sizeof name - strlen(name) - 1);
    if (strcmp(name, "concurrency=") == 0)
        return wrong(r,
                     "concurrency= begins a rule of its own; join it by a blank, as in 10/s concurrency=5");
    for (int i = 0; i < OPTIONS; i++) {
        if (strcmp(name, options[i].name) == 0)
            return wrong(r, "%s wants %s", options[i].name, options[i].wants);
        names[i] = options[i].name;
    }
    likely = likely_word(name, names);
    if (likely)
        return wrong(r, "unknown '%s'; did you mean %s?", name, likely);
    return wrong(
        r,
        "after the rate only burst=, algorithm=, offset=, zone=, of=, by= and adapt= are known; " RATE_HINT);
}

static bool read_option(struct reading *r)
{
    for (int i = 0; i < OPTIONS; i++)
        if (strncmp(r->at, options[i].name, strlen(options[i].name)) == 0) {
            if (has(r, i))
                return wrong(r, "%s is there twice; leave one out", options[i].name);
            r->seen |= 1u << i;
            r->at += strlen(options[i].name);
            return options[i].read(r);
        }
    return unknown_option(r);
}

static bool read_options(struct reading *r)
{
    while (*r->at == ',') {
        r->at++;
        if (!read_option(r))
            return false;
    }
    return *r->at ? wrong(r, "'%.20s' is not a part of a rule; " RATE_HINT, r->at) : true;
}

/* ---- The person's form */

/* Checks that the options go with the algorithm. */
static bool check_options(struct reading *r)
{
    const struct algorithm_ops *ops = algorithm_of(r->rule->algorithm);

    if (has(r, BURST) && !ops->bursts)
        return wrong(r,
                     "%s has no burst: the whole count may start at once; leave burst= out, or use gcra or "
                     "token-bucket",
                     ops->name);
    if (has(r, OFFSET) && !ops->offsets)
        return wrong(
            r,
            "%s has no windows that an offset could move; leave offset= out, or use algorithm=fixed-window",
            ops->name);
    if (r->rule->zone.is_set && !ops->offsets)
        return wrong(r,
                     "%s has no windows that turn by a calendar; leave algorithm= out, or use fixed-window",
                     ops->name);
    return true;
}

#define TENS_MOST 1000000 /* of the digits behind a point */

/* Says how "1.5/s" is written: "3/2s". */
static bool wrong_fraction(struct reading *r)
{
    int64_t count = r->rule->count, tens = 1, a, b, period_us;
    const char *at = r->at + 1;
    char period[32];

    for (; *at >= '0' && *at <= '9' && tens < TENS_MOST; at++, tens *= 10)
        count = 10 * count + (*at - '0');
    if (tens == 1 || count == 0 || *at++ != '/' || period_read(&at, &period_us) ||
        period_us > TEN_YEARS_US / tens)
        return wrong(r, "the count must be a whole number; " RATE_HINT);
    for (a = count, b = tens; b > 0;) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    duration_format(period_us * (tens / a), period);
    return wrong(r, "the count must be a whole number; write %" PRId64 "/%s", count / a, period);
}

/* Reads "1mo" or "mo": durations have no months. */
static bool read_month(struct reading *r)
{
    size_t len = strncmp(r->at, "1mo", 3) == 0 ? 3 : 2;

    if (strncmp(r->at + len - 2, "mo", 2) != 0 || (r->at[len] && r->at[len] != ','))
        return false;
    r->at += len;
    r->rule->period_us = CALENDAR_MONTH_US;
    return true;
}

static bool read_rate(struct reading *r)
{
    const char *why, *period;
    bool by_month;

    if (!count_read(&r->at, COUNT_MAX, &r->rule->count))
        return wrong(r, "the count must be 1 to 1000000000; " RATE_HINT);
    if (*r->at == '.')
        return wrong_fraction(r);
    if (r->rule->count < 1)
        return wrong(r, "the count must be 1 to 1000000000; " RATE_HINT);
    if (*r->at++ != '/')
        return wrong(r, "no / follows the count; " RATE_HINT);
    period = r->at;
    by_month = read_month(r);
    why = by_month ? NULL : period_read(&r->at, &r->rule->period_us);
    if (why && strncmp(period + strspn(period, "0123456789."), "mo", 2) == 0)
        return wrong(r, "months are counted one by one; write %" PRId64 "/1mo", r->rule->count);
    if (why)
        return wrong(r, "%s; " RATE_HINT, why);
    if (!read_options(r))
        return false;
    if (by_month && !has(r, ZONE)) {
        strcpy(r->rule->zone_name, "UTC");
        r->rule->zone.is_set = true;
    }
    if (r->rule->zone.is_set && !has(r, ALGORITHM))
        r->rule->algorithm = ALGORITHM_FIXED_WINDOW;
    if (!check_options(r))
        return false;
    if (!has(r, BURST))
        r->rule->burst = r->rule->count;
    return check_bounds(r);
}

static bool has_rate(const char *text)
{
    char stop = text[strcspn(text, "=/,")];

    return stop == '/' || stop == ',' || (!stop && strcspn(text, "0123456789") < strlen(text));
}

/* Refuses a word without a rate: "burst=2", "concurency=5", "concurrency". */
static bool no_rate(struct reading *r)
{
    static const char *const concurrency[] = {"concurrency", NULL};
    size_t len = strcspn(r->at, "=");
    char name[32];

    snprintf(name, sizeof name, "%.*s", (int)len, r->at);
    for (int i = 0; i < OPTIONS; i++)
        if (strncmp(r->at, options[i].name, strlen(options[i].name)) == 0)
            return wrong(r, "%s belongs to the rule before it; join them by a comma, as in 10/s,%.80s",
                         options[i].name, r->at);
    if (likely_word(name, concurrency))
        return wrong(r, "unknown '%s%s'; did you mean concurrency%.80s?", name, r->at[len] ? "=" : "",
                     r->at[len] ? r->at + len : "=5");
    return wrong(r, "the count must be 1 to 1000000000; " RATE_HINT);
}

static bool read_concurrency(struct reading *r)
{
    r->rule->algorithm = ALGORITHM_CONCURRENCY;
    if (!count_read(&r->at, COUNT_MAX, &r->rule->count) || r->rule->count < 1)
        return wrong(
            r, "concurrency must be 1 to 1000000000; write concurrency=5, or stop all with weir rate pause");
    r->rule->burst = r->rule->count;
    if (!read_options(r))
        return false;
    if (has(r, OF))
        return wrong(r, "concurrency counts jobs, whatever they cost; leave of= out");
    if (r->seen & ~(1u << BY))
        return wrong(
            r, "concurrency is not a rate and only takes by=; write concurrency=5 or concurrency=5,by=key");
    return true;
}

int rule_parse(const char *text, struct rule *rule, struct error *e)
{
    static const char concurrency[] = "concurrency=";
    struct reading r = {.at = text, .rule = rule};
    bool read, counts_jobs = strncmp(text, concurrency, strlen(concurrency)) == 0;

    *rule = (struct rule){0};
    if (counts_jobs) {
        r.at += strlen(concurrency);
        read = read_concurrency(&r);
    } else {
        read = has_rate(text) ? read_rate(&r) : no_rate(&r);
    }
    if (read)
        return 0;
    return error_set(e, WEIR_EINPUT, "rule '" QUOTED "': %s", text, r.wrong);
}

/* Adds to a text of RULE_TEXT_SIZE, which is enough for the longest rule. */
static void add(char *out, const char *fmt, ...) WEIR_PRINTF(2, 3);
static void add(char *out, const char *fmt, ...)
{
    size_t len = strlen(out);
    va_list args;

    va_start(args, fmt);
    vsnprintf(out + len, RULE_TEXT_SIZE - len, fmt, args);
    va_end(args);
}

static void add_thousandths(char *out, int thousandths)
{
    add(out, "%d", thousandths / ADAPT_WHOLE);
    if (thousandths % ADAPT_WHOLE == 0)
        return;
    add(out, ".%03d", thousandths % ADAPT_WHOLE);
    for (size_t len = strlen(out); out[len - 1] == '0'; len--)
        out[len - 1] = '\0';
}

void rule_format_period(const struct rule *rule, char out[32])
{
    if (rule->zone.is_set && rule->period_us == CALENDAR_MONTH_US)
        strcpy(out, "1mo");
    else
        duration_format(rule->period_us, out);
}

static void format_rate(const struct rule *rule, char *out)
{
    const struct algorithm_ops *ops = algorithm_of(rule->algorithm);
    char span[32];

    rule_format_period(rule, span);
    add(out, "%" PRId64 "/%s", rule->count, span);
    if (ops->bursts && rule->burst != rule->count)
        add(out, ",burst=%" PRId64, rule->burst);
    if (rule->algorithm != ALGORITHM_GCRA)
        add(out, ",algorithm=%s", ops->name);
    if (rule->offset_us) {
        duration_format(rule->offset_us, span);
        add(out, ",offset=%s", span);
    }
    if (rule->zone.is_set)
        add(out, ",zone=%s", rule->zone_name);
}

void rule_format(const struct rule *rule, char out[RULE_TEXT_SIZE])
{
    *out = '\0';
    if (rule->algorithm == ALGORITHM_CONCURRENCY)
        add(out, "concurrency=%" PRId64, rule->count);
    else
        format_rate(rule, out);
    if (rule->of_jobs || *rule->of)
        add(out, ",of=%s", rule->of_jobs ? "jobs" : rule->of);
    if (*rule->by)
        add(out, ",by=%s", rule->by);
    if (rule->adapt_high) {
        add(out, ",adapt=");
        add_thousandths(out, rule->adapt_low);
        add(out, "..");
        add_thousandths(out, rule->adapt_high);
    }
}

/* ---- The stored form */

void rule_write(const struct rule *rule, char out[RULE_TEXT_SIZE])
{
    const struct algorithm_ops *ops = algorithm_of(rule->algorithm);

    *out = '\0';
    add(out, "%s:%" PRId64, ops->name, rule->count);
    if (rule->algorithm != ALGORITHM_CONCURRENCY)
        add(out, "/%" PRId64, rule->period_us);
    if (ops->bursts)
        add(out, "/%" PRId64, rule->burst);
    if (ops->offsets)
        add(out, "/%" PRId64, rule->offset_us);
    if (rule->zone.is_set) {
        char zone[128];

        zone_rule_write(&rule->zone, zone, sizeof zone);
        add(out, "/%s%s%s", zone, *rule->zone_name ? ",zone=" : "", rule->zone_name);
    }
    if (rule->of_jobs || *rule->of)
        add(out, ",of=%s", rule->of_jobs ? "jobs" : rule->of);
    if (*rule->by)
        add(out, ",by=%s", rule->by);
    if (rule->adapt_high)
        add(out, ",adapt=%d..%d", rule->adapt_low, rule->adapt_high);
}

/* One number of the stored form, which has no leading zeros: equal rules are equal texts. */
static bool stored_number(struct reading *r, int64_t *number)
{
    return (*r->at != '0' || r->at[1] < '0' || r->at[1] > '9') && number_read(&r->at, TEN_YEARS_US, number);
}

static bool stored_next(struct reading *r, int64_t *number)
{
    return *r->at++ == '/' && stored_number(r, number);
}

static bool stored_zone(struct reading *r)
{
    r->at++;
    return zone_rule_read(&r->at, &r->rule->zone);
}

static bool stored_zone_name(struct reading *r)
{
    size_t len = strspn(r->at, ZONE_CHARS);

    if (!r->rule->zone.is_set || !len || len >= RULE_ZONE_SIZE)
        return false;
    memcpy(r->rule->zone_name, r->at, len);
    r->at += len;
    return true;
}

static bool stored_rate(struct reading *r)
{
    const struct algorithm_ops *ops = algorithm_of(r->rule->algorithm);

    if (!stored_number(r, &r->rule->count))
        return false;
    r->rule->burst = r->rule->count;
    return (r->rule->algorithm == ALGORITHM_CONCURRENCY || stored_next(r, &r->rule->period_us)) &&
           (!ops->bursts || stored_next(r, &r->rule->burst)) &&
           (!ops->offsets || stored_next(r, &r->rule->offset_us)) &&
           (!ops->offsets || *r->at != '/' || stored_zone(r));
}

static bool stored_adapt(struct reading *r)
{
    int64_t low, high;

    if (r->rule->algorithm == ALGORITHM_CONCURRENCY || !stored_number(r, &low) ||
        strncmp(r->at, "..", 2) != 0)
        return false;
    r->at += 2;
    if (!stored_number(r, &high) || low < 1 || low >= high || high > ADAPT_WHOLE)
        return false;
    r->rule->adapt_low = (int)low;
    r->rule->adapt_high = (int)high;
    return true;
}

static bool skip(struct reading *r, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

static bool stored_of(struct reading *r)
{
    return r->rule->algorithm != ALGORITHM_CONCURRENCY && keep_of(r);
}

static bool read_stored(struct reading *r)
{
    char name[32];
    size_t len = strcspn(r->at, ":");

    snprintf(name, sizeof name, "%.*s", (int)len, r->at);
    if (!r->at[len] || !algorithm_find(name, &r->rule->algorithm))
        return false;
    r->at += len + 1;
    return stored_rate(r) && (!skip(r, ",zone=") || stored_zone_name(r)) &&
           (!skip(r, ",of=") || stored_of(r)) && (!skip(r, ",by=") || keep_path(r, path_len(r->at))) &&
           (!skip(r, ",adapt=") || stored_adapt(r)) && !*r->at && check_bounds(r);
}

int rule_read(const char *stored, struct rule *rule, struct error *e)
{
    struct reading r = {.at = stored, .rule = rule};

    *rule = (struct rule){0};
    if (read_stored(&r))
        return 0;
    return error_set(e, WEIR_EINPUT, "stored rule '" QUOTED "': %s; set the limit again with weir rate set",
                     stored, *r.wrong ? r.wrong : "it is not ALGORITHM:COUNT/PERIOD_US...");
}

/* ---- */

bool rule_equal(const struct rule *a, const struct rule *b)
{
    return a->algorithm == b->algorithm && a->count == b->count && a->period_us == b->period_us &&
           a->burst == b->burst && a->offset_us == b->offset_us && a->adapt_low == b->adapt_low &&
           a->adapt_high == b->adapt_high && a->of_jobs == b->of_jobs && strcmp(a->of, b->of) == 0 &&
           strcmp(a->by, b->by) == 0 && zone_rule_equal(&a->zone, &b->zone) &&
           strcmp(a->zone_name, b->zone_name) == 0;
}

int64_t rule_most_in_period(const struct rule *rule)
{
    return algorithm_of(rule->algorithm)->most_in_period(rule);
}
