/* What a job or a type waits for, the one answer of all who say it: that its queue, batch or type is
 * resumed, {"queue", "paused": as queue/state/reasons.lua describes a pause}; a worker that takes it, {"type"}, with "resting", how
 * many were told to take no more jobs, and of a job its "queue"; the gate that lets it start last; an executor,
 * {"executors": all of them}; the gates of its keys. Gates are documents, which why and status print:
 *
 *   gate          "mailgun#1", "mailgun#0/42" with the key of a keyed rule; the limit's name when there is no rule
 *   limit_name
 *   rule          "5000/1d", with its "count" and "period" (us; not there: concurrency). Not there: the limit is
 *                 paused as a whole, its rules cannot be read, or the key is closed
 *   open          it is
 *   opens_at      us; not there: it is open, or does not open by time
 *   never         true: the next job costs more than it can ever hold
 *   paused        somebody has paused the limit or the key: as queue/state/reasons.lua describes it
 *   own_rule      true: the rule is one that the key has for itself, until own_until (us; not there: no end)
 *   closed        true: the key is closed until such rules are renewed
 *   by            what tells the keys apart, where it is all gates of a keyed rule: "args.customer"
 *   throttled_until (for a provider), held_until (for another job)    us; not there, or not above 0: it is not */
#pragma once

#include "queue/limits/limits.h"

/* Fills such a document from a row of why.lua's gates. Returns its rule, which limits owns, or *own, one that the key has for itself; or NULL. */
const struct rule *waits_gate(json_t *row, const struct limits *limits, const char *key, int64_t now_us,
                              struct rule *own);
/* Finds the closed gate of an array that opens last; -1: all are open. */
int waits_last(const json_t *gates);
/* Makes what stands as "waits_for": that gate, with "until" (us, GATE_NEVER: not there) in place of what it is now. */
json_t *waits_until(const json_t *gate, int64_t until_us);
/* Says that it waits until somebody resumes that type, queue or batch (kind), or its pause ends. pause: as queue/state/reasons.lua has it. */
json_t *waits_pause(const char *kind, const char *name, const json_t *pause);
/* Says that jobs of a type wait for a worker, in that queue (NULL: in any). */
json_t *waits_worker(const char *type, const char *queue, int64_t resting, int64_t since_us);
/* An executor, when the workers that take a type have none to spare; else NULL. */
json_t *waits_executor(const struct type_status *type);
/* Says what the next job of a type waits for; NULL: none waits, or nothing holds it. Where it is not known how the gates of keys are, it is
 * these when jobs are in lanes, executors are free and no other gate is closed. */
json_t *waits_of_type(const struct limits *limits, const struct type_status *type);
