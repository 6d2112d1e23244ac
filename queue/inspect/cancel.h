/* Cancelling one job, in each state: of cancel.lua, once find_job has found it. */
#ifndef QUEUE_INSPECT_CANCEL_H
#define QUEUE_INSPECT_CANCEL_H

#include "queue/inspect/find_job.h"

enum cancel_result {
    CANCEL_REMOVED,  /* it was scheduled, or to be retried, and is gone */
    CANCEL_MARKED,   /* it waits, and ends when a worker comes to it */
    CANCEL_BEFORE,   /* the same, by an earlier call */
    CANCEL_TOLD,     /* it runs, and its worker is told */
    CANCEL_UNLOCKED, /* it is nowhere; the unique lock that it held is free */
};

struct cancel {
    enum cancel_result result;
    struct found_job job; /* where it was; of CANCEL_UNLOCKED nothing */
};

/* now_us < 0: Redis's time. lock: the unique key that id may hold though its job is nowhere; NULL: none.
 * WEIR_EINPUT: it is dead or finished. WEIR_ENOTFOUND: it is nowhere. Fills w->error on failure; free with
 * cancel_free, also then. */
WEIR_CHECKED int cancel_job(struct weir *w, int64_t now_us, const char *id, const char *lock,
                            struct cancel *out);
void cancel_free(struct cancel *cancel);

#endif
