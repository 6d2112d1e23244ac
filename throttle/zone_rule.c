#include "throttle/zone_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/duration.h"
#include "core/zone.h"
#include "throttle/algorithm/calendar.h"

#define OFFSET_BIAS_S 86400
#define TIME_BIAS_S (7 * 86400)
#define CHANGE_MOST_S 86399             /* a window is longer than what clocks leave out */
#define AHEAD_S (INT64_C(3650) * 86400) /* the longest period */

/* ---- TZ of POSIX: "CET-1CEST,M3.5.0,M10.5.0/3" */

static bool skip_name(const char **at)
{
    size_t len = strcspn(*at, "0123456789+-,<>");

    if (**at == '<')
        len = strcspn(*at, ">") + 1;
    if (len < 3 || len > strlen(*at))
        return false;
    *at += len;
    return true;
}

/* [+-]hh[:mm[:ss]] */
static bool read_time(const char **at, int *time_s)
{
    int sign = **at == '-' ? -1 : 1;
    int64_t part[3] = {0};

    if (**at == '-' || **at == '+')
        ++*at;
    for (int i = 0; i < 3; i++) {
        if (!number_read(at, i ? 59 : 167, &part[i]))
            return false;
        if (**at != ':')
            break;
        ++*at;
    }
    *time_s = sign * (int)(part[0] * 3600 + part[1] * 60 + part[2]);
    return true;
}

/* ",Mm.w.d[/time]" */
static bool read_change(const char **at, struct zone_change *change)
{
    int n = 0;

    if (sscanf(*at, ",M%2d.%1d.%1d%n", &change->month, &change->week, &change->weekday, &n) != 3)
        return false;
    *at += n;
    change->at_s = 2 * 3600;
    if (**at != '/')
        return true;
    ++*at;
    return read_time(at, &change->at_s);
}

/* POSIX counts west of Greenwich. */
static bool read_posix(const char *at, struct zone_rule *zone)
{
    int west_s;

    *zone = (struct zone_rule){.is_set = true};
    if (!skip_name(&at) || !read_time(&at, &west_s))
        return false;
    zone->std_s = zone->dst_s = -west_s;
    if (!*at)
        return true;
    if (!skip_name(&at))
        return false;
    zone->changes = true;
    zone->dst_s += 3600;
    if (*at != ',') {
        if (!read_time(&at, &west_s))
            return false;
        zone->dst_s = -west_s;
    }
    return read_change(&at, &zone->to_dst) && read_change(&at, &zone->to_std) && !*at;
}

/* ---- */

static bool agrees(const struct zone *zone, const struct zone_rule *rule, int64_t from_s)
{
    for (int64_t at_s = from_s, until_s; at_s < from_s + AHEAD_S; at_s = until_s) {
        int offset_s;

        until_s = zone_period(zone, at_s, &offset_s);
        if (zone_rule_offset(rule, at_s) != offset_s || zone_rule_offset(rule, until_s - 1) != offset_s)
            return false;
    }
    return true;
}

int zone_rule_find(const char *name, struct zone_rule *rule, struct error *e)
{
    char posix[ZONE_YEARLY_SIZE], stored[128];
    const char *at = stored;
    struct zone *zone;
    bool yearly;

    if (zone_yearly(name, posix, e) < 0 || zone_open(name, &zone, e) < 0)
        return e->status;
    yearly = read_posix(posix, rule);
    if (yearly) {
        zone_rule_write(rule, stored, sizeof stored);
        yearly = zone_rule_read(&at, rule) && agrees(zone, rule, clock_wall_us() / 1000000);
    }
    zone_free(zone);
    if (yearly)
        return 0;
    return error_set(e, WEIR_EINPUT,
                     "time zone '%s': its clocks do not change on the same day of each year; take UTC with "
                     "offset=",
                     name);
}

/* ---- The stored form */

void zone_rule_write(const struct zone_rule *zone, char *out, size_t size)
{
    const struct zone_change *a = &zone->to_dst, *b = &zone->to_std;

    if (!zone->changes)
        snprintf(out, size, "%d", zone->std_s + OFFSET_BIAS_S);
    else
        snprintf(out, size, "%d/%d/%d/%d/%d/%d/%d/%d/%d/%d", zone->std_s + OFFSET_BIAS_S,
                 zone->dst_s + OFFSET_BIAS_S, a->month, a->week, a->weekday, a->at_s + TIME_BIAS_S, b->month,
                 b->week, b->weekday, b->at_s + TIME_BIAS_S);
}

/* A number from least to most, without leading zeros. */
static bool read_number(const char **at, int64_t least, int64_t most, int *number)
{
    const char *begin = *at;
    int64_t n;

    if (!number_read(at, most, &n) || n < least || (*begin == '0' && *at > begin + 1))
        return false;
    *number = (int)n;
    return true;
}

static bool read_next(const char **at, int64_t least, int64_t most, int *number)
{
    return *(*at)++ == '/' && read_number(at, least, most, number);
}

static bool read_day(const char **at, struct zone_change *change)
{
    if (!read_next(at, 1, 12, &change->month) || !read_next(at, 1, 5, &change->week) ||
        !read_next(at, 0, 6, &change->weekday) || !read_next(at, 0, 2 * TIME_BIAS_S - 1, &change->at_s))
        return false;
    change->at_s -= TIME_BIAS_S;
    return true;
}

bool zone_rule_read(const char **at, struct zone_rule *zone)
{
    *zone = (struct zone_rule){.is_set = true};
    if (!read_number(at, 0, 2 * OFFSET_BIAS_S - 1, &zone->std_s))
        return false;
    zone->std_s -= OFFSET_BIAS_S;
    zone->dst_s = zone->std_s;
    if (**at != '/')
        return true;
    if (!read_next(at, 0, 2 * OFFSET_BIAS_S - 1, &zone->dst_s))
        return false;
    zone->dst_s -= OFFSET_BIAS_S;
    zone->changes = true;
    return zone->dst_s != zone->std_s && abs(zone->dst_s - zone->std_s) <= CHANGE_MOST_S &&
           read_day(at, &zone->to_dst) && read_day(at, &zone->to_std);
}

static bool same_change(const struct zone_change *a, const struct zone_change *b)
{
    return a->month == b->month && a->week == b->week && a->weekday == b->weekday && a->at_s == b->at_s;
}

bool zone_rule_equal(const struct zone_rule *a, const struct zone_rule *b)
{
    return a->is_set == b->is_set && a->changes == b->changes && a->std_s == b->std_s &&
           a->dst_s == b->dst_s && same_change(&a->to_dst, &b->to_dst) && same_change(&a->to_std, &b->to_std);
}
