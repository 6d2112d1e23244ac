/* What a job or a type waits for: the gate that lets it start last. Gates are documents, which why and status print:
 *
 *   gate          "mailgun#1", "mailgun#0/42" with the key of a keyed rule; the limit's name when there is no rule
 *   limit_name
 *   rule          "5000/1d", with its "count" and "period" (us; not there: concurrency). Not there: the limit is
 *                 paused as a whole (paused_until), or its rules cannot be read
 *   open          it is
 *   opens_at      us; not there: it is open, or does not open by time
 *   never         true: the next job costs more than it can ever hold
 *   paused_until, held_until (for another job)    us; not there, or not above 0: it is not */
#ifndef QUEUE_INSPECT_WAITS_H
#define QUEUE_INSPECT_WAITS_H

#include "core/client/answer.h"
#include "queue/limits/limits.h"

/* Fills such a document from a row of why.lua's gates. Returns its rule, which limits owns, or NULL. */
const struct rule *waits_gate(json_t *row, const struct limits *limits, const char *key, int64_t now_us);
/* Of gates, an array of them, the closed one that opens last; -1: all are open. */
int waits_last(const json_t *gates);
/* What stands as "waits_for": that gate, with "until" (us, GATE_NEVER: not there) in place of what it is now. */
json_t *waits_until(const json_t *gate, int64_t until_us);
/* The same of the next job of a type, as far as rules go that are not keyed; NULL: no gate is closed. */
json_t *waits_of_type(const struct limits *limits, const struct limit_type *type);

#endif
