/* Clocks of this machine, in whole microseconds. Decisions about slots, leases and due times are Redis's:
 * these are for waiting, for time-outs and for log lines. */
#pragma once

#include <stdint.h>

int64_t clock_mono_us(void); /* CLOCK_MONOTONIC */
int64_t clock_boot_us(void); /* CLOCK_BOOTTIME: goes on while the machine sleeps */
int64_t clock_wall_us(void); /* CLOCK_REALTIME, since 1970 */
/* Writes a time since 1970 as "2026-11-22T16:50:43.123Z". The C library's function takes a lock that a child of fork() may find held for
 * ever. */
#define CLOCK_TEXT_SIZE 96
void clock_text(int64_t wall_us, char text[CLOCK_TEXT_SIZE]);
void clock_sleep_until(int64_t mono_us);
