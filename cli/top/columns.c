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

/* ---- Rows that are shown */

struct sorting {
    int (*order)(const void *a, const void *b);
    bool backwards;
};

/* Compares rows by the column; equal ones by name. */
static int compare(const void *a, const void *b, void *arg)
{
    const void *x = *(const void *const *)a, *y = *(const void *const *)b;
    const struct sorting *s = arg;
    int order = s->order ? s->order(x, y) : 0;

    if (order == 0)
        return by_name(x, y);
    return s->backwards ? -order : order;
}

bool rows_choose(struct rows *rows, const struct glance *g, enum view view, const char *filter, int column,
                 bool backwards)
{
    const struct column *by = &tables[view]->columns[column];
    struct sorting sorting = {by->order, by->least_first == backwards};
    size_t count = 0, size = 0;
    const char *at = g->now ? tables[view]->rows(g->now, &count, &size) : NULL;

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
