/* Schedules: weir schedule --json, GET /api/schedules. */
#pragma once

#include "queue/schedule/schedule.h"
#include "view/document.h"

/* One that can be read, with its next occurrences, without its runs and the body of its jobs. */
json_t *schedule_document(const struct schedule_row *row);
/* Makes the document of one that schedule_find has read, with its last runs: looks for their jobs as long as a page may. *doc is the caller's;
 * NULL after a failure, which is in w->error. */
WEIR_CHECKED int view_schedule_runs(struct weir *w, const struct schedule_row *row, json_t **doc);
/* Lists all schedules by name, an array. now_us (may be NULL): Redis's time then, 0 when there are none. */
WEIR_CHECKED int view_schedules(struct weir *w, json_t **doc, int64_t *now_us);
/* Reads a schedule, with its runs and the body (view/write.h). WEIR_ENOTFOUND, or why it cannot be read. */
WEIR_CHECKED int view_schedule(struct weir *w, const char *name, json_t **doc);
