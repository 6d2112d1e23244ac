/* Durations, to and from text. Everything is exact: 1.5s is 1,500,000 us, and what is no whole number of
 * microseconds is refused. */
#include "core/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DURATION_MAX_US (INT64_C(36500) * 86400 * 1000000) /* now + that is below 2^53 */

/* Messages repeat at most so much of somebody else's text. */
#define QUOTED "%.60s"
#define NO_UNIT "the unit is missing or unknown (us, ms, s, m, h, d, w)"

/* The largest unit comes first, as duration_format tries them. */
static const struct unit {
    const char *name;
    int64_t us;
    const char *others[4]; /* what people also write */
} units[] = {
    {"w", INT64_C(604800000000), {"week", "weeks"}},
    {"d", INT64_C(86400000000), {"day", "days"}},
    {"h", INT64_C(3600000000), {"hr", "hour", "hours"}},
    {"m", 60000000, {"min", "mins", "minute", "minutes"}},
    {"s", 1000000, {"sec", "secs", "second", "seconds"}},
    {"ms", 1000, {"msec"}},
    {"us", 1, {"usec"}},
};
#define UNIT_COUNT (sizeof units / sizeof *units)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool number_read(const char **at, int64_t most, int64_t *number)
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

bool count_read(const char **at, int64_t most, int64_t *number)
{
    const char *p = *at;
    int64_t scale = 1, n;

    if (!number_read(&p, most, &n))
        return false;
    if (*p == 'k' || *p == 'M')
        scale = *p++ == 'k' ? 1000 : 1000000;
    if (n > most / scale)
        return false;
    *at = p;
    *number = n * scale;
    return true;
}

static bool is_unit(const struct unit *unit, const char *word, size_t len)
{
    const char *name = unit->name;

    for (size_t i = 0; name; name = i < 4 ? unit->others[i] : NULL, i++)
        if (strlen(name) == len && memcmp(name, word, len) == 0)
            return true;
    return false;
}

static const struct unit *read_unit(const char **at)
{
    size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyz");

    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (is_unit(&units[i], *at, len)) {
            *at += len;
            return &units[i];
        }
    return NULL;
}

/* Reads the digits behind a point as microseconds of a unit; false when that is no whole number. */
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

/* Reads NUMBER UNIT; *unit becomes the unit. */
static const char *read_part(const char **at, int64_t *us, const struct unit **unit)
{
    const char *fraction = *at;
    size_t fraction_len = 0;
    int64_t whole, part_us;

    if (!number_read(at, DURATION_MAX_US, &whole))
        return is_digit(**at) ? "100 years or more" : **at == '-' ? "it is below 0" : "the number is missing";
    if (**at == '.') {
        fraction = *at + 1;
        fraction_len = strspn(fraction, "0123456789");
        if (!fraction_len)
            return "no digit follows the point";
        *at = fraction + fraction_len;
    }
    *unit = read_unit(at);
    if (!*unit)
        return NO_UNIT;
    if (whole >= DURATION_MAX_US / (*unit)->us)
        return "100 years or more";
    if (!read_fraction(fraction, fraction_len, (*unit)->us, &part_us))
        return "not a whole number of microseconds";
    *us = whole * (*unit)->us + part_us;
    return NULL;
}

const char *duration_read(const char **at, int64_t *us)
{
    const struct unit *unit, *before = NULL;
    int64_t part_us;

    for (*us = 0; !before || is_digit(**at); before = unit) {
        const char *wrong = read_part(at, &part_us, &unit);

        if (wrong)
            return wrong;
        if (before && unit->us >= before->us)
            return "its units must become smaller, as in 1h30m";
        *us += part_us;
        if (*us >= DURATION_MAX_US)
            return "100 years or more";
    }
    return NULL;
}

const char *period_read(const char **at, int64_t *us)
{
    const struct unit *unit;

    if (is_digit(**at))
        return duration_read(at, us);
    unit = read_unit(at);
    if (!unit)
        return NO_UNIT;
    *us = unit->us;
    return NULL;
}

int duration_parse(const char *text, int64_t *us, struct error *e)
{
    const char *p = text;
    const char *wrong = duration_read(&p, us);

    if (!wrong && *p)
        wrong = "something follows the unit";
    if (wrong)
        return error_set(e, WEIR_EINPUT,
                         "duration '" QUOTED "': %s; write a number and its unit, as in 500ms, 1.5h or 1h30m",
                         text, wrong);
    return 0;
}

