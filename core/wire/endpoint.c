#include "core/wire/endpoint.h"

#include <netdb.h>

#include "core/wire/resolve.h"
#include "core/wire/tls.h"

int route_direct(const struct redis_address *address, struct route *r, struct error *e)
{
    int status = 0;

    *r = (struct route){.to = *address};
    if (r->to.tls)
        status = tls_new(&r->to, &r->tls, e);
    if (!status)
        status = resolve(&r->to, &r->all, e);
    if (status)
        route_free(r);
    return status;
}

void route_free(struct route *r)
{
    if (r->all)
        freeaddrinfo(r->all);
    tls_free(r->tls);
    r->all = NULL;
    r->tls = NULL;
}
