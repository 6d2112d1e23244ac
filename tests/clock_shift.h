/* Wall clocks that a test sets: processes that were started with one see the machine's time and so much more.
 * Only theirs is another; the machine's clock is never touched. For Redis see server_start_shifted().
 *
 *     clock_shift_set(file, 0);
 *     clock_shift_enter(file);
 *     pid = stage_weir(...);                  this worker has a clock of its own
 *     clock_shift_leave();
 *     clock_shift_set(file, -3600000000);     and now it is an hour behind */
#pragma once

#include <stdint.h>

/* Makes the file, or changes it: all processes that were started with it see that at once. */
void clock_shift_set(const char *file, int64_t shift_us);
/* What this process starts from now on has the clock of that file; itself it has not. */
void clock_shift_enter(const char *file);
/* No longer. */
void clock_shift_leave(void);
