/* What a job waits for: where it is, the gates that hold it, its place in line and when it starts. Of
 * find_job.lua's, why.lua's and ahead.lua's answers and those of limits.h. */
#pragma once

#include "core/client/answer.h"

struct limits;

/* now_us < 0: Redis's time. WEIR_ENOTFOUND: there is no such job. Fills w->error on failure. *why is the
 * caller's, NULL after a failure: what find_job says of it, and of one that stands in its queue or lane ("us" are
 * microseconds; null: unknown):
 *   cost             slots
 *   served           a worker that is alive takes its type from its queue
 *   turns_before     parked, in the ring: lanes of other keys that have their turn before its own
 *   ahead            jobs that start before it, as far as they are known
 *   gates            those that it must pass: queue/status/waits.h, each with "holds_it"
 *   waits_for        where nothing else is: a worker, or the gate that lets it start last
 *   start            us; null: nobody can tell, or it has no limits, or no worker can run it
 *   at_the_earliest, because    what may make that later */
WEIR_CHECKED int why_read(struct weir *w, int64_t now_us, const char *id, json_t **why);
/* Explains what find_job has just found; calls go to the partition where it is. limits: as status_limits read them there, lately; NULL:
 * they are read. After a failure *why is freed, and NULL. */
WEIR_CHECKED int why_found(struct weir *w, int64_t now_us, const struct limits *limits, json_t **why);
