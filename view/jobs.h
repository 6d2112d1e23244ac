/* Many jobs, by a search: weir job list, run, cancel, retry and remove --json, and the same of the API. */
#pragma once

#include "queue/inspect/job_act.h"
#include "view/document.h"

/* Of what job_list_page says of jobs. */
json_t *jobs_document(const json_t *jobs);
/* Reads a page: "jobs", "looked_at", "of", "cursor" (null: that was all). */
WEIR_CHECKED int view_jobs(struct weir *w, const struct job_search *s, const char *cursor,
                           const struct job_bounds *most, json_t **doc);
/* What job_actions does: "action", "jobs", "left", "states", "looked_at", "cursor" (null: that was all), "batch" where it has one. */
WEIR_CHECKED int view_job_actions(struct weir *w, const struct job_search *s, const char *action,
                                  const char *cursor, const struct job_bounds *most, json_t **doc);
/* What it would do, of what job_actions_count_page answers: "batch" where that has one. */
json_t *job_actions_dry_document(const char *action, const json_t *counts);
/* Does a dry run as far as one call goes: "looked_at" and "cursor" too. */
WEIR_CHECKED int view_job_actions_dry(struct weir *w, const struct job_search *s, const char *action,
                                      const char *cursor, const struct job_bounds *most, json_t **doc);
/* What job_run does: as view_why, with "was" and "result". */
WEIR_CHECKED int view_job_run(struct weir *w, const char *id, json_t **doc);
