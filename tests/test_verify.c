/* verify: traces that kept their limits and traces that did not, against the definitions of naive.h; what is
 * measured; what is no trace. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/naive.h"
#include "tests/program.h"
#include "tests/random_rule.h"
#include "throttle/gate.h"
#include "throttle/verify/verify.h"
#include "worker/way/trace.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BEGIN_US INT64_C(1795000000000000)
#define FILES 3

static char folder[] = "/tmp/weir-verify-XXXXXX";
static char paths[FILES][64];
static struct error error;
static uint64_t seed;

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i < FILES; i++)
        snprintf(paths[i], sizeof paths[i], "%s/trace.%d", folder, i);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < FILES; i++)
        unlink(paths[i]);
    return rmdir(folder);
}

/* The three files, being written. */
struct traces {
    FILE *files[FILES];
    size_t lines[FILES];
};

static void traces_open(struct traces *t)
{
    for (int i = 0; i < FILES; i++) {
        t->files[i] = fopen(paths[i], "w");
        assert_non_null(t->files[i]);
        t->lines[i] = 0;
    }
}

static void traces_close(struct traces *t)
{
    for (int i = 0; i < FILES; i++)
        assert_int_equal(fclose(t->files[i]), 0);
}

/* Under those rules of the limit "rate-TYPE". */
static void add_cost(struct traces *t, int file, const char *type, int64_t slot_us, int64_t late_us,
                     const char *rules, int64_t cost)
{
    fprintf(t->files[file],
            "{\"slot\":%" PRId64 ",\"start\":%" PRId64 ",\"type\":\"%s\",\"cost\":%" PRId64
            ",\"id\":\"%d.%zu\",\"limits\":\"rate-%s=%s\"}\n",
            slot_us, slot_us + late_us, type, cost, file, ++t->lines[file], type, rules);
}

static void add_start(struct traces *t, int file, const char *type, int64_t slot_us, int64_t late_us,
                      const char *rules)
{
    add_cost(t, file, type, slot_us, late_us, rules, 1);
}

/* Reads and replays the first files of the three. */
static struct verify replay(int files)
{
    struct verify v;

    assert_int_equal(verify_init(&v, &error), 0);
    for (int i = 0; i < files; i++) {
        size_t torn_line;

        if (verify_read(&v, paths[i], &torn_line, &error) < 0)
            fail_msg("%s", error.text);
        assert_int_equal(torn_line, 0);
    }
    if (verify_replay(&v, &error) < 0)
        fail_msg("%s", error.text);
    return v;
}

static void write_trace(const char *text)
{
    FILE *f = fopen(paths[0], "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* ---- Rates kept */

/* Backlogs run dry at full speed, spread over three workers whose lines are in no order: nothing is too
 * early. */
static void test_a_kept_rate(void **state)
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
    uint64_t random;
    struct traces t;
    struct verify v;

    (void)state;
    seed = random_seed();
    random = seed;
    traces_open(&t);
    for (size_t i = 0; i < COUNT(types); i++) {
        char stored[RULE_TEXT_SIZE];
        int64_t s = BEGIN_US;
        struct naive m;

        rule_write(&types[i].rule, stored);
        naive_begin(&m, stored);
        for (int j = 0; j < STARTS; j++) {
            s = naive_opens(&m, s, 1);
            assert_null(naive_start(&m, s, 1, j));
            add_start(&t, (int)random_in(&random, 0, 2), types[i].type, s, random_in(&random, 0, 900),
                      stored);
        }
        naive_free(&m);
    }
    traces_close(&t);
    v = replay(3);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.starts, COUNT(types) * STARTS);
    assert_int_equal(v.type_count, COUNT(types));
    for (size_t i = 0; i < COUNT(types); i++) {
        const struct verify_type *type = &v.types[i];
        const struct verify_rule *rule = &v.rules[i];
        const struct verify_use *use = &rule->worst;

        assert_string_equal(type->name, types[i].type);
        assert_int_equal(type->starts, STARTS);
        assert_string_equal(rule->limit + strlen("rate-"), types[i].type);
        assert_int_equal(rule->starts, STARTS);
        assert_int_equal(rule->keys, 1);
        assert_int_equal(use->stretches, 1);
        assert_true(rule_equal(&rule->rule, &types[i].rule));
        if (use->kept < 0.999999 || use->kept > 1)
            fail_msg("%s: kept %.9f", type->name, use->kept);
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
    verify_free(&v);
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
    struct traces t;
    struct verify v;
    struct naive m;

    while (rule.period_us / rule.count >
           INT64_C(1000000000000)) /* that many of them would leave all calendars */
        rule = random_rule(random);
    t_us = rule.period_us / rule.count;
    if (rule.burst > 20)
        rule.burst = random_in(random, 1, 20);
    rule_write(&rule, stored);
    traces_open(&t);
    for (int i = 0; i < SHOTS; i++) {
        at_us += random_in(random, 0, 3) ? random_in(random, t_us - t_us / 4, t_us + 1) : 0;
        shots[i] = (struct shot){.at_us = at_us, .file = (int)random_in(random, 0, 2)};
        add_start(&t, shots[i].file, "mail", at_us, 0, stored);
        shots[i].line = t.lines[shots[i].file];
    }
    traces_close(&t);
    qsort(shots, SHOTS, sizeof *shots, compare_shots);
    naive_begin(&m, stored);
    v = replay(3);
    for (int i = 0; i < SHOTS; i++) {
        struct shot *s = &shots[i];
        int64_t opens_us = naive_opens(&m, s->at_us, 1);

        s->early_us = opens_us - s->at_us;
        if (s->early_us <= (rule.period_us % rule.count != 0)) { /* it may have been rounded up */
            assert_null(naive_start(&m, opens_us, 1, i));
            continue;
        }
        if (expected < VERIFY_NAMED_MAX &&
            (v.named[expected].early_us != s->early_us || v.named[expected].line != s->line ||
             strcmp(v.named[expected].file, paths[s->file]) != 0 ||
             strcmp(v.named[expected].type, "mail") != 0))
            fail_msg("WEIR_SEED=%" PRIu64 ": %s: violation %" PRIu64 " is %s:%zu, not %s:%zu", seed, stored,
                     expected, v.named[expected].file, v.named[expected].line, paths[s->file], s->line);
        expected++;
    }
    if (v.violations != expected || v.types[0].violations != expected)
        fail_msg("WEIR_SEED=%" PRIu64 ": %s: %" PRIu64 " violations, not %" PRIu64, seed, stored,
                 v.violations, expected);
    naive_free(&m);
    verify_free(&v);
}

static void test_random_starts_are_judged_like_the_model(void **state)
{
    uint64_t random;

    (void)state;
    seed = random_seed();
    random = seed;
    for (int i = 0; i < 100; i++)
        check_random(&random);
}

static void test_one_start_too_many_is_one_violation(void **state)
{
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 1000; i++) {
        add_start(&t, 0, "mail", BEGIN_US + i * 10000, 0, "gcra:100/1000000/1");
        if (i == 500)
            add_start(&t, 1, "mail", BEGIN_US + i * 10000 + 3000, 0, "gcra:100/1000000/1");
    }
    traces_close(&t);
    v = replay(2);
    assert_int_equal(v.violations, 1);
    assert_string_equal(v.named[0].file, paths[1]);
    assert_string_equal(v.named[0].limit, "rate-mail");
    assert_int_equal(v.named[0].line, 1);
    assert_int_equal(v.named[0].early_us, 7000);
    assert_int_equal(v.rules[0].worst.windows[0].most, 101);
    assert_int_equal(v.rules[0].worst.windows[0].allowed, 100);
    assert_int_equal(v.rules[0].worst.windows[1].most, 11);
    assert_int_equal(v.rules[0].worst.windows[1].allowed, 10);
    assert_true(v.rules[0].worst.gap > 0.299 && v.rules[0].worst.gap < 0.301);
    verify_free(&v);
}

