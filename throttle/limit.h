/* Limits in Redis: setting, removing and looking at them. The scripts are rate_set.lua and rate_list.lua. */
#ifndef THROTTLE_LIMIT_H
#define THROTTLE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/args.h"
#include "throttle/gcra.h"

struct redisReply; /* hiredis */

#define LIMIT_NAME_SIZE 129

/* 1 to 128 of [A-Za-z0-9_.-]; else WEIR_EINPUT. what: "limit", "key". */
WEIR_CHECKED int limit_name_check(const char *what, const char *name, struct error *e);

/* rule: the stored form; "" removes the limit. *existed: was there one of that name? */
void rate_set_request(struct args *a, const char *prefix, int64_t now_us, const char *name, const char *rule);
WEIR_CHECKED int rate_set_reply(const struct redisReply *r, bool *existed, struct error *e);

/* A limit as it was when it was read. */
struct limit {
    char name[LIMIT_NAME_SIZE];
    char stored[RULE_TEXT_SIZE]; /* its rule, cut when it is no rule at all */
    bool readable;               /* is that a rule? if not, gate says nothing and no job of the type starts */
    struct gcra gate;
    int64_t now_us;         /* Redis's time when it was read */
    int64_t pause_until_us; /* 0: not paused */
    int64_t parked;         /* jobs that wait for it in lanes */
};
struct limit_list {
    struct limit *at;
    size_t count;
};
void limit_list_free(struct limit_list *list);

/* name "": all limits. Reading one that is not there gives an empty list. */
void rate_list_request(struct args *a, const char *prefix, int64_t now_us, const char *name);
WEIR_CHECKED int rate_list_reply(const struct redisReply *r, struct limit_list *list, struct error *e);

/* The slots that could be taken at once, and when the first and the last of its parked jobs start at the
 * earliest (0 when none is parked: last). */
int64_t limit_slots(const struct limit *limit);
int64_t limit_next_start(const struct limit *limit);
int64_t limit_last_start(const struct limit *limit);

struct weir;

/* Reads the limits, by name. name NULL: all; WEIR_ENOTFOUND when the one asked for is not there. */
WEIR_CHECKED int limit_read(struct weir *w, const char *name, struct limit_list *list);

#endif
