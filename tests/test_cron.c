/* When schedules are due: what can be written; next occurrences against expectations written by hand; both
 * days of a year on which clocks are set, in three zones, against a model that steps minute by minute through
 * the C library's local time. */
#include <time.h>

#include "queue/schedule/cron.h"
#include "tests/test.h"

static struct zone *open_zone(const char *name)
{
    struct zone *zone;
    struct error e;

    fail_if(zone_open(name, &zone, &e) != 0, "%s", e.text);
    return zone;
}

/* "2026-11-21T09:00:00Z", or with an offset. */
static int64_t read_time(const char *text)
{
    int hours, minutes;
    struct tm t = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);

    fail_if(!rest, "%s: no time", text);
    if (*rest == 'Z')
        return timegm(&t);
    fail_if(sscanf(rest + 1, "%2d:%2d", &hours, &minutes) != 2, "%s: no offset", text);
    return timegm(&t) - (*rest == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

static struct cron parse(const char *when)
{
    struct cron cron;
    struct error e;

    fail_if(cron_parse(when, &cron, &e) != 0, "%s", e.text);
    return cron;
}

/* ---- What can be written */

TEST(test_what_cannot_be_read_is_refused)
{
    static const struct {
        const char *when, *why;
    } cases[] = {
        {"", "when '': it has 0 of five fields; write minute hour day month weekday, as in '0 9 * * MON', or "
             "@daily, or every 15m"},
        {"0 9 * *", "when '0 9 * *': it has 4 of five fields; "},
        {"0 9 * * MON 2026", "when '0 9 * * MON 2026': something follows the five fields; "},
        {"60 * * * *", "when '60 * * * *': minute 60: must be 0 to 59; write "},
        {"-1 * * * *", "minute -1: must be 0 to 59; "},
        {"0 24 * * *", "hour 24: must be 0 to 23; "},
        {"0 0 0 * *", "day 0: must be 1 to 31; "},
        {"0 0 32 * *", "day 32: must be 1 to 31; "},
        {"0 0 * 13 *", "month 13: must be 1 to 12 or JAN to DEC; "},
        {"0 0 * JANUARY *", "month JANUARY: must be 1 to 12 or JAN to DEC; "},
        {"0 0 * * 8", "weekday 8: must be 0 to 7 or SUN to SAT; "},
        {"0 0 * * MO", "weekday MO: must be 0 to 7 or SUN to SAT; "},
        {"0 0 * * JAN", "weekday JAN: must be 0 to 7 or SUN to SAT; "},
        {"0 22-2 * * *", "hour 22-2: must be a range upwards, such as 22-23,0-2; "},
        {"0 0 * * FRI-MON", "weekday FRI-MON: must be a range upwards, such as 22-23,0-2; "},
        {"5/15 * * * *", "minute 5/15: must be a range before a step, such as 5-59/15; "},
        {"*/0 * * * *", "minute */0: must be a step of at least 1 that fits, such as */15; "},
        {"*/60 * * * *", "minute */60: must be a step of at least 1 that fits, such as */15; "},
        {"*/ * * * *", "minute */: must be a step of at least 1 that fits, such as */15; "},
        {"1, * * * *", "minute 1,: must be 0 to 59; "},
        {"1,,2 * * * *", "minute 1,,2: must be 0 to 59; "},
        {"1- * * * *", "minute 1-: must be 0 to 59; "},
        {"1-2-3 * * * *", "minute 1-2-3: must be 0 to 59; "},
        {"**  * * * *", "minute **: must be 0 to 59; "},
        {"99999999999999999999 * * * *", "must be 0 to 59; "},
        {"0 0 L * *", "day L: must be 1 to 31; "},
        {"0 0 ? * *", "day ?: must be 1 to 31; "},
        {"@reboot", "when '@reboot': unknown; there are @yearly, @monthly, @weekly, @daily and @hourly"},
        {"@", "unknown; there are "},
        {"every", "when 'every': its time is missing; write 'every 15m', in quotes"},
        {"every day", "when 'every day': duration 'day': the number is missing; write a number and its unit"},
        {"every 15", "the unit is missing or unknown (us, ms, s, m, h, d, w); "},
        {"every 0s", "when 'every 0s': must be whole seconds; write every 1s or more"},
        {"every 500ms", "must be whole seconds; "},
        {"every 1.5s", "must be whole seconds; "},
        {"every 15m 3", "something follows the unit; "},
    };
    struct cron cron;
    struct error e;

    for (size_t i = 0; i < COUNT(cases); i++) {
        e.text[0] = '\0';
        if (cron_parse(cases[i].when, &cron, &e) != WEIR_EINPUT || !strstr(e.text, cases[i].why))
            fail_msg("'%s': %s", cases[i].when, e.text);
        assert_null(strchr(e.text, '\n'));
    }
}

/* The same, written in two ways. */
TEST(test_two_ways_to_write_the_same)
{
    static const char *const cases[][2] = {
        {"@yearly", "0 0 1 1 *"},
        {"@annually", "0 0 1 JAN *"},
        {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"},
        {"@daily", "0 0 * * *"},
        {"@midnight", "00 00 * * *"},
        {"@hourly", "0 * * * *"},
        {"0 0 * * 7", "0 0 * * SUN"},
        {"0 0 * * 5-7", "0 0 * * 0,5,6"},
        {"0 0 * * FRI-SUN", "0 0 * * 0,fri,Sat"},
        {"0 0 * feb-apr mon-wed", "0 0 * 2,3,4 1,2,3"},
        {"*/15 0 * * *", "*/15 0-0 * * *"},
        {"0-59/20 0 1 * *", "0,20,40 0 1 * *"},
        {"0 8-18/5 1 * *", "0 8,13,18 1 * *"},
        {"10,5-7,5 0 1 * *", "5,6,7,10 0 1 * *"},
        {"  0\t9  *  * 1 ", "0 9 * * MON"},
        {"every 15m", "every 900s"},
        {"  every  1.5h", "every 90m"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cron a = parse(cases[i][0]), b = parse(cases[i][1]);

        a.weekdays &= 0x7f;
        b.weekdays &= 0x7f;
        if (memcmp(&a, &b, offsetof(struct cron, any_weekday) + 1) != 0)
            fail_msg("'%s' is not '%s'", cases[i][0], cases[i][1]);
    }
}

TEST(test_zones_are_those_of_the_database)
{
    static const char *const none[] = {"",      "Europe",          "Europe/Atlantis", "europe/berlin",
                                       "UTC+3", "EST5EDX",         "+02:00",          "/etc/localtime",
                                       ":UTC",  "../zoneinfo/UTC", "Mars/Base",       "E rope/B"};
    static const char *const some[] = {"UTC", "Etc/GMT+5", "EST5EDT", "America/Argentina/Buenos_Aires"};
    struct zone *zone;
    struct error e;

    for (size_t i = 0; i < COUNT(none); i++) {
        fail_if(zone_open(none[i], &zone, &e) != WEIR_EINPUT, "'%s': taken", none[i]);
        assert_non_null(strstr(e.text, "write one such as Europe/Berlin, or UTC"));
    }
    for (size_t i = 0; i < COUNT(some); i++)
        zone_free(open_zone(some[i]));
}

/* ---- By hand */

/* The occurrences after a time, one after the other. */
static const struct {
    const char *when, *zone, *after, *next; /* several; "": never */
} by_hand[] = {
    {"0 9 * * MON", "Europe/Berlin", "2026-11-21T08:00:00Z",
     "2026-11-23T09:00:00+01:00 2026-11-30T09:00:00+01:00"},
    /* exactly at an occurrence, and a second before it */
    {"0 9 * * *", "UTC", "2026-11-21T09:00:00Z", "2026-11-22T09:00:00Z"},
    {"0 9 * * *", "UTC", "2026-11-21T08:59:59Z", "2026-11-21T09:00:00Z"},
    {"* * * * *", "UTC", "2026-12-31T23:58:30Z", "2026-12-31T23:59:00Z 2027-01-01T00:00:00Z"},
    {"*/20 8-9 * * *", "UTC", "2026-11-21T08:30:00Z",
     "2026-11-21T08:40:00Z 2026-11-21T09:00:00Z 2026-11-21T09:20:00Z 2026-11-21T09:40:00Z "
     "2026-11-22T08:00:00Z"},
    /* day and weekday: either one; with a star both */
    {"0 0 13 * FRI", "UTC", "2026-11-06T00:00:00Z",
     "2026-11-13T00:00:00Z 2026-11-20T00:00:00Z 2026-11-27T00:00:00Z 2026-12-04T00:00:00Z "
     "2026-12-11T00:00:00Z"},
    {"0 0 13 12 MON", "UTC", "2026-12-08T00:00:00Z", "2026-12-13T00:00:00Z 2026-12-14T00:00:00Z"},
    {"0 0 */2 * FRI", "UTC", "2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z 2026-11-27T00:00:00Z"},
    {"0 0 13 * */5", "UTC", "2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z 2026-12-13T00:00:00Z"},
    /* the calendar */
    {"0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z 2026-05-31T00:00:00Z"},
    {"0 12 29 2 *", "UTC", "2026-11-21T00:00:00Z", "2028-02-29T12:00:00Z 2032-02-29T12:00:00Z"},
    {"@yearly", "Asia/Tokyo", "2026-11-21T00:00:00Z", "2027-01-01T00:00:00+09:00"},
    {"30 5 * * *", "Asia/Kathmandu", "2026-11-21T00:00:00Z", "2026-11-22T05:30:00+05:45"},
    {"0 0 1 1 *", "UTC", "2099-01-01T00:00:00Z", ""},
    /* every */
    {"every 15m", "UTC", "2026-11-21T08:00:00Z", "2026-11-21T08:15:00Z 2026-11-21T08:30:00Z"},
    {"every 7s", "UTC", "1970-01-01T00:00:13Z", "1970-01-01T00:00:14Z 1970-01-01T00:00:21Z"},
    {"every 1d", "Europe/Berlin", "2026-11-21T08:00:00Z", "2026-11-22T00:00:00Z"},
    /* Berlin: 02:00 to 03:00 on 29 March, 03:00 to 02:00 on 25 October */
    {"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
     "2026-03-28T02:30:00+01:00 2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00"},
    {"0,30 2-3 * * *", "Europe/Berlin", "2026-03-29T00:59:59Z",
     "2026-03-29T03:00:00+02:00 2026-03-29T03:30:00+02:00 2026-03-30T02:00:00+02:00"},
    {"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
     "2026-03-29T01:30:00+01:00 2026-03-29T03:30:00+02:00"},
    {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
     "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
    {"30 2 * * *", "Europe/Berlin", "2026-10-25T01:15:00Z",
     "2026-10-26T02:30:00+01:00"}, /* the second 02:15 */
    {"30 */1 * * *", "Europe/Berlin", "2026-10-24T23:00:00Z",
     "2026-10-25T01:30:00+02:00 2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 "
     "2026-10-25T03:30:00+01:00"},
    {"0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T03:00:00+01:00"},
    /* New York: 02:00 to 03:00 on 8 March, 02:00 to 01:00 on 1 November */
    {"15,45 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
     "2026-03-08T03:00:00-04:00 2026-03-09T02:15:00-04:00 2026-03-09T02:45:00-04:00"},
    {"0 * * * *", "America/New_York", "2026-03-08T06:00:00Z",
     "2026-03-08T03:00:00-04:00 2026-03-08T04:00:00-04:00"},
    {"0 1 * * SUN", "America/New_York", "2026-10-31T00:00:00Z",
     "2026-11-01T01:00:00-04:00 2026-11-08T01:00:00-05:00"},
    {"0 * * * *", "America/New_York", "2026-11-01T04:00:00Z",
     "2026-11-01T01:00:00-04:00 2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00"},
    /* Lord Howe: 02:00 to 02:30 on 4 October, 02:00 to 01:30 on 5 April */
    {"10 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
     "2026-10-04T02:30:00+11:00 2026-10-05T02:10:00+11:00"},
    {"40 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
     "2026-10-04T02:40:00+11:00 2026-10-05T02:40:00+11:00"},
    {"*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:15:00Z",
     "2026-10-04T02:30:00+11:00 2026-10-04T02:45:00+11:00"},
    {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z",
     "2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
    {"45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00:00Z",
     "2026-04-05T01:45:00+11:00 2026-04-05T01:45:00+10:30 2026-04-05T02:45:00+10:30"},
    /* Samoa left out 30 December 2011 */
    {"0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z",
     "2011-12-31T00:00:00+14:00 2012-12-30T12:00:00+14:00"},
    /* a rule that the database does not list year by year */
    {"30 2 * * *", "Europe/Berlin", "2060-03-27T12:00:00Z",
     "2060-03-28T03:00:00+02:00 2060-03-29T02:30:00+02:00"},
};

TEST(test_next_occurrences_by_hand)
{
    for (size_t i = 0; i < COUNT(by_hand); i++) {
        struct cron cron = parse(by_hand[i].when);
        struct zone *zone = open_zone(by_hand[i].zone);
        int64_t at_s = read_time(by_hand[i].after);
        char found[40] = "never";

        for (char *rest = textf("%s", by_hand[i].next), *next; (next = strsep(&rest, " "));) {
            int64_t expected_s = *next ? read_time(next) : CRON_NEVER;

            at_s = cron_next(&cron, zone, at_s);
            if (at_s != CRON_NEVER)
                zone_format(zone, at_s, found);
            fail_if(at_s != expected_s, "'%s' in %s: %s, not %s", by_hand[i].when, by_hand[i].zone, found,
                    *next ? next : "never");
        }
        zone_free(zone);
    }
}

TEST(test_what_never_occurs)
{
    static const char *const cases[] = {"0 0 30 2 *", "0 0 31 FEB,APR,JUN,SEP,NOV *", "0 0 30-31 2 *",
                                        "0 0 30 2 */2" /* both */};
    struct zone *berlin = open_zone("Europe/Berlin");

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cron cron = parse(cases[i]);

        assert_true(cron_next(&cron, berlin, read_time("2026-11-21T00:00:00Z")) == CRON_NEVER);
    }
    struct cron either = parse("0 0 30 2 MON");

    assert_true(cron_next(&either, berlin, read_time("2026-11-21T00:00:00Z")) != CRON_NEVER);
    zone_free(berlin);
}

TEST(test_times_are_shown_with_their_offset)
{
    static const char *const cases[][2] = {{"UTC", "2026-11-21T08:00:00+00:00"},
                                           {"Europe/Berlin", "2026-11-21T09:00:00+01:00"},
                                           {"America/St_Johns", "2026-11-21T04:30:00-03:30"},
                                           {"Australia/Lord_Howe", "2026-11-21T19:00:00+11:00"}};
    char text[40];

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct zone *zone = open_zone(cases[i][0]);

        zone_format(zone, read_time("2026-11-21T08:00:00Z"), text);
        assert_string_equal(text, cases[i][1]);
        zone_free(zone);
    }
}

/* ---- The model: minute by minute. It reads the fields by itself; numbers alone, no names. */

static bool naive_field(const char *field, int low, int high, int value)
{
    char *rest = textf("%s", field), *part;

    while ((part = strsep(&rest, ","))) {
        int from = low, to = high, step = 1;

        if (sscanf(part, "*/%d", &step) == 1 || strcmp(part, "*") == 0) {
        } else if (sscanf(part, "%d-%d/%d", &from, &to, &step) < 2) {
            to = from;
        }
        for (int n = from; n <= to; n += step)
            if (n == value)
                return true;
    }
    return false;
}

struct naive {
    char field[5][32];
    bool minutes[60], hours[24], days[32], months[13], weekdays[7];
};

static void naive_read(const char *when, struct naive *n)
{
    assert_int_equal(sscanf(when, "%31s %31s %31s %31s %31s", n->field[0], n->field[1], n->field[2],
                            n->field[3], n->field[4]),
                     5);
    for (int i = 0; i < 60; i++)
        n->minutes[i] = naive_field(n->field[0], 0, 59, i);
    for (int i = 0; i < 24; i++)
        n->hours[i] = naive_field(n->field[1], 0, 23, i);
    for (int i = 1; i < 32; i++)
        n->days[i] = naive_field(n->field[2], 1, 31, i);
    for (int i = 1; i < 13; i++)
        n->months[i] = naive_field(n->field[3], 1, 12, i);
    for (int i = 0; i < 7; i++)
        n->weekdays[i] = naive_field(n->field[4], 0, 7, i) || (i == 0 && naive_field(n->field[4], 0, 7, 7));
}

/* wall: local time as if it were UTC. */
static bool naive_matches(const struct naive *n, int64_t wall_s)
{
    time_t at = wall_s;
    struct tm t;
    bool day, weekday;

    gmtime_r(&at, &t);
    day = n->days[t.tm_mday];
    weekday = n->weekdays[t.tm_wday];
    return n->minutes[t.tm_min] && n->hours[t.tm_hour] && n->months[t.tm_mon + 1] &&
           (n->field[2][0] != '*' && n->field[4][0] != '*' ? day || weekday : day && weekday);
}

static int64_t naive_wall(int64_t at_s)
{
    time_t at = at_s;
    struct tm t;

    localtime_r(&at, &t);
    return at_s + t.tm_gmtoff;
}

/* Is a moment an occurrence? shown_s: the latest time that the wall has shown before it. */
static bool naive_occurs(const struct naive *n, int64_t at_s, int64_t shown_s)
{
    int64_t wall_s = naive_wall(at_s);

    if (n->field[1][0] == '*')
        return naive_matches(n, wall_s);
    for (int64_t new_s = shown_s + 60; new_s <= wall_s; new_s += 60)
        if (naive_matches(n, new_s))
            return true;
    return false;
}

static void compare(const char *when, const char *zone_name, const char *begin, int days)
{
    struct cron cron = parse(when);
    struct zone *zone = open_zone(zone_name);
    int64_t at_s = read_time(begin), end_s = at_s + days * 86400, shown_s, next_s;
    struct naive naive;
    char expected[40];

    setenv("TZ", zone_name, 1);
    tzset();
    naive_read(when, &naive);
    shown_s = naive_wall(at_s);
    next_s = cron_next(&cron, zone, at_s);
    for (at_s += 60; at_s <= end_s; at_s += 60) {
        if (naive_occurs(&naive, at_s, shown_s)) {
            zone_format(zone, at_s, expected);
            if (next_s != at_s)
                fail_msg("'%s' in %s: %lld s from %s", when, zone_name, (long long)(next_s - at_s), expected);
            next_s = cron_next(&cron, zone, at_s);
        }
        if (at_s / 60 % 7 == 0) /* from whenever one asks */
            assert_true(cron_next(&cron, zone, at_s) == next_s);
        if (naive_wall(at_s) > shown_s)
            shown_s = naive_wall(at_s);
    }
    assert_true(next_s > end_s);
    zone_free(zone);
}

static const char *const crons[] = {
    "* * * * *",    "*/7 * * * *",  "0 * * * *",          "30 2 * * *",    "0 2 * * *",
    "0 3 * * *",    "59 1 * * *",   "0,15,30,45 2 * * *", "* 2 * * *",     "*/10 1-3 * * *",
    "45 */2 * * *", "15 1,2 * * 0", "30 1 * 3,4 *",       "10 2 4 10 *",   "10 * 25 10 *",
    "30 23 * * 6",  "0 0 * * *",    "5 0 1 * 0",          "20 0-23 * * *", "45 23 24-31/7 * *",
};

TEST(test_days_on_which_clocks_are_set)
{
    static const struct {
        const char *zone, *days[2];
    } zones[] = {
        {"Europe/Berlin", {"2026-03-27T00:00:00Z", "2026-10-23T00:00:00Z"}},
        {"America/New_York", {"2026-03-06T00:00:00Z", "2026-10-30T00:00:00Z"}},
        {"Australia/Lord_Howe", {"2026-04-03T00:00:00Z", "2026-10-01T12:00:00Z"}},
        {"Asia/Beirut", {"2026-03-27T00:00:00Z", "2026-10-22T00:00:00Z"}},    /* at midnight */
        {"America/Havana", {"2026-03-06T00:00:00Z", "2026-10-30T00:00:00Z"}}, /* at midnight, the other way */
    };

    for (size_t z = 0; z < COUNT(zones); z++)
        for (size_t d = 0; d < 2; d++)
            for (size_t i = 0; i < COUNT(crons); i++)
                compare(crons[i], zones[z].zone, zones[z].days[d], 5);
}

TEST(test_a_year)
{
    static const char *const zones[] = {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"};
    static const char *const some[] = {"*/30 * * * *", "30 1-3 * * *", "0 2 */3 * 0,3"};

    for (size_t z = 0; z < COUNT(zones); z++)
        compare(some[z], zones[z], "2026-01-01T00:00:00Z", 366);
}

TESTS(NULL, NULL)
