/* WEIR_TEST=PATTERN: only the tests of a program whose names match (* and ?). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void choose_tests(void)
{
    if (getenv("WEIR_TEST"))
        cmocka_set_test_filter(getenv("WEIR_TEST"));
}