static void test_many_violations_are_counted(void **state)
{
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 1000; i++)
        add_start(&t, 0, "mail", BEGIN_US, 0, "gcra:1/1000000/1");
    traces_close(&t);
    v = replay(1);
    assert_int_equal(v.violations, 999);
    assert_int_equal(v.named[VERIFY_NAMED_MAX - 1].line, 21);
    assert_true(v.rules[0].worst.kept < 0);
    verify_free(&v);
}

/* ---- Rules that change, types without one */

static void test_a_rule_that_changed(void **state)
{
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 100; i++)
        add_start(&t, 0, "mail", BEGIN_US + i * 1000, 0, "gcra:1000/1000000/1");
    for (int i = 0; i < 100; i++)
        add_start(&t, 0, "mail", BEGIN_US + 100000 + i * 100000, 0, "gcra:10/1000000/1");
    traces_close(&t);
    v = replay(1);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.rules[0].worst.stretches, 2);
    assert_int_equal(v.rules[0].rule.count, 10);
    assert_true(v.rules[0].worst.kept > 0.9999 && v.rules[0].worst.kept <= 1);
    assert_true(v.rules[0].worst.gap == 1);
    verify_free(&v);
}

static void test_types_without_a_limit(void **state)
{
    struct verify v;

    (void)state;
    write_trace("{\"slot\":0,\"start\":1795000000000000,\"type\":\"b\",\"id\":\"1\",\"limits\":\"\"}\n"
                "{\"start\":1795000002000000,\"type\":\"b\"}\n"
                "{\"start\":1795000001000000,\"type\":\"a\",\"slot\":0}\n"
                "{\"slot\":1795000001000000,\"start\":1795000001000300,\"type\":\"a\",\"limits\":\"a=gcra:1/"
                "1000000/1\"}\n");
    v = replay(1);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.type_count, 2);
    assert_string_equal(v.types[0].name, "a");
    assert_true(v.types[0].limited);
    assert_int_equal(v.types[0].starts, 2);
    assert_int_equal(v.types[0].lateness.max_us, 300);
    assert_int_equal(v.types[0].lateness.min_us, 300);
    assert_false(v.types[1].limited);
    assert_int_equal(v.types[1].span_us, 2000000);
    verify_free(&v);
}

static void test_lateness(void **state)
{
    const struct verify_lateness *l;
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 1000; i++)
        add_start(&t, i % 3, "mail", BEGIN_US + i, 999 - i, "gcra:1000000/1000000/1");
    traces_close(&t);
    v = replay(3);
    l = &v.types[0].lateness;
    assert_int_equal(l->min_us, 0);
    assert_int_equal(l->p50_us, 499);
    assert_int_equal(l->p99_us, 989);
    assert_int_equal(l->p999_us, 998);
    assert_int_equal(l->max_us, 999);
    verify_free(&v);
}

/* An answer that came 3 s late: all slots are as they should be, and twice as many start in a second. */
static void test_handlers_that_started_after_their_slots(void **state)
{
    struct outcome o;
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 40; i++)
        add_start(&t, 0, "mail", BEGIN_US + i * 100000, i < 10 ? 3000000 - i * 100000 : 0,
                  "gcra:10/1000000/1");
    traces_close(&t);
    v = replay(1);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.after_slot, 10);
    assert_int_equal(v.types[0].after_slot, 10);
    verify_free(&v);

    run_in(&o, NULL, built("weir"), "verify", paths[0], NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.out, "\nmail      40  3.9s          0        9            0          10 "));
    assert_non_null(strstr(o.err, "weir: verify: starts: 10 of 40 handlers began more than 1 s after their "
                                  "slots; the slots keep the rates; "));
    run_in(&o, NULL, built("weir"), "verify", "--json", paths[0], NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(
        o.out, "{\"ok\":false,\"slots_hold\":true,\"starts_hold\":false,\"starts\":40,\"violations\":0,"
               "\"before_slot\":0,\"after_slot\":10,"));
}

/* All slots are as they should be. Those of one second are answered 0.9 s late, and start with those of the
 * next. */
static void test_starts_are_judged_apart_from_slots(void **state)
{
    enum { LATE = 199 };
    struct outcome o;
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 400; i++) {
        int64_t slot_us = i < 100 ? 0 : (i - 99) * 10000;

        add_start(&t, i % 2, "mail", BEGIN_US + slot_us, i < LATE ? 1000000 - slot_us : 0,
                  "gcra:100/1000000/100");
    }
    traces_close(&t);
    v = replay(2);
    assert_int_equal(v.violations + v.before_slot + v.after_slot, 0);
    assert_int_equal(v.crowded, 90); /* 199, and one every 10 ms in 0.9 s */
    assert_int_equal(v.rules[0].crowded, v.crowded);
    assert_int_equal(v.types[0].crowded, v.crowded);
    assert_int_equal(v.rules[0].worst.windows[0].most, 199);
    assert_int_equal(v.rules[0].worst.started.window_us, 900000);
    assert_int_equal(v.rules[0].worst.started.most, LATE + 90);
    assert_int_equal(v.rules[0].worst.started.allowed, 199);
    assert_true(v.named[0].started);
    verify_free(&v);

    run_in(&o, NULL, built("weir"), "verify", paths[0], paths[1], NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.out, "\nmail     400    3s          0       90            0           0 "));
    assert_non_null(strstr(o.out, "  289 of 199 in 900ms\n"));
    assert_non_null(strstr(o.out, ": mail: limit rate-mail, 100/1s: started where too many had\n"));
    assert_non_null(strstr(o.err, "weir: verify: starts: 90 of 400 handlers began where too many had; the "
                                  "slots keep the rates; "));
    run_in(&o, NULL, built("weir"), "verify", "--json", paths[0], paths[1], NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.out, "{\"ok\":false,\"slots_hold\":true,\"starts_hold\":false,"));
    assert_non_null(strstr(o.out, "\"failed_by\":\"start\""));
}

