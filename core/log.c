#include "core/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/utf8.h"

#define LINE_SIZE 2048 /* below PIPE_BUF: a line of one process is never torn by another's */

static const char *const names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

static enum log_level highest = LOG_LEVEL_INFO;

static void read_level(void)
{
    const char *wanted = getenv("WEIR_LOG");

    for (size_t i = 0; wanted && i < sizeof names / sizeof *names; i++)
        if (strcmp(wanted, names[i]) == 0)
            highest = (enum log_level)i;
}

/* Writes the first character of text to piece, as its escape when it is not printable; returns how many bytes
 * of text that took. */
static size_t escape(const char *text, char piece[12])
{
    size_t len = utf8_printable(text, strnlen(text, 4));

    if (len > 0)
        snprintf(piece, 12, "%.*s", (int)len, text);
    else if (*text == '\n')
        snprintf(piece, 12, "\\n");
    else
        snprintf(piece, 12, "\\x%02x", (unsigned char)*text);
    return len > 0 ? len : 1;
}

/* Appends text to line from len on, escaped, cut off with "..." where it does not fit; returns the new
 * length. */
static size_t append_escaped(char line[LINE_SIZE], size_t len, const char *text)
{
    const size_t last = LINE_SIZE - 1 - 3; /* room for "..." and the newline */

    while (*text) {
        char piece[12];
        size_t taken = escape(text, piece);

        if (len + strlen(piece) > last) {
            memcpy(line + len, "...", 3);
            return len + 3;
        }
        memcpy(line + len, piece, strlen(piece));
        len += strlen(piece);
        text += taken;
    }
    return len;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[LINE_SIZE], line[LINE_SIZE];
    int64_t now_us = clock_wall_us();
    time_t now_s = now_us / 1000000;
    struct tm tm;
    size_t len;
    va_list args;

    pthread_once(&once, read_level);
    if (level > highest)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    gmtime_r(&now_s, &tm);
    len = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    len += (size_t)snprintf(line + len, sizeof line - len, ".%03dZ %-5s ", (int)(now_us / 1000 % 1000),
                            names[level]);
    len = append_escaped(line, len, text);
    line[len++] = '\n';
    if (write(STDERR_FILENO, line, len) < 0)
        return;
}
