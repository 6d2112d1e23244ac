/* What the requests and replies of a turn have in common. For turn.c and turn_claim.c only. */
#pragma once

#include "queue/turn/turn.h"

static inline void add_names(struct args *a, struct names names)
{
    for (int i = 0; i < names.count; i++)
        args_add(a, names.at[i]);
}

/* Returns the text of a reply; empty when it is none. */
static inline struct span span_of(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING ? (struct span){reply->str, reply->len} : (struct span){"", 0};
}

enum { TOKEN_INDEX = 2 }; /* digits of a stamp, behind the turn of a token */
/* Finds the index of a token; false: it has none of so many digits. */
bool token_index(struct span token, size_t *at);
