/* verify: traces that kept their limits and traces that did not, against the definitions of naive.h; what is measured. */
#include <inttypes.h>

#include "tests/naive.h"
#include "tests/program.h"
#include "tests/random_rule.h"
#include "tests/test.h"
#include "tests/traces.h"

static uint64_t seed;

/* What weir verify says of one of them, or of the first two, and its exit code. */
static struct outcome o;
#define say_of(...) run_in(&o, NULL, built("weir"), "verify", __VA_ARGS__, NULL)
#define says(part) assert_non_null(strstr(o.out, part))
#define warns(part) assert_non_null(strstr(o.err, part))

/* ---- Rates kept */

/* Backlogs run dry at full speed, spread over three workers whose lines are in no order: nothing is too
 * early. */
TEST(test_a_kept_rate)
{
    static const struct {
        const char *type;
        struct rule rule;
        int64_t most_1s, most_100ms;
    } types[] = {
        {"burst", GCRA(100, 1000000, 10), 109, 19},
        {"even", GCRA(2000, 1000000, 1), 2000, 200},
        {"odd", GCRA(7, 1000000, 1), 7, 1},
        {"slow", GCRA(1, 1500000, 1), 1, 1},
        {"thirds", GCRA(30000, 1000000, 100), 4000, 3099},
    };
    enum { STARTS = 4000 };
    uint64_t random = seed = random_seed();

    traces_open();
    for (size_t i = 0; i < COUNT(types); i++) {
        char stored[RULE_TEXT_SIZE];
        int64_t s = BEGIN_US;
        struct naive m;

        rule_write(&types[i].rule, stored);
        naive_begin(&m, stored);
        for (int j = 0; j < STARTS; j++) {
            s = naive_opens(&m, s, 1);
            assert_null(naive_start(&m, s, 1, j));
            traces_add((int)random_in(&random, 0, 2), types[i].type, s, random_in(&random, 0, 900), stored);
        }
        naive_free(&m);
    }
    traces_close();
    replay(3);
    assert_int_equal(verified.violations, 0);
    assert_int_equal(verified.starts, COUNT(types) * STARTS);
    assert_int_equal(verified.type_count, COUNT(types));
    for (size_t i = 0; i < COUNT(types); i++) {
        const struct verify_type *type = &verified.types[i];
        const struct verify_rule *rule = &verified.rules[i];
        const struct verify_use *use = &rule->worst;

        assert_string_equal(type->name, types[i].type);
        assert_int_equal(type->starts, STARTS);
        assert_string_equal(rule->limit + strlen("rate-"), types[i].type);
        assert_int_equal(rule->starts, STARTS);
        assert_int_equal(rule->keys, 1);
        assert_int_equal(use->stretches, 1);
        assert_true(rule_equal(&rule->rule, &types[i].rule));
        fail_if(use->kept < 0.999999 || use->kept > 1, "%s: kept %.9f", type->name, use->kept);
        assert_int_equal(use->windows[0].most, types[i].most_1s);
        assert_int_equal(use->windows[1].most, types[i].most_100ms);
        assert_true(use->windows[0].allowed >= use->windows[0].most);
        assert_int_equal(use->windows[1].allowed, types[i].most_100ms);
        assert_int_equal(use->windows[2].window_us, types[i].rule.period_us);
        if (types[i].rule.burst == 1)
            assert_true(use->gap > 0.99 && use->gap <= 1);
        else
            assert_true(use->gap == 0);
    }
}

/* ---- Rates broken */

struct shot {
    int64_t at_us;
    int file;
    size_t line;
    int64_t early_us; /* what the model says */
};

static int compare_shots(const void *a, const void *b)
{
    const struct shot *x = a, *y = b;

    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    if (x->file != y->file)
        return x->file - y->file;
    return x->line < y->line ? -1 : 1;
}

