/* How far away Redis is, in time, and what its clock says.
 *
 * How long an answer was on its way is not known, but the quickest of the last seconds hardly was. An answer
 * that comes seconds late says nothing new of the clock: its request was sent before Redis wrote its time, so
 * only where even that does not fit was the clock set back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The distance is all zero at the beginning. It has the quickest answers since since_us, and those of the time before that. */
struct distance {
    int64_t offset_us, offset_before_us, trip_us, trip_before_us;
    int64_t since_us;
    int64_t nearest_us; /* the quickest answer of this connection; 0: none has come */
    int64_t usual_us;   /* how long answers take at present */
};

/* Begins with a connection, which may go another way. */
void distance_begin(struct distance *d);

/* Hears an answer with redis_us, a time of Redis's clock, came now to a request that was sent at sent_us; both by our monotonic clock.
 * Returns whether Redis's was set back. */
bool distance_hear(struct distance *d, int64_t sent_us, int64_t redis_us, int64_t now_us);
/* Returns what to add to a time of Redis's clock for our monotonic one. */
int64_t distance_offset(const struct distance *d);
/* Returns a time of Redis's clock on our monotonic one; 0: never. */
int64_t distance_local(const struct distance *d, int64_t redis_us);
/* Returns how long a request and its answer take. */
int64_t distance_trip(const struct distance *d);

/* Returns how long before a time of Redis a request must leave to be there; 0: Redis is near. */
int64_t distance_lead(const struct distance *d);
/* Returns how long an answer took on this connection when Redis was idle; 0: Redis is near. While Redis is busy, each answer of some
 * seconds may have waited there. */
int64_t distance_far(const struct distance *d);
/* Returns how long an answer takes at present, with what Redis is busy with; 0: Redis is near. */
int64_t distance_at_present(const struct distance *d);
