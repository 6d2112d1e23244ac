/* Claims that no turn makes: beside one, and behind the peek. */
#pragma once

#include <stdbool.h>

struct args;
struct claim_call;
struct partition;
struct redisReply;

/* Sends another claim beside the turn that is under way, for jobs without a limit: as Redis is far away, and they end faster than one claim
 * after the other brings them. */
void beside_claim(struct partition *p, struct claim_call *call);
/* Makes the claim that stands behind the peek at the queue, where jobs come one by one; false: none is to. */
bool beside_stand(struct partition *p, struct args *a);
/* Hears the answer to the claim that stood; NULL: it was lost. */
void beside_hear_standing(struct partition *p, const struct redisReply *reply);
