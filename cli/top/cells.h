/* What the tables of weir top have in common: what stands in a cell, and how rows are ordered. */
#pragma once

#include <stddef.h>

#include "cli/top/columns.h"
#include "core/number.h"

/* Columns that what is put needs. */
#define COUNT_WIDTH 8
#define RATE_WIDTH 9
#define SPARK_MINUTES 10 /* that have ended */

/* ---- Cells */

/* Puts "12,345", "1,234k", "1,234M", in COUNT_WIDTH columns. */
void cell_put_count(struct cell_text *cell, int64_t n);
void cell_put_count_in(struct cell_text *cell, int64_t n, enum ink ink);
/* Puts what per_second() writes, "1,234k/s" of millions, in RATE_WIDTH columns; "-": none. */
void cell_put_rate(struct cell_text *cell, double rate);
/* Puts how long it is until then, or since then: "8m 2s". */
void cell_put_distance(struct cell_text *cell, int64_t us, const char *behind);
/* Puts how long it is until a time of Redis; 0 and GATE_NEVER: it is not known. */
void cell_put_until(const struct frame *f, int64_t us, const char *behind, struct cell_text *cell);
void cell_put_age(const struct frame *f, int64_t since_us, struct cell_text *cell);
/* Puts a column for each minute; the highest stands for the most. past: NULL is none. */
void cell_put_line(const struct frame *f, const struct past *past, struct cell_text *cell);
void cell_put_name(const struct frame *f, const void *row, struct cell_text *cell);

/* The number of a column. */
#define CELL(its_kind, row_type, member) .kind = CELL_##its_kind, .at = offsetof(row_type, member)

/* ---- Orders */

int by_name(const void *a, const void *b);
/* What is not known comes last where the least is first. */
int by_time(int64_t a, int64_t b);
