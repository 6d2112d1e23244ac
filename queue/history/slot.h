/* A slot of queue/state/minutes.lua, read: what was counted of a type or limit in a minute or an hour.
 *
 *   of a type   {"starts", "done", "retried", "dead", "cancelled", "throttled", "run": histogram,
 *               "wait": {"rate", "key", "concurrency", "pause", "executor": histogram},
 *               "spent": {"run", "rate", "key", ...: ms of all that these histograms count}}
 *   of a limit  {"granted", "wasted": {"no_job", "no_executor", "held", "late"},
 *               "given_back": {"not_begun", "late", "no_handler", "wrong_job"}, "throttled": {reason: n}}
 *
 * A histogram is a list of [upper bound in ms, n], smallest first; the last bound, 2^31, has all that is longer. What is 0 is left out. */
#pragma once

#include "core/client/answer.h"
#include "queue/job/job.h"

/* Reads a slot into an object, which is the caller's. It is empty for a slot of another number, or one that cannot be read. NULL: out of memory. */
json_t *slot_read(struct span text, int64_t number);
