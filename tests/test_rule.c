/* Rules and durations: what is read, what is refused with which words, what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gate_model.h"
#include "throttle/rule.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct error error;

static const struct {
    const char *text;
    struct rule rule;
    const char *formatted; /* NULL: as text */
    int64_t most;
} rules[] = {
    {"100/1m", {100, 60000000, 100}, NULL, 199},
    {"100/1m,burst=20", {100, 60000000, 20}, NULL, 119},
    {"100/m,burst=100", {100, 60000000, 100}, "100/1m", 199},
    {"10/s", {10, 1000000, 10}, "10/1s", 19},
    {"10/s,burst=1", {10, 1000000, 1}, "10/1s,burst=1", 10},
    {"7/1000ms", {7, 1000000, 7}, "7/1s", 13},
    {"1/1.5s", {1, 1500000, 1}, NULL, 1},
    {"1/1.500000s", {1, 1500000, 1}, "1/1.5s", 1},
    {"0007/1s", {7, 1000000, 7}, "7/1s", 13},
    {"5000/1d", {5000, 86400000000, 5000}, NULL, 9999},
    {"1/w", {1, 604800000000, 1}, "1/1w", 1},
    {"1/0.5h", {1, 1800000000, 1}, "1/30m", 1},
    {"1/us", {1, 1, 1}, "1/1us", 1},
    {"1000000/1s", {1000000, 1000000, 1000000}, NULL, 1999999},
    {"1000000000/1000s", {1000000000, 1000000000, 1000000000}, NULL, 1999999999},
    {"1/3650d", {1, 315360000000000, 1}, NULL, 1},
    {"2/3650d,burst=3", {2, 315360000000000, 3}, NULL, 4},
};

static void test_rules_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rules); i++) {
        char text[RULE_TEXT_SIZE];
        struct rule r;

        if (rule_parse(rules[i].text, &r, &error) < 0)
            fail_msg("%s: %s", rules[i].text, error.text);
        assert_int_equal(r.count, rules[i].rule.count);
        assert_int_equal(r.period_us, rules[i].rule.period_us);
        assert_int_equal(r.burst, rules[i].rule.burst);
        assert_int_equal(rule_most_in_period(&r), rules[i].most);
        rule_format(&r, text);
        assert_string_equal(text, rules[i].formatted ? rules[i].formatted : rules[i].text);
    }
}

static const struct {
    const char *text;
    const char *says;
} wrong_rules[] = {
    {"", "count must be"},
    {"0/s", "count must be"},
    {"-1/s", "count must be"},
    {"+1/s", "count must be"},
    {" 1/s", "count must be"},
    {"1.5/s", "no / follows"},
    {"x", "count must be"},
    {"100", "no / follows"},
    {"100 / 1m", "no / follows"},
    {"100/", "unit is missing"},
    {"100/1", "unit is missing"},
    {"100/m1", "no part of a rule"},
    {"100/1M", "unit is missing"},
    {"100/1y", "unit is missing"},
    {"100/1min", "unit is missing"},
    {"100/-1s", "unit is missing"},
    {"10/0s", "period must be above 0"},
    {"10/0.0s", "period must be above 0"},
    {"1/.5s", "unit is missing"},
    {"1/1.s", "no digit follows the point"},
    {"1/1.5us", "no whole number of microseconds"},
    {"1/1.0000001s", "no whole number of microseconds"},
    {"1/0.000000000000000000000001w", "no whole number of microseconds"},
    {"1/1,5s", "unit is missing"},
    {"1/1s 1", "no part of a rule"},
    {"1/1s;", "no part of a rule"},
    {"1000001/1s", "more than 1000000 a second"},
    {"2/1us", "more than 1000000 a second"},
    {"1000000001/1d", "count must be"},
    {"99999999999999999999999999/1d", "count must be"},
    {"1/3651d", "ten years"},
    {"1/522w", "ten years"},
    {"1/36500d", "100 years"},
    {"1/99999999999999999999999999s", "100 years"},
    {"1/9223372036854775807us", "100 years"},
    {"10/s,", "only burst=N"},
    {"10/s,burst", "only burst=N"},
    {"10/s,Burst=1", "only burst=N"},
    {"10/s,by=args.id", "only burst=N"},
    {"10/s,algorithm=fixed-window", "only burst=N"},
    {"10/s,burst=", "burst must be"},
    {"10/s,burst=0", "burst must be"},
    {"10/s,burst=-1", "burst must be"},
    {"10/s,burst=1000000001", "burst must be"},
    {"10/s,burst=1x", "no part of a rule"},
    {"10/s,burst=1,burst=1", "twice"},
    {"1/1d,burst=3652", "ten years to come back"},
    {"1/3650d,burst=3", "ten years to come back"},
    {"concurrency=5", "count must be"},
};

static void test_wrong_rules_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(wrong_rules); i++) {
        struct rule r;

        assert_int_equal(rule_parse(wrong_rules[i].text, &r, &error), WEIR_EINPUT);
        assert_int_equal(error.status, WEIR_EINPUT);
        if (!strstr(error.text, wrong_rules[i].says) || !strstr(error.text, "as in 100/1m"))
            fail_msg("%s: %s", wrong_rules[i].text, error.text);
    }
}