bool day_read(const char *text, int64_t now_us, struct day *day)
{
    static const char *const words[] = {"yesterday", "today", "tomorrow"};
    time_t now = (time_t)(now_us / 1000000);
    struct tm first, next, made;
    bool known = false;
    int len = 0;

    localtime_r(&now, &first);
    first.tm_hour = first.tm_min = first.tm_sec = 0;
    first.tm_isdst = -1;
    for (int i = 0; i < 3 && !known; i++) {
        known = strcmp(text, words[i]) == 0;
        first.tm_mday += known ? i - 1 : 0;
    }
    if (!known) {
        if (strspn(text, "0123456789-") != 10 ||
            sscanf(text, "%4d-%2d-%2d%n", &first.tm_year, &first.tm_mon, &first.tm_mday, &len) != 3 ||
            text[len] || first.tm_year < 1970 || first.tm_year > 2099)
            return false;
        first.tm_year -= 1900;
        first.tm_mon--;
        made = first;
        if (mktime(&made) == -1 || made.tm_mon != first.tm_mon || made.tm_mday != first.tm_mday)
            return false;
    }
    next = first;
    next.tm_mday++;
    day->begin_us = (int64_t)mktime(&first) * 1000000;
    day->end_us = (int64_t)mktime(&next) * 1000000;
    return true;
}

/* -1: there are not two of them. */
static int read_two_digits(const char *at)
{
    return strspn(at, "0123456789") >= 2 ? (at[0] - '0') * 10 + at[1] - '0' : -1;
}

/* Reads Z, +01:00, +0100 or +01; us: what is to be added. */
static bool read_zone(const char *at, int64_t *us)
{
    int sign = *at == '-' ? 1 : -1, hours, minutes = 0;

    *us = 0;
    if (strcmp(at, "Z") == 0 || strcmp(at, "z") == 0)
        return true;
    hours = *at == '+' || *at == '-' ? read_two_digits(at + 1) : -1;
    if (hours < 0 || hours > 23)
        return false;
    at += 3;
    if (*at) {
        at += *at == ':';
        minutes = read_two_digits(at);
        if (minutes < 0 || minutes > 59 || at[2])
            return false;
    }
    *us = sign * (hours * 60 + minutes) * INT64_C(60000000);
    return true;
}

/* ".25" */
static const char *read_part_of_second(const char *at, int64_t *us)
{
    int64_t unit_us = 100000;

    for (at += *at == '.'; *at >= '0' && *at <= '9'; at++, unit_us /= 10)
        *us += (*at - '0') * unit_us;
    return at;
}

bool moment_read(const char *text, int64_t *us)
{
    struct tm parts = {0}, made;
    const char *at = strptime(text, "%Y-%m-%d", &parts);
    int64_t zone_us, fraction_us = 0;

    at = at && *at && strchr("Tt ", *at) ? strptime(at + 1, "%H:%M", &parts) : NULL;
    if (at && *at == ':' && (at = strptime(at, ":%S", &parts)))
        at = read_part_of_second(at, &fraction_us);
    if (!at || !read_zone(at, &zone_us))
        return false;
    made = parts;
    *us = timegm(&made) * INT64_C(1000000) + fraction_us + zone_us;
    return made.tm_mday == parts.tm_mday &&
           made.tm_sec == parts.tm_sec; /* there is such a day and such a time */
}

int ago_parse(const char *text, int sign, int64_t now_us, int64_t *us, struct error *e)
{
    struct error why;
    struct day day;

    if ((!moment_read(text, &day.begin_us) || day.begin_us < 0) && !day_read(text, now_us, &day)) {
        if (duration_parse(text, us, &why) == 0)
            return 0;
        return error_set(e, WEIR_EINPUT,
                         "%.250s; or give a day or a time, as today, 2026-11-28 or 2026-11-28T09:00Z",
                         why.text);
    }
    *us = sign * (now_us - day.begin_us);
    if (*us < 0)
        return error_set(e, WEIR_EINPUT, "'%s' %s", text, sign > 0 ? "is yet to come" : "has begun");
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
