/* Numbers with a decimal point, whatever locale the host program has set, or a library that one of its
 * handlers uses. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "weir.h"

/* These are strtod, vsnprintf and snprintf with a decimal point in any locale. */
double decimal_read(const char *text, char **end);
int decimal_vprint(char *out, size_t size, const char *fmt, va_list args);
int decimal_print(char *out, size_t size, const char *fmt, ...) WEIR_PRINTF(3, 4);
