/* One event as one line: logfmt (time=... level=info msg="..." job=...), or a JSON object with the same members; for
 * systemd's journal logfmt without the time, behind the level as it wants it ("<6>", sd-daemon(3)). Bytes that are no
 * printable UTF-8 are escaped, so no value can forge a line or a field. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/log/log.h"

#define LOG_LINE_SIZE 2048 /* below PIPE_BUF: a line of one process is never torn by another's */

extern const char *const log_level_names[]; /* "error", "warn", "info", "debug" */

enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON, LOG_FORMAT_JOURNAL };

/* Writes a line, its newline included, and returns its length. What does not fit is cut off the message, and marked by
 * "...". Not NUL-terminated. */
size_t log_format_line(char line[LOG_LINE_SIZE], enum log_format format, int64_t wall_us,
                       enum log_level level, const char *message, const struct log_field *fields,
                       size_t field_count);
