/* POST /api/jobs: one job, or many in lines. */
#pragma once

#include "core/client/client.h"
#include "queue/job/job.h"
#include "view/json.h"

/* A job object, with the members that lines have and "in" (seconds, or a time such as "10m"), "at" (seconds since 1970), "unique"
 * and "batch". *doc: as weir enqueue --json prints it. */
WEIR_CHECKED int post_jobs_one(struct weir *w, struct span body, json_t **doc);
/* NDJSON. fields: type, queue, batch, then, skip_invalid as weir enqueue --from has them. All lines are checked before the
 * first one is sent: with a wrong one among them nothing is, unless skip_invalid=true leaves such lines out. *doc: as
 * weir enqueue --from --json prints it, and "errors": [{"line", "error"}]; after a failure too, unless NULL. */
WEIR_CHECKED int post_jobs_lines(struct weir *w, const json_t *fields, struct span body, json_t **doc);
