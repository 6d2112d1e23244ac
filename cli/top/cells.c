#include "cli/top/cells.h"

#include <string.h>

#include "view/format.h"

#define SPARK_HEIGHTS 8

const char *row_name(const void *row)
{
    return row;
}

/* ---- Cells */

static void put_nothing(struct cell_text *cell)
{
    snprintf(cell->text, sizeof cell->text, "-");
    cell->ink = INK_PALE;
}

void cell_put_count(struct cell_text *cell, int64_t n)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    size_t unit = 0;
    char text[32];

    for (; n >= 1000000 && unit < 4; unit++)
        n /= 1000;
    snprintf(cell->text, sizeof cell->text, "%s%s", grouped((uint64_t)(n > 0 ? n : 0), text), units[unit]);
    cell->ink = n > 0 ? INK_PLAIN : INK_PALE;
}

void cell_put_count_in(struct cell_text *cell, int64_t n, enum ink ink)
{
    cell_put_count(cell, n);
    cell->ink = n > 0 ? ink : INK_PALE;
}

void cell_put_rate(struct cell_text *cell, double rate)
{
    struct cell_text count;
    char text[40];

    if (rate <= 0) {
        put_nothing(cell);
    } else if (rate < 999999.5) {
        snprintf(cell->text, sizeof cell->text, "%s", per_second(rate, text));
    } else {
        cell_put_count(&count, (int64_t)(rate + 0.5));
        snprintf(cell->text, sizeof cell->text, "%.20s/s", count.text);
    }
}

void cell_put_distance(struct cell_text *cell, int64_t us, const char *behind)
{
    char span[PHRASE_SIZE];

    if (us < 1000000)
        snprintf(cell->text, sizeof cell->text, "now");
    else
        snprintf(cell->text, sizeof cell->text, "%s%s", format_span(us / 1000000 * 1000000, span), behind);
}

void cell_put_until(const struct frame *f, int64_t us, const char *behind, struct cell_text *cell)
{
    if (us <= 0 || us == GATE_NEVER) {
        put_nothing(cell);
    } else if (us >= FORMAT_ENDLESS_US) {
        snprintf(cell->text, sizeof cell->text, "paused");
        cell->ink = INK_WARNING;
    } else {
        cell_put_distance(cell, us - f->now_us, behind);
    }
}

void cell_put_line(const struct frame *f, const struct past *past, struct cell_text *cell)
{
    static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char plain[] = "_.,-~=*#";
    const int64_t *minutes = past ? past->starts + PAST_MINUTES - 1 - SPARK_MINUTES : NULL;
    int64_t most = 0;
    size_t len = 0;

    for (int i = 0; minutes && i < SPARK_MINUTES; i++)
        most = minutes[i] > most ? minutes[i] : most;
    for (int i = 0; most > 0 && i < SPARK_MINUTES; i++) {
        int height = (int)(minutes[i] * (SPARK_HEIGHTS - 1) / most);

        if (minutes[i] == 0)
            len += (size_t)snprintf(cell->text + len, sizeof cell->text - len, " ");
        else if (f->ascii)
            len += (size_t)snprintf(cell->text + len, sizeof cell->text - len, "%c", plain[height]);
        else
            len += (size_t)snprintf(cell->text + len, sizeof cell->text - len, "%s", heights[height]);
    }
    cell->ink = INK_GOOD;
}

void cell_put_age(const struct frame *f, int64_t since_us, struct cell_text *cell)
{
    if (since_us > 0)
        cell_put_distance(cell, f->now_us - since_us, "");
    else
        put_nothing(cell);
}

void cell_put_name(const struct frame *f, const void *row, struct cell_text *cell)
{
    (void)f;
    snprintf(cell->text, sizeof cell->text, "%s", row_name(row));
    cell->ink = INK_STRONG;
}

/* ---- Orders */

int by_name(const void *a, const void *b)
{
    return strcmp(row_name(a), row_name(b));
}

int by_time(int64_t a, int64_t b)
{
    bool has_a = a > 0 && a != GATE_NEVER, has_b = b > 0 && b != GATE_NEVER;

    return has_a && has_b ? by_number(a, b) : has_b - has_a;
}
