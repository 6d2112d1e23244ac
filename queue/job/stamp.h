/* When a job was enqueued, in the head of its entry: queue/job/stamp.lua says how. The clock is the producer's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/job/job.h"

#define STAMP_LEN 7                    /* digits */
#define STAMP_HEAD_LEN (1 + STAMP_LEN) /* of a head that says nothing else */

/* Writes the digits of a time, ended by a NUL; before 2020: those that say nothing. */
void stamp_write(int64_t at_us, char digits[STAMP_LEN + 1]);
/* Writes a stamp as the head of an entry: "@.......", behind which the body follows. */
void stamp_head(int64_t at_us, char head[STAMP_HEAD_LEN + 1]);
/* True for an entry with such a head before a body. */
bool stamp_is_head(struct span entry);
/* 0: they say nothing, or are none. */
int64_t stamp_read(struct span digits);
/* Counts n such digits up by one; false: that is one too many for them. */
bool stamp_next(char *digits, size_t n);
/* Returns the time that a producer writes which calls with this now_us; < 0: this machine's time. */
int64_t stamp_now(int64_t now_us);
