/* lookup: the same questions, put to several servers at once: the Sentinels that know a master, the nodes of a cluster. Each is
 * asked over a connection of its own. */
#pragma once

#include "core/error.h"
#include "core/redis/redis.h"
#include "core/script/args.h"

struct wire;

#define LOOKUP_QUESTIONS 2

/* Gets the answers of one server, in order; none is an error reply. They are borrowed. The connection may be taken over (wire_move). */
typedef void lookup_answer(void *arg, const struct redis_address *from,
                           struct redisReply *const replies[LOOKUP_QUESTIONS], struct wire *wire);

/* Asks one or two questions of the servers of address->seeds, with the login of *login, over TLS if the address says so. Waits until all have
 * answered, LOOKUP_REST_MS after the first answer, or LOOKUP_MS. Returns how many have answered.
 * WEIR_EUNREACHABLE, WEIR_EREFUSED: none has; the line is that of one of them. */
#define LOOKUP_MS 2000
#define LOOKUP_REST_MS 200
WEIR_CHECKED int lookup(const struct redis_address *address, const struct redis_address *login,
                        const struct args *questions, int count, lookup_answer *on_answer, void *arg,
                        struct error *e);
