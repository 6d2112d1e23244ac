#include "view/output.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

/* A spec is what stands between a '%' and its letter. */
struct spec {
    char flags[8];
    int width, precision; /* -1: none */
    char length;          /* 'h', 'l', 'q' (ll), 'z', 'j', 't'; '\0': none */
    char letter;
};

/* A va_list that functions can share. */
struct values {
    va_list at;
};

/* ---- Words */

/* Bytes of printable ASCII that it begins with: most of what is printed. */
static size_t plain_run(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] >= ' ' && text[n] <= '~')
        n++;
    return n;
}

int output_columns(const char *word, size_t len)
{
    char piece[UTF8_PIECE];
    size_t plain = plain_run(word, len);
    int columns = (int)plain;

    for (size_t at = plain, n; at < len; at += n) {
        n = utf8_escaped(word + at, len - at, piece);
        columns += n > 1 ? 1 : (int)strlen(piece);
    }
    return columns;
}

void output_blanks(FILE *to, int n)
{
    flockfile(to);
    for (; n > 0; n--)
        putc_unlocked(' ', to);
    funlockfile(to);
}

static void put_word(FILE *to, const struct spec *s, const char *word)
{
    size_t len = s->precision < 0 ? strlen(word) : strnlen(word, (size_t)s->precision);
    size_t plain = plain_run(word, len);
    int room = s->width > 0 ? s->width - output_columns(word, len) : 0;
    bool left = strchr(s->flags, '-') != NULL;
    char piece[UTF8_PIECE];

    output_blanks(to, left ? 0 : room);
    fwrite(word, 1, plain, to);
    for (size_t at = plain; at < len;) {
        at += utf8_escaped(word + at, len - at, piece);
        fputs(piece, to);
    }
    output_blanks(to, left ? room : 0);
}

/* ---- Numbers */

static intmax_t next_signed(char length, struct values *v)
{
    switch (length) {
    case 'l':
        return va_arg(v->at, long);
    case 'q':
        return va_arg(v->at, long long);
    case 'j': /* NOLINT(bugprone-branch-clone): three types of one size on this machine */
        return va_arg(v->at, intmax_t);
    case 'z':
        return va_arg(v->at, ssize_t);
    case 't':
        return va_arg(v->at, ptrdiff_t);
    default:
        return va_arg(v->at, int);
    }
}

/* Reads a value as unsigned: a type of the other sign has the same bits. */
static uintmax_t next_unsigned(char length, struct values *v)
{
    uintmax_t value = (uintmax_t)next_signed(length, v);

    return length ? value : (unsigned)value;
}

/* Prints the next value as printf does. */
static void put_number(FILE *to, const struct spec *s, struct values *v)
{
    char fmt[64];
    size_t len = (size_t)snprintf(fmt, sizeof fmt, "%%%s", s->flags);

    if (s->width >= 0)
        len += (size_t)snprintf(fmt + len, sizeof fmt - len, "%d", s->width);
    if (s->precision >= 0)
        len += (size_t)snprintf(fmt + len, sizeof fmt - len, ".%d", s->precision);
    if (strchr("di", s->letter)) {
        snprintf(fmt + len, sizeof fmt - len, "j%c", s->letter);
        fprintf(to, fmt, next_signed(s->length, v));
    } else if (strchr("uxXo", s->letter)) {
        snprintf(fmt + len, sizeof fmt - len, "j%c", s->letter);
        fprintf(to, fmt, next_unsigned(s->length, v));
    } else {
        snprintf(fmt + len, sizeof fmt - len, "%c", s->letter);
        fprintf(to, fmt, va_arg(v->at, double));
    }
}

/* ---- Formats */

/* "*" or digits at *fmt, if there are any. */
static int read_size(const char **fmt, struct values *v)
{
    char *end;
    long n;

    if (**fmt == '*') {
        ++*fmt;
        return va_arg(v->at, int);
    }
    n = strtol(*fmt, &end, 10);
    *fmt = end;
    return (int)n;
}

/* Reads what stands behind a '%'; returns what is behind its letter. */
static const char *read_spec(const char *fmt, struct spec *s, struct values *v)
{
    size_t flags = strspn(fmt, "-0+ #"), kept = flags < sizeof s->flags ? flags : sizeof s->flags - 1;

    memcpy(s->flags, fmt, kept);
    s->flags[kept] = '\0';
    fmt += flags;
    s->width = *fmt == '*' || (*fmt >= '1' && *fmt <= '9') ? read_size(&fmt, v) : -1;
    s->precision = -1;
    if (*fmt == '.') {
        fmt++;
        s->precision = read_size(&fmt, v);
    }
    for (s->length = '\0'; strchr("hlzjt", *fmt); fmt++)
        s->length = s->length == 'l' && *fmt == 'l' ? 'q' : *fmt;
    s->letter = *fmt;
    return fmt + 1;
}

static void put_value(FILE *to, const struct spec *s, struct values *v)
{
    char letter[2] = "";

    if (s->letter == 's') {
        put_word(to, s, va_arg(v->at, const char *));
    } else if (s->letter == 'c') {
        letter[0] = (char)va_arg(v->at, int);
        put_word(to, s, letter);
    } else if (s->letter == '%') {
        fputc('%', to);
    } else {
        put_number(to, s, v);
    }
}

void output_list(FILE *to, const char *fmt, va_list values)
{
    struct values v;
    struct spec spec;

    va_copy(v.at, values);
    for (size_t plain; *fmt; fmt += plain) {
        plain = strcspn(fmt, "%");
        fwrite(fmt, 1, plain, to);
        if (fmt[plain] == '%') {
            fmt = read_spec(fmt + plain + 1, &spec, &v);
            put_value(to, &spec, &v);
            plain = 0;
        }
    }
    va_end(v.at);
}

void output(const char *fmt, ...)
{
    va_list values;

    va_start(values, fmt);
    output_list(stdout, fmt, values);
    va_end(values);
}

void output_to(FILE *to, const char *fmt, ...)
{
    va_list values;

    va_start(values, fmt);
    output_list(to, fmt, values);
    va_end(values);
}

/* ---- JSON */

/* A control character that JSON allows, which is two bytes of UTF-8 from U+0080 on; returns how many. */
static size_t put_control(FILE *to, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    if (*at == 0xc2) {
        fprintf(to, "\\u%04x", at[1]);
        return 2;
    }
    if (*at == 0x7f)
        fputs("\\u007f", to);
    else
        putc(*at == '\n' || *at == '\r' ? ' ' : *at, to);
    return 1;
}

int output_json(const char *text, size_t len, void *file)
{
    FILE *to = file;

    for (size_t at = 0, n; at < len; at += n) {
        n = plain_run(text + at, len - at);
        if (n == 0)
            n = utf8_printable(text + at, len - at);
        if (n > 0)
            fwrite(text + at, 1, n, to);
        else
            n = put_control(to, text + at);
    }
    return ferror(to) ? -1 : 0;
}
