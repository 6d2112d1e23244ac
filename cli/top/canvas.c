#include "cli/top/canvas.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "core/utf8.h"

#define GLYPH_CHARS 12 /* "\U000e0001" */

/* A glyph is the next piece of a text: a character, or an escape of several. */
struct glyph {
    wchar_t at[GLYPH_CHARS];
    int columns; /* 0: it combines with the one before */
};

bool canvas_begin(struct canvas *c, int rows, int columns, bool ascii)
{
    size_t count = (size_t)rows * (size_t)columns;
    struct cell *cells = rows == c->rows && columns == c->columns && c->cells
                             ? c->cells
                             : reallocarray(c->cells, count ? count : 1, sizeof *cells);

    if (!cells)
        return false;
    *c = (struct canvas){.rows = rows, .columns = columns, .ascii = ascii, .cells = cells};
    for (size_t i = 0; i < count; i++)
        cells[i] = (struct cell){.at = L" "};
    return true;
}

void canvas_free(struct canvas *c)
{
    free(c->cells);
    *c = (struct canvas){.rows = 0};
}

struct cell *canvas_cell(const struct canvas *c, int row, int column)
{
    return &c->cells[(size_t)row * (size_t)c->columns + (size_t)column];
}

/* ---- Words */

/* Characters without a shape of their own that change how others stand. */
static bool is_hidden(wchar_t ch)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f}, {0x2028, 0x202e},
                  {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if ((uint32_t)ch >= ranges[i].first && (uint32_t)ch <= ranges[i].last)
            return true;
    return false;
}

static void widen(struct glyph *g, const char *ascii)
{
    size_t len = strlen(ascii);

    for (size_t i = 0; i <= len; i++)
        g->at[i] = (wchar_t)ascii[i];
    g->columns = (int)len;
}

static void read_character(struct glyph *g, const char *piece)
{
    mbstate_t state = {0};
    wchar_t ch = L'\0';
    char escape[GLYPH_CHARS];

    if (mbrtowc(&ch, piece, strlen(piece), &state) > UTF8_PIECE || is_hidden(ch) || wcwidth(ch) < 0) {
        snprintf(escape, sizeof escape, (uint32_t)ch > 0xffff ? "\\U%08x" : "\\u%04x", (uint32_t)ch);
        widen(g, escape);
        return;
    }
    g->at[0] = ch;
    g->at[1] = L'\0';
    g->columns = wcwidth(ch);
}

/* The bytes of text that it takes. */
static size_t next_glyph(const struct canvas *c, const char *text, struct glyph *g)
{
    char piece[UTF8_PIECE];
    size_t bytes = utf8_escaped(text, strlen(text), piece);

    if (bytes > 1 && !c->ascii) {
        read_character(g, piece);
        return bytes;
    }
    if (bytes > 1)
        snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)*text);
    widen(g, piece);
    return 1;
}

int canvas_columns(const struct canvas *c, const char *text)
{
    struct glyph g;
    int columns = 0;

    while (*text) {
        text += next_glyph(c, text, &g);
        columns += g.columns;
    }
    return columns;
}

/* ---- Putting */

static void combine(const struct canvas *c, int row, int column, wchar_t mark)
{
    struct cell *cell = canvas_cell(c, row, column);
    size_t len;

    if (!*cell->at && column > 0)
        cell--;
    len = wcslen(cell->at);

    if (len > 0 && len < CELL_CHARS) {
        cell->at[len] = mark;
        cell->at[len + 1] = L'\0';
    }
}

/* Puts a character of that many columns. */
static void put_character(struct canvas *c, int row, int column, int columns, enum ink ink, wchar_t ch)
{
    *canvas_cell(c, row, column) = (struct cell){.at = {ch}, .ink = ink};
    if (columns == 2)
        *canvas_cell(c, row, column + 1) = (struct cell){.ink = ink};
}

static void put_glyph(struct canvas *c, int row, int column, enum ink ink, const struct glyph *g)
{
    bool wide = g->at[0] && !g->at[1] && g->columns == 2;

    for (size_t i = 0; g->at[i]; i++)
        put_character(c, row, column + (int)i, wide ? 2 : 1, ink, g->at[i]);
}

int canvas_put(struct canvas *c, int row, int column, int width, enum ink ink, const char *text)
{
    int used = 0, room;
    bool cut;
    struct glyph g;

    if (row < 0 || row >= c->rows || column < 0 || column >= c->columns)
        return 0;
    width = width < c->columns - column ? width : c->columns - column;
    cut = canvas_columns(c, text) > width;
    room = cut ? width - 1 : width;
    while (*text) {
        text += next_glyph(c, text, &g);
        if (used + g.columns > room)
            break;
        if (g.columns > 0)
            put_glyph(c, row, column + used, ink, &g);
        else if (used > 0)
            combine(c, row, column + used - 1, g.at[0]);
        used += g.columns;
    }
    if (cut && width > 0)
        put_character(c, row, column + used++, 1, ink, c->ascii ? L'~' : L'\u2026');
    return used;
}

void canvas_put_right(struct canvas *c, int row, int column, int width, enum ink ink, const char *text)
{
    int columns = canvas_columns(c, text);

    canvas_put(c, row, column + (columns < width ? width - columns : 0), width < columns ? width : columns,
               ink, text);
}

void canvas_reverse(struct canvas *c, int row, int column, int width)
{
    for (int i = column > 0 ? column : 0; row >= 0 && row < c->rows && i < column + width && i < c->columns;
         i++)
        canvas_cell(c, row, i)->reverse = true;
}
