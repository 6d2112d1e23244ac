#include "throttle/algorithm/calendar.h"

#include "core/number.h"

#define DAY_S 86400

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* ---- Dates. A month is counted from January of the year 0, a day from 1970-01-01. */

/* Returns the first day of a month of the Gregorian calendar. Years are counted from March, so that a leap day is the last of one. */
static int64_t first_day(int64_t month)
{
    int64_t since_march = month - 2, year = floor_div(since_march, 12), in_year = since_march - 12 * year;

    return 365 * year + floor_div(year, 4) - floor_div(year, 100) + floor_div(year, 400) +
           (153 * in_year + 2) / 5 - 719468;
}

static int64_t month_of(int64_t day)
{
    int64_t month = floor_div(day * 4800, 146097) + INT64_C(1970) * 12; /* at most one off */

    while (first_day(month) > day)
        month--;
    while (first_day(month + 1) <= day)
        month++;
    return month;
}

/* ---- Local clocks */

/* Returns when a change comes in a year; offset_s: of the clocks until then. */
static int64_t change_at(const struct zone_change *change, int64_t year, int offset_s)
{
    int64_t month = 12 * year + change->month - 1, first = first_day(month);
    int64_t first_weekday = (first + 4) - 7 * floor_div(first + 4, 7);
    int64_t day = first + (change->weekday - first_weekday + 7) % 7 + INT64_C(7) * (change->week - 1);

    if (day >= first_day(month + 1))
        day -= 7;
    return day * DAY_S + change->at_s - offset_s;
}

static int64_t to_dst(const struct zone_rule *zone, int64_t year)
{
    return change_at(&zone->to_dst, year, zone->std_s);
}

static int64_t to_std(const struct zone_rule *zone, int64_t year)
{
    return change_at(&zone->to_std, year, zone->dst_s);
}

static int64_t year_of(const struct zone_rule *zone, int64_t at_s)
{
    return floor_div(month_of(floor_div(at_s + zone->std_s, DAY_S)), 12);
}

int zone_rule_offset(const struct zone_rule *zone, int64_t at_s)
{
    int64_t begins, ends, year;

    if (!zone->changes)
        return zone->std_s;
    year = year_of(zone, at_s);
    begins = to_dst(zone, year);
    ends = to_std(zone, year);
    if (begins < ends ? begins <= at_s && at_s < ends : begins <= at_s || at_s < ends)
        return zone->dst_s;
    return zone->std_s;
}

/* Returns when clocks first show that local time or a later one. */
static int64_t first_at(const struct zone_rule *zone, int64_t local_s)
{
    bool dst_is_ahead = zone->changes && zone->dst_s > zone->std_s;
    int ahead_s = dst_is_ahead || !zone->changes ? zone->dst_s : zone->std_s;
    int64_t earliest_s, change_s;

    if (!zone->changes)
        return local_s - zone->std_s;
    earliest_s = local_s - ahead_s;
    if (zone_rule_offset(zone, earliest_s) == ahead_s)
        return earliest_s;
    change_s =
        dst_is_ahead ? to_dst(zone, year_of(zone, earliest_s)) : to_std(zone, year_of(zone, earliest_s));
    if (change_s > earliest_s)
        return min_i64(change_s, local_s - (dst_is_ahead ? zone->std_s : zone->dst_s));
    return local_s - (dst_is_ahead ? zone->std_s : zone->dst_s);
}

/* ---- Windows, counted in their unit */

static int64_t window_index(const struct rule *rule, int64_t local_s)
{
    int64_t day = floor_div(local_s, DAY_S);

    if (rule->period_us == CALENDAR_MONTH_US)
        return month_of(day);
    return rule->period_us == CALENDAR_WEEK_US ? floor_div(day + 3, 7) : day; /* 1970-01-01 is a Thursday */
}

static int64_t begins(const struct rule *rule, int64_t window)
{
    int64_t day = rule->period_us == CALENDAR_MONTH_US  ? first_day(window)
                  : rule->period_us == CALENDAR_WEEK_US ? 7 * window - 3
                                                        : window;

    return first_at(&rule->zone, day * DAY_S + rule->offset_us / 1000000);
}

int64_t calendar_window(const struct rule *rule, int64_t at_us, int64_t n)
{
    int64_t at_s = floor_div(at_us, 1000000);
    int64_t window =
        window_index(rule, at_s + zone_rule_offset(&rule->zone, at_s) - rule->offset_us / 1000000);

    if (begins(rule, window + 1) <= at_s) /* clocks that were set back show the day before once more */
        window++;
    return begins(rule, window + n) * 1000000;
}

const char *calendar_unit(int64_t period_us)
{
    return period_us == CALENDAR_MONTH_US ? "month" : period_us == CALENDAR_WEEK_US ? "week" : "day";
}

int64_t calendar_shortest(const struct rule *rule)
{
    int shift_s = rule->zone.changes ? rule->zone.dst_s - rule->zone.std_s : 0;
    int64_t days = rule->period_us == CALENDAR_MONTH_US ? 28 : rule->period_us / CALENDAR_DAY_US;

    return days * CALENDAR_DAY_US - INT64_C(1000000) * (shift_s < 0 ? -shift_s : shift_s);
}
