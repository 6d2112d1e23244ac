/* Windows that turn by the clocks of a place: against their definition, step by step through local time, and against the tz database. That
 * Lua says the same as C is tests/test_gate.c's. */
#include <inttypes.h>
#include <time.h>

#include "core/clock.h"
#include "core/zone.h"
#include "tests/random_rule.h"
#include "tests/test.h"
#include "throttle/algorithm/calendar.h"
#include "throttle/zone_rule.h"

#define STEP_S 900 /* clocks and windows turn at such times */
#define SAMPLES 300

static uint64_t seed, chance;
static struct error error;

/* The window of what local clocks show, as a number that grows. */
static int64_t window_shown(const struct rule *rule, int64_t local_s)
{
    time_t shown = local_s - rule->offset_us / 1000000;
    struct tm t;

    gmtime_r(&shown, &t);
    if (rule->period_us == CALENDAR_MONTH_US)
        return t.tm_year * 12 + t.tm_mon;
    if (rule->period_us == CALENDAR_WEEK_US)
        return (shown - ((t.tm_wday + 6) % 7 * 86400 + t.tm_hour * 3600 + t.tm_min * 60 + t.tm_sec)) / 604800;
    return (t.tm_year * 366 + t.tm_yday);
}

/* Steps through all times around it: a window begins when clocks first show it or a later one. */
static void define(const struct rule *rule, int64_t at_s, int64_t *begins_s, int64_t *ends_s)
{
    int64_t s = at_s - 40 * 86400, last = INT64_MIN;

    *begins_s = *ends_s = 0;
    for (s -= s % STEP_S; !*ends_s; s += STEP_S) {
        int64_t window = window_shown(rule, s + zone_rule_offset(&rule->zone, s));

        if (window <= last)
            continue;
        last = window;
        *(s <= at_s ? begins_s : ends_s) = s;
    }
}

TEST(test_windows_are_as_defined)
{
    seed = random_seed();
    chance = seed;
    for (int i = 0; i < SAMPLES; i++) {
        struct rule rule = {.algorithm = ALGORITHM_FIXED_WINDOW};
        int64_t at_s = BEGIN_US / 1000000 + random_in(&chance, 0, INT64_C(20) * 365 * 86400), begins_s,
                ends_s;

        random_calendar(&chance, &rule);
        if (random_in(&chance, 0, 2) == 0 && rule.zone.changes) /* near a change */
            while (zone_rule_offset(&rule.zone, at_s) == zone_rule_offset(&rule.zone, at_s + 86400))
                at_s += 86400;
        define(&rule, at_s, &begins_s, &ends_s);
        if (calendar_window(&rule, at_s * 1000000 + 999999, 0) != begins_s * 1000000 ||
            calendar_window(&rule, at_s * 1000000, 1) != ends_s * 1000000)
            fail_msg("WEIR_SEED=%" PRIu64 ": sample %d: at %" PRId64 ": %" PRId64 " to %" PRId64
                     ", defined %" PRId64 " to %" PRId64,
                     seed, i, at_s, calendar_window(&rule, at_s * 1000000, 0) / 1000000,
                     calendar_window(&rule, at_s * 1000000, 1) / 1000000, begins_s, ends_s);
        assert_true(calendar_window(&rule, at_s * 1000000, 1) - calendar_window(&rule, at_s * 1000000, 0) >=
                    calendar_shortest(&rule));
        assert_int_equal(calendar_window(&rule, at_s * 1000000, 25),
                         calendar_window(&rule, calendar_window(&rule, at_s * 1000000, 24), 1));
    }
}

/* Days of 23 and of 25 hours, both edges of each; a midnight that is left out (Havana), one that comes twice. */
TEST(test_known_nights)
{
    static const struct {
        const char *rule;
        int64_t at_s, begins_s, ends_s;
    } nights[] = {
        {"1/1d,zone=America/Los_Angeles", 1805014800, 1805011200, 1805094000},
        {"1/1d,zone=America/Los_Angeles", 1825570800, 1825570800, 1825660800},
        {"1/1d,zone=America/Havana", 1805025600, 1805000400, 1805083200},
        {"1/1mo,zone=America/Los_Angeles", 1805014800, 1803888000, 1806562800},
        {"1/1mo,offset=14d6h,zone=Asia/Tokyo", 1795912454, 1794690000, 1797282000},
        {"1/1w,zone=Europe/Berlin", 1806200000, 1805670000, 1806271200},
        {"1/mo", 1806200000, 1803859200, 1806537600},
    };

    for (size_t i = 0; i < COUNT(nights); i++) {
        struct rule rule;

        fail_if(rule_parse(nights[i].rule, &rule, &error) < 0, "%s", error.text);
        assert_int_equal(calendar_window(&rule, nights[i].at_s * 1000000, 0), nights[i].begins_s * 1000000);
        assert_int_equal(calendar_window(&rule, nights[i].at_s * 1000000, 1), nights[i].ends_s * 1000000);
    }
}

/* Clocks are set back at half past midnight, and show the end of the day before once more: the new day goes on. */
TEST(test_a_day_that_begins_twice_is_one)
{
    const int64_t begins_us = INT64_C(1824937200000000), minute_us = 60000000;
    struct rule rule;

    assert_int_equal(
        rule_read("fixed-window:2/86400000000/0/86400/90000/3/5/0/612000/10/5/0/606600", &rule, &error), 0);
    assert_int_equal(calendar_window(&rule, begins_us + 40 * minute_us, 0), begins_us);
    assert_int_equal(calendar_window(&rule, begins_us + 40 * minute_us, 1), INT64_C(1825027200000000));
}

/* A zone whose clocks change otherwise from year to year is refused, all others are as the database has them, for ten years. */
TEST(test_zones_are_those_of_the_database)
{
    static const char *const yearly[] = {"UTC",          "America/Los_Angeles", "Europe/Dublin",
                                         "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana",
                                         "Etc/GMT+3",    "Asia/Tokyo",          "Pacific/Chatham",
                                         "America/Nuuk"};
    static const char *const refused[] = {"Africa/Casablanca", "Asia/Gaza",    "Nowhere/There",
                                          "../etc/passwd",     "posixrules/x", ""};
    struct zone_rule rule;

    for (size_t i = 0; i < COUNT(yearly); i++) {
        int64_t now_s = clock_wall_us() / 1000000;
        struct zone *zone;

        fail_if(zone_rule_find(yearly[i], &rule, &error) < 0, "%s", error.text);
        assert_int_equal(zone_open(yearly[i], &zone, &error), 0);
        for (int64_t at_s = now_s; at_s < now_s + INT64_C(10) * 365 * 86400; at_s += 86399) {
            int offset_s;

            zone_period(zone, at_s, &offset_s);
            assert_int_equal(zone_rule_offset(&rule, at_s), offset_s);
        }
        zone_free(zone);
    }
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_int_equal(zone_rule_find(refused[i], &rule, &error), WEIR_EINPUT);
}

TESTS(NULL, NULL)
