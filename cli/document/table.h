/* Tables and sheets: a command makes its --json document, and prints its text from that by a list of columns.
 *
 *   static const struct column columns[] = {
 *       COLUMN("queue", "name"),
 *       COLUMN("waiting", "waiting", .show = SHOW_COUNT),
 *       COLUMN("workers", "worker_count", .show = SHOW_COUNT, .drop = 2),
 *       COLUMN("oldest", "oldest_at", .show = SHOW_WHEN, .drop = 1),
 *       {.heading = NULL},
 *   };
 *
 *   queue  waiting  workers  oldest
 *   mail    12,345        3  3m ago (20:11:02)
 *   other        0        0  -
 *
 * A table fits the terminal, or $COLUMNS. Times lose their clock first. Then columns are left out: those with
 * nothing but "-" and 0 first, then the one with the largest drop, one with a tone last; a column with drop 0
 * stays. Elsewhere, in a pipe or a file, all are there. */
#pragma once

#include "cli/document/json.h"
#include "cli/print/color.h"

#define COLUMNS_MOST 40

/* How a member is shown. One that is missing, null or "" is "-". */
enum show {
    SHOW_TEXT,  /* a text; a number or a list of texts too */
    SHOW_COUNT, /* 12,345; right-aligned, as the next three are */
    SHOW_RATE,  /* 12.3/s */
    SHOW_BYTES, /* 12.4 MiB */
    SHOW_SPAN,  /* seconds: 8m 2s */
    SHOW_TIME,  /* seconds since 1970: in 8m 2s, 3m ago; 0: unknown */
    SHOW_WHEN,  /* the same, and the local time: in 8m 2s (20:14:05) */
    SHOW_FLAG,  /* true: yes; false: - */
    SHOW_PAUSE, /* an object, for pause_put() */
    SHOW_WAITS, /* one for waits_put() */
};

struct column {
    const char *heading;
    /* of the member: "name", "kept_dead.bytes"; "": the name of the row in an object of rows */
    const char *path;
    enum show show;
    int drop;       /* the largest is left out first; 0: never. In a sheet: not 0: left out when it is "-" */
    bool rest;      /* the last column: cut to what the line has left */
    enum tone tone; /* of what is neither "-" nor 0 */
    /* In place of path and show: writes the cell with output_to, and nothing when it is absent. In a sheet it
     * may have several lines. With show = SHOW_WHEN it has such a time. */
    void (*put)(FILE *to, const json_t *row);
    void (*put_at)(FILE *to, const json_t *row, int64_t now_us); /* the same, of times */
    bool right;                                                  /* right-aligned; for put */
};

#define COLUMN(its_heading, its_path, ...)                                                                   \
    {                                                                                                        \
        .heading = its_heading, .path = its_path, __VA_ARGS__                                                \
    }

/* Prints rows, an array of objects or an object of objects by name. The columns end with a NULL heading. */
WEIR_CHECKED int table_print(struct cli *cli, FILE *to, const struct column *columns, const json_t *rows,
                             int64_t now_us);
/* A shape makes several lists parts of one table: the first list chooses columns and widths for all. Cells that are wider stand out. */
struct table_shape {
    bool chosen;
    bool shown[COLUMNS_MOST];
    int widths[COLUMNS_MOST];
};
WEIR_CHECKED int table_print_part(struct cli *cli, FILE *to, const struct column *columns, const json_t *rows,
                                  int64_t now_us, struct table_shape *shape);
/* Does a whole list command: with --json one object a line; else a table on standard output, or when there are no
 * rows the sentence none on standard error. Frees rows; NULL: out of memory. */
WEIR_CHECKED int table_list(struct cli *cli, const struct column *columns, json_t *rows, int64_t now_us,
                            const char *none);
/* Prints doc as lines "heading: value". */
WEIR_CHECKED int sheet_print(struct cli *cli, FILE *to, const struct column *lines, const json_t *doc,
                             int64_t now_us);