static void test_both_may_fail(void **state)
{
    struct outcome o;
    struct traces t;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 40; i++)
        add_start(&t, 0, "mail", BEGIN_US + i * 100000, i < 20 ? 3000000 - i * 100000 : 0,
                  "gcra:10/1000000/1");
    add_start(&t, 0, "mail", BEGIN_US + 50000, 0, "gcra:10/1000000/1");
    traces_close(&t);
    run_in(&o, NULL, built("weir"), "verify", paths[0], NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(
        o.err, "weir: verify: slots: 1 violation among 41 starts: a gate was not open yet; starts: 20 of 41 "
               "handlers began more than 1 s after their slots\n"));
}

/* Over a long link slots are good for longer, and the trace says so. */
static void test_late_starts_of_slots_that_are_good(void **state)
{
    struct verify v;

    (void)state;
    for (int good_us = 50000; good_us <= 700000; good_us += 650000) {
        FILE *f = fopen(paths[0], "w");

        assert_non_null(f);
        for (int i = 0; i < 100; i++)
            fprintf(f,
                    "{\"slot\":%" PRId64 ",\"ahead\":0,\"good\":%d,\"start\":%" PRId64
                    ",\"type\":\"mail\",\"limits\":\"mail=sliding-log:10/1000000\"}\n",
                    BEGIN_US + i * 100000, good_us, BEGIN_US + (i < 6 ? 6 : i) * 100000);
        assert_int_equal(fclose(f), 0);
        v = replay(1);
        assert_int_equal(v.violations, 0);
        assert_int_equal(v.crowded > 0, good_us == 50000);
        verify_free(&v);
    }
}

/* Clocks differ by less than that; the slots alone keep the rate. */
static void test_handlers_that_started_before_their_slots(void **state)
{
    struct outcome o;
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 20; i++)
        add_start(&t, 0, "mail", BEGIN_US + i * 100000, -i * 100000, "gcra:10/1000000/1");
    add_start(&t, 1, "sms", BEGIN_US, -1000000, "gcra:10/1000000/1");
    add_start(&t, 1, "sms", BEGIN_US + 100000, -1000001, "gcra:10/1000000/1");
    add_start(&t, 2, "fax", BEGIN_US, -1000000, "gcra:10/1000000/1");
    traces_close(&t);
    v = replay(3);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.before_slot, 10);
    assert_int_equal(v.types[0].before_slot, 0);
    assert_int_equal(v.types[1].before_slot, 9);
    assert_int_equal(v.types[2].before_slot, 1);
    verify_free(&v);

    run_in(&o, NULL, built("weir"), "verify", paths[0], NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.out, "\nmail      20  1.9s          0       10            9           0 "));
    assert_non_null(
        strstr(o.err, "weir: verify: starts: 9 of 20 handlers began more than 1 s before their slots; "));
    run_in(&o, NULL, built("weir"), "verify", "--json", paths[0], NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.out, "\"starts\":20,\"violations\":0,\"before_slot\":9,"));
    assert_non_null(strstr(o.out, "\"violations\":0,\"before_slot\":9,\"after_slot\":0,"));
    run_in(&o, NULL, built("weir"), "verify", paths[2], NULL);
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
    struct traces t;
    struct verify v;

    naive_begin(&model, stored);
    traces_open(&t);
    for (int i = 0; i < STARTS; i++) {
        int64_t cost = random_in(random, 1, cost_most);

        opens_us = naive_opens(&model, at_us, cost);
        if (opens_us > at_us + 2 && random_in(random, 0, 3) == 0) { /* one too many */
            struct shot *s = &shots[expected++];

            s->at_us = random_in(random, at_us + 1, opens_us - 1);
            s->early_us = opens_us - s->at_us;
            s->file = (int)random_in(random, 0, 2);
            add_cost(&t, s->file, "mail", s->at_us, 0, stored, cost);
            s->line = t.lines[s->file];
        }
        at_us = opens_us + (random_in(random, 0, 9) ? 0 : random_in(random, 0, model.rule.period_us));
        if (naive_start(&model, at_us, cost, i))
            fail_msg("the model refuses what it allows");
        add_cost(&t, (int)random_in(random, 0, 2), "mail", at_us, 0, stored, cost);
    }
    traces_close(&t);
    naive_free(&model);
    v = replay(3);
    for (int i = 0; i < expected && i < VERIFY_NAMED_MAX && (uint64_t)i < v.violations; i++)
        if (v.named[i].early_us != shots[i].early_us || v.named[i].line != shots[i].line ||
            strcmp(v.named[i].file, paths[shots[i].file]) != 0)
            fail_msg("WEIR_SEED=%" PRIu64 ": %s: violation %d is %s:%zu, %" PRId64 "us, not %s:%zu, %" PRId64
                     "us",
                     seed, stored, i, v.named[i].file, v.named[i].line, v.named[i].early_us,
                     paths[shots[i].file], shots[i].line, shots[i].early_us);
    if (v.violations != (uint64_t)expected)
        fail_msg("WEIR_SEED=%" PRIu64 ": %s: %" PRIu64 " violations, not %d", seed, stored, v.violations,
                 expected);
    if (expected == 0)
        for (int i = 0; i < VERIFY_WINDOWS; i++)
            assert_true(v.rules[0].worst.windows[i].most <= v.rules[0].worst.windows[i].allowed);
    verify_free(&v);
}

static void test_every_algorithm_finds_what_was_put_in(void **state)
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
    };
    uint64_t random;

    (void)state;
    seed = random_seed();
    random = seed;
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < COUNT(cases); i++)
            check_algorithm(&random, cases[i].stored, cases[i].cost_most);
}

/* ---- Traces by hand. A start: slot in seconds, members, limits. */

#define START(slot, members, limits)                                                                         \
    "{\"slot\":" #slot "000000,\"start\":" #slot "000000,\"type\":\"mail\"," members "\"limits\":\"" limits  \
    "\"}\n"
#define ID(id) "\"id\":\"" #id "\","
#define KEY(key) "\"key\":\"" #key "\","
#define COST(cost) "\"cost\":" #cost ","
#define END(at, name) "{\"end\":" #at "000000,\"type\":\"mail\",\"id\":\"" #name "\"}\n"
#define SPENT(n, name) "{\"spent\":" #n ",\"slot\":1,\"type\":\"mail\",\"id\":\"" #name "\"}\n"
#define OPENED "{\"opened\":1000000}\n"
#define BY(by) "\"by\":\"" #by "\","
#define END_BY(at, name, by)                                                                                 \
    "{\"end\":" #at "000000,\"type\":\"mail\",\"id\":\"" #name "\",\"by\":\"" #by "\"}\n"
#define LAPSED_BY(at, by) "{\"lapsed\":" #at "000000,\"by\":\"" #by "\"}\n"
#define OPENED_BY(by) "{\"opened\":1000000,\"by\":\"" #by "\"}\n"

