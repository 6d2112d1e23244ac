/* One line an event on standard error: time, level, message, and fields such as job and type; format.h says how a
 * line looks. Nothing waits for who reads it, or ends with it: lines that cannot be written are kept, up to
 * 64 KiB of them, and then dropped, which a line says when they can. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "weir.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* A value is len bytes of any kind; of a number the digits. */
struct log_field {
    const char *name, *value;
    size_t len;
    bool number;
};

/* Lines above the level are dropped; the default is LOG_LEVEL_INFO, or $WEIR_LOG (error, warn, info, debug).
 * Lines are logfmt, with $WEIR_LOG_FORMAT json JSON; systemd's journal, where it is standard error, gets the level as it
 * wants it, and no time. */
void log_line(enum log_level level, const char *fmt, ...) WEIR_PRINTF(2, 3);
void log_fields(enum log_level level, const struct log_field *fields, size_t count, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
/* In place of what the environment says. false: there is none of that name. */
bool log_set_level(const char *name);
bool log_set_format(const char *name);
/* Between these two the lines of this thread are written together: of many that come at once, each alone takes longer to write than to make. */
void log_gather(void);
void log_gathered(void);
/* Writes what was kept, if it can be written by now. Does standard error take another line at once? */
bool log_flush(void);
