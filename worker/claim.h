/* Claiming: when to ask for jobs, and what the answer means. */
#ifndef WORKER_CLAIM_H
#define WORKER_CLAIM_H

#include "core/redis/args.h"
#include "worker/room.h"

struct weir_worker;

struct names worker_queues(struct weir_worker *w);
/* When to claim: at once for a reason or with more to take, else when a gate is about to open, or too long
 * after the last claim. */
int64_t worker_claim_time(struct weir_worker *w, struct room room);
void worker_claim(struct weir_worker *w, struct args *a, struct room room, int64_t now);
/* On a new connection it is not on duty. */
void worker_lose_duty(struct weir_worker *w);

#endif
