#include "serve/page/html.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/utf8.h"
#include "view/format.h"

#define TEXT_MOST 16384
#define ROW_TEXT_MOST 1000

static void put(struct html *h, const char *bytes, size_t len)
{
    struct error ignored;

    h->failed = h->failed || text_add(&h->out, bytes, len, &ignored) < 0;
}

static void put_str(struct html *h, const char *text)
{
    put(h, text, strlen(text));
}

/* ---- Texts of others */

/* Returns the code point of a printable character. */
static unsigned point_of(const char *at, size_t len)
{
    const unsigned char *byte = (const unsigned char *)at;
    unsigned point = len == 1 ? *byte : *byte & (0xffU >> (len + 1));

    for (size_t i = 1; i < len; i++)
        point = point << 6 | (byte[i] & 0x3fU);
    return point;
}

/* True when a character turns, joins or hides what stands around it, and shows nothing itself. */
static bool is_unseen(unsigned point)
{
    static const struct {
        unsigned first, last;
    } ranges[] = {{0xad, 0xad},     {0x61c, 0x61c},   {0x115f, 0x1160},  {0x17b4, 0x17b5}, {0x180b, 0x180f},
                  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},  {0x3164, 0x3164}, {0xfe00, 0xfe0f},
                  {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}};

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

static const char *entity_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* Writes the first character of a text; returns its bytes. */
static size_t put_character(struct html *h, const char *at, size_t len)
{
    const char *entity = entity_of(*at);
    size_t size = utf8_printable(at, len);
    unsigned point = size ? point_of(at, size) : 0;
    char piece[16];

    if (entity) {
        put_str(h, entity);
        return 1;
    }
    if (*at == '\n' || *at == '\t') {
        put(h, at, 1);
        return 1;
    }
    if (is_unseen(point)) {
        put(h, piece, (size_t)snprintf(piece, sizeof piece, "\\u%04X", point));
        return size;
    }
    size = utf8_escaped(at, len, piece);
    put_str(h, piece);
    return size;
}

void html_span(struct html *h, struct span bytes)
{
    for (size_t i = 0; i < bytes.len && !h->failed;)
        i += put_character(h, bytes.at + i, bytes.len - i);
}

/* The beginning of a text that is longer than that, without half a character. */
static struct span beginning_of(const char *text, size_t most)
{
    size_t len = strnlen(text, most + 1);

    if (len <= most)
        return (struct span){text, len};
    for (len = most; len > most - 4 && ((unsigned char)text[len] & 0xc0) == 0x80;)
        len--;
    return (struct span){text, len};
}

static void put_text(struct html *h, const char *text, size_t most)
{
    struct span shown = beginning_of(text, most);

    html_span(h, shown);
    if (text[shown.len])
        html(h, "… (%n bytes)", (int64_t)strlen(text));
}

static void put_encoded(struct html *h, const char *text)
{
    const char *end = text + strnlen(text, TEXT_MOST);
    char piece[8];

    for (; text < end; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text))
            put(h, text, 1);
        else
            put(h, piece, (size_t)snprintf(piece, sizeof piece, "%%%02X", (unsigned char)*text));
}

/* ---- Forms */

static void put_number(struct html *h, int64_t n)
{
    char text[24];

    put(h, text, (size_t)snprintf(text, sizeof text, "%" PRId64, n));
}

static void put_grouped(struct html *h, int64_t n)
{
    char text[32];

    if (n < 0)
        put_str(h, "-");
    put_str(h, grouped(n < 0 ? 0 - (uint64_t)n : (uint64_t)n, text));
}

static void put_value(struct html *h, char kind, va_list *values)
{
    switch (kind) {
    case 's':
        put_text(h, va_arg(*values, const char *), TEXT_MOST);
        break;
    case 't':
        put_text(h, va_arg(*values, const char *), ROW_TEXT_MOST);
        break;
    case 'r':
        put_str(h, va_arg(*values, const char *));
        break;
    case 'u':
        put_encoded(h, va_arg(*values, const char *));
        break;
    case 'd':
        put_number(h, va_arg(*values, int));
        break;
    case 'i':
        put_number(h, va_arg(*values, int64_t));
        break;
    case 'n':
        put_grouped(h, va_arg(*values, int64_t));
        break;
    default:
        put(h, &kind, 1);
    }
}

void html(struct html *h, const char *form, ...)
{
    va_list values;
    size_t len;

    va_start(values, form);
    while (*form) {
        len = strcspn(form, "%");
        put(h, form, len);
        form += len;
        if (*form) {
            put_value(h, form[1], &values);
            form += 2;
        }
    }
    va_end(values);
}

void html_free(struct html *h)
{
    text_free(&h->out);
}
