#include "core/client/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define NAME_MAX_LEN 128

/* What was given, else what the environment says, else the usual. */
static const char *choose(const char *given, const char *variable, const char *usual)
{
    const char *set = getenv(variable);

    if (given)
        return given;
    return set && *set ? set : usual;
}

int client_prefix(const char *ns, char prefix[PREFIX_SIZE], struct error *e)
{
    const char *name = choose(ns, "WEIR_NAMESPACE", "weir");
    size_t len = strlen(name);

    if (len < 1 || len > NAME_MAX_LEN || strspn(name, NAME_CHARS) != len)
        return error_set(e, WEIR_ECONFIG, "namespace '%.40s': not a name; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         name);
    snprintf(prefix, PREFIX_SIZE, "%s:{0}:", name);
    return 0;
}

int client_address(const char *url, struct redis_address *address, struct error *e)
{
    return redis_address_parse(choose(url, "REDIS_URL", REDIS_USUAL), address, e);
}

struct weir *weir_new(const char *url, const char *ns)
{
    struct weir *w = calloc(1, sizeof *w);
    struct redis_address address;

    if (!w)
        return NULL;
    if (client_address(url, &address, &w->setup) == 0 && client_prefix(ns, w->prefix, &w->setup) == 0) {
        w->redis = redis_new(&address);
        if (!w->redis) {
            free(w);
            return NULL;
        }
    }
    return w;
}

void weir_free(struct weir *w)
{
    if (!w)
        return;
    redis_free(w->redis);
    free(w->denials);
    free(w);
}

const char *weir_message(const struct weir *w)
{
    return w->error.text;
}

int client_call(struct weir *w, const struct args *a, struct redisReply **reply, bool *sent)
{
    if (w->setup.status) {
        *reply = NULL;
        if (sent)
            *sent = false;
        w->error = w->setup;
        return w->error.status;
    }
    return redis_call(w->redis, a, reply, sent, &w->error);
}
