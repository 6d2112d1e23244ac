/* Which queues there are, of a worker that serves patterns. */
#pragma once

#include <stdint.h>

#include "core/script/args.h"

struct matched;
struct partition;
struct redisReply;

struct matching {
    uint64_t cursor; /* where the page begins that is asked for next */
    int64_t at_us;   /* when that is asked for */
};

/* Asks anew, on a new connection. */
void match_soon(struct partition *p);
/* Asks for a page. */
void match_ask(struct partition *p, struct args *a);
/* Hears the answer to match_request(): hands its page to hear(). */
void match_hear(struct partition *p, const struct redisReply *reply,
                void (*hear)(struct partition *p, const struct matched *page));
