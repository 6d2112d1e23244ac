/* verify: traces that kept their rate and traces that did not, against the leaky bucket of gate_model.h; what
 * is measured; what is no trace. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/gate_model.h"
#include "throttle/verify.h"

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

static void add_start(struct traces *t, int file, const char *type, int64_t slot_us, int64_t late_us,
                      const char *rule)
{
    fprintf(t->files[file],
            "{\"slot\":%" PRId64 ",\"start\":%" PRId64
            ",\"type\":\"%s\",\"id\":\"%d.%zu\",\"rule\":\"%s\"}\n",
            slot_us, slot_us + late_us, type, file, ++t->lines[file], rule);
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

static void write_text(const char *text)
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
        {"burst", {100, 1000000, 10}, 109, 19},
        {"even", {2000, 1000000, 1}, 2000, 200},
        {"odd", {7, 1000000, 1}, 7, 1},
        {"slow", {1, 1500000, 1}, 1, 1},
        {"thirds", {30000, 1000000, 100}, 4000, 3099},
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
        struct model m;

        rule_write(&types[i].rule, stored);
        model_init(&m, &types[i].rule);
        for (int j = 0; j < STARTS; j++) {
            s = model_start(&m, s, 1);
            model_take(&m, s, 1);
            add_start(&t, (int)random_in(&random, 0, 2), types[i].type, s, random_in(&random, 0, 900),
                      stored);
        }
    }
    traces_close(&t);
    v = replay(3);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.starts, COUNT(types) * STARTS);
    assert_int_equal(v.type_count, COUNT(types));
    for (size_t i = 0; i < COUNT(types); i++) {
        const struct verify_type *type = &v.types[i];

        assert_string_equal(type->name, types[i].type);
        assert_int_equal(type->starts, STARTS);
        assert_int_equal(type->stretches, 1);
        assert_memory_equal(&type->rule, &types[i].rule, sizeof type->rule);
        if (type->kept < 0.999999 || type->kept > 1)
            fail_msg("%s: kept %.9f", type->name, type->kept);
        assert_int_equal(type->windows[0].most, types[i].most_1s);
        assert_int_equal(type->windows[1].most, types[i].most_100ms);
        assert_true(type->windows[0].allowed >= type->windows[0].most);
        assert_int_equal(type->windows[1].allowed, types[i].most_100ms);
        if (types[i].rule.burst == 1)
            assert_true(type->gap > 0.99 && type->gap <= 1);
        else
            assert_true(type->gap == 0);
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
    struct model m;

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
    model_init(&m, &rule);
    v = replay(3);
    for (int i = 0; i < SHOTS; i++) {
        struct shot *s = &shots[i];

        if (model_allows(&m, s->at_us, 1)) {
            model_take(&m, s->at_us, 1);
            continue;
        }
        s->early_us = model_start(&m, s->at_us, 1) - s->at_us;
        if (expected < VERIFY_NAMED_MAX &&
            (v.named[expected].early_us != s->early_us || v.named[expected].line != s->line ||
             v.named[expected].file != paths[s->file] || strcmp(v.named[expected].type, "mail") != 0))
            fail_msg("WEIR_SEED=%" PRIu64 ": %s: violation %" PRIu64 " is %s:%zu, not %s:%zu", seed, stored,
                     expected, v.named[expected].file, v.named[expected].line, paths[s->file], s->line);
        expected++;
    }
    if (v.violations != expected || v.types[0].violations != expected)
        fail_msg("WEIR_SEED=%" PRIu64 ": %s: %" PRIu64 " violations, not %" PRIu64, seed, stored,
                 v.violations, expected);
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
        add_start(&t, 0, "mail", BEGIN_US + i * 10000, 0, "100/1000000/1");
        if (i == 500)
            add_start(&t, 1, "mail", BEGIN_US + i * 10000 + 3000, 0, "100/1000000/1");
    }
    traces_close(&t);
    v = replay(2);
    assert_int_equal(v.violations, 1);
    assert_ptr_equal(v.named[0].file, paths[1]);
    assert_int_equal(v.named[0].line, 1);
    assert_int_equal(v.named[0].early_us, 7000);
    assert_int_equal(v.types[0].windows[0].most, 101);
    assert_int_equal(v.types[0].windows[0].allowed, 100);
    assert_int_equal(v.types[0].windows[1].most, 11);
    assert_int_equal(v.types[0].windows[1].allowed, 10);
    assert_true(v.types[0].gap > 0.299 && v.types[0].gap < 0.301);
    verify_free(&v);
}

static void test_many_violations_are_counted(void **state)
{
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 1000; i++)
        add_start(&t, 0, "mail", BEGIN_US, 0, "1/1000000/1");
    traces_close(&t);
    v = replay(1);
    assert_int_equal(v.violations, 999);
    assert_int_equal(v.named[VERIFY_NAMED_MAX - 1].line, 21);
    assert_true(v.types[0].kept < 0);
    verify_free(&v);
}

/* ---- Rules that change, types without one */

