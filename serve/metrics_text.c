#include "serve/metrics_text.h"

#include <string.h>

#include "core/decimal.h"
#include "core/utf8.h"

#define LABEL_SIZE 800 /* each byte of a name may be escaped, as \\xNN */

void metrics_add(struct metrics *m, const char *text)
{
    if (!m->failed && text_add(m->out, text, strlen(text), m->e) < 0)
        m->failed = true;
}

void metrics_family(struct metrics *m, const char *name, const char *kind, const char *help)
{
    metrics_add(m, "# HELP ");
    metrics_add(m, name);
    metrics_add(m, " ");
    metrics_add(m, help);
    metrics_add(m, "\n# TYPE ");
    metrics_add(m, name);
    metrics_add(m, " ");
    metrics_add(m, kind);
    metrics_add(m, "\n");
}

void metrics_label(struct metrics *m, const char *name, const char *value, bool first)
{
    size_t len = 0, left = strlen(value);
    char text[LABEL_SIZE] = "", piece[UTF8_PIECE];

    while (left > 0 && len + 1 + sizeof piece < sizeof text) {
        size_t used = utf8_escaped(value, left, piece);

        if (*piece == '\\' || *piece == '"')
            text[len++] = '\\';
        strcpy(text + len, piece);
        len += strlen(piece);
        value += used;
        left -= used;
    }
    metrics_add(m, first ? "{" : ",");
    metrics_add(m, name);
    metrics_add(m, "=\"");
    metrics_add(m, text);
    metrics_add(m, "\"");
}

void metrics_value(struct metrics *m, double number)
{
    char text[40];

    decimal_print(text, sizeof text, " %.16g\n", number);
    metrics_add(m, text);
}

void metrics_row(struct metrics *m, const char *metric, const char *name, const char *of, const char *other,
                 const char *which, double number)
{
    metrics_add(m, metric);
    if (name)
        metrics_label(m, name, of, true);
    if (other)
        metrics_label(m, other, which, !name);
    if (name || other)
        metrics_add(m, "}");
    metrics_value(m, number);
}

void metrics_alone(struct metrics *m, const char *name, const char *kind, const char *help, double number)
{
    metrics_family(m, name, kind, help);
    metrics_row(m, name, NULL, NULL, NULL, NULL, number);
}

/* ---- Histograms: a list of [upper bound in ms, n] */

static void bucket(struct metrics *m, const char *metric, const char *type, const char *cause, double most_s,
                   int64_t n)
{
    char bound[40] = "+Inf";

    if (most_s > 0)
        decimal_print(bound, sizeof bound, "%.10g", most_s);
    metrics_add(m, metric);
    metrics_add(m, "_bucket");
    metrics_label(m, "type", type, true);
    if (cause)
        metrics_label(m, "cause", cause, false);
    metrics_label(m, "le", bound, false);
    metrics_add(m, "}");
    metrics_value(m, (double)n);
}

static void part(struct metrics *m, const char *metric, const char *which, const char *type,
                 const char *cause, double number)
{
    metrics_add(m, metric);
    metrics_row(m, which, "type", type, cause ? "cause" : NULL, cause, number);
}

void metrics_histogram(struct metrics *m, const char *metric, const char *type, const char *cause,
                       const json_t *list, double sum_s)
{
    int64_t n = 0;
    size_t at = 0;

    for (int power = 0; power <= 30; power++) {
        double most_ms = (double)(INT64_C(1) << power);

        for (; at < json_array_size(list) &&
               json_number_value(json_array_get(json_array_get(list, at), 0)) <= most_ms;
             at++)
            n += json_integer_value(json_array_get(json_array_get(list, at), 1));
        if (power % 2 == 0) /* 1 ms, 4 ms, 16 ms ...: sixteen of them */
            bucket(m, metric, type, cause, most_ms / 1000, n);
    }
    for (; at < json_array_size(list); at++)
        n += json_integer_value(json_array_get(json_array_get(list, at), 1));
    bucket(m, metric, type, cause, 0, n);
    part(m, metric, "_sum", type, cause, sum_s);
    part(m, metric, "_count", type, cause, (double)n);
}
