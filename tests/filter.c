/* WEIR_TEST=PATTERN: only the tests of a program whose names match (* and ?). */
#include "tests/test.h"

__attribute__((constructor)) static void choose_tests(void)
{
    if (getenv("WEIR_TEST"))
        cmocka_set_test_filter(getenv("WEIR_TEST"));
}
