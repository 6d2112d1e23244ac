/* The steps with which every connection begins, one command and one answer each: AUTH, ROLE, SELECT, FUNCTION LOAD.
 * All are sent at once.
 *
 * Redis refuses FUNCTION LOAD where it takes no writes (over its maxmemory, no room on its disk, too few
 * replicas) and to a user without +function|load. The library is mostly there all the same: another
 * connection, or an administrator, has loaded it. So a refusal counts only once a function was called and not
 * found. */
#ifndef CORE_WIRE_HANDSHAKE_H
#define CORE_WIRE_HANDSHAKE_H

#include "core/error.h"
#include "core/script/args.h"
#include "core/wire/address.h"

struct redisReply; /* hiredis */

enum handshake_step {
    HANDSHAKE_AUTH,
    HANDSHAKE_ROLE, /* where Sentinels named it: is it a master? */
    HANDSHAKE_SELECT,
    HANDSHAKE_LOAD,
    HANDSHAKE_RELOAD, /* not when connecting: after "Function not found" */
    HANDSHAKE_NAME,   /* after a refused LOAD: the refusal says who it is that has no functions */
};

/* Makes the command of a step; no words when this address needs none. */
void handshake_request(const struct redis_address *address, enum handshake_step step, struct args *a);
/* Checks the answer. */
WEIR_CHECKED int handshake_reply(enum handshake_step step, const struct redisReply *reply, struct error *e);
/* Was that a refusal behind which HANDSHAKE_NAME is to be asked? Its error then comes first. */
bool handshake_wants_name(enum handshake_step step, int status);

#endif