static void test_a_long_wrong_rule_stays_one_short_line(void **state)
{
    char text[2000];
    struct rule r;

    (void)state;
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(rule_parse(text, &r, &error), WEIR_EINPUT);
    assert_true(strlen(error.text) < 200);
}

static void test_the_stored_form_is_one_text_for_one_rule(void **state)
{
    static const char *const wrong[] = {
        "",
        "/",
        "100",
        "100/60000000",
        "100/60000000/",
        "100/60000000/20/",
        "100/60000000/20 ",
        "0/1/1",
        "1/0/1",
        "1/1/0",
        "01/60000000/1",
        "1/060000000/1",
        "1/60000000/01",
        "-1/60000000/1",
        "2/1/1",
        "1/1m/1",
        "+1/100/100",
        "1000000001/1e9/1",
        " 1/1/1",
        "1/315360000000001/1",
        "x/y/z",
        "1000000001/1000000001/1",
        "1/86400000000/3652",
        "1/99999999999999999999/1",
        "1/1/1000000001",
    };
    struct rule r;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (rule_read(wrong[i], &r, &error) != WEIR_EINPUT)
            fail_msg("%s: taken for a rule", wrong[i]);
    assert_int_equal(rule_read("100/60000000/20", &r, &error), 0);
    assert_int_equal(r.count, 100);
    assert_int_equal(r.period_us, 60000000);
    assert_int_equal(r.burst, 20);
}

static void test_random_rules_survive_both_forms(void **state)
{
    uint64_t seed = random_seed(), random = seed;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct rule r = random_rule(&random), parsed, read;
        char text[RULE_TEXT_SIZE], stored[RULE_TEXT_SIZE];

        rule_format(&r, text);
        rule_write(&r, stored);
        if (rule_parse(text, &parsed, &error) < 0 || rule_read(stored, &read, &error) < 0)
            fail_msg("WEIR_SEED=%llu: %s: %s", (unsigned long long)seed, stored, error.text);
        if (memcmp(&parsed, &r, sizeof r) != 0 || memcmp(&read, &r, sizeof r) != 0)
            fail_msg("WEIR_SEED=%llu: %s reads as another rule than %s", (unsigned long long)seed, text,
                     stored);
    }
}

static const struct {
    const char *text;
    int64_t us;
    const char *formatted; /* NULL: as text */
} durations[] = {
    {"0s", 0, NULL},
    {"0us", 0, "0s"},
    {"1us", 1, NULL},
    {"999us", 999, NULL},
    {"1000us", 1000, "1ms"},
    {"1.001ms", 1001, NULL},
    {"500ms", 500000, NULL},
    {"1s", 1000000, NULL},
    {"1.5s", 1500000, NULL},
    {"1234.567ms", 1234567, NULL},
    {"1.234s", 1234000, NULL},
    {"60s", 60000000, "1m"},
    {"90s", 90000000, "1.5m"},
    {"100s", 100000000, NULL},
    {"1.5h", 5400000000, NULL},
    {"24h", 86400000000, "1d"},
    {"7d", 604800000000, "1w"},
    {"30d", 2592000000000, NULL},
    {"0.25d", 21600000000, "6h"},
    {"00001.50000s", 1500000, "1.5s"},
    {"36499d", 3153513600000000, NULL},
};

static void test_durations(void **state)
{
    char text[32];

    (void)state;
    for (size_t i = 0; i < COUNT(durations); i++) {
        int64_t us;

        if (duration_parse(durations[i].text, &us, &error) < 0)
            fail_msg("%s: %s", durations[i].text, error.text);
        assert_int_equal(us, durations[i].us);
        duration_format(us, text);
        assert_string_equal(text, durations[i].formatted ? durations[i].formatted : durations[i].text);
    }
    duration_format(-1500, text);
    assert_string_equal(text, "-1.5ms");
    duration_format(INT64_MIN, text);
    assert_string_equal(text, "-9223372036854775.808ms");
}

static void test_wrong_durations_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "10",
        "s",
        "-1s",
        "1 s",
        "1s ",
        "1e3s",
        "1.s",
        ".5s",
        "1.5",
        "0x1s",
        "1S",
        "1sec",
        "1m30s",
        "1.5us",
        "36500d",
        "99999999999999999999s",
        "inf",
        "nan",
    };
    int64_t us;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (duration_parse(wrong[i], &us, &error) != WEIR_EINPUT)
            fail_msg("%s: taken for a duration", wrong[i]);
        assert_non_null(strstr(error.text, "as in 500ms"));
    }
}

static void test_random_durations_survive(void **state)
{
    uint64_t seed = random_seed(), random = seed;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        int64_t us = random_magnitude(&random, INT64_C(3153000000000000)), read;
        char text[32];

        duration_format(us, text);
        if (duration_parse(text, &read, &error) < 0 || read != us)
            fail_msg("WEIR_SEED=%llu: %lld us -> %s", (unsigned long long)seed, (long long)us, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_are_read),
        cmocka_unit_test(test_wrong_rules_are_refused),
        cmocka_unit_test(test_a_long_wrong_rule_stays_one_short_line),
        cmocka_unit_test(test_the_stored_form_is_one_text_for_one_rule),
        cmocka_unit_test(test_random_rules_survive_both_forms),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_wrong_durations_are_refused),
        cmocka_unit_test(test_random_durations_survive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
