/* doctor_access: which rights of those that the scripts of a role need the user lacks, in words of ACL SETUSER, and which
 * commands Redis itself lacks. Redis does not roll back a script that is refused a command halfway, so a
 * worker asks before it moves a job. */
#pragma once

#include <stdint.h>

#include "core/error.h"
#include "core/script/args.h"

struct redisReply;

#define ACCESS_RULE_SIZE 1600

/* Adds a right, "+hset" or "~weir:{0}:*", quoted for a shell where it needs that. */
void access_add(char rule[ACCESS_RULE_SIZE], const char *right);

void access_request(struct args *a, const char *role, const char *prefix, int64_t now_us);
struct access {
    char rule[ACCESS_RULE_SIZE];    /* " +hset '~weir:{0}:*'", what the user lacks; "": nothing */
    char missing[ACCESS_RULE_SIZE]; /* "time, type", commands that this Redis has not; "": none */
};
/* Reads the answer; an error: the user may run no script. */
WEIR_CHECKED int access_reply(const struct redisReply *reply, const char *prefix, struct access *access,
                              struct error *e);
/* Adds a command that Redis has not. */
void access_miss(struct access *access, const char *command);
/* Reads the answer as access_reply() does. WEIR_EREFUSED when the user lacks a right, WEIR_ECONFIG when Redis does: the line names them.
 * user "": default. */
WEIR_CHECKED int access_check(const struct redisReply *reply, const char *prefix, const char *user,
                              struct error *e);