#define TWO "a=gcra:1/10000000/1|b=fixed-window:2/100000000/0"
#define KEYED "a=gcra:1/10000000/1,by=key sliding-log:3/100000000"
#define BY_HAND_MAX 256

static const struct by_hand {
    const char *name;
    const char *text;
    const char *finds; /* "line seconds limit#index[/key]" of each, joined by "; " */
} by_hand[] = {
    {"all gates are judged", START(200, "", TWO) START(205, "", TWO) START(220, "", TWO) START(230, "", TWO),
     "2 5 a#0; 3 80 b#0; 4 70 b#0"},
    {"what a gate refused, another may count", START(200, "", TWO) START(209, "", TWO) START(210, "", TWO),
     "2 1 a#0; 3 90 b#0"},
    {"lines as nobody writes them",
     "{ \"limits\": \"a=gcra:1\\u002f10000000/1\", \"type\": \"mail\", \"more\": [1, {}], \"cost\": 1,"
     " \"slot\": 100000000, \"start\": 100000000 }\n" START(109, "", "a=gcra:1/10000000/1"),
     "2 1 a#0"},
    {"each key has a gate",
     START(100, KEY(x), KEYED) START(101, KEY(y), KEYED) START(102, KEY(x), KEYED) START(103, "", KEYED),
     "3 8 a#0/x; 4 97 a#1"},
    {"without a key the key is -", START(100, "", KEYED) START(101, KEY(-), KEYED), "2 9 a#0/-"},
    {"a cost that never fits", START(100, COST(2), "a=gcra:1/10000000/1"), "1 never a#0"},
    {"a cost takes as many",
     START(100, COST(2), "a=gcra:1/10000000/2") START(119, COST(2), "a=gcra:1/10000000/2"), "2 1 a#0"},
    {"adapt is judged by what was set",
     START(100, "", "a=gcra:1/10000000/1,adapt=500..1000") START(110, "", "a=gcra:1/10000000/1")
         START(119, "", "a=gcra:1/10000000/1,adapt=500..1000"),
     "3 1 a#0"},
    {"pauses and weights are no rules",
     START(100, "", "a=gcra:1/10000000/1") START(109, "", "a=gcra:1/10000000/1 pause:1/1 weights:1"),
     "2 1 a#0"},

    {"one in flight", START(100, ID(1), "a=concurrency:1") END(110, 1) START(110, ID(2), "a=concurrency:1"),
     ""},
    {"two in flight",
     START(100, ID(1), "a=concurrency:1") START(104, ID(2), "a=concurrency:1") END(110, 1) END(110, 2),
     "2 6 a#0"},
    {"costs do not count in flight",
     START(100, ID(1) COST(5), "a=concurrency:2") START(104, ID(2) COST(5), "a=concurrency:2") END(110, 1)
         END(110, 2),
     ""},
    {"in flight by key",
     START(100, ID(1) KEY(x), "a=concurrency:1,by=key") START(101, ID(2) KEY(y), "a=concurrency:1,by=key")
         START(102, ID(3) KEY(x), "a=concurrency:1,by=key") END(103, 1) END(104, 2) END(105, 3),
     "3 1 a#0/x"},
    {"the same job again ends what a killed worker ran",
     START(100, ID(1), "a=concurrency:1") START(150, ID(1), "a=concurrency:1") END(160, 1)
         START(160, ID(2), "a=concurrency:1") END(170, 2),
     ""},
    {"a killed worker's last line ends what it ran",
     START(100, ID(1), "a=concurrency:1") END(140, 7) OPENED START(140, ID(2), "a=concurrency:1") END(900, 2),
     ""},
    {"but not before",
     START(100, ID(1), "a=concurrency:1") END(140, 7) OPENED START(139, ID(2), "a=concurrency:1"), "4 1 a#0"},
    {"what a killed worker ran ended at its own last line, though others write to the same file",
     OPENED_BY(x) OPENED_BY(y) START(100, ID(1) BY(x), "a=concurrency:1") END_BY(110, 7, x)
         START(120, ID(2) BY(y), "a=concurrency:1") END_BY(130, 2, y)
             START(140, ID(1) BY(y), "a=concurrency:1") END_BY(150, 1, y),
     ""},
    {"but not before, though others begin to write",
     OPENED_BY(x) START(100, ID(1) BY(x), "a=concurrency:1") OPENED_BY(y)
         START(101, ID(2) BY(y), "a=concurrency:1") END_BY(102, 1, x) END_BY(102, 2, y),
     "4 1 a#0"},
    {"who writes as one before is another",
     OPENED_BY(x) START(100, ID(1) BY(x), "a=concurrency:1") END_BY(101, 7, x) OPENED_BY(x)
         START(101, ID(2) BY(x), "a=concurrency:1") END_BY(102, 1, x) END_BY(102, 2, x),
     ""},
    {"what a worker ran when its leases lapsed ended then",
     OPENED_BY(x) START(100, ID(1) BY(x), "a=concurrency:1") LAPSED_BY(110, x) END_BY(130, 1, x)
         START(110, ID(2) BY(y), "a=concurrency:1") END_BY(120, 2, y),
     ""},
    {"but not before, nor what another runs, nor what begins later",
     OPENED_BY(x) START(100, ID(1) BY(x), "a=concurrency:1") LAPSED_BY(110, x) END_BY(130, 1, x) START(
         109, ID(2) BY(y), "a=concurrency:1") END_BY(120, 2, y) START(119, ID(3) BY(x), "a=concurrency:1")
         END_BY(131, 3, x) START(130, ID(4) BY(y), "a=concurrency:1") END_BY(132, 4, y),
     "5 1 a#0; 7 1 a#0; 9 1 a#0"},
    {"fewer may be in flight now",
     START(100, ID(1), "a=concurrency:2") START(101, ID(2), "a=concurrency:2")
         START(103, ID(3), "a=concurrency:1") END(104, 1) END(105, 2) END(106, 3),
     "3 2 a#0"},

    {"less spent than granted",
     START(100, ID(1) COST(3), "a=gcra:1/10000000/3") SPENT(1, 1) END(101, 1)
         START(101, COST(2), "a=gcra:1/10000000/3") START(102, "", "a=gcra:1/10000000/3"),
     "5 8 a#0"},
    {"more spent than granted is not held against the next at once",
     START(100, ID(1), "a=gcra:1/10000000/1") SPENT(3, 1) END(109, 1) START(110, "", "a=gcra:1/10000000/1"),
     ""},
    {"but later",
     START(100, ID(1), "a=gcra:1/10000000/1") SPENT(3, 1) END(101, 1) START(129, "", "a=gcra:1/10000000/1"),
     "4 1 a#0"},
    {"nothing more than that",
     START(100, ID(1), "a=gcra:1/10000000/1") SPENT(3, 1) END(101, 1) START(130, "", "a=gcra:1/10000000/1"),
     ""},

    {"a slower rule: what is in use stays in use",
     START(100, "", "a=gcra:1/10000000/1") START(109, "", "a=gcra:1/50000000/1"), "2 40.995 a#0"},
    {"a faster rule lets more through at once",
     START(100, "", "a=gcra:1/50000000/1") START(110, "", "a=gcra:1/10000000/1"), ""},
    {"another algorithm: what is in use stays in use",
     START(100, "", "a=fixed-window:2/100000000/0") START(101, "", "a=fixed-window:2/100000000/0")
         START(102, "", "a=sliding-log:2/100000000") START(201, "", "a=sliding-log:2/100000000"),
     "3 98.995 a#0"},
    {"a rule that was put before others is another gate",
     START(100, "", "a=gcra:1/10000000/1") START(101, "", "a=concurrency:9 gcra:1/10000000/1"), ""},
};

