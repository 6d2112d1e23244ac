/* One line an event on standard error: time, level, text. Control characters are escaped, so a job cannot
 * forge lines. Nothing waits for who reads it, or ends with it: lines that cannot be written are kept, up to
 * 64 KiB of them, and then dropped, which a line says when they can. Thread-safe. */
#ifndef CORE_LOG_LOG_H
#define CORE_LOG_LOG_H

#include <stdbool.h>

#include "weir.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Lines above the level are dropped; the default is LOG_LEVEL_INFO, or $WEIR_LOG (error, warn, info, debug).
 */
void log_line(enum log_level level, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Writes what was kept, if it can be written by now. Does standard error take another line at once? */
bool log_flush(void);

#endif
