#include "cli/bar.h"

#include "cli/output.h"

#include <stdarg.h>
#include <stdio.h>

#define WIDTH 30

void bar_show(double part, const char *fmt, ...)
{
    static const char full[] = "##############################", empty[] = "..............................";
    va_list values;

    fputs("\r", stderr);
    if (part >= 0) {
        int width = (int)((part < 1 ? part : 1) * WIDTH);

        output_to(stderr, "[%.*s%.*s] %3.0f%%  ", width, full, WIDTH - width, empty, part * 100);
    }
    va_start(values, fmt);
    output_list(stderr, fmt, values);
    va_end(values);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void bar_clear(void)
{
    fputs("\r\033[K", stderr);
}
