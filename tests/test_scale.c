/* The simulation of doc/scale.md, a little of it: it runs, keeps rates, and says the same twice. */
#include "tests/program.h"
#include "tests/scene.h"

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
    };

    return cmocka_run_group_tests_name("scale", tests, NULL, NULL);
}
