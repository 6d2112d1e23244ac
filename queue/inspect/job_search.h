/* A search for jobs, as people write it: terms with blanks between, all of which must hold.
 *
 *   type:mail  queue:Q  batch:B  id:ID   names; an ID may stand alone
 *   schedule:S                           a run of that schedule, by its id
 *   worker:W                             runs there
 *   state:parked,dead                    any of these; without it: all but the jobs that are done and kept, which are state:finished
 *   key:42                               the key by which a limit tells jobs apart, or the one that the job names
 *   args.business_id:7                   a text, number, true, false, null, object or array that stands there in the job, however it is written
 *   reason:timeout                       a part of why it is dead, or of its last failure
 *   enqueued:>1h  died:<1h               longer ago, or less long: at least and at most
 *   due:<10m  due:>1h                    scheduled or to be retried within that time, or after it
 *
 * A value with blanks stands in double quotes, where \" and \\ are those two characters. queue/inspect/job_search.lua
 * says which jobs a search is for. */
#pragma once

#include "core/error.h"
#include "core/script/args.h"

#define JOB_TERMS_MOST 24
#define JOB_SEARCH_SIZE 2048

/* Begins as {0}, which is for all jobs. */
struct job_search {
    struct {
        size_t field, value; /* where they begin in text */
    } terms[JOB_TERMS_MOST];
    size_t count, len;
    const char *
        able; /* "run", "retry": not for jobs with which that is not done, as they were cancelled; NULL: for those too */
    char text[JOB_SEARCH_SIZE];
};

/* Adds what a text says. WEIR_EINPUT with what is wrong: the search is then useless. */
WEIR_CHECKED int job_search_read(struct job_search *s, const char *text, struct error *e);
/* Adds one term. */
WEIR_CHECKED int job_search_add(struct job_search *s, const char *field, const char *value, struct error *e);
/* True when it has that term. */
bool job_search_has(const struct job_search *s, const char *field, const char *value);
/* Returns the value of the first term of that field; NULL: there is none. */
const char *job_search_value(const struct job_search *s, const char *field);
/* Adds how many terms there are, and each as a field and a value, to a call of job_list or job_act. */
void job_search_args(const struct job_search *s, struct args *a);
