/* Queues as a whole: listed, paused, purged. The scripts are queue_list, queue_rows, queue_pause and
 * queue_purge. */
#pragma once

#include "core/client/answer.h"
#include "queue/limits/rate_request.h"

/* Reads all queues by name, an array of {"name", "waiting", "parked", "worker_count", "paused": as queue/state/reasons.lua describes it}; *rows
 * is the caller's, NULL after a failure. Fills w->error on failure, as the others do. */
WEIR_CHECKED int queues_read(struct weir *w, json_t **rows);

/* *answer: as type_pause() has it; the caller's, NULL after a failure. WEIR_ENOTFOUND: no job or worker has that queue, and how->create does not
 * say that it is meant. */
WEIR_CHECKED int queue_pause(struct weir *w, const char *queue, const struct pausing *how, json_t **answer);

struct queue_jobs {
    int64_t waiting, parked;
    int64_t marked; /* waiting ones in the middle of very many: they end when a worker comes to them */
};

/* Counts what waits and what is parked in a queue, of a type or all (NULL). WEIR_ENOTFOUND as above. now_us <
 * 0: Redis's time. */
WEIR_CHECKED int queue_count(struct weir *w, int64_t now_us, const char *queue, const char *type,
                             struct queue_jobs *jobs);
/* Removes them, page by page, at most as many as `most` says: more may come meanwhile. *jobs: what was
 * removed. */
WEIR_CHECKED int queue_purge(struct weir *w, int64_t now_us, const char *queue, const char *type,
                             int64_t most, struct queue_jobs *jobs);
