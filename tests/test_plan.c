/* plan: the starts that it tells against gates that are walked job by job, and the command from outside. */
#include "tests/test.h"
#include <jansson.h>

#include "tests/naive.h"
#include "tests/program.h"
#include "tests/random_rule.h"
#include "throttle/plan.h"

static struct error error;

/* ---- What is reckoned */

/* Up to three rules of gcra, whose definitions start each job at the first time that suits all. */
TEST(test_several_rules_are_kept_together)
{
    enum { JOBS = 60 };
    uint64_t seed = random_seed(), random = seed;

    for (int i = 0; i < 500; i++) {
        struct rule_set set = {.count = (size_t)random_in(&random, 2, 3)};
        struct naive models[3];
        struct plan_point points[JOBS];
        char stored[RULE_TEXT_SIZE];
        int64_t s_us = BEGIN_US;

        for (size_t r = 0; r < set.count; r++) {
            set.at[r] = (struct rule)GCRA(random_in(&random, 1, 20), random_in(&random, 20, 5000),
                                          random_in(&random, 1, 9));
            rule_write(&set.at[r], stored);
            naive_begin(&models[r], stored);
        }
        for (int64_t job = 1; job <= JOBS; job++)
            points[job - 1].job = job;
        assert_int_equal(plan_starts(&set, BEGIN_US, points, JOBS, &error), 0);
        for (int job = 0; job < JOBS; job++) {
            for (size_t r = 0; r < set.count; r++)
                for (size_t q = 0; q < set.count; q++)
                    s_us = naive_opens(&models[q], s_us, 1);
            for (size_t r = 0; r < set.count; r++)
                assert_null(naive_start(&models[r], s_us, 1, job));
            fail_if(points[job].start_us != s_us, "WEIR_SEED=%llu: plan %d: job %d starts %lld us off",
                    (unsigned long long)seed, i, job + 1, (long long)(points[job].start_us - s_us));
        }
        for (size_t r = 0; r < set.count; r++)
            naive_free(&models[r]);
    }
}

static int64_t last_start(const char *const *rules, size_t n, int64_t jobs)
{
    struct plan_point points[] = {{.job = 1}, {.job = jobs}};
    struct rule_set set;

    if (rule_set_parse(rules, n, &set, &error) < 0 || plan_starts(&set, BEGIN_US, points, 2, &error) < 0)
        return -1;
    assert_int_equal(points[0].start_us, BEGIN_US);
    return points[1].start_us - BEGIN_US;
}

TEST(test_known_plans)
{
    static const char *const smooth[] = {"100/1s,burst=1"};
    static const char *const daily[] = {"10/1s,burst=1", "10000/1d,algorithm=fixed-window"};
    static const char *const same[] = {"100/1s,burst=1", "100/1s,burst=1"};
    const int64_t day_us = INT64_C(86400000000);

    assert_int_equal(last_start(smooth, 1, 1000000), INT64_C(9999990000));
    assert_int_equal(last_start(smooth, 1, 1000000000), INT64_C(9999999990000));
    assert_int_equal(last_start(same, 2, 100000), INT64_C(999990000));
    /* The quota's third day begins at midnight; its first job starts then. */
    assert_int_equal(last_start(daily, 2, 20001), 2 * day_us - BEGIN_US % day_us);
    assert_int_equal(last_start(daily, 2, 30000), 2 * day_us - BEGIN_US % day_us + 999900000);
}

TEST(test_what_cannot_be_reckoned_is_refused)
{
    static const char *const two[] = {"1/1s", "2/1s"}, *const slow[] = {"1/3650d"},
                             *const slow_twice[] = {"1/3650d", "1/3650d"};

    assert_true(last_start(two, 2, 1000) > 0);
    assert_int_equal(last_start(two, 2, PLAN_SEVERAL_MAX + 1), -1);
    assert_int_equal(error.status, WEIR_EINPUT);
    assert_non_null(strstr(error.text, "under several rules"));
    assert_int_equal(last_start(slow, 1, 1000000), -1);
    assert_int_equal(error.status, WEIR_EINPUT);
    assert_non_null(strstr(error.text, "beyond all time"));
    assert_int_equal(last_start(slow_twice, 2, 1000000), -1);
    assert_non_null(strstr(error.text, "beyond all time"));
}

/* ---- The command */

static void weir_plan(struct outcome *o, const char *line)
{
    const char *words[WORDS_MAX + 1] = {built("weir"), "plan"};
    char *rest = textf("%s", line);
    int count = 2;

    while (count < WORDS_MAX && rest && *rest)
        words[count++] = strsep(&rest, " ");
    program_run(o, NULL, words);
}

static double number_of(const json_t *object, const char *name)
{
    assert_true(json_is_number(json_object_get(object, name)));
    return json_number_value(json_object_get(object, name));
}

TEST(test_it_tells_the_points)
{
    static const double at[] = {0, 9.9, 49.9, 89.9, 99.9};
    struct outcome o;
    json_t *doc, *points, *rule;

    weir_plan(&o, "--json --redis /nonexistent/redis.sock 10/1s,burst=1 --count 1000");
    assert_int_equal(o.code, 0);
    doc = json_loads(o.out, 0, NULL);
    assert_non_null(doc);
    points = json_object_get(doc, "points");
    assert_int_equal(json_array_size(points), 5);
    assert_true(number_of(doc, "jobs") == 1000);
    rule = json_array_get(json_object_get(doc, "rules"), 0);
    assert_string_equal(json_string_value(json_object_get(rule, "rule")), "10/1s,burst=1");
    assert_true(number_of(doc, "from") == number_of(doc, "first_start"));
    assert_float_equal(number_of(doc, "span"), 99.9, 1e-3);
    for (size_t i = 0; i < 5; i++) {
        const json_t *point = json_array_get(points, i);
        double after = number_of(point, "start") - number_of(doc, "first_start");

        assert_true(number_of(point, "nth") == (i ? 1000 * number_of(point, "part") : 1));
        assert_float_equal(after, at[i], 1e-3);
    }
    json_decref(doc);
}

TESTS(NULL, NULL)
