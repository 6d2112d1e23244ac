/* Queues: weir queue --json, GET /api/queues. */
#pragma once

#include "queue/queues/queues.h"
#include "view/document.h"

/* Lists all queues by name, an array. */
WEIR_CHECKED int view_queues(struct weir *w, json_t **doc);
/* Makes the document of queue_purge() or queue_count(); type NULL: all types. */
json_t *queue_purge_document(const char *queue, const char *type, bool dry_run,
                             const struct queue_jobs *jobs);
