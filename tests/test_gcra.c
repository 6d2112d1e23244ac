/* GCRA, behind gate.h, against the leaky bucket of gate_model.h: random sequences, exact long runs, bounds in
 * any window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/gate_model.h"
#include "throttle/gate.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BEGIN_US INT64_C(1795000000000000)

static uint64_t seed;

static void take(struct gate *g, int64_t s_us, int64_t k, int64_t cost)
{
    assert_int_equal(gate_take(g, s_us, k, cost), 0);
}

static void change(struct gate *g, const struct rule *rule, int64_t now_us)
{
    assert_int_equal(gate_change(g, rule, now_us), 0);
}

/* One gate, twice. */
struct pair {
    struct gate gate;
    struct model model;
    int64_t now_us;
};

static void pair_init(struct pair *p, const struct rule *rule)
{
    gate_init(&p->gate, rule);
    model_init(&p->model, rule);
    p->now_us = BEGIN_US;
}

static void differ(const struct pair *p, const char *what, int64_t gate, int64_t model)
{
    char rule[RULE_TEXT_SIZE];

    rule_write(&p->gate.rule, rule);
    fail_msg("WEIR_SEED=%llu: %s: %s: gate %lld, model %lld, now %lld", (unsigned long long)seed, rule, what,
             (long long)gate, (long long)model, (long long)p->now_us);
}

static void check_state(const struct pair *p)
{
    ticks tat = p->model.last + p->model.level;
    ticks ours = (ticks)p->gate.word[0] * p->gate.rule.count + p->gate.word[1];

    if (ours != tat &&
        (tat > (ticks)p->now_us * p->gate.rule.count || ours > (ticks)p->now_us * p->gate.rule.count))
        differ(p, "TAT", p->gate.word[0], (int64_t)(tat / p->gate.rule.count));
}

/* Takes what both say may be taken, now or up to 5 ms later. */
static void take_some(struct pair *p, uint64_t *random)
{
    int64_t cost = random_in(random, 0, 2) ? 1 : random_magnitude(random, p->gate.rule.burst);
    int64_t s = gate_start(&p->gate, p->now_us, cost), expected = model_start(&p->model, p->now_us, cost);
    int64_t most = random_magnitude(random, 300), k;

    if (s != expected)
        differ(p, "start", s, expected);
    if (s > p->now_us + 5000)
        return;
    s += random_in(random, 0, 1) ? 0 : random_in(random, 0, 3);
    k = gate_count(&p->gate, s, most, cost);
    expected = model_count(&p->model, s, most, cost);
    if (k != expected)
        differ(p, "count", k, expected);
    take(&p->gate, s, k, cost);
    for (int64_t i = 0; i < k; i++)
        model_take(&p->model, s, cost);
    check_state(p);
}

static void move_clock(struct pair *p, uint64_t *random)
{
    int64_t t_us = p->gate.rule.period_us / p->gate.rule.count;

    switch (random_in(random, 0, 4)) {
    case 0:
        p->now_us += random_magnitude(random, t_us);
        break;
    case 1:
        p->now_us = gate_start(&p->gate, p->now_us, 1) + random_in(random, 0, 2);
        break;
    case 2:
        p->now_us += random_magnitude(random, t_us * random_magnitude(random, p->gate.rule.burst));
        break;
    case 3:
        p->now_us += random_in(random, 0, 3);
        break;
    }
    if (p->now_us > BEGIN_US * 2)
        pair_init(p, &p->gate.rule);
}

static void test_random_sequences_equal_the_model(void **state)
{
    uint64_t random;

    (void)state;
    seed = random_seed();
    random = seed;
    for (int i = 0; i < 2000; i++) {
        struct rule rule = random_rule(&random);
        struct pair p;

        pair_init(&p, &rule);
        for (int j = 0; j < 200; j++) {
            take_some(&p, &random);
            move_clock(&p, &random);
            if (random_in(&random, 0, 30) == 0) {
                rule = random_rule(&random);
                change(&p.gate, &rule, p.now_us);
                if (!rule_equal(&rule, &p.model.rule))
                    model_change(&p.model, &rule, p.now_us);
                check_state(&p);
            }
        }
    }
}

static void test_the_nth_start_is_where_counting_gets(void **state)
{
    uint64_t random;

    (void)state;
    seed = random_seed();
    random = seed;
    for (int i = 0; i < 3000; i++) {
        struct rule rule = random_rule(&random);
        int64_t cost = random_magnitude(&random, rule.burst);
        struct pair p;
        struct gate begun;

        pair_init(&p, &rule);
        for (int j = 0; j < 3; j++) {
            take_some(&p, &random);
            move_clock(&p, &random);
        }
        begun = p.gate;
        for (int64_t n = 1, s = p.now_us; n <= 50; n++) {
            s = gate_start(&p.gate, s, cost);
            if (gate_nth_start(&begun, p.now_us, n, cost) != s)
                differ(&p, "nth start", gate_nth_start(&begun, p.now_us, n, cost), s);
            take(&p.gate, s, 1, cost);
        }
    }
}

