#include "cli/top/cells.h"

#include <inttypes.h>
#include <string.h>

#include "view/format.h"
#include "view/output.h"
#include "view/workers.h"

static void put_worker_state(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct worker_status *w = row;

    (void)f;
    snprintf(cell->text, sizeof cell->text, "%s", worker_state(w));
    cell->ink = w->silent ? INK_WRONG : *w->order ? INK_WARNING : INK_GOOD;
}

static void put_busy(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct worker_status *w = row;

    (void)f;
    snprintf(cell->text, sizeof cell->text, "%" PRId64 "/%" PRId64, w->running, w->executors);
    cell->ink = w->running == 0 ? INK_PALE : INK_PLAIN;
}

static void put_queues(const struct frame *f, const void *row, struct cell_text *cell)
{
    const json_t *queues = ((const struct worker_status *)row)->queues;
    size_t len = 0;

    (void)f;
    for (size_t i = 0; i < json_array_size(queues) && len < sizeof cell->text; i++) {
        const char *queue = json_string_value(json_array_get(queues, i));

        len += (size_t)snprintf(cell->text + len, sizeof cell->text - len, "%s%s", i ? "," : "",
                                queue ? queue : "");
    }
}

static void put_host(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct worker_status *w = row;

    (void)f;
    snprintf(cell->text, sizeof cell->text, "%.130s:%" PRId64, w->host, w->pid);
}

static void put_seen(const struct frame *f, const void *row, struct cell_text *cell)
{
    cell_put_distance(cell, f->now_us - ((const struct worker_status *)row)->seen_us, "");
}

static int by_worker_state(const void *a, const void *b)
{
    return strcmp(worker_state(a), worker_state(b));
}

static int by_host(const void *a, const void *b)
{
    return strcmp(((const struct worker_status *)a)->host, ((const struct worker_status *)b)->host);
}

// clang-format off
static const struct column worker_columns[] = {
    {"WORKER", 16, .left = true, .least_first = true, .put = cell_put_name, .order = by_name},
    {"STATE", 13, .left = true, .least_first = true, .put = put_worker_state, .order = by_worker_state},
    {"BUSY", 9, CELL(COUNT, struct worker_status, running), .put = put_busy},
    {"SEEN", 7, CELL(COUNT, struct worker_status, seen_us), .put = put_seen},
    {"QUEUES", 18, .left = true, .drop = 1, .put = put_queues},
    {"HOST:PID", 22, .left = true, .drop = 2, .least_first = true, .put = put_host, .order = by_host},
    {.heading = NULL},
};
// clang-format on

static const void *worker_rows(const struct top_snapshot *s, size_t *count, size_t *size)
{
    *count = s->status.worker_count;
    *size = sizeof *s->status.workers;
    return s->status.workers;
}

static void tell_worker(FILE *to, FILE *second, const struct frame *f, const void *row)
{
    const struct worker_status *w = row;
    char seen[PHRASE_SIZE];
    struct cell_text queues = {.text = ""};

    put_queues(f, row, &queues);
    output_to(to, "%s: process %" PRId64 " of %s, version %s", w->name, w->pid, w->host,
              *w->version ? w->version : "unknown");
    output_to(second, "types: ");
    worker_put_types(second, w->type_count, w->patterns);
    output_to(second, "; queues: %s; seen %s", queues.text, format_relative(f->now_us, w->seen_us, seen));
}

const struct table table_workers = {"workers", worker_columns, 0, worker_rows, tell_worker};
