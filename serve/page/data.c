#include "serve/page/pages.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/number.h"
#include "view/report.h"

/* What was read is kept for a second; for as long as keeps reading it to a tenth of the time, but not longer than a few seconds, as Redis may
 * have stalled while it was read; and for 1.5 ms for each type, queue and limit: these take Redis 8 us, so reading costs it less than one
 * percent of a core. */
#define FRESH_US 1000000
#define SHARE 10
#define SHARE_MOST_US (3 * FRESH_US)
#define ROW_US 1500
#define MOST_US (60 * FRESH_US)

/* The status and the limits that it was made of, which cost nothing more. */
struct page_cache {
    struct status status;
    struct all_limits limits;
    json_t *report;                  /* what is wrong by it; NULL: nobody has asked */
    int64_t at_us, took_us, keep_us; /* monotonic; at_us 0: nothing is kept */
    bool used;                       /* since it was read */
};

struct page_cache *page_cache_new(void)
{
    return calloc(1, sizeof(struct page_cache));
}

void page_cache_drop(struct page_cache *cache)
{
    status_free(&cache->status);
    all_limits_free(&cache->limits);
    json_decref(cache->report);
    cache->report = NULL;
    cache->at_us = 0;
}

void page_cache_free(struct page_cache *cache)
{
    if (cache)
        page_cache_drop(cache);
    free(cache);
}

static int64_t keep_us(const struct page_cache *cache)
{
    size_t rows = cache->status.type_count + cache->status.queue_count;
    int64_t share_us = min_i64(cache->took_us * SHARE, SHARE_MOST_US);

    for (int i = 0; i < cache->limits.count; i++)
        rows += cache->limits.at[i].count;
    return max_i64(FRESH_US, max_i64(share_us, min_i64((int64_t)rows * ROW_US, MOST_US)));
}

static int64_t age_us(const struct page_cache *cache)
{
    return clock_mono_us() - cache->at_us;
}

static int read_all(struct weir *w, struct page_cache *cache)
{
    int64_t began_us = clock_mono_us();
    int rc;

    page_cache_drop(cache);
    rc = status_read_untold(w, &cache->status, &cache->limits);
    if (rc < 0) {
        page_cache_drop(cache);
        return rc;
    }
    cache->at_us = clock_mono_us();
    cache->took_us = cache->at_us - began_us;
    cache->keep_us = keep_us(cache);
    cache->used = false;
    return rc;
}

int page_cache_read(struct weir *w, struct page_cache *cache, struct page_reading *reading)
{
    int rc = cache->at_us && age_us(cache) < cache->keep_us ? 0 : read_all(w, cache);

    cache->used = true;
    *reading = (struct page_reading){.status = &cache->status,
                                     .limits = &cache->limits,
                                     .age_us = rc == 0 ? age_us(cache) : 0,
                                     .took_us = cache->took_us,
                                     .keep_us = cache->keep_us};
    return rc;
}

int page_cache_foretell(struct page_cache *cache, const struct type_status *type, struct error *e)
{
    return status_foretell(&cache->status.types[type - cache->status.types], &cache->limits, e);
}

/* True when most of the time of a reading is over. Then it is read again before somebody must wait for that. */
static bool is_due(const struct page_cache *cache)
{
    return cache->at_us && cache->used && cache->keep_us > FRESH_US && age_us(cache) > cache->keep_us / 4 * 3;
}

void page_cache_renew(struct weir *w, struct page_cache *cache)
{
    int ignored = is_due(cache) ? read_all(w, cache) : 0;

    (void)ignored; /* the page that needs it says so */
}

/* ---- For a page, the same until it is written */

static const struct page_reading *reading_of(struct page *p)
{
    if (p->reading.status)
        return &p->reading;
    if (page_cache_read(p->w, p->cache, &p->reading) < 0) {
        p->reading = (struct page_reading){.status = NULL};
        *p->e = p->w->error;
        return NULL;
    }
    p->now_us = p->reading.status->now_us;
    return &p->reading;
}

const struct status *data_status(struct page *p)
{
    const struct page_reading *r = reading_of(p);

    return r ? r->status : NULL;
}

void data_foretell(struct page *p, const struct type_status *type)
{
    p->h->failed = page_cache_foretell(p->cache, type, p->e) < 0 || p->h->failed;
}

/* The report judges by what types wait for. */
const json_t *data_report(struct page *p)
{
    struct page_cache *cache = p->cache;

    for (size_t i = 0; !cache->report && i < cache->status.type_count; i++)
        if (type_backlog(&cache->status.types[i]) > 0)
            data_foretell(p, &cache->status.types[i]);
    if (!cache->report && report_of(p->w, &cache->status, true, &cache->report) < 0)
        return NULL;
    return cache->report;
}

const struct limits *data_all_limits(struct page *p, int *partitions)
{
    const struct page_reading *r = reading_of(p);

    if (!r)
        return NULL;
    *partitions = r->limits->count;
    p->now_us = r->limits->at[0].now_us;
    return r->limits->at;
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

/* Not again within the time that it takes: at most half of the time goes into this. */
bool data_is_outdated(struct page *p)
{
    if (age_us(p->cache) <= p->cache->took_us)
        return false;
    page_cache_drop(p->cache);
    p->reading = (struct page_reading){.status = NULL};
    return true;
}
