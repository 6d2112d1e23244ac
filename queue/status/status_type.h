/* The row of a type in status.lua's answer: its counters, and what is known of it besides. */
#ifndef QUEUE_STATUS_STATUS_TYPE_H
#define QUEUE_STATUS_STATUS_TYPE_H

#include "core/client/answer.h"
#include "queue/status/status.h"

/* Fills *type with what a row says. */
void status_type_read(struct type_status *type, const char *name, const json_t *row, int64_t now_us);

#endif