static void describe(const struct verify *v, char out[BY_HAND_MAX])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < v->violations && i < VERIFY_NAMED_MAX; i++) {
        const struct verify_violation *n = &v->named[i];
        char early[32] = "never";

        if (n->early_us != VERIFY_NEVER)
            snprintf(early, sizeof early, "%g", (double)n->early_us / 1e6);
        len += (size_t)snprintf(out + len, BY_HAND_MAX - len, "%s%zu %s %s#%zu%s%s", i ? "; " : "", n->line,
                                early, n->limit, n->index, *n->key ? "/" : "", n->key);
    }
}

static void test_traces_by_hand(void **state)
{
    bool good = true;

    (void)state;
    for (size_t i = 0; i < COUNT(by_hand); i++) {
        char found[BY_HAND_MAX];
        struct verify v;

        write_trace(by_hand[i].text);
        v = replay(1);
        describe(&v, found);
        if (strcmp(found, by_hand[i].finds) != 0) {
            print_error("%s: found '%s', not '%s'\n", by_hand[i].name, found, by_hand[i].finds);
            good = false;
        }
        verify_free(&v);
    }
    assert_true(good);
}

/* Two types, one limit: one gate. The order of files does not matter. */
static void test_a_shared_limit_in_any_order_of_files(void **state)
{
    static const char *const text =
        "{\"slot\":%d000000,\"start\":%d000000,\"type\":\"%s\",\"limits\":\"account=gcra:1/10000000/1\"}\n";
    const int orders[][FILES] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};

    (void)state;
    for (int i = 0; i < FILES; i++) {
        FILE *f = fopen(paths[i], "w");

        assert_non_null(f);
        fprintf(f, text, 120 - 5 * i, 120 - 5 * i, i == 1 ? "sms" : "mail");
        fprintf(f, text, 120 - 5 * i, 120 - 5 * i, "fax");
        assert_int_equal(fclose(f), 0);
    }
    for (size_t i = 0; i < COUNT(orders); i++) {
        char found[BY_HAND_MAX];
        size_t torn_line;
        struct verify v;

        assert_int_equal(verify_init(&v, &error), 0);
        for (int j = 0; j < FILES; j++)
            assert_int_equal(verify_read(&v, paths[orders[i][j]], &torn_line, &error), 0);
        assert_int_equal(verify_replay(&v, &error), 0);
        describe(&v, found);
        assert_string_equal(found, "2 10 account#0; 1 5 account#0; 2 5 account#0; 2 10 account#0");
        assert_string_equal(v.named[1].type, "sms");
        assert_string_equal(v.named[1].file, paths[1]);
        assert_int_equal(v.rule_count, 1);
        assert_int_equal(v.type_count, 3);
        assert_int_equal(v.types[0].violations, 3);
        assert_int_equal(v.types[2].violations, 1);
        verify_free(&v);
    }
}

static void test_the_fullest_key(void **state)
{
    struct verify v;

    (void)state;
    write_trace(START(100, KEY(x), "a=sliding-log:3/10000000,by=key")
                    START(101, KEY(y), "a=sliding-log:3/10000000,by=key")
                        START(102, KEY(y), "a=sliding-log:3/10000000,by=key")
                            START(103, "", "a=concurrency:2") START(104, "", "a=concurrency:2"));
    v = replay(1);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.rule_count, 1);
    assert_int_equal(v.rules[0].keys, 3);
    verify_free(&v);

    write_trace(START(100, KEY(x), "a=sliding-log:3/10000000,by=key")
                    START(101, KEY(y), "a=sliding-log:3/10000000,by=key")
                        START(102, KEY(y), "a=sliding-log:3/10000000,by=key"));
    v = replay(1);
    assert_int_equal(v.rules[0].keys, 2);
    assert_string_equal(v.rules[0].worst_key, "y");
    assert_int_equal(v.rules[0].worst.windows[2].most, 2);
    assert_int_equal(v.rules[0].worst.windows[2].allowed, 3);
    verify_free(&v);
}

/* ahead_us < 0: it does not say so. */
static void add_granted(struct traces *t, int file, int64_t slot_us, int64_t ahead_us, const char *rules)
{
    char ahead[32] = "";

    if (ahead_us >= 0)
        snprintf(ahead, sizeof ahead, ",\"ahead\":%" PRId64, ahead_us);
    fprintf(t->files[file],
            "{\"slot\":%" PRId64 "%s,\"start\":%" PRId64 ",\"type\":\"mail\",\"limits\":\"mail=%s\"}\n",
            slot_us, ahead, slot_us, rules);
}

/* Rules change while gates are live, as they do in Redis: what is in use is counted at the change, and slots
 * are granted ahead of it. No start that a live gate granted is accused. */
static void check_changes(uint64_t *random)
{
    static const char *const rules[] = {
        "gcra:10/1000000/1",         "gcra:100/1000000/10",       "gcra:7/1000000/7",
        "token-bucket:20/1000000/5", "fixed-window:10/1000000/0", "sliding-log:10/1000000",
        "sliding-window:10/1000000", "gcra:60/1000000/1",
    };
    bool tells = random_in(random, 0, 1); /* how far ahead */
    int64_t ahead_us = tells ? GATE_AHEAD_MOST_US : GATE_AHEAD_US;
    int64_t now_us = BEGIN_US, first_us = INT64_MAX; /* the first start under the present rule */
    const char *stored = rules[random_in(random, 0, COUNT(rules) - 1)];
    struct rule rule;
    struct traces t;
    struct verify v;
    struct gate live;

    assert_int_equal(rule_read(stored, &rule, &error), 0);
    gate_init(&live, &rule);
    traces_open(&t);
    for (int i = 0; i < 300; i++) {
        int64_t s_us;

        if (first_us < (tells ? INT64_MAX : now_us - GATE_AHEAD_US) && random_in(random, 0, 9) == 0) {
            stored = rules[random_in(random, 0, COUNT(rules) - 1)];
            assert_int_equal(rule_read(stored, &rule, &error), 0);
            assert_int_equal(gate_change(&live, &rule, ++now_us), 0); /* no two calls at one time */
            first_us = INT64_MAX;
        }
        s_us = gate_start(&live, now_us, 1);
        if (s_us > now_us + ahead_us)
            now_us = s_us - random_in(random, 0, ahead_us);
        assert_int_equal(gate_take(&live, s_us, 1, 1), 0);
        add_granted(&t, (int)random_in(random, 0, 2), s_us, tells ? s_us - now_us : -1, stored);
        first_us = s_us < first_us ? s_us : first_us;
        now_us += random_in(random, 0, 9) ? 0 : random_in(random, 0, 2000000);
    }
    traces_close(&t);
    gate_free(&live);
    v = replay(3);
    if (v.violations)
        fail_msg("WEIR_SEED=%" PRIu64 ": %s:%zu is %" PRId64 "us too early", seed, v.named[0].file,
                 v.named[0].line, v.named[0].early_us);
    verify_free(&v);
}

