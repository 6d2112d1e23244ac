/* What a terminal shall show, as rows of cells: drawn without a terminal, so that it can be tested.
 *
 * Words may be those of others and hold any bytes. What is no printable character is escaped: \xNN a byte, \u202e a character that
 * would turn or hide its neighbours. A wide character takes two cells, of which the right one is empty. A mark that combines stands in
 * the cell before it. */
#pragma once

#include <stdbool.h>
#include <wchar.h>

enum ink { INK_PLAIN, INK_PALE, INK_STRONG, INK_GOOD, INK_WARNING, INK_WRONG, INK_COUNT };

#define CELL_CHARS 4 /* one, and what combines with it */
struct cell {
    wchar_t at[CELL_CHARS + 1]; /* ends with 0; "": the right half of a wide one */
    enum ink ink;
    bool reverse;
};

struct canvas {
    int rows, columns;
    bool ascii; /* the terminal shows nothing else: the rest is escaped */
    struct cell *cells;
};

/* Blank. false: out of memory. Begins as {0}; canvas_free. */
bool canvas_begin(struct canvas *c, int rows, int columns, bool ascii);
void canvas_free(struct canvas *c);
struct cell *canvas_cell(const struct canvas *c, int row, int column);

/* Puts text from there on, cut to so many columns and to the row; a text that is cut ends with a mark. Returns the columns it
 * takes. What lies outside of the canvas is left out. */
int canvas_put(struct canvas *c, int row, int column, int width, enum ink ink, const char *text);
/* Puts a text at the right edge of these columns. */
void canvas_put_right(struct canvas *c, int row, int column, int width, enum ink ink, const char *text);
/* The columns that a text takes. */
int canvas_columns(const struct canvas *c, const char *text);
/* Shows some cells of a row in reverse. */
void canvas_reverse(struct canvas *c, int row, int column, int width);
