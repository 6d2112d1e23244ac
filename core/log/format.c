#include "core/log/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/utf8.h"

#define FIELDS_SIZE (LOG_LINE_SIZE / 2)
#define VALUE_MOST 256 /* bytes of a field's value */
#define PIECE_SIZE 8

const char *const log_level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

/* Priorities as syslog numbers them. */
static const int severities[] = {
    [LOG_LEVEL_ERROR] = 3,
    [LOG_LEVEL_WARN] = 4,
    [LOG_LEVEL_INFO] = 6,
    [LOG_LEVEL_DEBUG] = 7,
};

/* A text of bytes grows up to `most`. */
struct text {
    char *at;
    size_t len, most;
};

static bool put(struct text *t, const char *bytes, size_t len)
{
    if (len > t->most - t->len)
        return false;
    memcpy(t->at + t->len, bytes, len);
    t->len += len;
    return true;
}

static bool puts_whole(struct text *t, const char *text)
{
    return put(t, text, strlen(text));
}

/* The first character of a value, as it stands between quotes; returns how many bytes of the value that was. */
static size_t quoted(const char *value, size_t len, char piece[PIECE_SIZE])
{
    unsigned char byte = (unsigned char)*value;
    char plain[UTF8_PIECE];
    size_t taken;

    if (byte == '"' || byte == '\\')
        snprintf(piece, PIECE_SIZE, "\\%c", byte);
    else if (byte == '\n' || byte == '\t')
        snprintf(piece, PIECE_SIZE, "\\%c", byte == '\n' ? 'n' : 't');
    else if (byte < ' ')
        snprintf(piece, PIECE_SIZE, "\\u%04x", byte);
    else {
        taken = utf8_escaped(value, len, plain);
        snprintf(piece, PIECE_SIZE, "%s%s", *plain == '\\' ? "\\" : "", plain);
        return taken;
    }
    return 1;
}

/* Counts the first characters of a value that stand between quotes as they are, of ASCII. */
static size_t plain_length(const char *value, size_t len)
{
    size_t n = 0;

    while (n < len && value[n] >= ' ' && value[n] <= '~' && value[n] != '"' && value[n] != '\\')
        n++;
    return n;
}

/* Between quotes, as JSON has it; cut off with "..." where t ends before it. */
static void put_quoted(struct text *t, const char *value, size_t len)
{
    const size_t closing = strlen("...\"");
    char piece[PIECE_SIZE];

    puts_whole(t, "\"");
    while (len > 0) {
        size_t plain = plain_length(value, len), taken = plain ? plain : quoted(value, len, piece);
        size_t wide = plain ? plain : strlen(piece), room = t->most - t->len - closing;

        if (wide > room) {
            put(t, value, plain ? room : 0);
            puts_whole(t, "...");
            break;
        }
        put(t, plain ? value : piece, wide);
        value += taken;
        len -= taken;
    }
    puts_whole(t, "\"");
}

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("._:/@+,-", c));
}

static bool needs_quotes(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_bare(value[i]))
            return true;
    return len == 0;
}

/* t has room for all but a long value between quotes, which is cut off. */
static void put_field(struct text *t, bool json, const char *name, const char *value, size_t len, bool number)
{
    if (t->len > 0)
        puts_whole(t, json ? "," : " ");
    if (json)
        puts_whole(t, "\"");
    puts_whole(t, name);
    puts_whole(t, json ? "\":" : "=");
    if (!number && (json || needs_quotes(value, len)))
        put_quoted(t, value, len);
    else
        put(t, value, len);
}

static void put_fields(struct text *t, bool json, const struct log_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = fields[i].len < VALUE_MOST ? fields[i].len : VALUE_MOST;

        if (t->most - t->len < strlen(fields[i].name) + VALUE_MOST + PIECE_SIZE)
            break;
        put_field(t, json, fields[i].name, fields[i].value, len, fields[i].number);
    }
}

size_t log_format_line(char line[LOG_LINE_SIZE], enum log_format format, int64_t wall_us,
                       enum log_level level, const char *message, const struct log_field *fields,
                       size_t field_count)
{
    const bool json = format == LOG_FORMAT_JSON;
    const char *name = log_level_names[level];
    char now[CLOCK_TEXT_SIZE], ending[FIELDS_SIZE];
    struct text t = {.at = line}, last = {.at = ending, .most = sizeof ending};
    size_t head = 0;

    put_fields(&last, json, fields, field_count);
    t.most = LOG_LINE_SIZE - last.len - strlen(" }\n");

    if (json || format == LOG_FORMAT_JOURNAL)
        head = (size_t)snprintf(line, 8, json ? "{" : "<%d>", severities[level]);
    t.at += head;
    t.most -= head;
    clock_text(wall_us, now);
    if (format != LOG_FORMAT_JOURNAL)
        put_field(&t, json, "time", now, strlen(now), false);
    put_field(&t, json, "level", name, strlen(name), false);
    put_field(&t, json, "msg", message, strlen(message), false);
    t.most = LOG_LINE_SIZE - head;
    if (last.len > 0)
        puts_whole(&t, json ? "," : " ");
    put(&t, ending, last.len);
    puts_whole(&t, json ? "}\n" : "\n");
    return head + t.len;
}
