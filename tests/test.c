#include "tests/test.h"

#include <errno.h>

#define TESTS_MOST 200
#define TEXTS 100000

static struct {
    struct CMUnitTest test;
    int line;
} all[TESTS_MOST];
static size_t count;

void tests_add(int line, struct CMUnitTest test)
{
    size_t at = count++;

    if (count > TESTS_MOST)
        abort();
    for (; at > 0 && all[at - 1].line > line; at--)
        all[at] = all[at - 1];
    all[at].test = test;
    all[at].line = line;
}

int tests_run(int (*setup)(void **state), int (*teardown)(void **state))
{
    struct CMUnitTest tests[TESTS_MOST];

    setenv("WEIR_CONFIG", "/dev/null", 1); /* not that of this machine */
    if (getenv("WEIR_TEST"))
        cmocka_set_test_filter(getenv("WEIR_TEST"));
    for (size_t i = 0; i < count; i++)
        tests[i] = all[i].test;
    return _cmocka_run_group_tests(program_invocation_short_name, tests, count, setup, teardown);
}

char *textf(const char *fmt, ...)
{
    static char *texts[TEXTS];
    static unsigned next;
    char **text = &texts[next++ % TEXTS];
    va_list args;

    free(*text);
    va_start(args, fmt);
    assert_true(vasprintf(text, fmt, args) >= 0);
    va_end(args);
    return *text;
}

const char **numbered(const char *head, int most)
{
    static const char **lists[16];
    static unsigned next;
    const char ***list = &lists[next++ % 16];

    *list = realloc(*list, (size_t)most * sizeof **list);
    assert_non_null(*list);
    for (int i = 0; i < most; i++)
        (*list)[i] = textf("%s%d", head, i);
    return *list;
}

char *cut_text(char **rest)
{
    char *text = *rest, *end = text ? strstr(text, " | ") : NULL;

    *rest = end ? end + 3 : NULL;
    if (end)
        *end = '\0';
    return text;
}
