/* One job: weir job show --json and weir why --json, GET /api/jobs/ID. */
#pragma once

#include "view/document.h"

struct find_place;

/* Of what find_job or why_read says, to which the spans are added that its times tell. */
json_t *job_document(json_t *job);
/* Makes the document of a job with its body (view/write.h). */
json_t *job_document_whole(json_t *job);
/* Of what cancel_job says. */
json_t *cancel_document(const json_t *job);
/* Where a job of a document stands that is in that state; false: it does not say. */
bool job_place(const json_t *doc, const char *state, struct find_place *place);
/* Looks for as long as a page may, from a cursor on; NULL: from the beginning. WEIR_ENOTFOUND: all was looked at, and there is no such job.
 * Before anybody knows that: "id", "state" (null), "looked_at", "of", "cursor". */
WEIR_CHECKED int view_job(struct weir *w, const char *id, const char *cursor, json_t **doc);
/* Looks once at a job that somebody waits for. A document as above. */
struct job_wait;
WEIR_CHECKED int view_job_wait(struct weir *w, const char *id, struct job_wait *wait, json_t **doc);
/* Shows a job and what it waits for, without its body. */
WEIR_CHECKED int view_why(struct weir *w, const char *id, const char *cursor, json_t **doc);
