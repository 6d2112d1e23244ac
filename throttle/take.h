/* Slots for callers of any kind: take.lua's request and answer. */
#ifndef THROTTLE_TAKE_H
#define THROTTLE_TAKE_H

#include <stdbool.h>

#include "core/args.h"
#include "throttle/limit.h"

struct take {
    char name[LIMIT_NAME_SIZE];
    char key[LIMIT_NAME_SIZE]; /* "": none */
    char rule[RULE_TEXT_SIZE]; /* stored form; "": the limit's own */
    int64_t cost;
    bool peek;
};

/* Reads NAME or NAME/KEY, a rule as a person writes it (NULL: the limit's own) and a cost (0: 1).
 * WEIR_EINPUT. */
WEIR_CHECKED int take_make(struct take *t, const char *target, const char *rule, int64_t cost, bool peek,
                           struct error *e);

void take_request(struct args *a, const char *prefix, int64_t now_us, const struct take *t);
/* WEIR_ENOTFOUND: no such limit; WEIR_EINPUT: it has no keys, or another rule than the one given. */
WEIR_CHECKED int take_reply(const struct redisReply *r, const struct take *t, struct weir_take *out,
                            struct error *e);

#endif