static void test_a_changed_rule_begins_anew(void **state)
{
    struct traces t;
    struct verify v;

    (void)state;
    traces_open(&t);
    for (int i = 0; i < 100; i++)
        add_start(&t, 0, "mail", BEGIN_US + i * 1000, 0, "1000/1000000/1");
    for (int i = 0; i < 100; i++)
        add_start(&t, 0, "mail", BEGIN_US + 100000 + i * 100000, 0, "10/1000000/1");
    traces_close(&t);
    v = replay(1);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.types[0].stretches, 2);
    assert_int_equal(v.types[0].rule.count, 10);
    assert_true(v.types[0].kept > 0.9999 && v.types[0].kept <= 1);
    assert_true(v.types[0].gap == 1);
    verify_free(&v);
}

static void test_types_without_a_limit(void **state)
{
    struct verify v;

    (void)state;
    write_text(
        "{\"slot\":0,\"start\":1795000000000000,\"type\":\"b\",\"id\":\"1\",\"rule\":\"\"}\n"
        "{\"start\":1795000002000000,\"type\":\"b\"}\n"
        "{\"start\":1795000001000000,\"type\":\"a\",\"slot\":0}\n"
        "{\"slot\":1795000001000000,\"start\":1795000001000300,\"type\":\"a\",\"rule\":\"1/1000000/1\"}\n");
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
        add_start(&t, i % 3, "mail", BEGIN_US + i, 999 - i, "1000000/1000000/1");
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

/* ---- What is no trace */

static void test_malformed_lines_are_named(void **state)
{
    static const struct {
        const char *line;
        const char *says;
    } cases[] = {
        {"", "no JSON"},
        {"x", "no JSON"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\"", "no JSON"},
        {"{\"slot\":1,\"slot\":1,\"start\":1,\"type\":\"a\"}", "no JSON"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\"} {}", "no JSON"},
        {"[]", "no JSON object"},
        {"{}", "type is missing"},
        {"{\"slot\":1,\"start\":1,\"type\":7}", "type is missing, or type or rule is no string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a b\"}", "type 'a b'"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"rule\":null}", "rule is no string"},
        {"{\"slot\":1,\"start\":1,\"type\":\"a\",\"rule\":\"1/s\"}", "stored rule '1/s'"},
        {"{\"slot\":1,\"type\":\"a\"}", "slot or start is no time"},
        {"{\"start\":1,\"type\":\"a\",\"rule\":\"1/1000000/1\"}", "slot or start is no time"},
        {"{\"slot\":1.5,\"start\":1,\"type\":\"a\",\"rule\":\"1/1000000/1\"}", "slot or start is no time"},
        {"{\"slot\":-1,\"start\":1,\"type\":\"a\",\"rule\":\"1/1000000/1\"}", "slot or start is no time"},
        {"{\"slot\":1,\"start\":9007199254740992,\"type\":\"a\"}", "slot or start is no time"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512], where[128];
        size_t torn_line;
        struct verify v;

        snprintf(text, sizeof text, "{\"start\":1,\"type\":\"a\"}\n%s\n{\"start\":1,\"type\":\"a\"}\n",
                 cases[i].line);
        write_text(text);
        snprintf(where, sizeof where, "%s:2: ", paths[0]);
        assert_int_equal(verify_init(&v, &error), 0);
        assert_int_equal(verify_read(&v, paths[0], &torn_line, &error), WEIR_EINPUT);
        if (strncmp(error.text, where, strlen(where)) != 0 || !strstr(error.text, cases[i].says))
            fail_msg("%s: %s", cases[i].line, error.text);
        verify_free(&v);
    }
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

        write_text(cases[i].text);
        assert_int_equal(verify_init(&v, &error), 0);
        assert_int_equal(verify_read(&v, paths[0], &torn_line, &error), 0);
        assert_int_equal(torn_line, cases[i].torn_line);
        assert_int_equal(verify_replay(&v, &error), 0);
        assert_int_equal(v.starts, cases[i].starts);
        verify_free(&v);
    }
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
        cmocka_unit_test(test_a_changed_rule_begins_anew),
        cmocka_unit_test(test_types_without_a_limit),
        cmocka_unit_test(test_lateness),
        cmocka_unit_test(test_malformed_lines_are_named),
        cmocka_unit_test(test_a_torn_last_line_is_passed_over),
        cmocka_unit_test(test_a_file_that_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