/* Starts at random, much too fast in parts: the same ones are too early as in the model, by the same time. */
static void check_random(uint64_t *random)
{
    enum { SHOTS = 500 };
    static struct shot shots[SHOTS];
    struct rule rule = random_rule(random);
    int64_t t_us, at_us = BEGIN_US;
    char stored[RULE_TEXT_SIZE];
    uint64_t expected = 0;
    struct naive m;

    while (rule.period_us / rule.count >
           INT64_C(1000000000000)) /* that many of them would leave all calendars */
        rule = random_rule(random);
    t_us = rule.period_us / rule.count;
    if (rule.burst > 20)
        rule.burst = random_in(random, 1, 20);
    rule_write(&rule, stored);
    traces_open();
    for (int i = 0; i < SHOTS; i++) {
        at_us += random_in(random, 0, 3) ? random_in(random, t_us - t_us / 4, t_us + 1) : 0;
        shots[i] = (struct shot){.at_us = at_us, .file = (int)random_in(random, 0, 2)};
        traces_add(shots[i].file, "mail", at_us, 0, stored);
        shots[i].line = traces.lines[shots[i].file];
    }
    traces_close();
    qsort(shots, SHOTS, sizeof *shots, compare_shots);
    naive_begin(&m, stored);
    replay(3);
    for (int i = 0; i < SHOTS; i++) {
        struct shot *s = &shots[i];
        int64_t opens_us = naive_opens(&m, s->at_us, 1);

        s->early_us = opens_us - s->at_us;
        if (s->early_us <= (rule.period_us % rule.count != 0)) { /* it may have been rounded up */
            assert_null(naive_start(&m, opens_us, 1, i));
            continue;
        }
        if (expected < VERIFY_NAMED_MAX &&
            (verified.named[expected].early_us != s->early_us || verified.named[expected].line != s->line ||
             strcmp(verified.named[expected].file, trace_paths[s->file]) != 0 ||
             strcmp(verified.named[expected].type, "mail") != 0))
            fail_msg("WEIR_SEED=%" PRIu64 ": %s: violation %" PRIu64 " is %s:%zu, not %s:%zu", seed, stored,
                     expected, verified.named[expected].file, verified.named[expected].line,
                     trace_paths[s->file], s->line);
        expected++;
    }
    if (verified.violations != expected || verified.types[0].violations != expected)
        fail_msg("WEIR_SEED=%" PRIu64 ": %s: %" PRIu64 " violations, not %" PRIu64, seed, stored,
                 verified.violations, expected);
    naive_free(&m);
}

TEST(test_random_starts_are_judged_like_the_model)
{
    uint64_t random = seed = random_seed();

    for (int i = 0; i < 100; i++)
        check_random(&random);
}

TEST(test_one_start_too_many_is_one_violation)
{
    traces_open();
    for (int i = 0; i < 1000; i++) {
        traces_add(0, "mail", BEGIN_US + i * 10000, 0, "gcra:100/1000000/1");
        if (i == 500)
            traces_add(1, "mail", BEGIN_US + i * 10000 + 3000, 0, "gcra:100/1000000/1");
    }
    traces_close();
    replay(2);
    assert_int_equal(verified.violations, 1);
    assert_string_equal(verified.named[0].file, trace_paths[1]);
    assert_string_equal(verified.named[0].limit, "rate-mail");
    assert_int_equal(verified.named[0].line, 1);
    assert_int_equal(verified.named[0].early_us, 7000);
    assert_int_equal(verified.rules[0].worst.windows[0].most, 101);
    assert_int_equal(verified.rules[0].worst.windows[0].allowed, 100);
    assert_int_equal(verified.rules[0].worst.windows[1].most, 11);
    assert_int_equal(verified.rules[0].worst.windows[1].allowed, 10);
    assert_true(verified.rules[0].worst.gap > 0.299 && verified.rules[0].worst.gap < 0.301);
}

TEST(test_many_violations_are_counted)
{
    traces_open();
    for (int i = 0; i < 1000; i++)
        traces_add(0, "mail", BEGIN_US, 0, "gcra:1/1000000/1");
    traces_close();
    replay(1);
    assert_int_equal(verified.violations, 999);
    assert_int_equal(verified.named[VERIFY_NAMED_MAX - 1].line, 21);
    assert_true(verified.rules[0].worst.kept < 0);
}

/* ---- Rules that change, types without one */

