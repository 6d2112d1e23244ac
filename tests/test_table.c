/* How commands print: tables, sheets, numbers, times and colour, from JSON documents. */
#include "cli/document/table.h"

#include <time.h>

#include "tests/test.h"
#include "view/format.h"

#define SECOND INT64_C(1000000)
#define NOW (INT64_C(1795000000) * SECOND) /* 2026-11-18 11:06:40 UTC */

static const struct command command = {.name = "test"};
static struct cli cli = {.command = &command};

static int set_zone(void **state)
{
    unsetenv("COLUMNS");
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

static void expect_printed(const char *text, bool sheet, const struct column *columns, const char *json)
{
    json_t *doc = json_loads(json, 0, NULL);
    char *printed;
    size_t size;
    FILE *to = open_memstream(&printed, &size);

    assert_non_null(doc);
    if (sheet)
        assert_int_equal(sheet_print(&cli, to, columns, doc, NOW), 0);
    else
        assert_int_equal(table_print(&cli, to, columns, doc, NOW), 0);
    fclose(to);
    assert_string_equal(printed, text);
    free(printed);
    json_decref(doc);
}

TEST(test_a_table_is_as_wide_as_its_cells)
{
    static const struct column columns[] = {
        COLUMN("queue", "name"),
        COLUMN("waiting", "waiting", .show = SHOW_COUNT),
        COLUMN("rate", "a.rate", .show = SHOW_RATE),
        COLUMN("paused", "since", .show = SHOW_TIME),
        {.heading = NULL},
    };

    expect_printed(
        "queue    waiting      rate  paused\n"
        "mail       1,234     2.5/s  -\n"
        "\xc3\xbcmlaut\xc3\xa9        0  97,070/s  1h ago\n"
        "a\\x1bb         -         -  at an unknown time\n",
        false, columns,
        "[{\"name\":\"mail\",\"waiting\":1234,\"a\":{\"rate\":2.5},\"since\":null},"
        "{\"name\":\"\xc3\xbcmlaut\xc3\xa9\",\"waiting\":0,\"a\":{\"rate\":97070.2},\"since\":1794996400},"
        "{\"name\":\"a\\u001bb\",\"since\":0}]");
}

TEST(test_rows_may_be_an_object_by_name)
{
    static const struct column columns[] = {COLUMN("type", ""),
                                            COLUMN("tags", "tags"),
                                            COLUMN("yes", "yes", .show = SHOW_FLAG),
                                            {.heading = NULL}};

    expect_printed("type  tags  yes\nb     x, y  yes\na     -     -\n", false, columns,
                   "{\"b\":{\"tags\":[\"x\",\"y\"],\"yes\":true},\"a\":{\"tags\":[],\"yes\":false}}");
}

TEST(test_a_narrow_line_loses_columns)
{
    static const struct column columns[] = {
        COLUMN("type", "type"),
        COLUMN("none", "none", .show = SHOW_COUNT, .drop = 1),
        COLUMN("first", "n", .show = SHOW_COUNT, .drop = 3),
        COLUMN("second", "n", .show = SHOW_COUNT, .drop = 2),
        COLUMN("reason", "reason", .rest = true),
        {.heading = NULL},
    };
    static const char rows[] =
        "[{\"type\":\"mail\",\"none\":0,\"n\":5,\"reason\":\"exit 1: connection refused\"}]";
    static const struct {
        const char *width, *text;
    } cases[] = {
        {"80", "type  none  first  second  reason\nmail     0      5       5  exit 1: connection refused\n"},
        {"45", "type  none  first  second  reason\nmail     0      5       5  exit 1: connect...\n"},
        {"38", "type  first  second  reason\nmail      5       5  exit 1: connec...\n"},
        {"30", "type  second  reason\nmail       5  exit 1: conne...\n"},
        {"20", "type  reason\nmail  exit 1: con...\n"},
        {"3", "type  reason\nmail  exit 1: c...\n"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        setenv("COLUMNS", cases[i].width, 1);
        expect_printed(cases[i].text, false, columns, rows);
    }
    unsetenv("COLUMNS");
}

static void put_lines(FILE *to, const json_t *row)
{
    for (size_t i = 0; i < json_array_size(json_object_get(row, "next")); i++)
        output_to(to, "%lld\n",
                  (long long)json_integer_value(json_array_get(json_object_get(row, "next"), i)));
}

TEST(test_a_sheet_leaves_out_what_is_absent)
{
    static const struct column lines[] = {
        COLUMN("name", "name"),
        COLUMN("ended", "ended", .show = SHOW_TIME, .drop = 1),
        COLUMN("queue", "queue"),
        COLUMN("size", "size", .show = SHOW_BYTES),
        COLUMN("takes", "takes", .show = SHOW_SPAN),
        {.heading = "next", .put = put_lines},
        {.heading = NULL},
    };

    expect_printed("name:   a\\x0ab\nqueue:  -\nsize:   1.5 KiB\ntakes:  8m 2s\nnext:   1\n        2\n", true,
                   lines, "{\"name\":\"a\\nb\",\"size\":1536,\"takes\":482,\"next\":[1,2]}");
}

TEST(test_colour_is_for_what_is_there)
{
    static const struct column columns[] = {COLUMN("type", "type"),
                                            COLUMN("dead", "dead", .show = SHOW_COUNT, .tone = TONE_WRONG),
                                            {.heading = NULL}};

    assert_false(color_set("sometimes"));
    assert_true(color_set("always"));
    expect_printed("type  dead\na        \033[31m1\033[0m\nb        0\nc        -\n", false, columns,
                   "[{\"type\":\"a\",\"dead\":1},{\"type\":\"b\",\"dead\":0},{\"type\":\"c\"}]");
    assert_true(color_set("never"));
    expect_printed("type  dead\na        1\n", false, columns, "[{\"type\":\"a\",\"dead\":1}]");
    assert_true(color_set("auto"));
}

TEST(test_counts_have_their_plural)
{
    static const struct {
        int64_t n;
        const char *what, *text;
    } cases[] = {
        {1, "dead job", "1 dead job"}, {0, "dead job", "0 dead jobs"}, {12345, "job", "12,345 jobs"},
        {2, "batch", "2 batches"},     {2, "retry", "2 retries"},      {2, "key", "2 keys"},
        {1, "batch", "1 batch"},       {2, "address", "2 addresses"},
    };
    char text[PHRASE_SIZE];

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(counted(cases[i].n, cases[i].what, text), cases[i].text);
}

TEST(test_bytes_have_a_unit)
{
    char text[32];

    assert_string_equal(sized(0, text), "0 bytes");
    assert_string_equal(sized(1, text), "1 byte");
    assert_string_equal(sized(1023, text), "1023 bytes");
    assert_string_equal(sized(1536, text), "1.5 KiB");
    assert_string_equal(sized(INT64_C(256) << 20, text), "256 MiB");
    assert_string_equal(sized(INT64_C(2048) << 30, text), "2048 GiB");
}

TEST(test_rates_have_one_unit_and_three_digits)
{
    char text[40];

    assert_string_equal(per_second(97069.6, text), "97,070/s");
    assert_string_equal(per_second(999.4, text), "999/s");
    assert_string_equal(per_second(11.84, text), "11.8/s");
    assert_string_equal(per_second(0.5, text), "0.5/s");
    assert_string_equal(per_second(10.0 / 3600, text), "0.00278/s");
    assert_string_equal(per_second(3.0 / 86400, text), "0.00003/s");
    assert_string_equal(per_second(1e-6, text), "<1e-5/s");
    assert_string_equal(per_second(0, text), "0/s");
}

TEST(test_times_are_read_as_people_write_them)
{
    static const struct {
        const char *text;
        int64_t in_s; /* 0: refused */
    } cases[] = {
        {"11:07", 20},
        {"11:06", 86400 - 40},
        {"11:06:41", 1},
        {"2026-11-18 11:07", 20},
        {"2026-11-18T11:07", 20},
        {"2026-11-18 11:07:05", 25},
        {"2026-11-18T9:00:05", -7595},
        {"2026-12-01 00:00", 1083200},
        {"2026-02-30 09:00", 0},
        {"24:00", 0},
        {"11:07 ", 0},
        {"noon", 0},
        {"2026-11-18", -40000},
        {"2026-12-01", 1083200},
        {"2026-02-29", 0},
        {"2026-11", 0},
    };
    char why[PHRASE_SIZE];
    int64_t us;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (format_read_time(cases[i].text, NOW, &us, why) != (cases[i].in_s != 0))
            fail_msg("%s: %s", cases[i].text, cases[i].in_s ? "refused" : "taken");
        if (cases[i].in_s)
            assert_int_equal(us, NOW + cases[i].in_s * SECOND);
    }
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    assert_true(format_read_time("2026-11-18 12:07", NOW, &us, why) && us == NOW + 20 * SECOND);
    assert_true(format_read_time("2026-07-01 12:00", NOW, &us, why) && us == INT64_C(1782900000) * SECOND);
    assert_true(format_read_time("2026-07-01", NOW, &us, why) && us == INT64_C(1782856800) * SECOND);
    set_zone(NULL);
}

/* Clocks go from 02:00 to 03:00 on 29 March 2026, at 01:00 UTC; in Lord Howe's zone from 02:00 to 02:30 on 4 October. */
TEST(test_times_that_clocks_leave_out)
{
    static const int64_t eve_us = INT64_C(1774697400) * SECOND; /* 2026-03-28 11:30 UTC */
    static const struct {
        const char *zone, *text, *why; /* NULL: it is taken */
        int64_t before_us;
    } cases[] = {
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29 02:30", "they show 2026-03-29 03:30 instead", 0},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T02:00:00", "they show 2026-03-29 03:00 instead", 0},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "02:30", "they show 2026-03-29 03:30 instead", 0},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "02:30", NULL, INT64_C(86400) * SECOND},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "02:30", NULL, INT64_C(-86400) * SECOND},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-02-30 02:30", "there is no such day", 0},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-02-30", "there is no such day", 0},
        {"XYZ-10:30XYD-11,M10.1.0,M4.1.0", "2026-10-04 02:15", "they show 2026-10-04 02:45 instead", 0},
        {"CST5CDT,M3.2.0/0,M11.1.0/1", "2026-03-08 00:00", "they show 2026-03-08 01:00 instead", 0},
        {"CST5CDT,M3.2.0/0,M11.1.0/1", "2026-03-08", NULL, 0},
        {"UTC", "2026-03-29 02:30", NULL, 0},
        {"UTC", "11:00", NULL, INT64_C(-3 * 86400) * SECOND}, /* on the last of March */
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char why[PHRASE_SIZE];
        int64_t us;

        setenv("TZ", cases[i].zone, 1);
        tzset();
        if (format_read_time(cases[i].text, eve_us - cases[i].before_us, &us, why) != !cases[i].why ||
            (cases[i].why && !strstr(why, cases[i].why)))
            fail_msg("case %zu, %s: %s", i, cases[i].text, why);
    }
    set_zone(NULL);
}

