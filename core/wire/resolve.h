/* resolve: from the name of a host to its addresses. The C library's resolver waits for name servers as long as it
 * likes, and nothing can stop it: an event loop asks on a thread (core/redis/route.h). */
#pragma once

#include "core/error.h"
#include "core/wire/address.h"

struct addrinfo;

/* Asks here and now. *all is the caller's (freeaddrinfo), NULL where the address is a path.
 * WEIR_EUNREACHABLE: there is no such host. */
WEIR_CHECKED int resolve(const struct redis_address *address, struct addrinfo **all, struct error *e);
/* Resolves without asking anybody: true when the address is a path, or its host is written in numbers. */
bool resolve_at_once(const struct redis_address *address, struct addrinfo **all);
