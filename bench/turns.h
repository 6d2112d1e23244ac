/* Turns: the scripts that a worker calls, without a worker around them. A turn settles all that the last one
 * claimed as done, and claims again. */
#pragma once

#include "bench/bench.h"
#include "queue/turn/turn.h"

struct turns {
    struct server *server;
    const char *type;
    int free, prefetch, chunk; /* as of struct claim_call */
    int64_t now_us;            /* -1: Redis's own time */
    int64_t number;            /* of the last turn */
    size_t started;            /* jobs, in all turns */
    struct claim claim;        /* the last answer, which points into reply */
    struct redisReply *reply;
};

/* Registers a worker; the caller has set the members down to now_us. */
void turns_begin(struct turns *t);
void turns_next(struct turns *t);
void turns_free(struct turns *t);
