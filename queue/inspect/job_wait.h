/* Waiting for the end of a job, by looking. Nothing rings when a job ends, as that would cost each job something. A look asks whether the job is
 * among those that are kept: one call, after 20 ms first, then less and less often, at most once a second. All places are gone through, as
 * find_job does, to find the job and to learn that it is dead or gone: for a twentieth of the time at most. */
#pragma once

#include "core/client/answer.h"

/* Begins as {0}. All times are clock_mono_us(). */
struct job_wait {
    json_t *job;       /* as find_job_part() has found it last */
    bool seen, ended;  /* it was there; it is done or dead */
    int misses;        /* searches since then that have not met it */
    int64_t next_us;   /* when to look again */
    int64_t rest_us;   /* before the look behind that */
    int64_t search_us; /* no search before then */
    int64_t took_us;   /* by the search that is under way */
};

/* WEIR_ENOTFOUND: it is nowhere; where it was seen, it has ended and was not kept. */
WEIR_CHECKED int job_wait_look(struct weir *w, const char *id, struct job_wait *wait);
void job_wait_free(struct job_wait *wait);
