/* route: all that is asked before a connection is opened, anew for each one: the password, which host it is where
 * Sentinels or a cluster know that, the files of TLS, the socket addresses of the host. Asking may
 * take as long as a name server or a disk likes, and some of it cannot be stopped. So an event loop begins a
 * question, which is asked on a thread of its own, and watches a descriptor for the answer. A question that
 * nobody waits for any longer is dropped: its thread ends by itself, and holds up neither the loop nor the end
 * of the process. */
#pragma once

#include "core/error.h"
#include "core/redis/watch.h"
#include "core/wire/endpoint.h"

/* Asks here and now; else as route_direct. *watch: as sentinel_find, NULL where nobody watches. */
WEIR_CHECKED int route_find(const struct redis_address *address, struct route *r, struct watch **watch,
                            struct error *e);
/* Finds the route without asking anybody; false: somebody must be asked. */
bool route_at_once(const struct redis_address *address, struct route *r);

struct routing;

/* Begins to ask. WEIR_EINTERNAL: out of memory, or of threads. */
WEIR_CHECKED int routing_begin(const struct redis_address *address, struct routing **r, struct error *e);
/* Readable from when the answer has come. */
int routing_fd(const struct routing *r);
/* Takes the answer, once there is one; as route_find. */
WEIR_CHECKED int routing_take(struct routing *r, struct route *route, struct watch **watch, struct error *e);
/* How long an answer may take. */
int routing_limit_s(const struct redis_address *address);
/* Fills *e with WEIR_EUNREACHABLE: no answer within that time. */
int routing_timed_out(const struct routing *r, struct error *e);
/* Frees it, or has its thread do so. May be NULL. */
void routing_drop(struct routing *r);