static void test_changes_accuse_nobody(void **state)
{
    uint64_t random;

    (void)state;
    seed = random_seed();
    random = seed;
    for (int i = 0; i < 300; i++)
        check_changes(&random);
}

/* ---- True costs */

#define RUNNING_MOST 20

struct run {
    int64_t slot_us, end_us, cost, spent;
    int file;
    size_t id;
};

/* A live gate as workers use it: starts ahead of their time, ends that settle what was spent. */
struct live {
    struct gate gate;
    struct traces t;
    struct run running[RUNNING_MOST];
    int count;
    int64_t now_us;
};

static void end_run(struct live *l, int i)
{
    struct run run = l->running[i];

    l->running[i] = l->running[--l->count];
    if (run.spent < run.cost)
        gate_give(&l->gate, l->now_us, run.slot_us, run.cost - run.spent);
    else if (run.spent > run.cost)
        assert_int_equal(gate_charge(&l->gate, l->now_us, run.spent - run.cost), 0);
    if (run.spent == run.cost)
        return;
    fprintf(l->t.files[run.file],
            "{\"spent\":%" PRId64 ",\"slot\":%" PRId64 ",\"type\":\"mail\",\"id\":\"%d.%zu\"}\n"
            "{\"end\":%" PRId64 ",\"type\":\"mail\",\"id\":\"%d.%zu\"}\n",
            run.spent, run.slot_us, run.file, run.id, run.end_us, run.file, run.id);
}

/* Time passes; what ends meanwhile is settled then. */
static void pass_until(struct live *l, int64_t until_us)
{
    for (;;) {
        int first = -1;

        for (int i = 0; i < l->count; i++)
            if (l->running[i].end_us <= until_us &&
                (first < 0 || l->running[i].end_us < l->running[first].end_us))
                first = i;
        if (first < 0)
            break;
        l->now_us = l->running[first].end_us > l->now_us ? l->running[first].end_us : l->now_us;
        end_run(l, first);
    }
    l->now_us = until_us > l->now_us ? until_us : l->now_us;
}

static void start_run(struct live *l, const char *stored, uint64_t *random)
{
    struct run *run = &l->running[l->count];
    int64_t burst = l->gate.rule.burst;

    *run = (struct run){.cost = random_in(random, 1, burst), .file = (int)random_in(random, 0, FILES - 1)};
    run->spent = random_in(random, 0, 2) ? random_in(random, 0, run->cost) : random_in(random, 1, burst + 2);
    run->slot_us = gate_start(&l->gate, l->now_us, run->cost);
    if (run->slot_us > l->now_us + GATE_AHEAD_US)
        return;
    run->end_us = run->slot_us + random_in(random, 0, random_in(random, 0, 1) ? 2000 : 700000);
    gate_remember(&l->gate, l->now_us);
    assert_int_equal(gate_take(&l->gate, run->slot_us, 1, run->cost), 0);
    add_cost(&l->t, run->file, "mail", run->slot_us, 0, stored, run->cost);
    run->id = l->t.lines[run->file];
    l->count++;
}

static void check_true_costs(uint64_t *random)
{
    static const char *const rules[] = {
        "gcra:7/1000000/5",         "gcra:3/1000001/4",      "token-bucket:30/1000007/9",
        "gcra:10/1000000/5",        "gcra:999983/1000003/9", "fixed-window:7/1000000/0",
        "sliding-window:9/1000000", "sliding-log:7/1000000",
    };
    const char *stored = rules[random_in(random, 0, COUNT(rules) - 1)];
    struct live l = {.now_us = BEGIN_US};
    struct rule rule;
    struct verify v;

    assert_int_equal(rule_read(stored, &rule, &error), 0);
    gate_init(&l.gate, &rule);
    traces_open(&l.t);
    for (int i = 0; i < 400; i++) {
        int64_t opens_us = gate_start(&l.gate, l.now_us, 1);

        if (l.count < RUNNING_MOST)
            start_run(&l, stored, random);
        pass_until(&l, random_in(random, 0, 1) ? opens_us - random_in(random, 0, GATE_AHEAD_US)
                                               : l.now_us + random_in(random, 0, 20000));
    }
    pass_until(&l, l.now_us + 1000000);
    traces_close(&l.t);
    gate_free(&l.gate);
    v = replay(FILES);
    if (v.violations)
        fail_msg("WEIR_SEED=%" PRIu64 ": %s: %s:%zu is %" PRId64 "us too early", seed, stored,
                 v.named[0].file, v.named[0].line, v.named[0].early_us);
    verify_free(&v);
}

/* Whatever jobs spend: no start that a live gate granted is accused. */
static void test_true_costs_accuse_nobody(void **state)
{
    uint64_t random;

    (void)state;
    seed = random_seed();
    random = seed;
    for (int i = 0; i < 300; i++)
        check_true_costs(&random);
}

/* ---- What is no trace */

