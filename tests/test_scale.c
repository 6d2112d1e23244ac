/* The simulation of doc/scale.md, a little of it: it runs, keeps rates, and says the same twice. */
#include "tests/program.h"
#include "tests/scene.h"
#include "worker/mind/inside.h"
#include "worker/mind/mind.h"

static void simulate(struct outcome *o, const char *world)
{
    run_in(o, NULL, built("bench/weir-scale"), "--only", world, "--most", "10", "--seconds", "2", NULL);
    if (o->code != 0)
        fail_msg("weir-scale: exit %d: %s", o->code, o->err);
}

/* The row of so many workers, without what the machine did. */
static const char *row(const struct outcome *o, const char *workers)
{
    const char *at = strstr(o->out, workers);

    if (!at)
        fail_msg("no row %s: %s", workers, o->out);
    return at;
}

static double column(const char *row, int n)
{
    while (n-- > 0)
        row = strchr(row + 1, '|');
    return atof(row + 1);
}

TEST(test_a_rate_is_kept)
{
    struct outcome first, again;

    simulate(&first, "slow");
    simulate(&again, "slow");
    assert_string_equal(first.out, again.out);
    for (int i = 0; i < 2; i++) {
        const char *at = row(&first, i ? "\n| 10 |" : "\n| 1 |");

        assert_true(column(at + 1, 1) >= 0.995 && column(at + 1, 1) <= 1.005);
        assert_true(column(at + 1, 2) < 1);  /* claims a job */
        assert_true(column(at + 1, 8) == 0); /* starts before their slot */
    }
}

/* What doc/scale.md says of workers off duty: many of them poll hardly more than some. */
TEST(test_idle_workers_poll_seldom)
{
    struct outcome o;

    run_in(&o, NULL, built("bench/weir-scale"), "--only", "sparse", "--most", "100", "--seconds", "2", NULL);
    assert_int_equal(o.code, 0);
    assert_true(column(row(&o, "\n| 100 |") + 1, 2) < 1.5);
    assert_true(column(row(&o, "\n| 100 |") + 1, 3) < 0.3); /* polls a job, of 200 in a second: 60 polls */
}

TEST(test_intervals_grow_with_workers)
{
    static const struct {
        int64_t workers, most_us;
    } cases[] = {{0, 1500 * MS},  {1, 1500 * MS},  {2, 1500 * MS},    {7, 1500 * MS},        {8, 1600 * MS},
                 {30, 6000 * MS}, {45, 9000 * MS}, {1000, 9000 * MS}, {INT64_MAX, 9000 * MS}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t last_us = INT64_MAX;

        for (int k = 0; k < 100;
             k++) { /* each draw is another interval, the longest of them never exceeded */
            int64_t wait_us = interval_of_polls(cases[i].workers, k / 100.0);

            assert_in_range(wait_us, cases[i].most_us * 3 / 4, cases[i].most_us);
            assert_true(wait_us < last_us);
            last_us = wait_us;
        }
        assert_int_equal(interval_of_polls(cases[i].workers, 0), cases[i].most_us);
    }
}

TEST(test_heartbeats_are_in_time_and_not_in_step)
{
    assert_int_equal(interval_of_beats(30000 * MS, 0), 7500 * MS);
    for (int k = 1; k < 100; k++) {
        assert_in_range(interval_of_beats(30000 * MS, k / 100.0), 7500 * MS * 7 / 8, 7500 * MS);
        assert_true(interval_of_beats(30000 * MS, k / 100.0) <
                    interval_of_beats(30000 * MS, (k - 1) / 100.0));
    }
}

TEST(test_jobs_that_come_one_by_one)
{
    struct outcome o;

    simulate(&o, "sparse");
    assert_true(column(row(&o, "\n| 10 |") + 1, 2) < 1.5);
}

/* bench/scale/worlds.c says what holds in each. */
TEST(test_random_worlds)
{
    struct outcome o;

    run_in(&o, NULL, built("bench/weir-scale"), "--worlds", "15", NULL);
    if (o.code != 0)
        fail_msg("weir-scale: exit %d: %s%s", o.code, o.out, o.err);
}

TESTS(NULL, NULL)
