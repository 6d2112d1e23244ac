/* What a job or a type waits for, in one sentence that is the same in all commands:
 * "mail: waits for mailgun#1, 5,000 a day, until 00:00:00". Its document is `waits_for`: a gate
 * (queue/status/waits.h), {"queue", "batch" or "type", "paused"}, {"type"}, for which there is no worker, or {"executors"}: so many are all busy. */
#pragma once

#include "view/document.h"

extern const struct member waits_members[], gate_members[];

/* What stands behind "waits for". */
void waits_put(FILE *to, const json_t *waits_for, int64_t now_us);
/* Puts when a gate opens: "in 8m 2s (20:14:05)", "open", ... */
void gate_put_opening(FILE *to, const json_t *gate, int64_t now_us);
