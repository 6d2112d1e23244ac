/* Where a job is and what is known of it, by its id: of find_job.lua's pages. Nothing says where a job
 * stands, as any client may put one into a queue, so all places are gone through, page by page, each short
 * for Redis. A job that moves meanwhile may be passed over: they are gone through twice before it counts as
 * not there. */
#pragma once

#include "core/client/answer.h"
#include "queue/job/job.h"

/* now_us < 0: Redis's time. WEIR_ENOTFOUND: it is in no place. Fills w->error on failure. Calls go to the partition where it is then.
 * *job is the caller's, NULL after a failure: what find_job.lua says of it, with "now", "id", "max_attempts", "timeout" (us),
 * "unreadable": why a worker cannot read it, and "waits_for": a pause or a worker (cli/waits.h). Type and key are those of its body where its place says none. */
WEIR_CHECKED int find_job(struct weir *w, int64_t now_us, const char *id, json_t **job);
/* Looks for a job in one list of the partition that calls go to, from behind so many entries at its tail on: short for who knows about
 * where it stands. */
WEIR_CHECKED int find_job_at(struct weir *w, int64_t now_us, const char *id, const char *list, int64_t passed,
                             json_t **job);
/* Where a walk meets a job that was seen there. */
struct find_place {
    char at[600];  /* "lane:default/mail/42" */
    char from[48]; /* how far it has gone there by then, as queue/inspect/places.lua has it */
};
/* Looks for a job near that place only, which may come from anybody: it costs a call or two. */
WEIR_CHECKED int find_job_near(struct weir *w, int64_t now_us, const char *id, const struct find_place *place,
                               json_t **job);
/* Looks for a job as far as one call goes: all places are gone through once, by one call after the other. Each ends behind the page in
 * which clock_mono_us() reaches until_us. Those that have finished are looked at by each call; another one that moves between calls may be
 * passed over. cursor: "next" of the call before; NULL: from the beginning. WEIR_EINPUT: it is no cursor. As long as the job was not met
 * and some places are left, *job is {"id", "looked_at", "of", "next"}, as job_list.h has them. */
WEIR_CHECKED int find_job_part(struct weir *w, int64_t now_us, const char *id, const char *cursor,
                               int64_t until_us, json_t **job);
/* True when such a call has ended before anybody knows whether the job is there. */
bool found_too_early(const json_t *job);
/* WEIR_ENOTFOUND: there is no such job. */
int find_none(struct weir *w, const char *id);
/* Returns the body as it was enqueued; it is the document's. */
struct span found_body(const json_t *job);
/* True for "waiting", "parked", "held": the job stands in its queue or lane. */
bool found_in_line(const json_t *job);
/* True when a job is cancelled or cannot be read: a worker that comes to it ends it. */
bool found_ends(const json_t *job);
