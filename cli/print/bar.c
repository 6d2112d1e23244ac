#include "cli/print/bar.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print/terminal.h"
#include "core/clock.h"
#include "view/format.h"
#include "view/output.h"

#define WIDTH 30
#define WIDTH_LEAST 10
#define TOLD_FROM_US 500000 /* before that, what was seen says little */

/* When it was first shown, and how far it was then. */
static struct {
    int64_t us;
    double part;
} begun;

/* Estimates the time that is left; below 0: it cannot be told. */
static int64_t left_from(double part)
{
    int64_t passed_us;

    if (begun.us == 0) {
        begun.us = clock_mono_us();
        begun.part = part;
    }
    passed_us = clock_mono_us() - begun.us;
    if (part <= begun.part || passed_us < TOLD_FROM_US)
        return -1;
    return (int64_t)((double)passed_us * (1 - part) / (part - begun.part));
}

/* Makes "[###.......] 30% 2m 10s left "; part below 0: nothing. The caller frees it; NULL: out of memory. */
static char *make_bar(double part, int64_t left_us, int width)
{
    static const char full[] = "##############################", empty[] = "..............................";
    int filled = (int)((part < 1 ? part : 1) * width);
    char *text = NULL, left[PHRASE_SIZE] = "";
    bool told = left_us >= 0;

    if (part < 0)
        return strdup("");
    if (told)
        format_span((left_us + 999999) / 1000000 * 1000000, left);
    if (asprintf(&text, "[%.*s%.*s] %3.0f%%  %s%s", filled, full, width - filled, empty, part * 100, left,
                 told ? " left  " : "") < 0)
        return NULL;
    return text;
}

/* The text behind a bar as wide as there is room for. Where it does not fit even so it is left out, or cut where it stands
 * alone. */
static void put_line(double part, int64_t left_us, const char *text, int columns)
{
    int width = WIDTH, len = (int)strlen(text), needs = output_columns(text, (size_t)len);
    char *bar = make_bar(part, left_us, width);

    while (bar && (int)strlen(bar) + needs >= columns && width > WIDTH_LEAST) {
        free(bar);
        bar = make_bar(part, left_us, width -= 5);
    }
    if (bar && (int)strlen(bar) + needs >= columns)
        len = *bar ? 0 : columns - 1;
    output_to(stderr, "%s%.*s", bar ? bar : "", len, text);
    free(bar);
}

void bar_show(double part, int64_t left_us, const char *fmt, ...)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    int columns = cli_line_width(stderr);
    va_list values;

    va_start(values, fmt);
    if (to)
        output_list(to, fmt, values);
    va_end(values);
    if (to)
        fclose(to);
    fputs("\r", stderr);
    if (text)
        put_line(part, left_us == BAR_LEFT_UNKNOWN ? left_from(part) : left_us, text,
                 columns > 0 ? columns : 80);
    fputs("\033[K", stderr);
    fflush(stderr);
    free(text);
}

void bar_clear(void)
{
    fputs("\r\033[K", stderr);
}
