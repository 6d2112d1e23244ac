/* Workers: weir worker list --json, weir status --json, /api/workers. */
#pragma once

#include "queue/status/status.h"
#include "view/document.h"

/* "working", "silent", "stopping", or what it was ordered. */
const char *worker_state(const struct worker_status *worker);
/* Puts how many types a worker names, and its patterns: "2, mail.*". patterns: as its document has them. */
void worker_put_types(FILE *to, int64_t count, const json_t *patterns);
/* One. NULL: out of memory. */
json_t *worker_document(const struct worker_status *worker);
/* Lists all of status_workers(), an array. */
json_t *workers_document(const struct status *status);
WEIR_CHECKED int view_workers(struct weir *w, json_t **doc);
/* Orders "quiet", "resume" or "stop" (queue/inspect/order.h) to those that are meant: a name, HOST:PID, HOST, or "all". *doc, an array of those
 * that were ordered, is the caller's after a failure too. WEIR_ENOTFOUND: none is meant; WEIR_ENOTNOW: one hears no orders. */
/* Returns how many of those that are meant are alive and have jobs, or have not heard an order yet; below 0: a failure, which w->error says. */
WEIR_CHECKED int view_workers_busy(struct weir *w, const char *which);
WEIR_CHECKED int view_worker_orders(struct weir *w, const char *which, const char *order, json_t **doc);
