/* Cancelling one job, in each state: of cancel.lua and job_act.lua, once find_job has found it. */
#pragma once

#include "queue/inspect/find_job.h"

/* now_us < 0: Redis's time. lock: the unique key that id may hold though its job is nowhere; NULL: none.
 * WEIR_EINPUT: it is dead or finished. WEIR_ENOTFOUND: it is nowhere. Fills w->error on failure.
 * *job is the caller's, NULL after a failure: as find_job found it (of "unlocked" nothing else), with "result":
 *   removed   it is gone
 *   marked    it waits far from both ends of its list, and ends when a worker comes to it
 *   already   the same, by an earlier call
 *   told      it runs, and its worker is told
 *   unlocked  it is nowhere; the unique lock that it held is free */
WEIR_CHECKED int cancel_job(struct weir *w, int64_t now_us, const char *id, const char *lock, json_t **job);
