/* Rules and durations, to and from text. Everything is exact: 1.5s is 1,500,000 us, and what is no whole
 * number of microseconds is refused. The bounds make the arithmetic of gcra.c and gate.lua exact; gate.lua
 * has the proof. */
#include "throttle/rule.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COUNT_MAX 1000000000                           /* of count and burst: below 2^30 */
#define TEN_YEARS_US (INT64_C(3650) * 86400 * 1000000) /* of period and tau: below 2^49 */
#define DURATION_MAX_US (10 * TEN_YEARS_US)            /* now + that is below 2^53 */

/* How much of somebody else's text a message repeats. */
#define QUOTED "%.60s"

/* Largest first, as duration_format tries them. */
static const struct unit {
    const char *name;
    int64_t us;
} units[] = {
    {"w", INT64_C(604800000000)},
    {"d", INT64_C(86400000000)},
    {"h", INT64_C(3600000000)},
    {"m", 60000000},
    {"s", 1000000},
    {"ms", 1000},
    {"us", 1},
};
#define UNIT_COUNT (sizeof units / sizeof *units)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits; false when there are none or the number is above most. */
static bool read_number(const char **at, int64_t most, int64_t *number)
{
    const char *p = *at;
    int64_t n = 0;

    for (; is_digit(*p); p++) {
        n = n * 10 + (*p - '0');
        if (n > most)
            return false;
    }
    if (p == *at)
        return false;
    *at = p;
    *number = n;
    return true;
}

static const struct unit *read_unit(const char **at)
{
    size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyz");

    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (strlen(units[i].name) == len && memcmp(units[i].name, *at, len) == 0) {
            *at += len;
            return &units[i];
        }
    return NULL;
}

/* The digits behind a point, as microseconds of a unit; false when that is no whole number. */
static bool read_fraction(const char *digits, size_t len, int64_t unit_us, int64_t *us)
{
    int64_t part = 0, scale = 1;

    while (len && digits[len - 1] == '0')
        len--;
    if (len > 15)
        return false;
    for (size_t i = 0; i < len; i++) {
        part = part * 10 + (digits[i] - '0');
        scale *= 10;
    }
    *us = (int64_t)((__int128)part * unit_us / scale);
    return (__int128)part * unit_us % scale == 0;
}

/* NUMBER UNIT, NUMBER = digits ["." digits]. NULL, or what is wrong with it. */
static const char *read_duration(const char **at, int64_t *us)
{
    const struct unit *unit;
    const char *fraction = *at;
    size_t fraction_len = 0;
    int64_t whole, part_us;

    if (!read_number(at, DURATION_MAX_US, &whole))
        return is_digit(**at) ? "100 years or more" : "the number is missing";
    if (**at == '.') {
        fraction = *at + 1;
        fraction_len = strspn(fraction, "0123456789");
        if (!fraction_len)
            return "no digit follows the point";
        *at = fraction + fraction_len;
    }
    unit = read_unit(at);
    if (!unit)
        return "the unit is missing or unknown";
    if (whole >= DURATION_MAX_US / unit->us)
        return "100 years or more";
    if (!read_fraction(fraction, fraction_len, unit->us, &part_us))
        return "no whole number of microseconds";
    *us = whole * unit->us + part_us;
    return NULL;
}

int duration_parse(const char *text, int64_t *us, struct error *e)
{
    const char *p = text;
    const char *wrong = read_duration(&p, us);

    if (!wrong && *p)
        wrong = "something follows the unit";
    if (wrong)
        return error_set(e, WEIR_EINPUT,
                         "duration '" QUOTED
                         "': %s; write a number and one of us, ms, s, m, h, d, w, as in 500ms or 1.5h",
                         text, wrong);
    return 0;
}

/* The largest unit that needs at most three digits behind the point; whole microseconds always fit one. */
void duration_format(int64_t us, char out[32])
{
    const char *sign = us < 0 ? "-" : "";
    uint64_t n = us < 0 ? -(uint64_t)us : (uint64_t)us;
    size_t i = 0;
    int len;

    if (us == 0) {
        strcpy(out, "0s");
        return;
    }
    while ((uint64_t)units[i].us > n || (unsigned __int128)n * 1000 % (uint64_t)units[i].us)
        i++;
    len = snprintf(out, 32, "%s%" PRIu64 ".%03d", sign, n / (uint64_t)units[i].us,
                   (int)((unsigned __int128)n * 1000 / (uint64_t)units[i].us % 1000));
    while (out[len - 1] == '0')
        len--;
    if (out[len - 1] == '.')
        len--;
    strcpy(out + len, units[i].name);
}

