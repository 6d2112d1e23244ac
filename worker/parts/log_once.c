#include "worker/parts/log_once.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MOST 1000

struct logged_line {
    struct logged_line *next;
    char text[];
};

static bool is_new(struct log_once *once, const char *text)
{
    size_t size = strlen(text) + 1;
    struct logged_line *line;

    for (line = once->lines; line; line = line->next)
        if (strcmp(line->text, text) == 0)
            return false;
    if (once->count == LINES_MOST || !(line = malloc(sizeof *line + size)))
        return false;
    memcpy(line->text, text, size);
    line->next = once->lines;
    once->lines = line;
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
    while (once->lines) {
        struct logged_line *next = once->lines->next;

        free(once->lines);
        once->lines = next;
    }
}
