/* How much time a busy machine takes away: a thread that wakes every 5 ms and asks Redis. A test of a rate sets that time
 * aside: on a quiet machine it is none. */
#ifndef TESTS_WITNESS_H
#define TESTS_WITNESS_H

#include <stdint.h>

#include "tests/server.h"

struct witness;

/* To wake up to slack_us late does no harm. */
struct witness *witness_start(const struct server *s, int64_t slack_us);
/* For so long in all, us, it was not woken, or not answered. */
int64_t witness_end(struct witness *w);
/* In a trial (stage.h): so much of a rate was kept, at which all starts but the first burst take lasts_us, and it is late if that is less
 * than least. What a busy machine took is set aside, twice: it may hold up a worker and Redis. */
void witness_expect_kept(double kept, double least, int64_t lasts_us, int64_t taken_us);

#endif