TEST(test_a_rule_that_changed)
{
    traces_open();
    for (int i = 0; i < 100; i++)
        traces_add(0, "mail", BEGIN_US + i * 1000, 0, "gcra:1000/1000000/1");
    for (int i = 0; i < 100; i++)
        traces_add(0, "mail", BEGIN_US + 100000 + i * 100000, 0, "gcra:10/1000000/1");
    traces_close();
    replay(1);
    assert_int_equal(verified.violations, 0);
    assert_int_equal(verified.rules[0].worst.stretches, 2);
    assert_int_equal(verified.rules[0].rule.count, 10);
    assert_true(verified.rules[0].worst.kept > 0.9999 && verified.rules[0].worst.kept <= 1);
    assert_true(verified.rules[0].worst.gap == 1);
}

TEST(test_types_without_a_limit)
{
    traces_write("{\"slot\":0,\"start\":1795000000000000,\"type\":\"b\",\"id\":\"1\",\"limits\":\"\"}\n"
                 "{\"start\":1795000002000000,\"type\":\"b\"}\n"
                 "{\"start\":1795000001000000,\"type\":\"a\",\"slot\":0}\n"
                 "{\"slot\":1795000001000000,\"start\":1795000001000300,\"type\":\"a\",\"limits\":\"a=gcra:1/"
                 "1000000/1\"}\n");
    replay(1);
    assert_int_equal(verified.violations, 0);
    assert_int_equal(verified.type_count, 2);
    assert_string_equal(verified.types[0].name, "a");
    assert_true(verified.types[0].limited);
    assert_int_equal(verified.types[0].starts, 2);
    assert_int_equal(verified.types[0].lateness.max_us, 300);
    assert_int_equal(verified.types[0].lateness.min_us, 300);
    assert_false(verified.types[1].limited);
    assert_int_equal(verified.types[1].span_us, 2000000);
}

TEST(test_lateness)
{
    const struct verify_lateness *l;

    traces_open();
    for (int i = 0; i < 1000; i++)
        traces_add(i % 3, "mail", BEGIN_US + i, 999 - i, "gcra:1000000/1000000/1");
    traces_close();
    replay(3);
    l = &verified.types[0].lateness;
    assert_int_equal(l->min_us, 0);
    assert_int_equal(l->p50_us, 499);
    assert_int_equal(l->p99_us, 989);
    assert_int_equal(l->p999_us, 998);
    assert_int_equal(l->max_us, 999);
}

/* An answer that came 3 s late: all slots are as they should be, and twice as many start in a second. */
TEST(test_handlers_that_started_after_their_slots)
{
    traces_open();
    for (int i = 0; i < 40; i++)
        traces_add(0, "mail", BEGIN_US + i * 100000, i < 10 ? 3000000 - i * 100000 : 0, "gcra:10/1000000/1");
    traces_close();
    replay(1);
    assert_int_equal(verified.violations, 0);
    assert_int_equal(verified.after_slot, 10);
    assert_int_equal(verified.types[0].after_slot, 10);

    say_of(trace_paths[0]);
    assert_int_equal(o.code, 65);
    says("\nmail      40  3.9s          0        9            0          10 ");
    warns("weir: verify: starts: 10 of 40 handlers began more than 1 s after their "
          "slots; the slots keep the rates; ");
    say_of("--json", trace_paths[0]);
    assert_int_equal(o.code, 65);
    says("{\"ok\":false,\"slots_hold\":true,\"starts_hold\":false,\"starts\":40,\"violations\":0,"
         "\"before_slot\":0,\"after_slot\":10,");
}

/* All slots are as they should be. Those of one second are answered 0.9 s late, and start with those of the
 * next. */
