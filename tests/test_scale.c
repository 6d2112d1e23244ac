/* The simulation of doc/scale.md, a little of it: it runs, keeps rates, and says the same twice. */
#include "tests/program.h"
#include "tests/scene.h"
#include "worker/mind/interval.h"
#include "worker/partition/partition.h"

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

static void test_a_rate_is_kept(void **state)
{
    struct outcome first, again;

    (void)state;
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
static void test_idle_workers_poll_seldom(void **state)
{
    struct outcome o;

    (void)state;
    run_in(&o, NULL, built("bench/weir-scale"), "--only", "sparse", "--most", "100", "--seconds", "2", NULL);
    assert_int_equal(o.code, 0);
    assert_true(column(row(&o, "\n| 100 |") + 1, 2) < 1.5);
    assert_true(column(row(&o, "\n| 100 |") + 1, 3) < 0.3); /* polls a job, of 200 in a second: 60 polls */
}

static void test_intervals_grow_with_workers(void **state)
{
    static const struct {
        int64_t workers, most_us;
    } cases[] = {{0, 1500 * MS},  {1, 1500 * MS},  {2, 1500 * MS},    {7, 1500 * MS},        {8, 1600 * MS},
                 {30, 6000 * MS}, {45, 9000 * MS}, {1000, 9000 * MS}, {INT64_MAX, 9000 * MS}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
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

/* What a worker does by them: each wait is drawn anew, and what is due is asked for a little after an idle worker's poll. */
static void test_a_worker_waits_by_these(void **state)
{
    static struct worker w = {.options = {.lease_us = 30000 * MS}};
    static struct partition p = {.worker = &w, .due = {.heard_us = 1000 * MS}};
    int64_t before_us = 0, least_us = INT64_MAX, most_us = 0;

    (void)state;
    partition_hear_workers(&p, 32);
    for (int i = 0; i < 1000; i++) {
        int64_t wait_us;

        partition_polls(&p);
        wait_us = partition_poll_wait(&p);
        assert_in_range(wait_us, 4800 * MS, 6400 * MS);
        assert_int_not_equal(wait_us, before_us);
        assert_in_range(partition_promote_time(&p) - 1000 * MS - wait_us, 1, 300 * MS);
        assert_in_range(partition_beat_wait(&p), 6562 * MS, 7500 * MS);
        least_us = wait_us < least_us ? wait_us : least_us;
        most_us = wait_us > most_us ? wait_us : most_us;
        before_us = wait_us;
    }
    assert_true(most_us - least_us > 700 * MS);
}

/* Of many workers all polls do. On duty, and as the second, each goes when it is due. */
static void test_who_is_off_duty_polls_with_its_heartbeat(void **state)
{
    static struct worker w = {.options = {.lease_us = 30000 * MS}};
    static struct partition p = {.worker = &w};

    (void)state;
    assert_int_equal(partition_along_time(&p), 3000 * MS);
    assert_true(interval_of_polls(1000, 0) - interval_of_beats(30000 * MS, 1) <= 3000 * MS);
    assert_true(interval_of_beats(30000 * MS, 0) - interval_of_polls(1000, 1) <= 3000 * MS);
    p.claims.second_us = 1;
    assert_int_equal(partition_along_time(&p), 0);
    p.claims.second_us = 0;
    p.claims.duty_until_us = 1;
    assert_int_equal(partition_along_time(&p), 0);
}

static void test_heartbeats_are_in_time_and_not_in_step(void **state)
{
    (void)state;
    assert_int_equal(interval_of_beats(30000 * MS, 0), 7500 * MS);
    for (int k = 1; k < 100; k++) {
        assert_in_range(interval_of_beats(30000 * MS, k / 100.0), 7500 * MS * 7 / 8, 7500 * MS);
        assert_true(interval_of_beats(30000 * MS, k / 100.0) <
                    interval_of_beats(30000 * MS, (k - 1) / 100.0));
    }
}

static void test_jobs_that_come_one_by_one(void **state)
{
    struct outcome o;

    (void)state;
    simulate(&o, "sparse");
    assert_true(column(row(&o, "\n| 10 |") + 1, 2) < 1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rate_is_kept),
        cmocka_unit_test(test_jobs_that_come_one_by_one),
        cmocka_unit_test(test_idle_workers_poll_seldom),
        cmocka_unit_test(test_intervals_grow_with_workers),
        cmocka_unit_test(test_a_worker_waits_by_these),
        cmocka_unit_test(test_who_is_off_duty_polls_with_its_heartbeat),
        cmocka_unit_test(test_heartbeats_are_in_time_and_not_in_step),
    };

    return cmocka_run_group_tests_name("scale", tests, NULL, NULL);
}