/* NULL, or what is wrong with the numbers of a rule. */
static const char *out_of_bounds(const struct rule *rule)
{
    if (rule->count < 1 || rule->count > COUNT_MAX)
        return "the count must be 1 to 1000000000";
    if (rule->period_us < 1 || rule->period_us > TEN_YEARS_US)
        return "the period must be above 0 and at most ten years (3650d)";
    if (rule->period_us < rule->count)
        return "more than 1000000 a second";
    if (rule->burst < 1 || rule->burst > COUNT_MAX)
        return "the burst must be 1 to 1000000000";
    if ((__int128)(rule->burst - 1) * rule->period_us > (__int128)TEN_YEARS_US * rule->count)
        return "a burst that takes more than ten years to come back";
    return NULL;
}

static const char *read_burst(const char **at, struct rule *rule)
{
    if (rule->burst)
        return "burst= is there twice";
    return read_number(at, COUNT_MAX, &rule->burst) && rule->burst ? NULL
                                                                   : "the burst must be 1 to 1000000000";
}

/* What may follow the rate. */
static const struct option {
    const char *name;
    const char *(*read)(const char **at, struct rule *rule);
} options[] = {
    {"burst=", read_burst},
};

static const char *read_option(const char **at, struct rule *rule)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strncmp(*at, options[i].name, strlen(options[i].name)) == 0) {
            *at += strlen(options[i].name);
            return options[i].read(at, rule);
        }
    return "after the rate only burst=N is known";
}

/* [NUMBER] UNIT */
static const char *read_period(const char **at, int64_t *us)
{
    const struct unit *unit;

    if (is_digit(**at))
        return read_duration(at, us);
    unit = read_unit(at);
    if (!unit)
        return "the unit is missing or unknown";
    *us = unit->us;
    return NULL;
}

/* NULL, or what is wrong with the rule. */
static const char *read_rule(const char *at, struct rule *rule)
{
    const char *wrong;

    *rule = (struct rule){0};
    if (!read_number(&at, COUNT_MAX, &rule->count) || rule->count < 1)
        return "the count must be 1 to 1000000000";
    if (*at++ != '/')
        return "no / follows the count";
    wrong = read_period(&at, &rule->period_us);
    while (!wrong && *at == ',') {
        at++;
        wrong = read_option(&at, rule);
    }
    if (wrong)
        return wrong;
    if (*at)
        return "something follows that is no part of a rule";
    if (!rule->burst)
        rule->burst = rule->count;
    return out_of_bounds(rule);
}

int rule_parse(const char *text, struct rule *rule, struct error *e)
{
    const char *wrong = read_rule(text, rule);

    if (wrong)
        return error_set(e, WEIR_EINPUT,
                         "rule '" QUOTED "': %s; write COUNT/PERIOD, as in 100/1m, 10/s,burst=20 or 1/1.5s",
                         text, wrong);
    return 0;
}

void rule_format(const struct rule *rule, char out[RULE_TEXT_SIZE])
{
    char period[32], burst[32] = "";

    duration_format(rule->period_us, period);
    if (rule->burst != rule->count)
        snprintf(burst, sizeof burst, ",burst=%" PRId64, rule->burst);
    snprintf(out, RULE_TEXT_SIZE, "%" PRId64 "/%s%s", rule->count, period, burst);
}

void rule_write(const struct rule *rule, char out[RULE_TEXT_SIZE])
{
    snprintf(out, RULE_TEXT_SIZE, "%" PRId64 "/%" PRId64 "/%" PRId64, rule->count, rule->period_us,
             rule->burst);
}

/* One number of the stored form, which has no leading zeros: equal rules are equal texts. */
static bool read_stored(const char **at, char end, int64_t *number)
{
    return **at != '0' && read_number(at, TEN_YEARS_US, number) && *(*at)++ == end;
}

int rule_read(const char *stored, struct rule *rule, struct error *e)
{
    const char *at = stored;
    const char *wrong = "it is not count/period_us/burst";

    if (read_stored(&at, '/', &rule->count) && read_stored(&at, '/', &rule->period_us) &&
        read_stored(&at, '\0', &rule->burst))
        wrong = out_of_bounds(rule);
    if (wrong)
        return error_set(e, WEIR_EINPUT,
                         "stored rule '" QUOTED "': %s; set the limit again with weir rate set", stored,
                         wrong);
    return 0;
}

int64_t rule_most_in_period(const struct rule *rule)
{
    return rule->count + rule->burst - 1;
}
