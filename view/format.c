#include "view/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/decimal.h"
#include "core/duration.h"

#define SECOND_US INT64_C(1000000)
#define ENDLESS_S 4e9   /* from now: no rule waits for so long */
#define ONE_UNIT_FROM 3 /* of a time that has passed: "3m ago", and "2m 10s ago" */

/* ---- Numbers */

const char *grouped(uint64_t n, char out[32])
{
    char digits[32], *at = digits + sizeof digits - 1;
    int count = 0;

    *at = '\0';
    do {
        if (count > 0 && count % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + n % 10);
        n /= 10;
        count++;
    } while (n > 0);
    return strcpy(out, at);
}

const char *sized(int64_t bytes, char out[32])
{
    const char *const units[] = {bytes == 1 ? "byte" : "bytes", "KiB", "MiB", "GiB"};
    double n = (double)bytes;
    size_t unit = 0;

    for (; n >= 1024 && unit < 3; unit++)
        n /= 1024;
    snprintf(out, 32, "%.*f %s", n < 10 && unit > 0 && n != (double)(int)n ? 1 : 0, n, units[unit]);
    return out;
}

const char *per_second(double rate, char out[40])
{
    char number[32];

    if (rate <= 0) /* most of many */
        return strcpy(out, "0/s");
    if (rate >= 999.5)
        grouped((uint64_t)(rate + 0.5), number);
    else if (rate < 0.00001)
        strcpy(number, "<1e-5");
    else
        decimal_print(number, sizeof number, rate < 0.001 ? "%.5f" : "%.3g", rate);
    snprintf(out, 40, "%s/s", number);
    return out;
}

static const char *plural_ending(const char *what, size_t *kept)
{
    size_t len = strlen(what);
    char last = what[len - 1], before = len > 1 ? what[len - 2] : '\0';

    *kept = len;
    if (last == 'y' && !strchr("aeiou", before)) {
        --*kept;
        return "ies";
    }
    return strchr("sx", last) || (last == 'h' && strchr("cs", before)) ? "es" : "s";
}

const char *counted(int64_t n, const char *what, char out[PHRASE_SIZE])
{
    char number[32];
    size_t kept = strlen(what);
    const char *ending = n == 1 ? "" : plural_ending(what, &kept);

    grouped((uint64_t)(n < 0 ? -n : n), number);
    snprintf(out, PHRASE_SIZE, "%s%s %.*s%s", n < 0 ? "-" : "", number, (int)kept, what, ending);
    return out;
}

/* ---- Spans */

static const struct unit {
    int64_t seconds;
    char name;
} units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
#define LAST_UNIT 3

/* Writes "4m 10s", "2d"; the second unit is left out from one_from of the first on. */
static void format_seconds(int64_t seconds, int64_t one_from, char out[PHRASE_SIZE])
{
    int64_t first, second;
    size_t i = 0;

    while (i < LAST_UNIT && units[i].seconds > seconds)
        i++;
    first = seconds / units[i].seconds;
    second = i < LAST_UNIT ? seconds % units[i].seconds / units[i + 1].seconds : 0;
    if (second > 0 && first < one_from)
        snprintf(out, PHRASE_SIZE, "%" PRId64 "%c %" PRId64 "%c", first, units[i].name, second,
                 units[i + 1].name);
    else
        snprintf(out, PHRASE_SIZE, "%" PRId64 "%c", first, units[i].name);
}

const char *format_span(int64_t us, char out[PHRASE_SIZE])
{
    char text[32];

    if (us < 10 * SECOND_US) {
        int64_t step_us = us < SECOND_US ? 1000 : SECOND_US / 10;

        duration_format((us + step_us - 1) / step_us * step_us, text);
        snprintf(out, PHRASE_SIZE, "%s", text);
    } else {
        format_seconds((us + SECOND_US - 1) / SECOND_US, INT64_MAX, out);
    }
    return out;
}

const char *format_retry(double seconds, char out[PHRASE_SIZE])
{
    char span[PHRASE_SIZE];

    if (seconds >= ENDLESS_S)
        return strcpy(out, "when it is resumed");
    snprintf(out, PHRASE_SIZE, "in %.*s", PHRASE_SIZE - 4, format_span((int64_t)ceil(seconds * 1e6), span));
    return out;
}

const char *worded(const char *name, char out[PHRASE_SIZE])
{
    snprintf(out, PHRASE_SIZE, "%s", name);
    for (char *c = out; *c; c++)
        if (*c == '_')
            *c = ' ';
    return out;
}

/* ---- Times */

static bool in_utc;

void format_in_utc(void)
{
    in_utc = true;
}

static struct tm parts_of(int64_t us)
{
    time_t seconds = us / SECOND_US - (us % SECOND_US < 0);
    struct tm parts = {0};