TEST(test_starts_are_judged_apart_from_slots)
{
    enum { LATE = 199 };

    traces_open();
    for (int i = 0; i < 400; i++) {
        int64_t slot_us = i < 100 ? 0 : (i - 99) * 10000;

        traces_add(i % 2, "mail", BEGIN_US + slot_us, i < LATE ? 1000000 - slot_us : 0,
                   "gcra:100/1000000/100");
    }
    traces_close();
    replay(2);
    assert_int_equal(verified.violations + verified.before_slot + verified.after_slot, 0);
    assert_int_equal(verified.crowded, 90); /* 199, and one every 10 ms in 0.9 s */
    assert_int_equal(verified.rules[0].crowded, verified.crowded);
    assert_int_equal(verified.types[0].crowded, verified.crowded);
    assert_int_equal(verified.rules[0].worst.windows[0].most, 199);
    assert_int_equal(verified.rules[0].worst.started.window_us, 900000);
    assert_int_equal(verified.rules[0].worst.started.most, LATE + 90);
    assert_int_equal(verified.rules[0].worst.started.allowed, 199);
    assert_true(verified.named[0].started);

    say_of(trace_paths[0], trace_paths[1]);
    assert_int_equal(o.code, 65);
    says("\nmail     400    3s          0       90            0           0 ");
    says("  289 of 199 in 900ms\n");
    says(": mail: limit rate-mail, 100/1s: started where too many had\n");
    warns("weir: verify: starts: 90 of 400 handlers began where too many had; the "
          "slots keep the rates; ");
    say_of("--json", trace_paths[0], trace_paths[1]);
    assert_int_equal(o.code, 65);
    says("{\"ok\":false,\"slots_hold\":true,\"starts_hold\":false,");
    says("\"failed_by\":\"start\"");
}

TEST(test_both_may_fail)
{
    traces_open();
    for (int i = 0; i < 40; i++)
        traces_add(0, "mail", BEGIN_US + i * 100000, i < 20 ? 3000000 - i * 100000 : 0, "gcra:10/1000000/1");
    traces_add(0, "mail", BEGIN_US + 50000, 0, "gcra:10/1000000/1");
    traces_close();
    say_of(trace_paths[0]);
    assert_int_equal(o.code, 65);
    warns("weir: verify: slots: 1 violation among 41 starts: a gate was not open yet; starts: 20 of 41 "
          "handlers began more than 1 s after their slots\n");
}

/* Over a long link slots are good for longer, and the trace says so. */
TEST(test_late_starts_of_slots_that_are_good)
{
    for (int good_us = 50000; good_us <= 700000; good_us += 650000) {
        FILE *f = fopen(trace_paths[0], "w");

        assert_non_null(f);
        for (int i = 0; i < 100; i++)
            fprintf(f,
                    "{\"slot\":%" PRId64 ",\"ahead\":0,\"good\":%d,\"start\":%" PRId64
                    ",\"type\":\"mail\",\"limits\":\"mail=sliding-log:10/1000000\"}\n",
                    BEGIN_US + i * 100000, good_us, BEGIN_US + (i < 6 ? 6 : i) * 100000);
        assert_int_equal(fclose(f), 0);
        replay(1);
        assert_int_equal(verified.violations, 0);
        assert_int_equal(verified.crowded > 0, good_us == 50000);
    }
}

/* Clocks differ by less than that; the slots alone keep the rate. */
TEST(test_handlers_that_started_before_their_slots)
{
    traces_open();
    for (int i = 0; i < 20; i++)
        traces_add(0, "mail", BEGIN_US + i * 100000, -i * 100000, "gcra:10/1000000/1");
    traces_add(1, "sms", BEGIN_US, -1000000, "gcra:10/1000000/1");
    traces_add(1, "sms", BEGIN_US + 100000, -1000001, "gcra:10/1000000/1");
    traces_add(2, "fax", BEGIN_US, -1000000, "gcra:10/1000000/1");
    traces_close();
    replay(3);
    assert_int_equal(verified.violations, 0);
    assert_int_equal(verified.before_slot, 10);
    assert_int_equal(verified.types[0].before_slot, 0);
    assert_int_equal(verified.types[1].before_slot, 9);
    assert_int_equal(verified.types[2].before_slot, 1);

    say_of(trace_paths[0]);
    assert_int_equal(o.code, 65);
    says("\nmail      20  1.9s          0       10            9           0 ");
    warns("weir: verify: starts: 9 of 20 handlers began more than 1 s before their slots; ");
    say_of("--json", trace_paths[0]);
    assert_int_equal(o.code, 65);
    says("\"starts\":20,\"violations\":0,\"before_slot\":9,");
    says("\"violations\":0,\"before_slot\":9,\"after_slot\":0,");
    say_of(trace_paths[2]);
    assert_int_equal(o.code, 0);
    assert_null(strstr(o.out, "before their slots"));
}

