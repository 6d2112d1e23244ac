/* What a test is written with: cmocka, with the headers that it wants before it, the usual ones of C, and a few names.
 *
 *     TEST(a_queue_is_empty)
 *     {
 *         ...
 *     }
 *
 *     TESTS(NULL, NULL)
 *
 * is a program. Its tests register themselves, and run in the order of the source; WEIR_TEST=PATTERN: only those whose names match (* and
 * ?). A test has its *state from the setup, as of cmocka. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* a test that needs no state has one */

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PREFIX "weir:{0}:"                 /* of the keys of the default namespace */
#define BEGIN_US INT64_C(1795000000000000) /* virtual time begins then */

#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, setup, teardown)                                                                     \
    static void name(void **state);                                                                          \
    __attribute__((constructor)) static void name##_is_a_test(void)                                          \
    {                                                                                                        \
        tests_add(__LINE__, (struct CMUnitTest){#name, name, setup, teardown, NULL});                        \
    }                                                                                                        \
    static void name(void **state)
/* A test of a program whose *state is a struct: the test has it as f. */
#define TEST_OF(name, fixture, setup, teardown)                                                              \
    static void name##_of(struct fixture *f);                                                                \
    TEST_WITH(name, setup, teardown)                                                                         \
    {                                                                                                        \
        name##_of(*state);                                                                                   \
    }                                                                                                        \
    static void name##_of(struct fixture *f)
/* The main of a program, with the setup and the teardown of all of its tests together. */
#define TESTS(setup, teardown)                                                                               \
    int main(void)                                                                                           \
    {                                                                                                        \
        return tests_run(setup, teardown);                                                                   \
    }

/* Fails the test, and says so as printf does, if the condition holds. */
#define fail_if(condition, ...)                                                                              \
    do {                                                                                                     \
        if (condition)                                                                                       \
            fail_msg(__VA_ARGS__);                                                                           \
    } while (0)

/* A text as of printf, good until 99,999 more were written; of one thread. */
char *textf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* So many names, "t0", "t1" ..., good until there are sixteen other lists of them. */
const char **numbered(const char *head, int count);
/* Cuts the first of some texts, "one | two | three", off *rest; NULL: there is none left. */
char *cut_text(char **rest);

void tests_add(int line, struct CMUnitTest test);
int tests_run(int (*setup)(void **state), int (*teardown)(void **state));
