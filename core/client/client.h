/* struct weir: what weir_new makes: a blocking connection, the key prefix of the namespace, the last error.
 */
#ifndef CORE_CLIENT_CLIENT_H
#define CORE_CLIENT_CLIENT_H

#include "core/redis/redis.h"

#define PREFIX_SIZE 144

struct denials;

struct weir {
    struct redis *redis;
    char prefix[PREFIX_SIZE]; /* "weir:{0}:" */
    struct error error;       /* of the last call */
    struct error setup;       /* a wrong url or namespace, reported by each call */
    struct denials *denials;  /* of weir_take; throttle/take/denials.h */
};

/* "weir:{0}:" of a namespace; NULL: $WEIR_NAMESPACE, else "weir". WEIR_ECONFIG when it is no valid name. */
WEIR_CHECKED int client_prefix(const char *ns, char prefix[PREFIX_SIZE], struct error *e);
#define REDIS_USUAL "redis://127.0.0.1:6379"
/* The address of a url; NULL: $REDIS_URL, else REDIS_USUAL. */
WEIR_CHECKED int client_address(const char *url, struct redis_address *address, struct error *e);
/* Calls a script (begun with script_begin and w->prefix) once: redis_call, with w->setup checked first.
 * *reply is the caller's. Fills w->error and returns its status on failure. */
WEIR_CHECKED int client_call(struct weir *w, const struct args *a, struct redisReply **reply, bool *sent);

#endif
