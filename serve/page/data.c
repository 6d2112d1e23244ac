#include "serve/page/data.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "view/document.h"

/* A document is kept for a second, and for as long as keeps reading it to a tenth of the time. */
#define FRESH_US 1000000
#define SHARE 10

struct kept {
    int64_t at_us, took_us; /* monotonic; at_us 0: none is kept */
    bool used;              /* by a page, since it was read */
};

struct page_cache {
    struct kept status_kept, limits_kept;
    struct status status;
    struct limits *limits; /* of each partition */
    int partitions;
};

struct page_cache *page_cache_new(void)
{
    return calloc(1, sizeof(struct page_cache));
}

static void drop_status(struct page_cache *cache)
{
    if (cache->status_kept.at_us)
        status_free(&cache->status);
    cache->status_kept.at_us = 0;
}

static void drop_limits(struct page_cache *cache)
{
    for (int i = 0; i < cache->partitions; i++)
        limits_free(&cache->limits[i]);
    free(cache->limits);
    cache->limits = NULL;
    cache->partitions = 0;
    cache->limits_kept.at_us = 0;
}

void page_cache_drop(struct page_cache *cache)
{
    drop_status(cache);
    drop_limits(cache);
}

void page_cache_free(struct page_cache *cache)
{
    if (cache)
        page_cache_drop(cache);
    free(cache);
}

static bool is_fresh(const struct kept *kept)
{
    int64_t keep_us = kept->took_us * SHARE;

    return kept->at_us && clock_mono_us() - kept->at_us < (keep_us > FRESH_US ? keep_us : FRESH_US);
}

/* It was read, which began then. */
static void keep(struct kept *kept, int64_t began_us)
{
    *kept = (struct kept){.at_us = clock_mono_us(), .took_us = clock_mono_us() - began_us};
}

/* ---- The status */

static int read_status(struct weir *w, struct page_cache *cache)
{
    int64_t began_us = clock_mono_us();
    struct status status;
    int rc = status_read(w, &status);

    drop_status(cache);
    if (rc < 0) {
        status_free(&status);
        return rc;
    }
    cache->status = status;
    keep(&cache->status_kept, began_us);
    return 0;
}

const struct status *data_status(struct page *p)
{
    struct page_cache *cache = p->cache;

    if (!is_fresh(&cache->status_kept) && read_status(p->w, cache) < 0) {
        *p->e = p->w->error;
        return NULL;
    }
    cache->status_kept.used = true;
    p->now_us = cache->status.now_us;
    return &cache->status;
}

/* ---- Limits */

static int read_limits(struct weir *w, struct page_cache *cache)
{
    int64_t began_us = clock_mono_us();
    int count, rc = client_learn(w, &count);

    drop_limits(cache);
    cache->limits = rc == 0 ? calloc((size_t)count, sizeof *cache->limits) : NULL;
    if (rc == 0 && !cache->limits)
        rc = error_set(&w->error, WEIR_EINTERNAL, "limits: out of memory");
    for (int i = 0; rc == 0 && i < count; i++) {
        rc = client_at(w, i);
        if (rc == 0) {
            cache->partitions++;
            rc = status_limits(w, -1, &cache->limits[i]);
        }
    }
    if (rc < 0)
        drop_limits(cache);
    else
        keep(&cache->limits_kept, began_us);
    return rc;
}

const struct limits *data_all_limits(struct page *p, int *partitions)
{
    struct page_cache *cache = p->cache;

    if (!is_fresh(&cache->limits_kept) && read_limits(p->w, cache) < 0) {
        *p->e = p->w->error;
        return NULL;
    }
    cache->limits_kept.used = true;
    *partitions = cache->partitions;
    p->now_us = cache->limits[0].now_us;
    return cache->limits;
}

const struct limits *data_limits(struct page *p, const char *name)
{
    int count;
    const struct limits *all = data_all_limits(p, &count), *found = all;

    for (int i = 0; all && i < count; i++)
        if (limits_find(&all[i], name) || (limits_type(&all[i], name) && !limits_find(found, name)))
            found = &all[i];
    return found;
}

/* ---- Before they are needed */

/* Is it half over? Then it is read again before a page must wait for that. */
static bool is_due(const struct kept *kept)
{
    return kept->used && clock_mono_us() - kept->at_us > kept->took_us * SHARE / 2 &&
           kept->took_us * SHARE > FRESH_US;
}

/* One at a time: whoever asks meanwhile waits for it. */
void page_cache_renew(struct weir *w, struct page_cache *cache)
{
    int ignored = 0;

    if (is_due(&cache->status_kept))
        ignored = read_status(w, cache);
    else if (is_due(&cache->limits_kept))
        ignored = read_limits(w, cache);
    (void)ignored; /* the page that needs it says so */
}
