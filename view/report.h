/* One verdict: is work flowing, what holds it, what is wrong: weir report --json, GET /api/report.
 *
 *   idle     nothing waits and nothing runs
 *   flowing  what waits, waits for what comes by itself: a limit's next slot, an executor
 *   wrong    work flows, and something else is wrong: jobs fail, Redis refuses writes
 *   stuck    some of what waits does not start until somebody acts
 *   unknown  there is work, and no worker has been heard for longer than its lease
 *
 * The cost is that of weir status, one INFO a partition, and at most thirty short calls for the last minutes. */
#pragma once

#include "queue/status/status.h"
#include "view/document.h"

#define REPORT_MINUTES 10 /* what is recent */

/* hide_keys: keys that somebody has paused are counted, and not named. */
WEIR_CHECKED int view_report(struct weir *w, bool hide_keys, json_t **doc);
/* Makes the report of a status that was just read. */
WEIR_CHECKED int report_of(struct weir *w, const struct status *status, bool hide_keys, json_t **doc);
/* True for a check of a report that found a fault. */
bool report_is_wrong(const json_t *check);
/* Puts what stands behind the verdict: "2 types wait for their limits". */
void report_put_verdict(FILE *to, const json_t *doc);
