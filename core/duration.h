/* Durations as people write them: "500ms", "10s", "1.5h", "1h30m", "5min". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* Writes a period or duration in its largest fitting unit: "1m", "1.5s". */
void duration_format(int64_t us, char out[32]);
/* Reads "500ms", "10s", "1h30m". WEIR_EINPUT says what would be right. A bare number is not a duration. */
WEIR_CHECKED int duration_parse(const char *text, int64_t *us, struct error *e);

/* A day of the local calendar. */
struct day {
    int64_t begin_us, end_us;
};
/* Reads "today", "yesterday", "tomorrow" or "2026-11-28". false: it is none of them, or there is no such day. */
bool day_read(const char *text, int64_t now_us, struct day *day);
/* Reads RFC 3339, "2026-11-21T09:00:00+01:00", as microseconds since 1970. The seconds may be left out. false: it is none, or there is no such time. */
bool moment_read(const char *text, int64_t *us);
/* Reads how long ago (sign 1) or ahead (-1) a time is: a duration; a day, which stands for its beginning; or a time
 * with its zone. */
WEIR_CHECKED int ago_parse(const char *text, int sign, int64_t now_us, int64_t *us, struct error *e);

/* For what has numbers and durations in it: each reads from *at and moves it on. */

/* Digits; false when there are none or the number is above most. */
bool number_read(const char **at, int64_t most, int64_t *number);
/* Reads a count with a thousand or a million behind it: "50k", "2M". */
bool count_read(const char **at, int64_t most, int64_t *number);
/* Reads NUMBER UNIT ..., NUMBER = digits ["." digits], each unit smaller than that before it. Returns NULL, or what is wrong. */
const char *duration_read(const char **at, int64_t *us);
/* Reads a duration, or a unit alone: "1m" and "m". */
const char *period_read(const char **at, int64_t *us);
