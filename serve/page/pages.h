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
    bool away, gone; /* Redis does not answer; there is no such thing */
    /* of the cache, which stays as it is until the page is written; status NULL: none yet */
    struct page_reading reading;
};

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
unsigned page_workers(struct page *p, const char *name);
unsigned page_dead(struct page *p, const char *name);
unsigned page_redis(struct page *p, const char *name);
unsigned page_ask(struct page *p, const char *unused);

#endif
