#include "queue/schedule/cron.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "core/duration.h"

#define DAY_S INT64_C(86400)
#define HOUR_S 3600
#define MINUTE_S 60
#define HORIZON_S INT64_C(4102444800) /* the year 2100 */
#define HOW "write minute hour day month weekday, as in '0 9 * * MON', or @daily, or every 15m"

/* ---- Reading */

static const char *const months[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL",
                                     "AUG", "SEP", "OCT", "NOV", "DEC", NULL};
static const char *const weekdays[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", NULL};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };
static const struct field {
    const char *name;
    int low, high;
    const char *const *names; /* of low, low + 1 ... */
    const char *range;
} fields[FIELDS] = {
    [MINUTE] = {"minute", 0, 59, NULL, "0 to 59"},
    [HOUR] = {"hour", 0, 23, NULL, "0 to 23"},
    [DAY] = {"day", 1, 31, NULL, "1 to 31"},
    [MONTH] = {"month", 1, 12, months, "1 to 12 or JAN to DEC"},
    [WEEKDAY] = {"weekday", 0, 7, weekdays, "0 to 7 or SUN to SAT"}, /* 7 is Sunday, too */
};

static const struct alias {
    const char *name, *text;
} aliases[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
    {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"},
};

/* Reads a number, or one of the field's names; false: it is neither. */
static bool read_value(const struct field *field, const char **at, int *value)
{
    int64_t number;

    if (number_read(at, 9999, &number)) {
        *value = (int)number;
        return true;
    }
    for (int i = 0; field->names && field->names[i]; i++)
        if (strncasecmp(*at, field->names[i], 3) == 0 && !isalnum((unsigned char)(*at)[3])) {
            *at += 3;
            *value = field->low + i;
            return true;
        }
    return false;
}

/* Reads "*", "4", "1-5", a range also with "/2". Returns NULL, or what is wrong. */
static const char *read_range(const struct field *field, const char **at, uint64_t *set)
{
    int from = field->low, to = field->high;
    bool range = true;
    int64_t step = 1;

    if (**at == '*') {
        (*at)++;
    } else {
        if (!read_value(field, at, &from))
            return field->range;
        range = **at == '-';
        to = from;
        if (range && (++*at, !read_value(field, at, &to)))
            return field->range;
        if (field->names == weekdays && range && to == 0 && from > 0)
            to = 7;
    }
    if (from < field->low || to > field->high || from > field->high)
        return field->range;
    if (to < from)
        return "a range upwards, such as 22-23,0-2";
    if (**at == '/' && !range)
        return "a range before a step, such as 5-59/15";
    if (**at == '/' && (++*at, !number_read(at, field->high, &step) || step < 1))
        return "a step of at least 1 that fits, such as */15";
    for (int i = from; i <= to; i += (int)step)
        *set |= UINT64_C(1) << i;
    return NULL;
}

/* Reads a list of ranges up to a blank or the end. Returns NULL, or what is wrong. */
static const char *read_field(const struct field *field, const char **at, uint64_t *set)
{
    const char *wrong = read_range(field, at, set);

    while (!wrong && **at == ',') {
        ++*at;
        wrong = read_range(field, at, set);
    }
    return wrong || !**at || isspace((unsigned char)**at) ? wrong : field->range;
}

static int read_fields(const char *text, struct cron *cron, struct error *e)
{
    uint64_t sets[FIELDS] = {0};
    bool stars[FIELDS];
    const char *at = text;

    for (int i = 0; i < FIELDS; i++) {
        const char *begin, *wrong;

        at += strspn(at, " \t");
        begin = at;
        stars[i] = *at == '*';
        if (!*at)
            return error_set(e, WEIR_EINPUT, "when '%.60s': it has %d of five fields; " HOW, text, i);
        wrong = read_field(&fields[i], &at, &sets[i]);
        if (wrong)
            return error_set(e, WEIR_EINPUT, "when '%.60s': %s %.*s: must be %s; " HOW, text, fields[i].name,
                             (int)strcspn(begin, " \t") % 60, begin, wrong);
    }
    if (at[strspn(at, " \t")])
        return error_set(e, WEIR_EINPUT, "when '%.60s': something follows the five fields; " HOW, text);
    *cron = (struct cron){.minutes = sets[MINUTE],
                          .hours = sets[HOUR],
                          .days = sets[DAY],
                          .months = sets[MONTH],
                          .weekdays = sets[WEEKDAY] | sets[WEEKDAY] >> 7,
                          .any_hour = stars[HOUR],
                          .any_day = stars[DAY],
                          .any_weekday = stars[WEEKDAY]};
    return 0;
}

static int read_every(const char *text, const char *duration, struct cron *cron, struct error *e)
{
    struct error why;
    int64_t us;

    if (duration_parse(duration, &us, &why) < 0)
        return error_set(e, WEIR_EINPUT, "when '%.60s': %.300s", text, why.text);
    if (us < 1000000 || us % 1000000 != 0)
        return error_set(e, WEIR_EINPUT, "when '%.60s': must be whole seconds; write every 1s or more", text);
    *cron = (struct cron){.every_s = us / 1000000};
    return 0;
}

int cron_parse(const char *text, struct cron *cron, struct error *e)
{
    const char *begin = text + strspn(text, " \t");

    if (strcmp(begin, "every") == 0)
        return error_set(e, WEIR_EINPUT, "when 'every': its time is missing; write 'every 15m', in quotes");
    if (strncmp(begin, "every", 5) == 0 && strspn(begin + 5, " \t") > 0)
        return read_every(text, begin + 5 + strspn(begin + 5, " \t"), cron, e);
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(begin, aliases[i].name) == 0)
            return read_fields(aliases[i].text, cron, e);
    if (*begin == '@')
        return error_set(e, WEIR_EINPUT,
                         "when '%.60s': unknown; there are @yearly, @monthly, @weekly, @daily and @hourly",
                         text);
    return read_fields(begin, cron, e);
}

/* ---- Local time, as a clock on the wall shows it: seconds since 1970 as if it were UTC */

static bool has(uint64_t set, int n)
{
    return set >> n & 1;
}

static bool has_day(const struct cron *cron, int64_t day)
{
    time_t at = day * DAY_S;
    bool of_month, of_week;
    struct tm t;

    gmtime_r(&at, &t);
    of_month = has(cron->days, t.tm_mday);
    of_week = has(cron->weekdays, t.tm_wday);
    if (!has(cron->months, t.tm_mon + 1))
        return false;
    return cron->any_day || cron->any_weekday ? of_month && of_week : of_month || of_week;
}

/* Finds the first time of a day from that minute on, in seconds; -1: none is left. */
static int time_of_day(const struct cron *cron, int minute)
{
    for (int hour = minute / 60, from = minute % 60; hour < 24; hour++, from = 0) {
        uint64_t left = has(cron->hours, hour) ? cron->minutes >> from << from : 0;

        if (left)
            return hour * HOUR_S + __builtin_ctzll(left) * MINUTE_S;
    }
    return -1;
}

/* Finds the first time on the wall from `from` on and before `end`; CRON_NEVER: there is none. As 1970 begins in
 * UTC, it has not begun on all walls. */
static int64_t next_on_wall(const struct cron *cron, int64_t from_s, int64_t end_s)
{
    int64_t day = from_s / DAY_S - (from_s % DAY_S < 0);
    int minute = (int)((from_s - day * DAY_S + MINUTE_S - 1) / MINUTE_S);

    for (; day * DAY_S < end_s; day++, minute = 0) {
        int at_s = has_day(cron, day) ? time_of_day(cron, minute) : -1;

        if (at_s >= 0)
            return day * DAY_S + at_s < end_s ? day * DAY_S + at_s : CRON_NEVER;
    }
    return CRON_NEVER;
}

/* The first moment at which the wall has come to that time or, where the clock was set forward, beyond. */
static int64_t first_moment(const struct zone *zone, int64_t wall_s)
{
    int64_t at_s = wall_s - DAY_S; /* before it in every zone */
    int offset_s;

    for (;;) {
        int64_t until_s = zone_period(zone, at_s, &offset_s);

        if (until_s + offset_s > wall_s)
            return at_s + offset_s > wall_s ? at_s : wall_s - offset_s;
        at_s = until_s;
    }
}

/* Finds the next time on the wall, at its first moment. */
static int64_t next_fixed(const struct cron *cron, const struct zone *zone, int64_t after_s)
{
    int64_t wall_s, at_s;
    int offset_s;

    zone_period(zone, after_s, &offset_s);
    wall_s = after_s + offset_s;
    do {
        wall_s = next_on_wall(cron, wall_s + 1, HORIZON_S);
        if (wall_s == CRON_NEVER)
            return CRON_NEVER;
        at_s = first_moment(zone, wall_s);
    } while (at_s <= after_s); /* the wall has shown it before it was set back */
    return at_s;
}

/* Finds the next moment at which the wall shows such a time. */
static int64_t next_real(const struct cron *cron, const struct zone *zone, int64_t after_s)
{
    int offset_s;

    for (int64_t at_s = after_s + 1, until_s; at_s < HORIZON_S; at_s = until_s) {
        int64_t wall_s;

        until_s = zone_period(zone, at_s, &offset_s);
        wall_s = next_on_wall(cron, at_s + offset_s, until_s + offset_s);
        if (wall_s != CRON_NEVER)
            return wall_s - offset_s;
    }
    return CRON_NEVER;
}

int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_s)
{
    int64_t at_s;

    if (cron->every_s)
        at_s = (after_s / cron->every_s + 1) * cron->every_s;
    else if (cron->any_hour)
        at_s = next_real(cron, zone, after_s);
    else
        at_s = next_fixed(cron, zone, after_s);
    return at_s < HORIZON_S ? at_s : CRON_NEVER;
}
