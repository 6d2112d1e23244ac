/* One verdict: is work flowing, what holds it, what is wrong: weir report --json, GET /api/report.
 *
 *   idle     nothing waits and nothing runs
 *   flowing  what waits, waits for what comes by itself: a limit's next slot, an executor
 *   wrong    work flows, and something else is wrong: jobs fail, Redis refuses writes
 *   stuck    some of what waits does not start until somebody acts
 *   unknown  there is work, and no worker has been heard for longer than its lease
 *
 * The cost is that of weir status, one INFO a partition, and at most thirty short calls for the last minutes. */
#ifndef VIEW_REPORT_H
#define VIEW_REPORT_H

#include "view/document.h"

#define REPORT_MINUTES 10 /* what is recent */

WEIR_CHECKED int view_report(struct weir *w, json_t **doc);

#endif
