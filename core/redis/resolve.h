/* resolve: from the name of a host to its addresses. The C library's resolver waits for name servers as long
 * as it likes, and nothing can stop it. So an event loop begins a question, which is asked on a thread of its
 * own, and watches a descriptor for the answer. Whoever does not wait any longer drops the question: its
 * thread ends by itself, and holds up neither the loop nor the end of the process. */
#ifndef CORE_REDIS_RESOLVE_H
#define CORE_REDIS_RESOLVE_H

#include "core/error.h"
#include "core/redis/redis.h"

struct addrinfo;

/* Asks here and now. *all is the caller's (freeaddrinfo), NULL where the address is a path.
 * WEIR_EUNREACHABLE: there is no such host. */
WEIR_CHECKED int resolve(const struct redis_address *address, struct addrinfo **all, struct error *e);
/* The same without asking anybody: true when the address is a path, or its host is written in numbers. */
bool resolve_at_once(const struct redis_address *address, struct addrinfo **all);

struct resolving;

/* Begins to ask. WEIR_EINTERNAL: out of memory, or of threads. */
WEIR_CHECKED int resolving_begin(const struct redis_address *address, struct resolving **r, struct error *e);
/* Readable from when the answer has come. */
int resolving_fd(const struct resolving *r);
/* Takes the answer, once there is one; as resolve(). */
WEIR_CHECKED int resolving_take(struct resolving *r, struct addrinfo **all, struct error *e);
/* Fills *e with WEIR_EUNREACHABLE: no answer within that many seconds. */
int resolving_timed_out(const struct resolving *r, double seconds, struct error *e);
/* Frees it, or has its thread do so. May be NULL. */
void resolving_drop(struct resolving *r);

#endif
