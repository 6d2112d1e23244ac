/* The worker's mind (worker/mind/): what it decides, from facts and a time that are given, without a loop, a Redis or a clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/mind/inside.h"
#include "worker/mind/interval.h"

#define EXECUTORS 8

/* A worker with one partition. */
struct one {
    struct minds all;
    struct mind m;
};

static struct mind *one_open(struct one *o)
{
    *o = (struct one){
        .all = {.executors = EXECUTORS, .queue_count = 1, .lease_us = 30000 * MS, .count = 1},
        .m = {.all = &o->all, .random = 7, .facts = {.up = true, .registered = true, .idle = true}}};
    o->all.at[0] = &o->m;
    return &o->m;
}

/* ---- Polls */

/* Each wait is drawn anew, and what is due is asked for a little after an idle worker's poll. */
static void test_a_worker_waits_by_intervals(void **state)
{
    int64_t before_us = 0, least_us = INT64_MAX, most_us = 0;
    struct one o;
    struct mind *m = one_open(&o);

    (void)state;
    m->due.heard_us = 1000 * MS;
    polls_hear(m, 32);
    for (int i = 0; i < 1000; i++) {
        polls_draw(m);
        assert_in_range(m->polls.wait_us, 4800 * MS, 6400 * MS);
        assert_int_not_equal(m->polls.wait_us, before_us);
        assert_in_range(when_promote(m) - 1000 * MS - m->polls.wait_us, 1, 300 * MS);
        assert_in_range(plan_beat_wait(m), 6562 * MS, 7500 * MS);
        least_us = least(m->polls.wait_us, least_us);
        most_us = most(m->polls.wait_us, most_us);
        before_us = m->polls.wait_us;
    }
    assert_true(most_us - least_us > 700 * MS);
}

/* Of many workers all polls do. On duty, and as the second, each goes when it is due. */
static void test_who_is_off_duty_polls_with_its_heartbeat(void **state)
{
    struct one o;
    struct mind *m = one_open(&o);

    (void)state;
    assert_int_equal(polls_along(m), 3000 * MS);
    assert_true(interval_of_polls(1000, 0) - interval_of_beats(30000 * MS, 1) <= 3000 * MS);
    assert_true(interval_of_beats(30000 * MS, 0) - interval_of_polls(1000, 1) <= 3000 * MS);
    m->claims.second_us = 1;
    assert_int_equal(polls_along(m), 0);
    m->claims.second_us = 0;
    m->claims.duty_until_us = 1;
    assert_int_equal(polls_along(m), 0);
}

/* ---- Room */

/* Executors are reserved for jobs with a limit where others take them. Where all have limits none are: a worker with reserved
 * executors claims for itself, beside the one on duty. */
static void test_nothing_is_reserved_among_limited_jobs(void **state)
{
    static const struct {
        int64_t at_us;
        int prefetched;
        bool starved;
        int reserve;
    } cases[] = {{10000 * MS, 0, true, 0},  {10000 * MS + 1, 0, true, 0}, {10001 * MS, 2, true, 1},
                 {10500 * MS, 0, true, 2},  {10501 * MS, 0, true, 4},     {10502 * MS, 0, true, 4},
                 {11501 * MS, 2, false, 1}, {12502 * MS, 0, true, 0}};
    struct one o;
    struct mind *m = one_open(&o);

    (void)state;
    m->facts.timed = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        m->facts.prefetched = cases[i].prefetched;
        m->claims.starved = cases[i].starved;
        room_adapt(m, cases[i].at_us);
        assert_int_equal(m->capacity.reserve, cases[i].reserve);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_waits_by_intervals),
        cmocka_unit_test(test_who_is_off_duty_polls_with_its_heartbeat),
        cmocka_unit_test(test_nothing_is_reserved_among_limited_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
