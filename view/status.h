/* Queues, types and workers: weir status --json, GET /api/status and /api/types/NAME. */
#pragma once

#include "queue/status/status.h"
#include "view/document.h"
#include "view/type.h"

/* Make the document of a queue, and of the whole status. NULL: out of memory. */
json_t *queue_document(const struct queue_status *queue);
json_t *status_document(const struct status *status);
/* *doc is the caller's, NULL after a failure, which w->error says; as all view_...() do. */
WEIR_CHECKED int view_status(struct weir *w, json_t **doc);
/* Shows one type, with its name. WEIR_ENOTFOUND: nothing is known of it. */
WEIR_CHECKED int view_type(struct weir *w, const char *name, json_t **doc);

/* Starts a second of a type by the rule that is in its way now, else by its strictest; 0: none. */
double type_rate(const struct type_status *t);
/* True when something of it waits that no worker takes. */
bool type_is_unserved(const struct type_status *t);
