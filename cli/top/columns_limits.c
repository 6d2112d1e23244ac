#include "cli/top/cells.h"

#include <inttypes.h>

#include "view/format.h"
#include "view/limits.h"
#include "view/output.h"

static const struct limit *limit_of(const void *row)
{
    return ((const struct limit_row *)row)->limit;
}

static void put_rules(const struct frame *f, const void *row, struct cell_text *cell)
{
    char text[RULE_SET_TEXT_SIZE] = "cannot be read";

    (void)f;
    if (limit_of(row)->readable)
        rule_set_format(&limit_of(row)->set, text);
    snprintf(cell->text, sizeof cell->text, "%.*s", CELL_SIZE - 1, text);
}

static void put_limit_kept(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct past *past = pasts_find(f->pasts, row_name(row), true);

    cell_put_rate(cell, past ? past->kept : 0);
}

static void put_limit_line(const struct frame *f, const void *row, struct cell_text *cell)
{
    cell_put_line(f, pasts_find(f->pasts, row_name(row), true), cell);
}

static int64_t wasted_of(const struct history_sum *s)
{
    return s->no_job + s->no_executor + s->held + s->late;
}

static void put_wasted(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct past *past = pasts_find(f->pasts, row_name(row), true);

    cell_put_count_in(cell, past ? wasted_of(&past->slots) : 0, INK_WARNING);
}

static void put_throttled(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct past *past = pasts_find(f->pasts, row_name(row), true);

    cell_put_count_in(cell, past ? past->slots.throttled : 0, INK_WARNING);
}

static void put_limit_state(const struct frame *f, const void *row, struct cell_text *cell)
{
    const struct limit *limit = limit_of(row);
    int64_t provider_us = limit_provider_pause(limit);
    bool paused = limit->pause_until_us > f->now_us, throttled = provider_us > f->now_us;
    char when[PHRASE_SIZE];

    if (paused || throttled)
        snprintf(cell->text, sizeof cell->text, "%s until %.90s", paused ? "paused" : "throttled",
                 format_clock(f->now_us, paused ? limit->pause_until_us : provider_us, when));
    else
        snprintf(cell->text, sizeof cell->text, "%s", limit->readable ? "open" : "unreadable");
    cell->ink = paused || throttled ? INK_WARNING : limit->readable ? INK_GOOD : INK_WRONG;
}

static int64_t closed_until(const struct limit *limit)
{
    int64_t provider_us = limit_provider_pause(limit);

    return limit->pause_until_us > provider_us ? limit->pause_until_us : provider_us;
}

static int by_limit_state(const void *a, const void *b)
{
    return by_number(closed_until(limit_of(a)), closed_until(limit_of(b)));
}

// clang-format off
static const struct column limit_columns[] = {
    {"LIMIT", 12, .left = true, .least_first = true, .put = cell_put_name, .order = by_name},
    {"RULES", 15, .left = true, .drop = 3, .put = put_rules},
    {"WAITING", COUNT_WIDTH, CELL(COUNT, struct limit_row, jobs)},
    {"KEPT", RATE_WIDTH, .put = put_limit_kept},
    {"10 MIN", SPARK_MINUTES, .left = true, .drop = 4, .put = put_limit_line},
    {"NEXT", 7, .drop = 6, .least_first = true, CELL(UNTIL, struct limit_row, next_us)},
    {"WASTED", 7, .drop = 2, .put = put_wasted},
    {"429s", 6, .drop = 5, .put = put_throttled},
    {"STATE", 24, .left = true, .drop = 1, .put = put_limit_state, .order = by_limit_state},
    {.heading = NULL},
};
// clang-format on

static const void *limit_rows(const struct top_snapshot *s, size_t *count, size_t *size)
{
    *count = s->limit_count;
    *size = sizeof *s->limit_rows;
    return s->limit_rows;
}

static void tell_limit(FILE *to, FILE *second, const struct frame *f, const void *row)
{
    const struct limit_row *limit = row;
    const struct past *past = pasts_find(f->pasts, limit->name, true);
    char rules[RULE_SET_TEXT_SIZE] = "cannot be read; set it again", jobs[PHRASE_SIZE], types[PHRASE_SIZE];

    if (limit->limit->readable)
        rule_set_format(&limit->limit->set, rules);
    output_to(to, "%s: %s; %s of %s wait for it", limit->name, rules, counted(limit->jobs, "job", jobs),
              counted(limit->types, "type", types));
    if (!past)
        return;
    output_to(second, "in 1h %" PRId64 " granted; wasted: ", past->slots.granted);
    output_to(second, "%" PRId64 " no job, %" PRId64 " no executor, %" PRId64 " held, %" PRId64 " late",
              past->slots.no_job, past->slots.no_executor, past->slots.held, past->slots.late);
    output_to(second, "; 429s: %" PRId64, past->slots.throttled);
}

const struct table table_limits = {"limits", limit_columns, 2, limit_rows, tell_limit};
