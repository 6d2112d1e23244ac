#include "queue/job/stamp.h"

#include <string.h>

#include "core/clock.h"

#define UNIT_US 10000
#define BEGIN INT64_C(157783680000)   /* 2020-01-01, in units */
#define MOST ((INT64_C(1) << 42) - 1) /* in the year 3413 */

static const char digit_of[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

void stamp_write(int64_t at_us, char digits[STAMP_LEN + 1])
{
    int64_t units = at_us / UNIT_US - BEGIN;

    units = units < 0 ? 0 : units > MOST ? MOST : units;
    digits[STAMP_LEN] = '\0';
    for (int i = STAMP_LEN - 1; i >= 0; i--, units /= 64)
        digits[i] = digit_of[units % 64];
}

void stamp_head(int64_t at_us, char head[STAMP_HEAD_LEN + 1])
{
    *head = '@';
    stamp_write(at_us, head + 1);
}

/* Reads a digit; -1: it is none. */
static int value_of(char digit)
{
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 38;
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A' + 11;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 1;
    return digit == '_' ? 37 : digit == '-' ? 0 : -1;
}

bool stamp_is_head(struct span entry)
{
    if (entry.len <= STAMP_HEAD_LEN || *entry.at != '@' || entry.at[STAMP_HEAD_LEN] != '{')
        return false;
    for (int i = 1; i <= STAMP_LEN; i++)
        if (value_of(entry.at[i]) < 0)
            return false;
    return true;
}

int64_t stamp_read(struct span digits)
{
    int64_t units = 0;

    if (digits.len != STAMP_LEN)
        return 0;
    for (size_t i = 0; i < STAMP_LEN; i++) {
        int value = value_of(digits.at[i]);

        if (value < 0)
            return 0;
        units = units * 64 + value;
    }
    return units ? (units + BEGIN) * UNIT_US : 0;
}

bool stamp_next(char *digits, size_t n)
{
    while (n-- > 0) {
        char digit = digits[n];

        digits[n] = digit == '-'   ? '0'
                    : digit == '9' ? 'A'
                    : digit == 'Z' ? '_'
                    : digit == '_' ? 'a'
                                   : (char)(digit + 1);
        if (digit != 'z')
            return true;
        digits[n] = '-';
    }
    return false;
}

int64_t stamp_now(int64_t now_us)
{
    return now_us < 0 ? clock_wall_us() : now_us;
}
