/* What the files of pages share: one page each, and the parts that they are made of. */
#pragma once

#include "queue/status/status.h"
#include "serve/page/html.h"
#include "serve/page/page.h"

struct page {
    struct weir *w;
    const struct page_request *r;
    struct html *h;  /* of <main> */
    struct error *e; /* why it cannot be shown */
    int64_t now_us;  /* Redis's time, as the page read it */
    const char *nav; /* the path of the entry that is marked */
    char title[160]; /* UTF-8 or not */
    struct page_cache *cache;
    int columns;     /* of the table that is being written */
    bool away, gone; /* Redis does not answer; there is no such thing */
    /* of the cache, which stays as it is until the page is written; status NULL: none yet */
    struct page_reading reading;
};

struct job_search;

/* Jobs that a search is for, as documents, as far as a page looks. */
struct jobs_found {
    json_t *rows;
    int64_t looked_at, of;
    json_t *next; /* the cursor to go on from; NULL: that was all */
};
/* cursor: "": from the beginning. Fills w->error on failure; found is the caller's after success, {NULL} before. */
WEIR_CHECKED int jobs_look(struct page *p, const struct job_search *search, const char *cursor, int64_t rows,
                           struct jobs_found *found);
void jobs_found_free(struct jobs_found *found);
/* Says what is wrong with a search: w->error. */
void put_no_search(struct page *p);
/* Writes why the dead jobs that a search is for died, where it is a search by what they are grouped by. Fills w->error on failure. */
WEIR_CHECKED int put_dead_reasons(struct page *p, const struct job_search *s);

/* Writes why the dead jobs of a type died, with what can be done to each group. Fills w->error on failure. */
WEIR_CHECKED int put_dead_of_type(struct page *p, const char *type);

/* ---- data.c: what several pages read, kept for a moment: the overview of 10,000 types is read once, however many look */

/* Returns the status, which is the cache's; NULL: p->e says why. Sets p->now_us. */
const struct status *data_status(struct page *p);
/* Foretells a type, which data_status leaves out. */
void data_foretell(struct page *p, const struct type_status *type);
/* Returns what weir report says of what data_status returned, without keys. NULL: p->w says why it is not known. */
const struct json_t *data_report(struct page *p);
/* The limits of each partition, with what is known of their types; NULL: p->e says why. */
const struct limits *data_all_limits(struct page *p, int *partitions);
/* Returns the limits of the partition that has a limit of that name, or else a type. */
const struct limits *data_limits(struct page *p, const char *name);
/* A name is not in it: was it read so long ago that a new one may be missing? Then it is read again by the next of these calls, and
 * what they have returned is gone. */
bool data_is_outdated(struct page *p);

/* ---- change.c, ribbon.c: parts of the page of a limit */

/* A table of its types with their last starts now and under the rules that the query's "rules" says; a form that asks
 * that, and one that applies it; a slider over rates that are forecast with the page, for page.js. */
void write_change_form(struct page *p, const struct limits *limits, const struct limit *limit);
/* Its last minute and what comes, drawn against the slots of each rule. changes: the log of changes, the newest first; next: the jobs that start next
 * (queue/status/coming.h). NULL: not known. */
void write_ribbon(struct page *p, const struct limits *limits, const struct limit *limit,
                  const struct json_t *changes, const struct json_t *next);

/* ---- chart.c: of what was recorded (queue/history/history.h). Each says in words what it shows too. */

/* Puts a small line of the starts in each slot of a type or limit, against `most` a second (0: none). slots: how many there are from
 * the left edge to now. */
void put_spark(struct page *p, const struct json_t *history, int slots, double most);
/* Ends in each slot, at most so many, as stacked columns by outcome, with a line of what the limit lets through where that is not far above
 * them. */
void put_outcomes(struct page *p, const struct json_t *history, int most_slots, double most);
/* Puts the outcomes of several types together; histories: of the same slots, by hours, NULL for those that are not known. */
void put_outcomes_of_all(struct page *p, struct json_t *const *histories, size_t count, int most_slots);
/* Puts a histogram of the lists of [upper ms, n] under that path of all slots: "run", or "wait" with all that held. */
void put_histogram(struct page *p, const struct json_t *history, const char *member);
/* Puts how many jobs waited how long for what: a bar and the medians. */
void put_wait_split(struct page *p, const struct json_t *history);

/* ---- The pages */

/* Each writes the inside of <main> and returns 200; or a status with p->e. name: what stands behind the page's path. */
unsigned page_overview(struct page *p, const char *name);
unsigned page_limits(struct page *p, const char *name);
unsigned page_limit(struct page *p, const char *name);
unsigned page_keys(struct page *p, const char *name);
unsigned page_type(struct page *p, const char *name);
unsigned page_jobs(struct page *p, const char *name);
unsigned page_job(struct page *p, const char *name);
unsigned page_batches(struct page *p, const char *name);
unsigned page_batch(struct page *p, const char *name);
unsigned page_schedules(struct page *p, const char *name);
unsigned page_schedule(struct page *p, const char *name);
unsigned page_log(struct page *p, const char *name);
unsigned page_workers(struct page *p, const char *name);
unsigned page_dead(struct page *p, const char *name);
unsigned page_redis(struct page *p, const char *name);
unsigned page_ask(struct page *p, const char *unused);
