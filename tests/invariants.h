/* What must hold of everything that a namespace has in Redis, between any two scripts.
 *
 * The doctor has most of it (queue/doctor/doctor_judge.lua): each key has a name and a kind that is known, lanes
 * and types wait at exactly one place, gates count their leases, workers are registered, counters agree. Tests
 * ask the doctor. What is checked here is what only tests can ask for, by reading all jobs at once, in C, by
 * what the design says rather than by the product's Lua:
 *
 *   - no job is in two places; each body, header, token and record can be read, and is of its lane's type
 *   - a job that runs alone is its worker's only one; each gate that a lease took has a state
 *   - the counters agree exactly with what was found, jobs that were cancelled included
 *   - deadlines are at most a lease away; shares, `at:` and `alone` hold what they may hold
 *   - a gate's state can be read (the scripts begin anew where it cannot) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/redis/redis.h"
#include "queue/job/job.h"

/* ---- All that a namespace has in Redis */

struct item {
    const char *name, *kind; /* without the prefix; of Redis */
    struct redisReply **at;  /* what it holds: elements, fields and values, members and scores */
    size_t count;
};

struct snapshot {
    struct redisReply *reply;
    struct item *items; /* by name */
    size_t count;
    int64_t now_us; /* Redis's time */
};

/* NULL: what went wrong is in *e. */
struct snapshot *snapshot_read(struct redis *r, const char *prefix, struct error *e);
void snapshot_free(struct snapshot *all);
/* NULL: there is no such key. */
const struct item *snapshot_item(const struct snapshot *all, const char *name);
/* The value of a field, or the score of a member; NULL: none. */
const char *item_value(const struct item *item, const char *field);

/* ---- What stands in it */

/* turn.index[@slot][*cost]/queue/type/key[~gate,gate...] */
struct token {
    struct span queue, type, key;
    struct span gates; /* "": none */
    int64_t slot_us, cost;
};
bool token_read(struct span text, struct token *token);
/* Takes the first name off a list joined by commas; false: it is empty. */
bool next_name(struct span *list, struct span *name);

/* "<wrote_us> <pause_until_us> <hold> <adapt> <rule> <the algorithm's own words>" */
struct gate_state {
    int64_t wrote_us, pause_until_us;
    double hold_ticket; /* no hold: hold_until_us is 0 */
    int64_t hold_until_us;
    struct span hold_node;
    bool adapted;
    struct span rule, words;
};
bool gate_state_read(struct span text, struct gate_state *state);

/* ---- The invariants */

/* Jobs, by where they are. */
struct invariants {
    int64_t queued, parked, leased, later, dead;
    int64_t unreadable; /* of those in queues: no body of a job */
    int64_t foreign; /* in queues, pushed by others than Weir, so not counted as enqueued; unreadable ones not
                        included */
};

/* What only tests check. NULL when all holds, else what does not; the text is good until the next call. now_us < 0: Redis's time.
 * lease_us: the longest lease; 0: unknown. seen may be NULL. */
const char *snapshot_broken(const struct snapshot *all, int64_t now_us, int64_t lease_us,
                            struct invariants *seen);
/* What the doctor finds wrong, as an invariant: its warnings count where nothing foreign may be. */
const char *doctor_broken(struct redis *r, const char *prefix, int64_t now_us);
/* Both, of what is there now. */
const char *invariants_broken(struct redis *r, const char *prefix, int64_t now_us, int64_t lease_us,
                              struct invariants *seen);

/* The ids of all jobs that are found anywhere, whatever else does not hold: in ascending order, each followed
 * by "\n"; one that is in two places stands there twice. The caller's to free. */
char *invariants_ids(struct redis *r, const char *prefix);
