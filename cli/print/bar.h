/* Progress on a terminal: one line on standard error that is written anew. */
#pragma once

#include "core/error.h"

#define BAR_LEFT_UNKNOWN (-1) /* time left: told from how far it has come since it was first shown */

/* part: 0 to 1 of it is done; below 0: unknown, then the text stands alone. On a narrow terminal the text is left out. */
void bar_show(double part, int64_t left_us, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* Before anything else is printed there. */
void bar_clear(void);
