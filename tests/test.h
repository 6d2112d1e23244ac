/* What a test is written with: cmocka, with the headers that it wants before it, the usual ones of C, and a few names. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PREFIX "weir:{0}:"                 /* of the keys of the default namespace */
#define BEGIN_US INT64_C(1795000000000000) /* virtual time begins then */

#endif
