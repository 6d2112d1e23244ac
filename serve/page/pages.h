/* What the files of pages share: one page each, and the parts that they are made of. */
#ifndef SERVE_PAGE_PAGES_H
#define SERVE_PAGE_PAGES_H

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

#endif
