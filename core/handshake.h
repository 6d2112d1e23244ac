/* The steps with which every connection begins, one command and one answer each: AUTH, SELECT, SCRIPT LOAD of
 * each script. All are sent at once. */
#ifndef CORE_HANDSHAKE_H
#define CORE_HANDSHAKE_H

#include "core/args.h"
#include "core/error.h"
#include "core/redis.h"

/* The first step that loads a script; a connection that was told NOSCRIPT begins here again. */
#define HANDSHAKE_SCRIPTS 2

/* Makes the command of a step, counted from 0; no words when this address needs none. false: there is no such
 * step. */
bool handshake_request(const struct redis_address *address, int step, struct args *a);
/* Checks the answer. */
WEIR_CHECKED int handshake_reply(int step, const struct redisReply *reply, struct error *e);

#endif
