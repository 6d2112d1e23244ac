/* What must hold of everything that a namespace has in Redis, between any two scripts:
 *
 *   - every key has a name and a kind that DESIGN knows; entries, tokens and records can be read
 *   - a lane is not empty exactly when its type stands in wake or in held of its queue, and never in both
 *   - each worker is in `workers` exactly when it has its hash with "@" in it; no deadline is further away
 * than a lease
 *   - no job is in two places
 *   - the counters agree with what is there: what runs, what is parked, what is scheduled, what stands in
 * queues
 *
 * All is read at once, so this may be asked at any moment, of a busy system too. */
#ifndef TESTS_INVARIANTS_H
#define TESTS_INVARIANTS_H

#include <stddef.h>
#include <stdint.h>

#include "core/redis.h"

/* Jobs, by where they are. */
struct invariants {
    int64_t queued, parked, leased, later, dead;
    int64_t unreadable; /* of those in queues: no body of a job */
    int64_t foreign; /* in queues, pushed by others than Weir, so not counted as enqueued; unreadable ones not
                        included */
};

/* NULL when all holds, else what does not; the text is good until the next call. now_us < 0: Redis's time.
 * lease_us: the longest lease; 0: unknown. seen may be NULL. */
const char *invariants_broken(struct redis *r, const char *prefix, int64_t now_us, int64_t lease_us,
                              struct invariants *seen);

/* The ids of all jobs that are found anywhere, whatever else does not hold: in ascending order, each followed
 * by "\n"; one that is in two places stands there twice. The caller's to free. */
char *invariants_ids(struct redis *r, const char *prefix);

#endif
