/* The dead jobs, gone through page by page, oldest first: pages are short for Redis however many jobs there
 * are. What dead.lua says. */
#ifndef QUEUE_DEAD_DEAD_H
#define QUEUE_DEAD_DEAD_H

#include "queue/job/job.h"

struct redisReply;
struct weir;

#define DEAD_PAGE_MOST 200

enum dead_verb { DEAD_COUNT, DEAD_LIST, DEAD_RETRY, DEAD_REMOVE };

/* Which of them; NULL and 0: any. */
struct dead_filter {
    const char *type, *queue, *batch;
    const char *reason;         /* text that stands in it */
    int64_t older_us, newer_us; /* died at least, at most so long ago */
    const char *const *ids;     /* as dead_job.id */
    size_t id_count;
};

/* A walk through them. Make it with verb and filter, the rest 0; call dead_next until it has ended;
 * dead_end. */
struct dead_walk {
    struct weir *w;
    int64_t now_us; /* < 0: Redis's time */
    enum dead_verb verb;
    struct dead_filter filter;
    int64_t body_bytes; /* LIST: so much of each body */
    const char *into;   /* RETRY: the queue for all of them; NULL: each its own */

    bool ended;
    int64_t looked_at; /* so far */
    int64_t moved;     /* RETRY, REMOVE: so far */
    int64_t left;      /* RETRY: those without a queue, so far */
    size_t found;      /* what dead_job, dead_group or dead_moved read of this page */
    struct redisReply *page;
};

/* Works on the next page. Fills w->error on failure: what was moved before stays so; after
 * WEIR_EUNREACHABLE this page may have been too. */
WEIR_CHECKED int dead_next(struct dead_walk *walk);
void dead_end(struct dead_walk *walk);

/* The spans below point into the walk's page; what is not known is empty. */
struct dead_job {
    int64_t died_us;
    struct span id; /* of the job; "raw:" and a digest of the record when it has none */
    struct span type, queue, key, reason;
    int64_t attempts, interrupted, throttled; /* attempts: those before the last one */
    struct span batch, unique;
    int64_t failed_us; /* its last failure before it died; -1: it had none */
    struct span failure;
    int64_t size_bytes; /* of its body */
    struct span body;
};
void dead_job(const struct dead_walk *walk, size_t i, struct dead_job *job);

/* Of COUNT: equal ones of a page. */
struct dead_group {
    struct span type, reason;
    int64_t count, without_queue;
};
void dead_group(const struct dead_walk *walk, size_t i, struct dead_group *group);

/* Of RETRY and REMOVE by ids: one that was met. */
struct span dead_moved(const struct dead_walk *walk, size_t i);

/* ---- What is kept of them: a setting of the namespace */

struct dead_bounds {
    int64_t most, age_us, bytes;
};

struct dead_kept {
    int64_t now_us;
    struct dead_bounds bounds;
    int64_t jobs, bytes; /* bytes -1: they are not all counted yet */
    int64_t beyond;      /* the oldest that go by number or age */
    int64_t oldest_us;   /* when it died; -1: there is none */
};

/* Reads the bounds and what there is; wanted: those that are not 0 instead of the present ones, which write
 * replaces. Fills w->error on failure. */
WEIR_CHECKED int dead_keep(struct weir *w, int64_t now_us, const struct dead_bounds *wanted, bool write,
                           struct dead_kept *kept);
/* Bytes of the records, oldest first. Begin with all 0, call dead_sizes_next until ended, then
 * dead_sizes_end. */
struct dead_sizes {
    bool ended;
    int64_t jobs, counted; /* all that there are; their bytes as they are counted, -1: not all are */
    size_t found;          /* of this page, for dead_size */
    struct redisReply *page;
};
WEIR_CHECKED int dead_sizes_next(struct weir *w, int64_t now_us, struct dead_sizes *sizes);
int64_t dead_size(const struct dead_sizes *sizes, size_t i);
void dead_sizes_end(struct dead_sizes *sizes);

/* How many of the oldest are beyond kept->bounds by bytes as well: goes through as many of them. */
WEIR_CHECKED int dead_count_beyond(struct weir *w, int64_t now_us, const struct dead_kept *kept,
                                   int64_t *jobs);

#endif
