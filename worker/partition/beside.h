/* Claims that no turn makes: beside one, and behind the peek. */
#ifndef WORKER_PARTITION_BESIDE_H
#define WORKER_PARTITION_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

struct args;
struct partition;
struct redisReply;

#define BESIDE_MOST 8 /* claims that go beside a turn */

/* Another claim beside the turn that is under way, for jobs without a limit: as Redis is far away, and they end faster
 * than one claim after the other brings them. Returns when to ask for the next one, NEVER: there is no room for it. */
int64_t partition_claim_beside(struct partition *p, int64_t now);
/* Makes the claim that stands behind the peek at the queue, where jobs come one by one; false: none is to. */
bool partition_stand(struct partition *p, struct args *a);
/* Its answer; NULL: it was lost. */
void partition_hear_standing(struct partition *p, const struct redisReply *reply);

#endif
