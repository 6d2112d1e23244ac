/* endpoint: what a connection is opened with, once it is known which Redis it goes to. */
#pragma once

#include "core/error.h"
#include "core/wire/address.h"

struct addrinfo;
struct tls;

struct route {
    struct redis_address to; /* which Redis, and who we are there */
    struct addrinfo *all;    /* the endpoints to try, in order; NULL: it is a path */
    struct tls *tls;         /* for the connection; NULL: none */
};

/* Finds the route to the host and port, or the path, that stand in the address. What is in *r is the caller's: wire_open takes it
 * over, else route_free frees it. WEIR_EUNREACHABLE: there is no such host.
 * WEIR_ECONFIG: a file cannot be used. */
WEIR_CHECKED int route_direct(const struct redis_address *address, struct route *r, struct error *e);
/* Frees a route, which may be empty. */
void route_free(struct route *r);
