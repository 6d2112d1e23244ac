/* The row of a type in status.lua's answer: its counters, and what is known of it besides. */
#ifndef QUEUE_STATUS_STATUS_TYPE_H
#define QUEUE_STATUS_STATUS_TYPE_H

#include "queue/job/job.h"
#include "queue/status/status.h"

/* Fills *type with what a row says; its name is "" when it says nothing. false: out of memory. */
WEIR_CHECKED bool status_type_read(struct type_status *type, struct span row, int64_t now_us);
/* What it holds; not the row itself. */
void status_type_free(struct type_status *type);

#endif
