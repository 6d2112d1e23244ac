/* All cells are made first, as one text, since there may be 100,000 of them; then widths are measured, columns left out, lines
 * printed. */
#include "cli/document/table.h"

#include <stdlib.h>
#include <string.h>

#include "cli/document/json.h"
#include "cli/print/terminal.h"
#include "view/format.h"
#include "view/output.h"
#include "view/pause.h"
#include "view/stream.h"
#include "view/waits.h"

#define GAP 2         /* blanks between columns */
#define REST_LEAST 12 /* columns of a text that is cut */
#define ABSENT "-"

struct table {
    const struct column *columns;
    int count;
    size_t rows;
    struct text text; /* of all cells, each with its NUL */
    char **cells;     /* a row's stand together */
    int widths[COLUMNS_MOST];
    bool shown[COLUMNS_MOST], follows; /* follows: a part that did */
    int dropped[COLUMNS_MOST], drops;  /* in that order */
};

/* ---- Cells */

static const json_t *member_at(const json_t *value, const char *path)
{
    if (!strchr(path, '.'))
        return json_object_get(value, path);
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

    if (n < 0)
        putc('-', to);
    fputs(grouped((uint64_t)(n < 0 ? -n : n), text), to);
}

static void put_time(FILE *to, enum show show, double at_s, int64_t now_us)
{
    char text[PHRASE_SIZE];
    int64_t us = (int64_t)(at_s * 1e6);

    if (us <= 0)
        fputs("at an unknown time", to);
    else
        fputs(show == SHOW_WHEN ? format_when(now_us, us, text) : format_relative(now_us, us, text), to);
}

static void put_value(FILE *to, enum show show, const json_t *value, int64_t now_us)
{
    double number = json_number_value(value);
    char text[PHRASE_SIZE];

    if (show == SHOW_TEXT)
        put_text(to, value);
    else if (show == SHOW_FLAG)
        fputs(json_is_true(value) ? "yes" : "", to);
    else if (show == SHOW_PAUSE && json_is_object(value))
        pause_put(to, value, now_us);
    else if (show == SHOW_WAITS && json_is_object(value))
        waits_put(to, value, now_us);
    else if (!json_is_number(value))
        return;
    else if (show == SHOW_COUNT)
        put_count(to, (json_int_t)number);
    else if (show == SHOW_RATE)
        fputs(per_second(number, text), to);
    else if (show == SHOW_BYTES)
        fputs(sized((int64_t)number, text), to);
    else if (show == SHOW_SPAN)
        fputs(format_span((int64_t)(number * 1e6), text), to);
    else
        put_time(to, show, number, now_us);
}

/* name: of the row. What is absent is left empty. */
static void put_made(FILE *to, const struct column *c, const char *name, const json_t *row, int64_t now_us)
{
    if (c->put)
        c->put(to, row);
    else if (c->put_at)
        c->put_at(to, row, now_us);
    else if (!*c->path)
        output_to(to, "%s", name);
    else
        put_value(to, c->show, member_at(row, c->path), now_us);
    putc('\0', to);
}

static bool says_nothing(const char *cell)
{
    return strcmp(cell, ABSENT) == 0 || strcmp(cell, "0") == 0 || strcmp(cell, "0/s") == 0;
}

static bool is_right(const struct column *c)
{
    return c->put || c->put_at ? c->right : c->show >= SHOW_COUNT && c->show <= SHOW_SPAN;
}

/* ---- Text */

static int columns_of(const char *text)
{
    return output_columns(text, strlen(text));
}

/* Counts the bytes of the first columns of a text. */
static int bytes_of(const char *text, int columns)
{
    int len = 0;

    while (text[len] && (columns > 0 || ((unsigned char)text[len] & 0xc0) == 0x80))
        columns -= ((unsigned char)text[len++] & 0xc0) != 0x80;
    return len;
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

/* Cuts "in 8m 2s (20:14:05)" before the clock. */
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
        output_blanks(to, blanks);
    tone_begin(to, tone);
    if (blanks < 0 && t->columns[column].rest)
        output_to(to, "%.*s...", bytes_of(text, t->widths[column] - 3), text);
    else
        fputs(text, to);
    tone_end(to, tone);
    for (int next = column + 1; next < t->count; next++)
        if (t->shown[next]) { /* no blanks behind the last one */
            output_blanks(to, (right ? 0 : blanks) + GAP);
            return;
        }
}

