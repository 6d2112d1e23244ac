/* The same done to all jobs that a search is for, a part at a time: of job_act.lua, which looks and does in one script,
 * a page a call. So a job is acted on where it is, and is in one place at any time. */
#pragma once

#include "queue/inspect/job_list.h"

/* action: "cancel", "run", "retry", "remove"; what each does to jobs in which state, job_act.lua says.
 * most: how far this call goes; most->jobs: it is done to no more. Who has been told how many jobs a search matches gives that number.
 * cursor: "next" of the call before; NULL: from the beginning. now_us < 0: Redis's time. WEIR_EINPUT: no such action, no
 * cursor, or a search without a term. Fills w->error on failure; what was done before stays done. *result is the caller's, NULL after
 * a failure:
 *   action
 *   jobs, left  so many, with which it was done; so many that match, and for which there was nothing to do
 *   marked      so many of jobs, of those that were cancelled: they end when a worker comes to them
 *   states      the same by state: {"scheduled": {"jobs", "left"}}
 *   batch       one that was cancelled, whose jobs are left therefore; not there: none was met
 *   looked_at   so many, those of the calls before included
 *   next        the cursor to go on from; not there: that was all */
WEIR_CHECKED int job_actions(struct weir *w, int64_t now_us, const struct job_search *s, const char *action,
                             const char *cursor, const struct job_bounds *most, json_t **result);
/* Counts about how many jobs the action would be done to; it looks at all. */
WEIR_CHECKED int job_actions_count(struct weir *w, int64_t now_us, const struct job_search *s,
                                   const char *action, int64_t *jobs);
/* Counts them as far as a call goes: what job_list_count answers. */
WEIR_CHECKED int job_actions_count_page(struct weir *w, int64_t now_us, const struct job_search *s,
                                        const char *action, const char *cursor, const struct job_bounds *most,
                                        json_t **page);

/* WEIR_EINPUT: that is not done to jobs of the batch, which was cancelled. what: "dead retry". */
int job_batch_over(const char *what, const char *batch, struct error *e);

/* Lets a job run as soon as its limits and workers allow: of `later` it goes to the head of its queue or lane, in line to the head of where it
 * stands. WEIR_EINPUT: it runs, was cancelled, or has ended. WEIR_ENOTFOUND: it is nowhere. Fills w->error on failure. *job is the
 * caller's, NULL after a failure: what why_read says of it then, with
 *   was     the state in which it was
 *   result  "moved", or "first": it was the first there already */
/* Logs that a person did so to so many jobs: "jobs cancel type:mail key:42: 12". */
void job_actions_note(struct weir *w, const struct job_search *s, const char *action, int64_t jobs);
WEIR_CHECKED int job_run(struct weir *w, int64_t now_us, const char *id, json_t **job);

/* ---- For cancel */

struct job_acted {
    int64_t done, left, marked;
    json_t *first; /* job_act.lua's, the caller's; NULL */
};
/* Does it to one job in line or of `later`, which find_job has found, if it still stands there or close to that. */
WEIR_CHECKED int job_act_there(struct weir *w, int64_t now_us, const char *id, const char *action,
                               const json_t *job, struct job_acted *acted);
