/* The steps with which every connection begins, one command and one answer each: AUTH, SELECT, ROLE, PING. All are sent at
 * once. ROLE finds a replica, which takes no writes; PING a Redis that is loading its data. Where either is not allowed, or
 * not known, the connection goes on without it.
 *
 * Functions are loaded when a call has not found its own, and never before: the library is 1,000 times as long as a call. */
#pragma once

#include "core/error.h"
#include "core/script/args.h"
#include "core/wire/address.h"

struct redisReply; /* hiredis */

enum handshake_step {
    HANDSHAKE_AUTH,
    HANDSHAKE_SELECT,
    HANDSHAKE_ROLE,
    HANDSHAKE_PING,
    HANDSHAKE_LOAD, /* not when connecting: when a call has missed the library */
    HANDSHAKE_NAME, /* after a refused LOAD: the refusal says who it is that has no functions */
};

/* Makes the command of a step; no words when this address needs none. */
void handshake_request(const struct redis_address *address, enum handshake_step step, struct args *a);
/* Checks the answer. */
WEIR_CHECKED int handshake_reply(const struct redis_address *address, enum handshake_step step,
                                 const struct redisReply *reply, struct error *e);
/* True for a refusal behind which HANDSHAKE_NAME is to be asked. Its error then comes first. */
bool handshake_wants_name(enum handshake_step step, int status);
