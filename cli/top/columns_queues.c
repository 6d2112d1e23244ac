#include "cli/top/cells.h"

#include "view/format.h"
#include "view/output.h"

static void put_queue_state(const struct frame *f, const void *row, struct cell_text *cell)
{
    int64_t since_us = ((const struct queue_status *)row)->paused_us;
    char when[PHRASE_SIZE];

    if (since_us > 0)
        snprintf(cell->text, sizeof cell->text, "paused %s", format_relative(f->now_us, since_us, when));
    else
        snprintf(cell->text, sizeof cell->text, "%s", since_us ? "paused" : "open");
    cell->ink = since_us ? INK_WARNING : INK_GOOD;
}

static int by_queue_state(const void *a, const void *b)
{
    const struct queue_status *x = a, *y = b;

    return (x->paused_us != 0) - (y->paused_us != 0);
}

// clang-format off
static const struct column queue_columns[] = {
    {"QUEUE", 20, .left = true, .least_first = true, .put = cell_put_name, .order = by_name},
    {"WAITING", COUNT_WIDTH, CELL(COUNT, struct queue_status, waiting)},
    {"OLDEST", 8, .least_first = true, CELL(SINCE, struct queue_status, oldest_us)},
    {"STATE", 24, .left = true, .put = put_queue_state, .order = by_queue_state},
    {.heading = NULL},
};
// clang-format on

static const void *queue_rows(const struct top_snapshot *s, size_t *count, size_t *size)
{
    *count = s->status.queue_count;
    *size = sizeof *s->status.queues;
    return s->status.queues;
}

static void tell_queue(FILE *to, FILE *second, const struct frame *f, const void *row)
{
    const struct queue_status *q = row;
    char jobs[PHRASE_SIZE], when[PHRASE_SIZE];

    (void)second;
    output_to(to, "%s: %s in it", q->name, counted(q->waiting, "job", jobs));
    if (q->paused_us > 0)
        output_to(to, "; paused since %s", format_clock(f->now_us, q->paused_us, when));
}

const struct table table_queues = {"queues", queue_columns, 1, queue_rows, tell_queue};
