/* What the commands say of the same thing is the same, and none says more than is known: forecasts, rates,
 * counts. */
#include "tests/scene.h"

#include <jansson.h>
#include <math.h>

#include "core/clock.h"
#include "tests/program.h"

static struct outcome said;

/* weir with these words, split at blanks, on the scene's Redis; it must end well. */
static void weir(const char *line)
{
    const char *words[WORDS_MAX + 1] = {built("weir")};
    char text[400], *rest = text;
    int count = 1;

    snprintf(text, sizeof text, "%s", line);
    while (count < WORDS_MAX - 2 && rest && *rest)
        words[count++] = strsep(&rest, " ");
    words[count++] = "--redis";
    words[count] = turns.server.url;
    program_run(&said, turns.server.folder, words);
    if (said.code != 0)
        fail_msg("%s: %d: %s%s", line, said.code, said.out, said.err);
}

static void expect_said(const char *part)
{
    if (!strstr(said.out, part) && !strstr(said.err, part))
        fail_msg("not said: %s\nbut: %s%s", part, said.out, said.err);
}

static void must_say(const char *line, const char *part)
{
    weir(line);
    expect_said(part);
}

/* What it prints as JSON, freed by the caller. */
static json_t *json_of(const char *line)
{
    char with[400];
    json_t *doc;

    snprintf(with, sizeof with, "%s --json", line);
    weir(with);
    doc = json_loads(said.out, 0, NULL);
    if (!doc)
        fail_msg("%s: no JSON: %s", line, said.out);
    return doc;
}

/* A member by a path such as "types.t.rate_now", as a number; NAN: null. */
static double number_of(const char *line, const char *path)
{
    json_t *doc = json_of(line), *at = doc;
    char text[200], *rest = text, *name;
    double number;

    snprintf(text, sizeof text, "%s", path);
    while ((name = strsep(&rest, ".")))
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(name)) : json_object_get(at, name);
    if (!json_is_number(at) && !json_is_null(at) && !json_is_boolean(at))
        fail_msg("%s: no number at %s: %s", line, path, said.out);
    number = json_is_number(at) ? json_number_value(at) : json_is_null(at) ? NAN : json_is_true(at);
    json_decref(doc);
    return number;
}

static int begin_now(void **state)
{
    int rc = scene_begin(state);

    turns.now_us = clock_wall_us();
    return rc;
}

/* ---- What is counted */

/* Jobs that a claim sets aside have not started, and are not lost from sight. */
static void test_jobs_set_aside_are_counted_as_that(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    write_text(turns.server.folder, "jobs", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    weir("enqueue --from jobs slow --batch b");
    turns.now_us = clock_wall_us() - 3 * SECOND_US;
    ask.mark = true;
    assert_int_equal(claim("w", 9, 0), 1);
    weir("batch pause b");
    weir("rate remove slow --yes");
    turns.now_us = clock_wall_us();
    for (int i = 0; i < 9; i++)
        assert_int_equal(claim("w", 9, 0), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "aside:b"), 8);
    assert_int_equal((int)number_of("status", "types.slow.aside"), 8);
    assert_int_equal((int)number_of("status", "types.slow.parked"), 0);
    assert_int_equal((int)number_of("status", "types.slow.waiting"), 0);
    assert_true(number_of("status", "types.slow.rate_now") <= 1);
    must_say("status", "   aside ");
    weir("batch resume b");
    assert_int_equal((int)number_of("status", "types.slow.aside"), 0);
    assert_int_equal((int)number_of("status", "types.slow.waiting"), 8);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(test_##name, begin_now)
    const struct CMUnitTest tests[] = {
        TEST(jobs_set_aside_are_counted_as_that),
    };

    return cmocka_run_group_tests_name("truth", tests, turns_start, turns_stop);
}