/* The last: UTC stays. */
TEST(test_times_are_seen_from_now)
{
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        {0, "now"},
        {-SECOND / 2, "now"},
        {97000, "in 97ms (11:06:40)"},
        {SECOND * 3 / 2, "in 1.5s (11:06:41)"},
        {482 * SECOND, "in 8m 2s (11:14:42)"},
        {-180 * SECOND, "3m ago (11:03:40)"},
        {-130 * SECOND, "2m 10s ago (11:04:30)"},
        {-3600 * SECOND, "1h ago (10:06:40)"},
        {151200 * SECOND, "in 1d 18h (2026-11-20 05:06)"},
        {-10 * 86400 * SECOND, "10d ago (2026-11-08 11:06)"},
    };
    char text[PHRASE_SIZE];

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(format_when(NOW, NOW + cases[i].us, text), cases[i].text);
    setenv("TZ", "CET-1", 1);
    tzset();
    assert_string_equal(format_clock(NOW, NOW, text), "12:06:40");
    format_time(NOW, text);
    assert_string_equal(text, "2026-11-18T12:06:40+01:00");
    format_in_utc();
    assert_string_equal(format_clock(NOW, NOW, text), "11:06:40 UTC");
    format_time(NOW, text);
    assert_string_equal(text, "2026-11-18T11:06:40Z");
}

TESTS(set_zone, NULL)