static void test_malformed_lines_are_named(void **state)
{
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"", "not a JSON object"},
        {"x", "not a JSON object"},
        {"\xef\xbb\xbf{}", "byte order mark (BOM)"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\"", "not JSON"},
        {"{\"slot\":1,\"slot\":1,\"start\":1,\"type\":\"a\"}", "not JSON"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\"} {}", "not JSON"},
        {"[]", "not a JSON object"},
        {"{}", "neither start nor end, spent, opened, lapsed or lost"},
        {"{\"slot\":1,\"start\":1}", "type is missing"},
        {"{\"slot\":1,\"start\":1,\"type\":7}", "type is missing, or type or id is not a string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"id\":1}", "type or id is not a string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a b\"}", "type 'a b'"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"limits\":null}", "limits must be a string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"limits\":\"a\"}", "'a' is not limit=rules"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"limits\":\"a=1/s\"}", "1/s"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"limits\":\"a b=concurrency:1\"}", "limit 'a b'"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"key\":\"a/b\"}", "key 'a/b'"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"key\":1}", "key must be a string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"cost\":0}", "cost must be a whole number"},
        {"{\"slot\":1,\"type\":\"a\"}", "neither start"},
        {"{\"slot\":1,\"start\":\"1\",\"type\":\"a\"}", "start must be a time"},
        {"{\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}", "slot must be a time"},
        {"{\"slot\":0,\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}", "slot must be a time"},
        {"{\"slot\":1.5,\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}", "slot must be a time"},
        {"{\"slot\":1,\"start\":9007199254740992,\"type\":\"a\"}", "start must be a time"},
        {"{\"end\":1}", "type is missing"},
        {"{\"end\":-1,\"type\":\"a\",\"id\":\"1\"}", "end must be a time"},
        {"{\"spent\":-1,\"type\":\"a\",\"id\":\"1\"}", "spent must be a whole number"},
        {"{\"slot\":1,\"ahead\":-1,\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}",
         "ahead must be a time"},
        {"{\"slot\":1,\"good\":1000000001,\"start\":1,\"type\":\"a\",\"limits\":\"a=concurrency:1\"}",
         "good must be a time"},
        {"{\"lapsed\":-1}", "lapsed must be a time"},
        {"{\"opened\":null}", "opened must be a time"},
        {"{\"lost\":0}", "lost must be a number of lines"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512], where[128];
        size_t torn_line;
        struct verify v;

        snprintf(text, sizeof text, "{\"start\":1,\"type\":\"a\"}\n%s\n{\"start\":1,\"type\":\"a\"}\n",
                 cases[i].line);
        write_trace(text);
        snprintf(where, sizeof where, "%s:2: ", paths[0]);
        assert_int_equal(verify_init(&v, &error), 0);
        assert_int_equal(verify_read(&v, paths[0], &torn_line, &error), WEIR_EINPUT);
        if (strncmp(error.text, where, strlen(where)) != 0 || !strstr(error.text, cases[i].says))
            fail_msg("%s: %s", cases[i].line, error.text);
        verify_free(&v);
    }
}

static void test_an_end_long_before_its_start_is_named(void **state)
{
    static const char *const set_back = START(100, ID(1), "a=concurrency:1") END(99, 1);
    static const char *const before =
        START(100, ID(1), "a=concurrency:1") "{\"end\":98999999,\"type\":\"mail\",\"id\":\"1\"}\n";
    char says[128];
    size_t torn_line;
    struct verify v;

    (void)state;
    write_trace(set_back);
    v = replay(1);
    verify_free(&v);
    write_trace(before);
    snprintf(says, sizeof says, "%s:2: end is before the job's start in line 1; ", paths[0]);
    assert_int_equal(verify_init(&v, &error), 0);
    assert_int_equal(verify_read(&v, paths[0], &torn_line, &error), WEIR_EINPUT);
    assert_memory_equal(error.text, says, strlen(says));
    verify_free(&v);
}

static void test_a_torn_last_line_is_passed_over(void **state)
{
    static const struct {
        const char *text;
        size_t torn_line;
        uint64_t starts;
    } cases[] = {
        {"{\"start\":1,\"type\":\"a\"}\n{\"start\":2,\"ty", 2, 1},
        {"{\"start\":1,\"type\":\"a\"}\n{\"start\":2,\"type\":\"a\"}", 0, 2}, /* whole, but for its end */
        {"{", 1, 0},
        {"", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t torn_line;
        struct verify v;

        write_trace(cases[i].text);
        assert_int_equal(verify_init(&v, &error), 0);
        assert_int_equal(verify_read(&v, paths[0], &torn_line, &error), 0);
        assert_int_equal(torn_line, cases[i].torn_line);
        assert_int_equal(verify_replay(&v, &error), 0);
        assert_int_equal(v.starts, cases[i].starts);
        verify_free(&v);
    }
}

/* Members that nobody knows, however many, are passed over; twice, and the one slot of a minute is violated.
 */
static void test_many_members(void **state)
{
    enum { LEAST = 10, MOST = 60 };

    (void)state;
    for (int count = LEAST; count < MOST; count++) {
        char text[4096] = "";
        struct verify v;

        for (int line = 0; line < 2; line++) {
            strcat(text, "{\"slot\":1795000000000000,\"start\":1795000000000000");
            for (int i = 0; i < count; i++)
                sprintf(text + strlen(text), ",\"member%d\":%d", i, i);
            strcat(text, ",\"type\":\"a\",\"id\":\"1\",\"limits\":\"a=sliding-log:1/60000000\"}\n");
        }
        write_trace(text);
        v = replay(1);
        assert_int_equal(v.starts, 2);
        assert_int_equal(v.violations, 1);
        verify_free(&v);
    }
}

/* So many bytes may a file have: a disk that is full in the middle of a line. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void trace_some(struct trace *trace, int n)
{
    struct task task = {.limits = "a=gcra:1000000/1000000/1000000", .cost = 1};
    struct job_view view = {.type = {"mail", 4}, .id = {"j1", 2}};

    for (int i = 0; i < n; i++) {
        task.slot_us = clock_wall_us();
        trace_start(trace, &task, &view);
    }
    trace_flush(trace);
}

/* What the log says while steps(arg) runs. */
static void log_of(void (*steps)(void *arg), void *arg, char log[4096])
{
    int ends[2], standard_error = dup(STDERR_FILENO);
    ssize_t len;

    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    steps(arg);
    dup2(standard_error, STDERR_FILENO);
    close(standard_error);
    close(ends[1]);
    len = read(ends[0], log, 4095);
    log[len > 0 ? len : 0] = '\0';
    close(ends[0]);
}

static void assert_says(const char *log, const char *const *says, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(log, says[i]);

        if (!at)
            fail_msg("%zu: no \"%s\" in %s", i, says[i], log);
        log = at + strlen(says[i]);
    }
    assert_null(strstr(log, "trace:"));
}

static off_t size_of(const char *path)
{
    struct stat file;

    assert_int_equal(stat(path, &file), 0);
    return file.st_size;
}

/* The end of a line that another worker is just writing is not cut; one that nobody will end is. */
static void test_a_line_that_is_being_written_stays(void **state)
{
    static const char half[] = "{\"slot\":1";
    struct trace *other, *mine;
    int fd;

    (void)state;
    unlink(paths[0]);
    other = trace_open(paths[0], &error);
    assert_non_null(other);
    trace_flush(other);
    fd = open(paths[0], O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, half, sizeof half - 1), sizeof half - 1);
    for (int others = 1; others >= 0; others--) {
        off_t before = size_of(paths[0]);

        mine = trace_open(paths[0], &error);
        assert_non_null(mine);
        assert_int_equal(before - size_of(paths[0]), others ? 0 : sizeof half - 1);
        if (others)
            trace_close(other);
        trace_close(mine);
        if (others)
            assert_int_equal(write(fd, half, sizeof half - 1), sizeof half - 1);
    }
    close(fd);
}