/* ---- Every algorithm */

/* At full speed by the definition, with costs, now and then a rest; here and there one start too many, which
 * takes nothing. Those and no others are found, and how much too early they were. */
static void check_algorithm(uint64_t *random, const char *stored, int64_t cost_most)
{
    enum { STARTS = 150 };
    static struct shot shots[2 * STARTS];
    int64_t at_us = BEGIN_US, opens_us;
    int expected = 0;
    struct naive model;

    naive_begin(&model, stored);
    traces_open();
    for (int i = 0; i < STARTS; i++) {
        int64_t cost = random_in(random, 1, cost_most), slots = strstr(stored, ",of=jobs") ? 1 : cost;

        opens_us = naive_opens(&model, at_us, slots);
        if (opens_us > at_us + 2 && random_in(random, 0, 3) == 0) { /* one too many */
            struct shot *s = &shots[expected++];

            s->at_us = random_in(random, at_us + 1, opens_us - 2); /* a start may be rounded by 1 us */
            s->early_us = opens_us - s->at_us;
            s->file = (int)random_in(random, 0, 2);
            traces_add_cost(s->file, "mail", s->at_us, 0, stored, cost);
            s->line = traces.lines[s->file];
        }
        at_us = opens_us + (random_in(random, 0, 9) ? 0 : random_in(random, 0, model.rule.period_us));
        fail_if(naive_start(&model, at_us, slots, i), "the model refuses what it allows");
        traces_add_cost((int)random_in(random, 0, 2), "mail", at_us, 0, stored, cost);
    }
    traces_close();
    naive_free(&model);
    replay(3);
    for (int i = 0; i < expected && i < VERIFY_NAMED_MAX && (uint64_t)i < verified.violations; i++)
        fail_if(verified.named[i].early_us != shots[i].early_us || verified.named[i].line != shots[i].line ||
                    strcmp(verified.named[i].file, trace_paths[shots[i].file]) != 0,
                "WEIR_SEED=%" PRIu64 ": %s: violation %d is %s:%zu, %" PRId64 "us, not %s:%zu, %" PRId64 "us",
                seed, stored, i, verified.named[i].file, verified.named[i].line, verified.named[i].early_us,
                trace_paths[shots[i].file], shots[i].line, shots[i].early_us);
    fail_if(verified.violations != (uint64_t)expected,
            "WEIR_SEED=%" PRIu64 ": %s: %" PRIu64 " violations, not %d", seed, stored, verified.violations,
            expected);
    if (expected == 0)
        for (int i = 0; i < VERIFY_WINDOWS; i++)
            assert_true(verified.rules[0].worst.windows[i].most <=
                        verified.rules[0].worst.windows[i].allowed);
}

TEST(test_every_algorithm_finds_what_was_put_in)
{
    static const struct {
        const char *stored;
        int64_t cost_most;
    } cases[] = {
        {"gcra:7/1000000/3", 3},          {"gcra:100/1000000/1", 1},
        {"token-bucket:7/1000000/5", 5},  {"token-bucket:1000/1000000/20", 7},
        {"fixed-window:10/1000000/0", 4}, {"fixed-window:3/60000000/1234567", 1},
        {"sliding-log:10/1000000", 4},    {"sliding-log:1/1500000", 1},
        {"sliding-window:10/1000000", 3}, {"sliding-window:100/60000000", 9},
        {"gcra:7/1000000/3,of=jobs", 9},  {"sliding-window:10/1000000,of=jobs", 99},
    };
    uint64_t random = seed = random_seed();

    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < COUNT(cases); i++)
            check_algorithm(&random, cases[i].stored, cases[i].cost_most);
}

TESTS(traces_begin, traces_end)
