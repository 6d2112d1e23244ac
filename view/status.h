/* Queues, types and workers: weir status --json, GET /api/status and /api/types/NAME. */
#ifndef VIEW_STATUS_H
#define VIEW_STATUS_H

#include "queue/inspect/status.h"
#include "view/document.h"

/* One of each. NULL: out of memory. */
json_t *queue_document(const struct queue_status *queue);
json_t *type_document(const struct type_status *type);
json_t *status_document(const struct status *status);
/* *doc is the caller's, NULL after a failure, which w->error says; as all view_...() do. */
WEIR_CHECKED int view_status(struct weir *w, json_t **doc);
/* One type, with its name. WEIR_ENOTFOUND: nothing is known of it. */
WEIR_CHECKED int view_type(struct weir *w, const char *name, json_t **doc);

#endif
