/* Lines that are logged once, however often they come up. */
#pragma once

#include "core/log/log.h"

struct log_once {
    void *lines; /* as tsearch() has them */
    int count;
};

/* Logs a line of less than 600 bytes if it is a new one. Names in it come from outside: after a thousand
 * lines, none is new. */
void log_once(struct log_once *once, enum log_level level, const char *fmt, ...) WEIR_PRINTF(3, 4);
void log_once_free(struct log_once *once);
