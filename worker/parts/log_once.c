#include "worker/parts/log_once.h"

#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MOST 1000

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool is_new(struct log_once *once, const char *text)
{
    char *copy = NULL;

    if (once->count < LINES_MOST && !tfind(text, &once->lines, compare))
        copy = strdup(text);
    if (!copy || !tsearch(copy, &once->lines, compare)) {
        free(copy);
        return false;
    }
    once->count++;
    return true;
}

void log_once(struct log_once *once, enum log_level level, const char *fmt, ...)
{
    char text[600];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (is_new(once, text))
        log_line(level, "%s", text);
}

void log_once_free(struct log_once *once)
{
    tdestroy(once->lines, free);
}