static void put_lines(FILE *to, const struct table *t)
{
    bool toned = color_is_on(to); /* asked once: a terminal is asked by a system call */

    for (int i = 0; i < t->count && !t->follows; i++)
        if (t->shown[i])
            put_cell(to, t, i, t->columns[i].heading, TONE_PLAIN);
    if (!t->follows)
        fputc('\n', to);
    for (size_t row = 0; row < t->rows; row++) {
        for (int i = 0; i < t->count; i++) {
            const char *cell = cell_at(t, row, i);

            if (t->shown[i])
                put_cell(to, t, i, cell, toned && !says_nothing(cell) ? t->columns[i].tone : TONE_PLAIN);
        }
        fputc('\n', to);
    }
}

/* ---- Tables */

static int column_count(const struct column *columns)
{
    int count = 0;

    while (columns[count].heading)
        count++;
    return count < COLUMNS_MOST ? count : COLUMNS_MOST;
}

static void make_row(const struct table *t, FILE *to, const char *name, const json_t *row, int64_t now_us)
{
    for (int i = 0; i < t->count; i++)
        put_made(to, &t->columns[i], name, row, now_us);
}

/* Once all text is there. To ask how long it is behind each cell takes longer. */
static void find_cells(struct table *t)
{
    static char absent[] = ABSENT;
    char *at = t->text.at;

    for (size_t i = 0; i < t->rows * (size_t)t->count; i++) {
        t->cells[i] = *at ? at : absent;
        at += strlen(at) + 1;
    }
}

/* Makes the cells of an array of objects, or of an object of objects by name. False: out of memory. */
static bool make_cells(struct table *t, const json_t *rows, int64_t now_us)
{
    FILE *to = view_stream(&t->text);
    bool made = to && rows;
    const char *name;
    json_t *row;
    size_t i;

    t->rows = json_is_object(rows) ? json_object_size(rows) : json_array_size(rows);
    t->cells = calloc(t->rows * (size_t)t->count + 1, sizeof *t->cells);
    made = made && t->cells;
    json_array_foreach(made ? rows : NULL, i, row)
        make_row(t, to, "", row, now_us);
    json_object_foreach(made ? (json_t *)(uintptr_t)rows : NULL, name, row)
        make_row(t, to, name, row, now_us);
    made = made && !ferror(to);
    made = (!to || fclose(to) == 0) && made;
    if (made)
        find_cells(t);
    return made;
}

static void free_cells(struct table *t)
{
    free(t->cells);
    text_free(&t->text);
}

/* Chooses the shape of the part before it, or one by what its own rows need in a line of that width. */
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

int table_print_part(struct cli *cli, FILE *to, const struct column *columns, const json_t *rows,
                     int64_t now_us, struct table_shape *shape)
{
    struct table t = {.columns = columns, .count = column_count(columns)};
    int status = 0;

    if (make_cells(&t, rows, now_us)) {
        choose_shape(&t, shape, cli_line_width(to));
        put_lines(to, &t);
    } else {
        status = error_no_memory(&cli->error, cli->command->name);
    }
    free_cells(&t);
    return status;
}

int table_print(struct cli *cli, FILE *to, const struct column *columns, const json_t *rows, int64_t now_us)
{
    return table_print_part(cli, to, columns, rows, now_us, &(struct table_shape){.chosen = false});
}

int table_list(struct cli *cli, const struct column *columns, json_t *rows, int64_t now_us, const char *none)
{
    int status = rows ? 0 : error_no_memory(&cli->error, cli->command->name);

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

/* Puts a line of a sheet; the lines of a value stand below each other. */
static void put_sheet_line(FILE *to, const struct column *c, char *text, int width)
{
    enum tone tone = says_nothing(text) ? TONE_PLAIN : c->tone;
    const char *heading = c->heading;
    bool first = true;

    for (char *line; (line = strsep(&text, "\n")); first = false) {
        if (!first && !*line)
            continue;
        output_to(to, "%s%s", first ? heading : "", first ? ":" : "");
        output_blanks(to, width + GAP - (first ? columns_of(heading) + 1 : 0));
        output_toned(to, tone, "%s", line);
        fputc('\n', to);
    }
}

int sheet_print(struct cli *cli, FILE *to, const struct column *lines, const json_t *doc, int64_t now_us)
{
    struct table t = {.columns = lines, .count = column_count(lines)};
    json_t *itself = json_pack("[O]", doc);
    int width = 0,
        status = make_cells(&t, itself, now_us) ? 0 : error_no_memory(&cli->error, cli->command->name);

    for (int i = 0; i < t.count && status == 0; i++) {
        t.shown[i] = lines[i].drop == 0 || strcmp(cell_at(&t, 0, i), ABSENT) != 0;
        if (t.shown[i] && columns_of(lines[i].heading) + 1 > width)
            width = columns_of(lines[i].heading) + 1;
    }
    for (int i = 0; i < t.count; i++)
        if (t.shown[i])
            put_sheet_line(to, &lines[i], cell_at(&t, 0, i), width);
    free_cells(&t);
    json_decref(itself);
    return status;
}