static void fill_the_disk_for_a_while(void *arg)
{
    struct trace *trace = trace_open(paths[0], &error);
    struct stat file;

    (void)arg;
    assert_non_null(trace);
    for (int times = 0; times < 2; times++) {
        trace_some(trace, 1);
        stat(paths[0], &file);
        limit_files((rlim_t)file.st_size + 200); /* a line has some 120 bytes */
        trace_some(trace, 3);
        trace_some(trace, 3);
        limit_files(RLIM_INFINITY);
        trace_some(trace, 2);
    }
    trace_close(trace);
}

/* What cannot be written for a while is written later, torn lines too; and no signal ends the worker. */
static void test_a_full_disk_for_a_while_costs_nothing(void **state)
{
    char log[4096];
    struct verify v;

    (void)state;
    signal(SIGXFSZ, SIG_DFL);
    unlink(paths[0]);
    log_of(fill_the_disk_for_a_while, NULL, log);
    assert_string_equal(log, "");
    v = replay(1);
    assert_int_equal(v.starts, 2 * (1 + 3 + 3 + 2));
    assert_int_equal(v.lost, 0);
    verify_free(&v);
}

#define STARTS_MANY 20000 /* more than are kept */

static void fill_the_disk_for_long(void *arg)
{
    struct trace *trace = trace_open(paths[0], &error);
    const bool *for_good = arg;

    assert_non_null(trace);
    limit_files(1000);
    trace_some(trace, STARTS_MANY);
    trace_some(trace, 1);
    if (!*for_good)
        limit_files(RLIM_INFINITY);
    trace_flush(trace);
    if (!*for_good)
        trace_some(trace, 1);
    trace_close(trace);
    limit_files(RLIM_INFINITY);
}

/* All lines that were given to the trace are there or counted as lost: the line opened and n starts. */
static void assert_gap(uint64_t n, bool opened)
{
    struct verify v = replay(1);

    assert_in_range(v.lost, n / 4, n);
    assert_int_equal(v.starts + v.lost + opened, n + 1);
    verify_free(&v);
}

static void test_what_a_full_disk_has_cost_is_counted(void **state)
{
    static const char *const says[] = {"trace: File too large; lines are lost, jobs run on",
                                       "trace: lines are kept again; "};
    char log[4096];
    bool for_good = false;

    (void)state;
    signal(SIGXFSZ, SIG_DFL);
    unlink(paths[0]);
    log_of(fill_the_disk_for_long, &for_good, log);
    assert_says(log, says, COUNT(says));
    assert_gap(STARTS_MANY + 2, true);
}

/* The mark of the gap has room all the same. */
static void test_a_file_that_never_grows_again(void **state)
{
    static const char *const says[] = {"trace: File too large; lines are lost, jobs run on",
                                       "trace: File too large; its last "};
    char log[4096];
    bool for_good = true;
    struct outcome o;

    (void)state;
    unlink(paths[0]);
    log_of(fill_the_disk_for_long, &for_good, log);
    assert_says(log, says, COUNT(says));
    assert_gap(STARTS_MANY + 1, true);
    run_in(&o, NULL, built("weir"), "verify", paths[0], "--json", NULL);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, " lines could not be written; starts that are missing are not judged"));
    assert_non_null(strstr(o.out, "\"lost\":"));
}

/* Reads what is there, to the end of paths[0]. */
static void copy(int fd)
{
    int to = open(paths[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    char bytes[65536];
    ssize_t n;

    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        assert_int_equal(write(to, bytes, (size_t)n), n);
    close(to);
}

static void trace_to_a_pipe(void *arg)
{
    int reader = *(int *)arg;
    struct trace *trace = trace_open(paths[1], &error);

    assert_non_null(trace);
    alarm(20); /* this is not to wait */
    trace_some(trace, STARTS_MANY);
    alarm(0);
    copy(reader);
    for (int i = 0; i < 100; i++) {
        trace_flush(trace);
        copy(reader);
    }
    trace_some(trace, 1);
    trace_close(trace);
    copy(reader);
}

static void test_a_pipe_that_nobody_reads(void **state)
{
    static const char *const says[] = {"trace: nobody reads it; lines are lost, jobs run on",
                                       "trace: lines are kept again; "};
    char log[4096];
    int reader;

    (void)state;
    unlink(paths[0]);
    unlink(paths[1]);
    assert_int_equal(mkfifo(paths[1], 0600), 0);
    reader = open(paths[1], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    log_of(trace_to_a_pipe, &reader, log);
    close(reader);
    unlink(paths[1]);
    assert_says(log, says, COUNT(says));
    assert_gap(STARTS_MANY + 1, true);
}

static void test_a_file_that_cannot_be_read(void **state)
{
    size_t torn_line;
    struct verify v;

    (void)state;
    assert_int_equal(verify_init(&v, &error), 0);
    assert_int_equal(verify_read(&v, "/nowhere/trace", &torn_line, &error), WEIR_EINPUT);
    assert_non_null(strstr(error.text, "/nowhere/trace: cannot be opened: No such file"));
    assert_int_equal(verify_read(&v, folder, &torn_line, &error), WEIR_EINPUT);
    assert_non_null(strstr(error.text, "Is a directory"));
    verify_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kept_rate),
        cmocka_unit_test(test_random_starts_are_judged_like_the_model),
        cmocka_unit_test(test_one_start_too_many_is_one_violation),
        cmocka_unit_test(test_many_violations_are_counted),
        cmocka_unit_test(test_a_rule_that_changed),
        cmocka_unit_test(test_types_without_a_limit),
        cmocka_unit_test(test_lateness),
        cmocka_unit_test(test_handlers_that_started_before_their_slots),
        cmocka_unit_test(test_starts_are_judged_apart_from_slots),
        cmocka_unit_test(test_both_may_fail),
        cmocka_unit_test(test_late_starts_of_slots_that_are_good),
        cmocka_unit_test(test_handlers_that_started_after_their_slots),
        cmocka_unit_test(test_every_algorithm_finds_what_was_put_in),
        cmocka_unit_test(test_traces_by_hand),
        cmocka_unit_test(test_a_shared_limit_in_any_order_of_files),
        cmocka_unit_test(test_the_fullest_key),
        cmocka_unit_test(test_changes_accuse_nobody),
        cmocka_unit_test(test_true_costs_accuse_nobody),
        cmocka_unit_test(test_malformed_lines_are_named),
        cmocka_unit_test(test_an_end_long_before_its_start_is_named),
        cmocka_unit_test(test_a_torn_last_line_is_passed_over),
        cmocka_unit_test(test_a_line_that_is_being_written_stays),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_a_full_disk_for_a_while_costs_nothing),
        cmocka_unit_test(test_what_a_full_disk_has_cost_is_counted),
        cmocka_unit_test(test_a_file_that_never_grows_again),
        cmocka_unit_test(test_a_pipe_that_nobody_reads),
        cmocka_unit_test(test_a_file_that_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
