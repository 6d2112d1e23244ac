/* All cells are made first, as text; then widths are measured, columns left out, lines printed. */
#include "cli/document/table.h"

#include <stdlib.h>
#include <string.h>

#include "cli/document/json.h"
#include "cli/print/terminal.h"
#include "core/utf8.h"
#include "view/format.h"

#define GAP 2         /* blanks between columns */
#define REST_LEAST 12 /* columns of a text that is cut */
#define ABSENT "-"

struct table {
    const struct column *columns;
    int count;
    size_t rows;
    char **cells; /* a row's stand together */
    int widths[COLUMNS_MOST];
    bool shown[COLUMNS_MOST], follows; /* follows: a part that did */
    int dropped[COLUMNS_MOST], drops;  /* in that order */
};

/* ---- Cells */

static const json_t *member_at(const json_t *value, const char *path)
{
    while (value && *path) {
        char name[64];
        size_t len = strcspn(path, ".");

        snprintf(name, sizeof name, "%.*s", (int)len, path);
        value = json_object_get(value, name);
        path += len + (path[len] == '.');
    }
    return value;
}

static void put_text(FILE *to, const json_t *value)
{
    if (json_is_string(value))
        output_to(to, "%s", json_string_value(value));
    else if (json_is_integer(value))
        output_to(to, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        output_to(to, "%.6g", json_real_value(value));
    for (size_t i = 0; i < json_array_size(value); i++)
        output_to(to, "%s%s", i ? ", " : "", json_string_value(json_array_get(value, i)));
}

static void put_count(FILE *to, json_int_t n)
{
    char text[32];

    output_to(to, "%s%s", n < 0 ? "-" : "", grouped((uint64_t)(n < 0 ? -n : n), text));
}

static void put_time(FILE *to, enum show show, double at_s, int64_t now_us)
{
    char text[PHRASE_SIZE];
    int64_t us = (int64_t)(at_s * 1e6);

    if (us <= 0)
        output_to(to, "at an unknown time");
    else
        output_to(to, "%s",
                  show == SHOW_WHEN ? format_when(now_us, us, text) : format_relative(now_us, us, text));
}

static void put_value(FILE *to, enum show show, const json_t *value, int64_t now_us)
{
    double number = json_number_value(value);
    char text[PHRASE_SIZE];

    if (show == SHOW_TEXT)
        put_text(to, value);
    else if (show == SHOW_FLAG)
        output_to(to, "%s", json_is_true(value) ? "yes" : "");
    else if (!json_is_number(value))
        return;
    else if (show == SHOW_COUNT)
        put_count(to, (json_int_t)number);
    else if (show == SHOW_RATE)
        output_to(to, "%s", per_second(number, text));
    else if (show == SHOW_BYTES)
        output_to(to, "%s", sized((int64_t)number, text));
    else if (show == SHOW_SPAN)
        output_to(to, "%s", format_span((int64_t)(number * 1e6), text));
    else
        put_time(to, show, number, now_us);
}

/* The caller's to free; NULL: out of memory. name: of the row. */
static char *make_cell(const struct column *c, const char *name, const json_t *row, int64_t now_us)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        return NULL;
    if (c->put)
        c->put(to, row, now_us);
    else if (!*c->path)
        output_to(to, "%s", name);
    else
        put_value(to, c->show, member_at(row, c->path), now_us);
    if (ftell(to) == 0)
        fputs(ABSENT, to);
    fclose(to);
    return text;
}

static bool says_nothing(const char *cell)
{
    return strcmp(cell, ABSENT) == 0 || strcmp(cell, "0") == 0 || strcmp(cell, "0/s") == 0;
}

static bool is_right(const struct column *c)
{
    return c->put ? c->right : c->show >= SHOW_COUNT && c->show <= SHOW_SPAN;
}

/* ---- Text */

static int columns_of(const char *text)
{
    return output_columns(text, strlen(text));
}

/* The bytes of its first columns. */
static int bytes_of(const char *text, int columns)
{
    int len = 0;

    while (text[len] && (columns > 0 || ((unsigned char)text[len] & 0xc0) == 0x80))
        columns -= ((unsigned char)text[len++] & 0xc0) != 0x80;
    return len;
}

static void put_blanks(FILE *to, int n)
{
    output_to(to, "%*s", n > 0 ? n : 0, "");
}

/* ---- Widths */

static char *cell_at(const struct table *t, size_t row, int column)
{
    return t->cells[row * (size_t)t->count + (size_t)column];
}

static void measure(struct table *t)
{
    for (int i = 0; i < t->count; i++) {
        t->shown[i] = true;
        t->widths[i] = columns_of(t->columns[i].heading);
        for (size_t row = 0; row < t->rows; row++) {
            int width = columns_of(cell_at(t, row, i));

            t->widths[i] = width > t->widths[i] ? width : t->widths[i];
        }
    }
}

