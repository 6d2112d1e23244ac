/* Progress on a terminal: one line on standard error that is written anew. */
#ifndef CLI_BAR_H
#define CLI_BAR_H

#include "core/error.h"

/* part: 0 to 1 of it is done; below 0: unknown, then the text stands alone. */
void bar_show(double part, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Before anything else is printed there. */
void bar_clear(void);

#endif