    if (in_utc)
        gmtime_r(&seconds, &parts);
    else
        localtime_r(&seconds, &parts);
    return parts;
}

const char *format_relative(int64_t now_us, int64_t us, char out[PHRASE_SIZE])
{
    char span[PHRASE_SIZE];
    int64_t passed_us = now_us - us;

    if (passed_us < 0)
        snprintf(out, PHRASE_SIZE, "in %.80s", format_span(-passed_us, span));
    else if (passed_us < SECOND_US)
        strcpy(out, "now");
    else {
        format_seconds(passed_us / SECOND_US, ONE_UNIT_FROM, span);
        snprintf(out, PHRASE_SIZE, "%.80s ago", span);
    }
    return out;
}

const char *format_clock(int64_t now_us, int64_t us, char out[PHRASE_SIZE])
{
    struct tm now = parts_of(now_us), then = parts_of(us);
    bool today = now.tm_yday == then.tm_yday && now.tm_year == then.tm_year;
    size_t len;

    if (us >= FORMAT_ENDLESS_US)
        return strcpy(out, "it is resumed");
    len = strftime(out, PHRASE_SIZE, today ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &then);
    snprintf(out + len, PHRASE_SIZE - len, "%s", in_utc ? " UTC" : "");
    return out;
}

const char *format_when(int64_t now_us, int64_t us, char out[PHRASE_SIZE])
{
    char relative[PHRASE_SIZE], clock[PHRASE_SIZE];

    if (us >= FORMAT_ENDLESS_US)
        return strcpy(out, "when it is resumed");
    format_relative(now_us, us, relative);
    if (strcmp(relative, "now") == 0)
        strcpy(out, relative);
    else
        snprintf(out, PHRASE_SIZE, "%.40s (%.40s)", relative, format_clock(now_us, us, clock));
    return out;
}

void format_time(int64_t us, char out[40])
{
    struct tm parts = parts_of(us);
    char zone[8] = "+0000", day[32] = "";

    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    strftime(zone, sizeof zone, "%z", &parts);
    if (in_utc)
        snprintf(out, 40, "%sZ", day);
    else
        snprintf(out, 40, "%s%.3s:%.2s", day, zone, zone + 3);
}

static int64_t seconds_of(struct tm *parts)
{
    parts->tm_isdst = -1;
    return in_utc ? timegm(parts) : mktime(parts);
}

static bool same_clock(const struct tm *a, const struct tm *b)
{
    return a->tm_min == b->tm_min && a->tm_hour == b->tm_hour && a->tm_mday == b->tm_mday;
}

enum reading { SHOWN, LEFT_OUT, NO_SUCH_DAY };

/* Parts that clocks never show are others behind seconds_of(). LEFT_OUT: clocks go forward over them; *us is then as far from
 * UTC as they are a day before. */
static enum reading make_time(struct tm parts, int64_t *us)
{
    struct tm made = parts, day = parts, before;
    time_t as_utc = timegm(&day), made_s = seconds_of(&made);

    *us = made_s * SECOND_US;
    if (same_clock(&made, &parts))
        return SHOWN;
    if (!same_clock(&day, &parts))
        return NO_SUCH_DAY;
    made_s -= 24 * 3600;
    localtime_r(&made_s, &before);
    *us = (as_utc - before.tm_gmtoff) * SECOND_US;
    return LEFT_OUT;
}

static void say_why(enum reading reading, int64_t us, char why[PHRASE_SIZE])
{
    struct tm shown = parts_of(us);
    char text[40];

    strftime(text, sizeof text, "%Y-%m-%d %H:%M", &shown);
    if (reading == LEFT_OUT)
        snprintf(why, PHRASE_SIZE, "clocks go forward then and leave it out; they show %.16s instead", text);
    if (reading == NO_SUCH_DAY)
        strcpy(why, "there is no such day");
}

bool format_read_time(const char *text, int64_t now_us, int64_t *us, char why[PHRASE_SIZE])
{
    static const char *const forms[] = {"%H:%M",    "%H:%M:%S",          "%Y-%m-%d %H:%M",   "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"};

    *why = '\0';
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm parts = parts_of(now_us);
        enum reading reading;
        const char *end;

        parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
        end = strptime(text, forms[i], &parts);
        if (!end || *end)
            continue;
        reading = make_time(parts, us);
        if (forms[i][1] == 'H' && *us <= now_us) {
            parts.tm_mday++;
            timegm(&parts); /* over the end of a month too */
            reading = make_time(parts, us);
        }
        if (reading == LEFT_OUT && !strchr(forms[i], 'H'))
            reading = SHOWN; /* of a day that begins an hour late */
        say_why(reading, *us, why);
        return reading == SHOWN;
    }
    return false;
}
