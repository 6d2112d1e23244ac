/* The pages of weir serve, written here as HTML that needs no script. page.js only keeps what is open up to date.
 *
 *   html.c      the one writer, which escapes
 *   page.c      which page an address is, and the frame around all of them
 *   parts.c     what pages share: times, links, bars, forms
 *   data.c      documents that several pages read, kept for a moment
 *   overview.c, limit.c, type.c, ...   one page each (pages.h)
 *   style.css, page.js, icon.svg       embedded by assets.sh
 *
 * All of it is called on a Redis thread, and asks Redis through the client that it is given. */
#pragma once

#include <stdbool.h>

#include "core/client/client.h"
#include "queue/job/job.h"

struct type_status;
struct all_limits;
struct page_cache;
struct status;

struct page_request {
    const char *path;         /* decoded: "/types/mail" */
    const char *query;        /* behind the "?", still encoded; "" or NULL: none */
    bool actions;             /* whoever asks may change things: forms are shown */
    bool hide_args;           /* payloads, keys and outputs are not shown */
    struct page_cache *cache; /* NULL: none, so each page asks anew */
};

/* Appends the page to out, and returns its HTTP status: 200, 400, 404, 503 when Redis does not answer, 502 when it
 * answers what it should not. 500 when there is no
 * memory: e says so, and out is not to be sent. */
unsigned page_render(struct weir *w, const struct page_request *r, struct text *out, struct error *e);
/* A page that says why there is none, with the links of all pages; asks nobody. out is not to be sent after a failure. */
WEIR_CHECKED int page_refuse(unsigned status, const char *why, struct text *out, struct error *e);
/* True for the path of a page. */
bool page_is(const char *path);

/* The status and the limits that it was made of are used again by others for a second, or for longer in a large namespace: data.c says
 * how long. NULL: out of memory. */
struct page_cache *page_cache_new(void);
struct page_reading {
    const struct status *status; /* the cache's, until its next call */
    const struct all_limits *limits;
    int64_t age_us, took_us, keep_us; /* since it was read; to read it; for how long it is used */
};
/* Reads them when what is kept is too old. Fills w->error on failure. */
WEIR_CHECKED int page_cache_read(struct weir *w, struct page_cache *cache, struct page_reading *reading);
/* A type of what was read: it is foretold from then on. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int page_cache_foretell(struct page_cache *cache, const struct type_status *type,
                                     struct error *e);
/* Reads again what is used and what takes long to read, before a page must wait for it: whenever its thread is idle. */
void page_cache_renew(struct weir *w, struct page_cache *cache);
/* Something was changed: read it again. */
void page_cache_drop(struct page_cache *cache);
void page_cache_free(struct page_cache *cache);

/* An asset stands below /assets/. NULL: there is none of that name. */
struct page_asset {
    const char *name, *type, *text;
};
const struct page_asset *page_asset(const char *name);
