/* Whole numbers: the smaller one, the larger one, their order; a digit. */
#pragma once

#include <stdint.h>

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* 0 where it is below. */
static inline int64_t positive(int64_t n)
{
    return max_i64(n, 0);
}

/* Compares as strcmp() does: below 0, 0 or above it. */
static inline int by_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Returns the value of a hexadecimal digit; -1: it is none. */
static inline int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
