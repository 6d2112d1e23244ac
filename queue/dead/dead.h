/* The dead jobs, gone through page by page, a list from the newest down, all else from the oldest up: pages are short
 * for Redis however many jobs there are. What dead.lua says. */
#pragma once

#include "core/client/answer.h"
#include "queue/job/job.h"

struct weir;

/* A filter says which dead jobs; NULL and 0: any. */
struct dead_filter {
    const char *type, *queue, *batch;
    const char *reason;         /* text that stands in it */
    int64_t older_us, newer_us; /* died at least, at most so long ago */
    const char *const *ids;     /* as a list names them */
    size_t id_count;
};

/* A walk goes through the dead jobs. */
struct dead_walk {
    struct weir *w;
    int64_t now_us;   /* < 0: Redis's time */
    const char *verb; /* "count", "list", "retry", "remove" */
    struct dead_filter filter;
    int64_t body_bytes; /* list: so much of each body */
    const char *into;   /* retry: the queue for all of them; NULL: each its own */
    /* Takes a page, as dead.lua answers it. Anything but 0 ends the walk, which returns it. */
    int (*take)(const json_t *page, void *arg);
    void *arg;
};

/* Goes through all dead jobs that the filter lets through. Fills w->error on failure: what was moved before stays so; after
 * WEIR_EUNREACHABLE the page that was asked for may have been too. */
WEIR_CHECKED int dead_walk(const struct dead_walk *walk);

/* Sends retried jobs home, of a page as dead.lua or job_act.lua answers it: those whose types live on another partition are enqueued there, and
 * leave the one that calls go to. Each step may be repeated. */
WEIR_CHECKED int dead_send_home(struct weir *w, int64_t now_us, const json_t *page);

/* ---- What is kept of them: a setting of the namespace */

struct dead_bounds {
    int64_t most, age_us, bytes;
};

/* Reads the bounds and what there is, as dead_keep.lua answers it, and in "each" the answer of each partition: the bounds hold for each.
 * wanted: those that are not 0 instead of the present ones, which write replaces. Fills w->error on failure. */
WEIR_CHECKED int dead_keep(struct weir *w, int64_t now_us, const struct dead_bounds *wanted, bool write,
                           json_t **kept);
/* Counts the oldest dead jobs that are beyond these bounds, by bytes as well. */
WEIR_CHECKED int dead_count_beyond(struct weir *w, int64_t now_us, const json_t *kept, int64_t *jobs);
