/* The jobs that a search is for, a part at a time: of job_list.lua's pages, each short for Redis. Jobs move while
 * one looks: one may be met twice, or be passed over. */
#pragma once

#include "core/client/pages.h"
#include "queue/inspect/job_search.h"

#define JOB_LOOK_US 150000 /* for so long a page looks for jobs, half of it at rest */

#define JOB_BOUND_MOST (INT64_C(1) << 52) /* more jobs than there are; a script can count so many */

/* How far one call goes; it ends behind the page in which one of these is reached. */
struct job_bounds {
    int64_t looked_at, jobs;
    int64_t until_us; /* clock_mono_us(), of job_list_page alone; 0: it may take any time */
};

/* cursor: "next" of the call before; NULL: from the beginning. now_us < 0: Redis's time. WEIR_EINPUT: it is no cursor.
 * Fills w->error on failure. *page is the caller's, NULL after a failure:
 *   now        us
 *   jobs       of each what job_list.lua says
 *   looked_at  so many, those of the calls before included
 *   of         about so many there are where the search looks
 *   next       the cursor to go on from; not there: that was all */
WEIR_CHECKED int job_list_page(struct weir *w, int64_t now_us, const struct job_search *s, const char *cursor,
                               const struct job_bounds *most, json_t **page);
/* How many there are, as far as a call goes: "jobs", "looked_at", "next" as above, and "batch": one that was cancelled,
 * whose jobs do not count therefore (the search's able). most->jobs counts nothing. */
WEIR_CHECKED int job_list_count(struct weir *w, int64_t now_us, const struct job_search *s,
                                const char *cursor, const struct job_bounds *most, json_t **page);

/* ---- For job_act and find_job */

/* Returns how many entries one page looks at, at most. */
int job_page_most(const struct job_search *s);
/* Keeps a member of a page instead of the one before, if it is there. */
void job_keep_member(json_t **kept, const json_t *page, const char *name);
/* How many jobs there are in the places where the search looks, about. */
WEIR_CHECKED int job_list_measure(struct weir *w, int64_t now_us, const struct job_search *s, int64_t *jobs);

/* Makes the cursor behind a page of a walk over partitions; NULL: nothing is left, or out of memory. */
json_t *job_cursor(const struct weir *w, const json_t *page, int64_t looked_at);
/* Makes the cursor of these words, which tests write; NULL: out of memory. */
json_t *job_cursor_seal(const char *words);
/* Where a cursor begins: a partition, a place (the caller's, NULL: its beginning), and what was looked at before. */
WEIR_CHECKED int job_cursor_read(const char *cursor, int *partition, json_t **place, int64_t *looked_at,
                                 struct error *e);
/* Walks from a cursor on; *looked_before: what was looked at before it. */
WEIR_CHECKED int job_walk(struct pages *pages, const char *cursor, int64_t *looked_before);
/* What a walk from there has returned: WEIR_EINPUT says that no walk can have come to there. */
WEIR_CHECKED int job_cursor_judge(int status, const char *cursor, struct error *e);
