/* Batches: weir batch --json, GET /api/batches. */
#pragma once

#include "queue/batch/batch.h"
#include "view/document.h"

json_t *batch_document(const struct batch *b);
/* Of a batch that was halted or resumed; action: "pause", "resume", "cancel" or "none". */
json_t *batch_change_document(const char *name, const char *action, const struct batch_change *change);
/* Why it cannot be resumed: WEIR_EINPUT. */
int batch_was_cancelled(const char *name, struct error *e);
/* Looks at a batch, what runs of it, and its forecast. WEIR_ENOTFOUND: there is none. */
WEIR_CHECKED int batch_look(struct weir *w, const char *name, struct batch *b);
/* Lists all batches, the oldest first. */
WEIR_CHECKED int view_batches(struct weir *w, json_t **doc);
WEIR_CHECKED int view_batch(struct weir *w, const char *name, json_t **doc);
