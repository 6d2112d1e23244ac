/* The four tables of weir top: which rows each has, their columns, what stands in a cell, and in which order rows come. */
#pragma once

#include "cli/top/canvas.h"
#include "cli/top/snapshot.h"

enum view { VIEW_TYPES, VIEW_LIMITS, VIEW_WORKERS, VIEW_QUEUES, VIEW_COUNT };

/* A frame has what cells are made from. */
struct frame {
    const struct top_snapshot *now; /* NULL: nothing was read yet */
    const struct pasts *pasts;      /* NULL: likewise */
    int64_t now_us;                 /* Redis's time: that of what was read, and what has passed since then */
    bool ascii;
};

#define CELL_SIZE 160
struct cell_text {
    char text[CELL_SIZE];
    enum ink ink;
};

/* A column may be of one number of the row. Then that is shown as all of its kind are, and rows are ordered by it. */
enum cell_kind { CELL_NONE, CELL_COUNT, CELL_RATE, CELL_UNTIL, CELL_SINCE };

struct column {
    const char *heading; /* NULL ends a list */
    int width;           /* the first column has what is left over */
    bool left;           /* aligned there */
    int drop;            /* the largest is left out first where the screen is narrow; 0: never */
    bool least_first;    /* it is sorted so, until the order is turned */
    enum cell_kind kind;
    size_t at; /* in the row: an int64_t, of CELL_RATE a double */
    /* NULL: that number. */
    void (*put)(const struct frame *f, const void *row, struct cell_text *cell);
    /* The least first; NULL: by that number, if there is one. */
    int (*order)(const void *a, const void *b);
};

/* Puts what stands there in a row. */
void column_put(const struct column *column, const struct frame *f, const void *row, struct cell_text *cell);
bool column_is_sorted(const struct column *column);

struct table {
    const char *name;
    const struct column *columns;
    int sorted; /* by this column at first */
    /* Returns the rows of what was read, size bytes each. */
    const void *(*rows)(const struct top_snapshot *s, size_t *count, size_t *size);
    /* Tells more about one row, for two lines below the table. */
    void (*tell)(FILE *to, FILE *second, const struct frame *f, const void *row);
};
extern const struct table *const tables[VIEW_COUNT];
extern const struct table table_types, table_limits, table_workers, table_queues; /* columns_<name>.c */

/* ---- Rows that are shown */

struct rows {
    const void **at;
    size_t count, all;
};

/* Chooses the rows whose names have the filter in them, in that order. False: out of memory. rows_free. */
bool rows_choose(struct rows *rows, const struct frame *f, enum view view, const char *filter, int column,
                 bool backwards);
void rows_free(struct rows *rows);
/* Returns the name of a row, which begins with it. */
const char *row_name(const void *row);