static bool is_empty_column(const struct table *t, int column)
{
    for (size_t row = 0; row < t->rows; row++)
        if (!says_nothing(cell_at(t, row, column)))
            return false;
    return true;
}

/* The largest goes first; 0: it stays. */
static int drop_rank(const struct table *t, int column)
{
    const struct column *c = &t->columns[column];

    if (c->drop == 0)
        return 0;
    if (is_empty_column(t, column))
        return 1000 + c->drop;
    return c->tone == TONE_PLAIN ? 1 + c->drop : 1; /* it says what is wrong */
}

/* Which column goes next; -1: none may. */
static int choose_drop(const struct table *t)
{
    int chosen = -1, best = 0;

    for (int i = 0; i < t->count; i++) {
        int rank = t->shown[i] ? drop_rank(t, i) : 0;

        if (rank > best) {
            best = rank;
            chosen = i;
        }
    }
    return chosen;
}

/* What a column needs: a text that is cut can do with little. */
static int least_width(const struct table *t, int column)
{
    int width = t->widths[column];

    return t->columns[column].rest && width > REST_LEAST ? REST_LEAST : width;
}

static int least_line(const struct table *t)
{
    int width = -GAP;

    for (int i = 0; i < t->count; i++)
        width += t->shown[i] ? GAP + least_width(t, i) : 0;
    return width;
}

static int whole_line(const struct table *t)
{
    int last = t->count - 1;

    return least_line(t) + t->widths[last] - least_width(t, last);
}

/* "in 8m 2s (20:14:05)": without the clock. */
static void cut_clock(char *cell)
{
    char *begin = strstr(cell, " ("), *end = begin ? strchr(begin, ')') : NULL;

    if (end && begin[2] >= '0' && begin[2] <= '9')
        memmove(begin, end + 1, strlen(end));
}

static void shorten_times(struct table *t)
{
    for (int i = 0; i < t->count; i++)
        for (size_t row = 0; t->columns[i].show == SHOW_WHEN && row < t->rows; row++)
            cut_clock(cell_at(t, row, i));
    measure(t);
}

static void drop_columns(struct table *t, int width)
{
    int column;

    while (least_line(t) > width && (column = choose_drop(t)) >= 0) {
        t->shown[column] = false;
        t->dropped[t->drops++] = column;
    }
}

/* A wide column that went later may have made room for narrow ones that went before. */
static void take_back(struct table *t, int width)
{
    while (t->drops > 0) {
        int column = t->dropped[--t->drops];

        t->shown[column] = !is_empty_column(t, column);
        t->shown[column] = t->shown[column] && least_line(t) <= width;
    }
}

static void fit(struct table *t, int width)
{
    int last = t->count - 1, room;

    if (whole_line(t) > width)
        shorten_times(t);
    drop_columns(t, width);
    take_back(t, width);
    room = width - least_line(t);
    room = least_width(t, last) + (room > 0 ? room : 0);
    if (t->columns[last].rest && t->widths[last] > room)
        t->widths[last] = room;
}

/* ---- Lines */

static void put_cell(FILE *to, const struct table *t, int column, const char *text, enum tone tone)
{
    int blanks = t->widths[column] - columns_of(text);
    bool right = is_right(&t->columns[column]);

    if (right)
        put_blanks(to, blanks);
    tone_begin(to, tone);
    if (blanks < 0 && t->columns[column].rest)
        output_to(to, "%.*s...", bytes_of(text, t->widths[column] - 3), text);
    else
        output_to(to, "%s", text);
    tone_end(to, tone);
    for (int next = column + 1; next < t->count; next++)
        if (t->shown[next]) { /* no blanks behind the last one */
            put_blanks(to, (right ? 0 : blanks) + GAP);
            return;
        }
}

static void put_lines(FILE *to, const struct table *t)
{
    for (int i = 0; i < t->count && !t->follows; i++)
        if (t->shown[i])
            put_cell(to, t, i, t->columns[i].heading, TONE_PLAIN);
    if (!t->follows)
        fputc('\n', to);
    for (size_t row = 0; row < t->rows; row++) {
        for (int i = 0; i < t->count; i++) {
            const char *cell = cell_at(t, row, i);

            if (t->shown[i])
                put_cell(to, t, i, cell, says_nothing(cell) ? TONE_PLAIN : t->columns[i].tone);
        }
        fputc('\n', to);
    }
}

/* ---- Tables */

static int no_memory(struct cli *cli)
{
    return error_set(&cli->error, WEIR_EINTERNAL, "%s: out of memory; free some and try again",
                     cli->command->name);
}

