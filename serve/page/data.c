#include "serve/page/data.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

#define FRESH_US 1000000

struct page_cache {
    struct status status;
    int64_t status_at_us; /* monotonic; 0: none is kept */
    struct limits limits;
    int64_t limits_at_us;
    struct limits all;
    int64_t all_at_us;
};

struct page_cache *page_cache_new(void)
{
    return calloc(1, sizeof(struct page_cache));
}

static void drop_status(struct page_cache *cache)
{
    if (cache->status_at_us)
        status_free(&cache->status);
    cache->status_at_us = 0;
}

static void drop_limits(struct page_cache *cache)
{
    if (cache->limits_at_us)
        limits_free(&cache->limits);
    cache->limits_at_us = 0;
}

static void drop_all(struct page_cache *cache)
{
    if (cache->all_at_us)
        limits_free(&cache->all);
    cache->all_at_us = 0;
}

void page_cache_drop(struct page_cache *cache)
{
    drop_all(cache);
    drop_status(cache);
    drop_limits(cache);
}

void page_cache_free(struct page_cache *cache)
{
    if (cache)
        page_cache_drop(cache);
    free(cache);
}

static bool is_fresh(int64_t at_us)
{
    return at_us && clock_mono_us() - at_us < FRESH_US;
}

const struct status *data_status(struct page *p)
{
    struct page_cache *cache = p->cache;

    if (!is_fresh(cache->status_at_us)) {
        drop_status(cache);
        cache->status_at_us = clock_mono_us();
        if (status_read(p->w, &cache->status) < 0) {
            drop_status(cache);
            *p->e = p->w->error;
            return NULL;
        }
    }
    p->now_us = cache->status.now_us;
    return &cache->status;
}

/* ---- Limits */

const struct limits *data_all_limits(struct page *p)
{
    struct page_cache *cache = p->cache;

    if (!is_fresh(cache->all_at_us)) {
        drop_all(cache);
        cache->all_at_us = clock_mono_us();
        if (limits_read(p->w, NULL, &cache->all) < 0) {
            drop_all(cache);
            *p->e = p->w->error;
            return NULL;
        }
    }
    p->now_us = cache->all.now_us;
    return &cache->all;
}

/* Of the partition that has a limit or a type of that name, else of the last one. */
struct wanted {
    struct page_cache *cache;
    const char *name;
};

static bool has_name(const struct limits *limits, const char *name)
{
    return limits_find(limits, name) || limits_type(limits, name);
}

static int look(struct weir *w, void *arg)
{
    struct wanted *wanted = arg;

    drop_limits(wanted->cache);
    wanted->cache->limits_at_us = clock_mono_us();
    if (status_limits(w, -1, &wanted->cache->limits) < 0)
        return w->error.status;
    return has_name(&wanted->cache->limits, wanted->name);
}

const struct limits *data_limits(struct page *p, const char *name)
{
    struct page_cache *cache = p->cache;
    struct wanted wanted = {cache, name};

    if (!is_fresh(cache->limits_at_us) || !has_name(&cache->limits, name))
        if (client_look_at_all(p->w, look, &wanted) < 0) {
            drop_limits(cache);
            *p->e = p->w->error;
            return NULL;
        }
    p->now_us = cache->limits.now_us;
    return &cache->limits;
}
