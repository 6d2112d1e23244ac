#include "cli/top/columns.h"

#include <stdlib.h>
#include <string.h>

#include "cli/top/cells.h"

const struct table *const tables[VIEW_COUNT] = {
    [VIEW_TYPES] = &table_types,
    [VIEW_LIMITS] = &table_limits,
    [VIEW_WORKERS] = &table_workers,
    [VIEW_QUEUES] = &table_queues,
};

/* ---- Columns */

static int64_t number_at(const struct column *c, const void *row)
{
    int64_t n;

    memcpy(&n, (const char *)row + c->at, sizeof n);
    return n;
}

static double rate_at(const struct column *c, const void *row)
{
    double rate;

    memcpy(&rate, (const char *)row + c->at, sizeof rate);
    return rate;
}

void column_put(const struct column *c, const struct frame *f, const void *row, struct cell_text *cell)
{
    if (c->put)
        c->put(f, row, cell);
    else if (c->kind == CELL_COUNT)
        cell_put_count(cell, number_at(c, row));
    else if (c->kind == CELL_RATE)
        cell_put_rate(cell, rate_at(c, row));
    else if (c->kind == CELL_UNTIL)
        cell_put_until(f, number_at(c, row), "", cell);
    else
        cell_put_age(f, number_at(c, row), cell);
}

bool column_is_sorted(const struct column *c)
{
    return c->order || c->kind != CELL_NONE;
}

/* Compares two rows. */
static int column_order(const struct column *c, const void *a, const void *b)
{
    if (c->order || c->kind == CELL_NONE)
        return c->order ? c->order(a, b) : 0;
    if (c->kind == CELL_RATE)
        return (rate_at(c, a) > rate_at(c, b)) - (rate_at(c, a) < rate_at(c, b));
    return c->kind == CELL_COUNT ? by_number(number_at(c, a), number_at(c, b))
                                 : by_time(number_at(c, a), number_at(c, b));
}

/* ---- Rows that are shown */

struct sorting {
    const struct column *by;
    bool backwards;
};

/* Compares rows by the column; equal ones by name. */
static int compare(const void *a, const void *b, void *arg)
{
    const void *x = *(const void *const *)a, *y = *(const void *const *)b;
    const struct sorting *s = arg;
    int order = column_order(s->by, x, y);

    if (order == 0)
        return by_name(x, y);
    return s->backwards ? -order : order;
}

bool rows_choose(struct rows *rows, const struct frame *f, enum view view, const char *filter, int column,
                 bool backwards)
{
    const struct column *by = &tables[view]->columns[column];
    struct sorting sorting = {by, by->least_first == backwards};
    size_t count = 0, size = 0;
    const char *at = f->now ? tables[view]->rows(f->now, &count, &size) : NULL;

    *rows = (struct rows){.at = calloc(count + 1, sizeof *rows->at), .all = count};
    if (!rows->at)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strstr(at + i * size, filter))
            rows->at[rows->count++] = at + i * size;
    qsort_r(rows->at, rows->count, sizeof *rows->at, compare, &sorting);
    return true;
}

void rows_free(struct rows *rows)
{
    free(rows->at);
    *rows = (struct rows){.at = NULL};
}
