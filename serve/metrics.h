/* GET /metrics: what there is and what has happened, for Prometheus, in its text format (version 0.0.4). Names and units follow its
 * conventions: base units, _total for what only grows. doc/metrics.md lists them. */
#pragma once

#include "core/client/client.h"
#include "queue/job/job.h"

struct page_cache;

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Types, limits and queues that have rows of their own, each: those with the most jobs. Of the others only the sums are there. */
#define METRICS_ROWS 200

/* Appends them. Where Redis is away they say so. cache: what pages have read; NULL: none. Fills w->error on failure. */
WEIR_CHECKED int metrics_write(struct weir *w, struct page_cache *cache, struct text *out);
