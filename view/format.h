/* Numbers, counts and times as people read them; each returns out. Times are local, or UTC with --utc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PHRASE_SIZE 96 /* of out; enough for each of these */

/* Later is no time that anybody means: what is paused until ENDLESS of queue/state/key_pauses.lua, and what starts after that. */
#define FORMAT_ENDLESS_US INT64_C(7900000000000000)

/* ---- Numbers */

/* "1,234,567" */
const char *grouped(uint64_t n, char out[32]);
/* Writes "12.4 MiB". */
const char *sized(int64_t bytes, char out[32]);
/* Writes three digits and five decimals at most, always of a second, as columns are compared: "12.3/s", "97,070/s", "0.00278/s" */
const char *per_second(double rate, char out[40]);
/* Writes "1 dead job", "1,234 dead jobs", "0 batches"; what: one of them. */
const char *counted(int64_t n, const char *what, char out[PHRASE_SIZE]);
/* Writes a name of documents as words: "no_handler" is "no handler". */
const char *worded(const char *name, char out[PHRASE_SIZE]);

/* ---- Times, in microseconds since 1970 */

/* --utc: times are UTC, for the whole process. */
void format_in_utc(void);
/* Writes a span: "250ms", "8m 2s", "1d 18h"; rounded up. */
const char *format_span(int64_t us, char out[PHRASE_SIZE]);
/* Writes when a denied call may be made again: "in 8m 2s"; of what somebody must resume, or set again, "when it is resumed". */
const char *format_retry(double seconds, char out[PHRASE_SIZE]);
/* Writes "in 8m 2s", "3m ago", "now". */
const char *format_relative(int64_t now_us, int64_t us, char out[PHRASE_SIZE]);
/* The time of day "20:14:05" when it is today, else "2026-11-24 09:00". Of FORMAT_ENDLESS_US and later: "it is resumed". */
const char *format_clock(int64_t now_us, int64_t us, char out[PHRASE_SIZE]);
/* Writes both: "in 8m 2s (20:14:05)", "now". Of what waits for somebody to resume it: "when it is resumed". */
const char *format_when(int64_t now_us, int64_t us, char out[PHRASE_SIZE]);
/* RFC 3339, for logs and columns that are compared: "2026-11-21T09:00:00+01:00" */
void format_time(int64_t us, char out[40]);
/* Reads such a time as people write it, local or UTC as they are printed: "2026-11-24 09:00", also with seconds or a T,
 * "2026-11-24", when that day begins, and "09:00", which is the next one. false: why says that clocks never show it, and
 * what to write instead; or it is "", and the text is no time. */
bool format_read_time(const char *text, int64_t now_us, int64_t *us, char why[PHRASE_SIZE]);
