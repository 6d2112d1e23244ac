#include "core/decimal.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t plain; /* of C: it is always there */

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", NULL);
}

static locale_t plain_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_plain);
    return plain;
}

double decimal_read(const char *text, char **end)
{
    return strtod_l(text, end, plain_locale());
}

int decimal_vprint(char *out, size_t size, const char *fmt, va_list args)
{
    locale_t before = uselocale(plain_locale()); /* of this thread alone */
    int len = vsnprintf(out, size, fmt, args);

    uselocale(before);
    return len;
}

int decimal_print(char *out, size_t size, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = decimal_vprint(out, size, fmt, args);
    va_end(args);
    return len;
}
