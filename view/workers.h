/* Workers: weir worker list --json, weir status --json, GET /api/workers. */
#ifndef VIEW_WORKERS_H
#define VIEW_WORKERS_H

#include "queue/inspect/status.h"
#include "view/document.h"

/* One. NULL: out of memory. */
json_t *worker_document(const struct worker_status *worker);
/* All of status_workers(), an array. */
json_t *workers_document(const struct status *status);
WEIR_CHECKED int view_workers(struct weir *w, json_t **doc);
/* One that was given an order, of worker_order(). */
json_t *worker_order_document(const struct worker_status *worker, const char *order);

#endif
