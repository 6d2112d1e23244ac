/* One line an event on standard error: time, level, text. Control characters are escaped, so a job cannot
 * forge lines. Failures to write are ignored: a worker outlives its log. Thread-safe. */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include "weir.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Lines above the level are dropped; the default is LOG_LEVEL_INFO, or $WEIR_LOG (error, warn, info, debug).
 */
void log_line(enum log_level level, const char *fmt, ...) WEIR_PRINTF(2, 3);

#endif
