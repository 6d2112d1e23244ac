#include "cli/top/cells.h"

#include "queue/status/forecast.h"
#include "view/format.h"
#include "view/output.h"
#include "view/status.h"
#include "view/waits.h"

static void put_type(const struct frame *f, const void *row, struct cell_text *cell)
{
    cell_put_name(f, row, cell);
    cell->ink = type_is_unserved(row) ? INK_WRONG : INK_STRONG;
}

static int64_t parked_of(const struct type_status *t)
{
    return t->parked + t->held + t->aside;
}

static void put_parked(const struct frame *f, const void *row, struct cell_text *cell)
{
    (void)f;
    cell_put_count(cell, parked_of(row));
}

static void put_set(const struct frame *f, const void *row, struct cell_text *cell)
{
    (void)f;
    cell_put_rate(cell, type_rate(row));
}

static void put_type_line(const struct frame *f, const void *row, struct cell_text *cell)
{
    cell_put_line(f, pasts_find(f->pasts, row_name(row), false), cell);
}

static void put_ends(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct type_status *t = row;

    cell_put_until(f, t->finish_us, t->because ? "+" : "", cell);
}

static void put_hour_dead(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct past *past = pasts_find(f->pasts, row_name(row), false);

    cell_put_count_in(cell, past ? past->dead : 0, INK_WRONG);
}

static void put_hour_retried(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct past *past = pasts_find(f->pasts, row_name(row), false);

    cell_put_count_in(cell, past ? past->retried : 0, INK_WARNING);
}

/* Compares by all that wait, parked ones too: what a backlog is. */
static int by_waiting(const void *a, const void *b)
{
    const struct type_status *x = a, *y = b;

    return by_number(x->waiting + parked_of(x), y->waiting + parked_of(y));
}

static int by_parked(const void *a, const void *b)
{
    return by_number(parked_of(a), parked_of(b));
}

static int by_set(const void *a, const void *b)
{
    double x = type_rate(a), y = type_rate(b);

    return (x > y) - (x < y);
}

// clang-format off
static const struct column type_columns[] = {
    {"TYPE", 12, .left = true, .least_first = true, .put = put_type, .order = by_name},
    {"WAITING", COUNT_WIDTH, CELL(COUNT, struct type_status, waiting), .order = by_waiting},
    {"PARKED", COUNT_WIDTH, .put = put_parked, .order = by_parked},
    {"DEAD", COUNT_WIDTH, CELL(COUNT, struct type_status, dead_kept)},
    {"RUNNING", COUNT_WIDTH, .drop = 3, CELL(COUNT, struct type_status, running)},
    {"RATE", RATE_WIDTH, .drop = 1, .put = put_set, .order = by_set},
    {"KEPT", RATE_WIDTH, CELL(RATE, struct type_status, rate_now)},
    {"10 MIN", SPARK_MINUTES, .left = true, .drop = 2, .put = put_type_line},
    {"NEXT", 7, .drop = 6, .least_first = true, CELL(UNTIL, struct type_status, next_start_us)},
    {"ENDS", 8, .least_first = true, CELL(UNTIL, struct type_status, finish_us), .put = put_ends},
    {"OLDEST", 8, .drop = 7, .least_first = true, CELL(SINCE, struct type_status, oldest_us)},
    {"DEAD 1H", COUNT_WIDTH, .drop = 4, .put = put_hour_dead},
    {"RETRY 1H", COUNT_WIDTH, .drop = 5, CELL(COUNT, struct type_status, retried), .put = put_hour_retried},
    {.heading = NULL},
};
// clang-format on

static const void *type_rows(const struct top_snapshot *s, size_t *count, size_t *size)
{
    *count = s->status.type_count;
    *size = sizeof *s->status.types;
    return s->status.types;
}

static const char *format_soon(int64_t now_us, int64_t us, char out[PHRASE_SIZE])
{
    return us < now_us + 1000000 ? "now" : format_when(now_us, us, out);
}

static void tell_hour(FILE *to, const struct past *past)
{
    char text[32];

    if (!past)
        return;
    output_to(to, "in 1h %s retried", grouped((uint64_t)past->retried, text));
    output_to(to, ", %s dead; ", grouped((uint64_t)past->dead, text));
}

static void tell_starts(FILE *to, const struct frame *f, const struct type_status *t)
{
    char when[PHRASE_SIZE];

    if (t->next_start_us > 0)
        output_to(to, "next start %s; ", format_soon(f->now_us, t->next_start_us, when));
    if (t->finish_us > 0)
        output_to(to, "last %s%s; ", format_when(f->now_us, t->finish_us, when), t->because ? "+" : "");
    if (t->oldest_us > 0)
        output_to(to, "oldest %s; ", format_relative(f->now_us, t->oldest_us, when));
}

static void tell_type(FILE *to, FILE *second, const struct frame *f, const void *row)
{
    const struct type_status *t = row;
    json_t *waits = t->waits_for ? document_make(t->waits_for, waits_members) : NULL;
    char text[32];

    output_to(to, "%s: ", t->name);
    if (waits) {
        output_to(to, "waits for ");
        waits_put(to, waits, f->now_us);
    } else {
        output_to(to, t->waiting + t->parked > 0 ? "can start" : "nothing waits");
    }
    json_decref(waits);
    tell_starts(second, f, t);
    tell_hour(second, pasts_find(f->pasts, t->name, false));
    output_to(second, "%s done", grouped((uint64_t)t->done, text));
}

const struct table table_types = {"types", type_columns, 1, type_rows, tell_type};