/* An hour of backlog, or a thousand starts: the n-th start is the exact time rounded up, to the last
 * microsecond. */
static void test_an_hour_of_backlog_is_exact(void **state)
{
    static const struct rule rules[] = {
        GCRA(7, 1000000, 7),         GCRA(7, 1000000, 1),       GCRA(30000, 1000000, 1),
        GCRA(30000, 1000000, 30000), GCRA(1000000, 1000000, 1), GCRA(1, 1500000, 1),
        GCRA(1, 86400000000, 1),     GCRA(100, 1000000, 10),    GCRA(3, 1000, 2),
        GCRA(999983, 1000003, 1),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rules); i++) {
        const struct rule *r = &rules[i];
        int64_t n = (int64_t)((ticks)3600000000 * r->count / r->period_us);
        int64_t s = BEGIN_US;
        struct gate g;

        n = n < 1000 ? 1000 : n > 3000000 ? 3000000 : n;
        gate_init(&g, r);
        for (int64_t k = 1; k <= n; k++) {
            s = gate_start(&g, s, 1);
            take(&g, s, 1, 1);
        }
        ticks exact = (ticks)(n - r->burst) * r->period_us;
        assert_int_equal(s - BEGIN_US, (int64_t)((exact + r->count - 1) / r->count));
    }
}

/* Greedy and random callers alike: no window sees more than burst - 1 + ceil(window / T). */
static void test_no_window_sees_more_than_its_bound(void **state)
{
    enum { STARTS = 600 };
    static int64_t at[STARTS];
    uint64_t random;

    (void)state;
    seed = random_seed();
    random = seed;
    for (int i = 0; i < 300; i++) {
        struct rule rule = random_rule(&random);
        int64_t window, t_us = rule.period_us / rule.count;
        ticks allowed;
        struct pair p;

        if (rule.burst > 50)
            rule.burst = random_in(&random, 1, 50);
        pair_init(&p, &rule);
        for (int j = 0; j < STARTS; j++) {
            at[j] = p.now_us = gate_start(&p.gate, p.now_us, 1);
            take(&p.gate, p.now_us, 1, 1);
            if (random_in(&random, 0, 9) == 0)
                p.now_us += random_magnitude(&random, t_us * 3);
        }
        window = random_magnitude(&random, t_us * 100);
        allowed = rule.burst - 1 + ((ticks)window * rule.count + rule.period_us - 1) / rule.period_us;
        for (int first = 0, j = 0; j < STARTS; j++) {
            while (at[j] - at[first] >= window)
                first++;
            if (j - first + 1 > allowed)
                differ(&p, "starts in a window", j - first + 1, (int64_t)allowed);
        }
    }
}

static void test_costs(void **state)
{
    struct rule rule = GCRA(10, 1000000, 5);
    struct gate g;

    (void)state;
    gate_init(&g, &rule);
    assert_int_equal(gate_start(&g, BEGIN_US, 6), INT64_MAX);
    assert_int_equal(gate_nth_start(&g, BEGIN_US, 1, 6), INT64_MAX);
    assert_int_equal(gate_start(&g, BEGIN_US, 5), BEGIN_US);
    assert_int_equal(gate_count(&g, BEGIN_US, 10, 2), 2);
    take(&g, BEGIN_US, 2, 2);
    assert_int_equal(gate_count(&g, BEGIN_US, 10, 1), 1);
    assert_int_equal(gate_start(&g, BEGIN_US, 2), BEGIN_US + 100000);
    assert_int_equal(gate_start(&g, BEGIN_US, 5), BEGIN_US + 400000);
    assert_int_equal(gate_count(&g, BEGIN_US, 0, 1), 0);
}

static void test_a_changed_rule_keeps_what_was_used(void **state)
{
    const struct rule before = GCRA(10, 1000000, 5), tighter = GCRA(1, 1000000, 2),
                      faster = GCRA(7, 1000, 100);
    struct gate g;

    (void)state;
    gate_init(&g, &before);
    take(&g, BEGIN_US, 3, 1);
    change(&g, &tighter, BEGIN_US + 50000); /* 2.5 slots left: 3, at most 2 */
    assert_int_equal(g.word[0], BEGIN_US + 50000 + 2000000);
    assert_int_equal(gate_start(&g, BEGIN_US + 50000, 1), BEGIN_US + 1050000);
    change(&g, &faster, BEGIN_US + 1050001); /* 0.999999 left: 1 */
    assert_int_equal(g.word[0], BEGIN_US + 1050001 + 142);
    assert_int_equal(g.word[1], 6);
    change(&g, &before, BEGIN_US + 9000000); /* nothing left */
    assert_int_equal(gate_count(&g, BEGIN_US + 9000000, 10, 1), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sequences_equal_the_model),
        cmocka_unit_test(test_the_nth_start_is_where_counting_gets),
        cmocka_unit_test(test_an_hour_of_backlog_is_exact),
        cmocka_unit_test(test_no_window_sees_more_than_its_bound),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_a_changed_rule_keeps_what_was_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