static int column_count(const struct column *columns)
{
    int count = 0;

    while (columns[count].heading)
        count++;
    return count < COLUMNS_MOST ? count : COLUMNS_MOST;
}

static bool make_row(const struct table *t, char **cells, const char *name, const json_t *row, int64_t now_us)
{
    for (int i = 0; i < t->count; i++)
        if (!(cells[i] = make_cell(&t->columns[i], name, row, now_us)))
            return false;
    return true;
}

static bool make_cells(struct table *t, const json_t *rows, int64_t now_us)
{
    size_t row = 0;
    const char *name;
    json_t *value;
    bool made = true;

    for (; made && row < json_array_size(rows); row++)
        made = make_row(t, &t->cells[row * (size_t)t->count], "", json_array_get(rows, row), now_us);
    json_object_foreach((json_t *)rows, name, value)
    {
        made = made && make_row(t, &t->cells[row++ * (size_t)t->count], name, value, now_us);
    }
    return made;
}

static void free_cells(struct table *t)
{
    for (size_t i = 0; t->cells && i < t->rows * (size_t)t->count; i++)
        free(t->cells[i]);
    free(t->cells);
}

/* As the part before it, or by what its own rows need in a line of that width. */
static void choose_shape(struct table *t, struct table_shape *shape, int width)
{
    t->follows = shape->chosen;
    if (shape->chosen) {
        memcpy(t->shown, shape->shown, sizeof t->shown);
        memcpy(t->widths, shape->widths, sizeof t->widths);
        return;
    }
    measure(t);
    if (width > 0)
        fit(t, width);
    memcpy(shape->shown, t->shown, sizeof t->shown);
    memcpy(shape->widths, t->widths, sizeof t->widths);
    shape->chosen = true;
}

int table_print(struct cli *cli, FILE *to, const struct column *columns, const json_t *rows, int64_t now_us)
{
    return table_print_part(cli, to, columns, rows, now_us, &(struct table_shape){.chosen = false});
}

int table_print_part(struct cli *cli, FILE *to, const struct column *columns, const json_t *rows,
                     int64_t now_us, struct table_shape *shape)
{
    struct table t = {.columns = columns, .count = column_count(columns)};
    int status = 0;

    t.rows = json_is_object(rows) ? json_object_size(rows) : json_array_size(rows);
    t.cells = calloc(t.rows * (size_t)t.count + 1, sizeof *t.cells);
    if (t.cells && make_cells(&t, rows, now_us)) {
        choose_shape(&t, shape, cli_line_width(to));
        put_lines(to, &t);
    } else {
        status = no_memory(cli);
    }
    free_cells(&t);
    return status;
}

int table_list(struct cli *cli, const struct column *columns, json_t *rows, int64_t now_us, const char *none)
{
    int status = rows ? 0 : no_memory(cli);

    for (size_t i = 0; cli->json && status == 0 && i < json_array_size(rows); i++)
        status = json_print(cli, json_incref(json_array_get(rows, i)));
    if (status == 0 && !cli->json && json_array_size(rows) > 0)
        status = table_print(cli, stdout, columns, rows, now_us);
    else if (status == 0 && !cli->json)
        output_to(stderr, "%s\n", none);
    json_decref(rows);
    return status;
}

/* ---- Sheets */

/* A value's lines stand below each other. */
static void put_sheet_line(FILE *to, const struct column *c, char *text, int width)
{
    enum tone tone = says_nothing(text) ? TONE_PLAIN : c->tone;
    const char *heading = c->heading;
    bool first = true;

    for (char *line; (line = strsep(&text, "\n")); first = false) {
        if (!first && !*line)
            continue;
        output_to(to, "%s%s", first ? heading : "", first ? ":" : "");
        put_blanks(to, width + GAP - (first ? columns_of(heading) + 1 : 0));
        output_toned(to, tone, "%s", line);
        fputc('\n', to);
    }
}

int sheet_print(struct cli *cli, FILE *to, const struct column *lines, const json_t *doc, int64_t now_us)
{
    struct table t = {.columns = lines, .count = column_count(lines), .rows = 1};
    char *cells[COLUMNS_MOST] = {NULL};
    int width = 0, status = make_row(&t, cells, "", doc, now_us) ? 0 : no_memory(cli);

    for (int i = 0; i < t.count && status == 0; i++) {
        t.shown[i] = lines[i].drop == 0 || strcmp(cells[i], ABSENT) != 0;
        if (t.shown[i] && columns_of(lines[i].heading) + 1 > width)
            width = columns_of(lines[i].heading) + 1;
    }
    for (int i = 0; i < t.count; i++) {
        if (t.shown[i])
            put_sheet_line(to, &lines[i], cells[i], width);
        free(cells[i]);
    }
    return status;
}
