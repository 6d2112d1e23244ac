#include "core/redis/sentinel.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/redis/lookup.h"

struct named {
    struct redis_address *master;
    long long epoch; /* of the answer that counts; -1: none yet */
    struct watch *watch;
};

/* Finds the value behind that name in [ name, value, ... ]; "" when there is none. */
static const char *value_of(const struct redisReply *reply, const char *name)
{
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2)
        if (reply->element[i]->type == REDIS_REPLY_STRING &&
            reply->element[i + 1]->type == REDIS_REPLY_STRING && strcmp(reply->element[i]->str, name) == 0)
            return reply->element[i + 1]->str;
    return "";
}

/* Takes an answer to one of the two questions. The one with the epoch still has the old address while the failover is led to its end. */
static void take_answer(void *arg, const struct redis_address *from,
                        struct redisReply *const replies[LOOKUP_QUESTIONS], struct wire *wire)
{
    struct named *n = arg;
    const struct redisReply *at = replies[0];
    long long epoch = atoll(value_of(replies[1], "config-epoch"));
    int port;

    (void)from;
    if (n->watch)
        watch_add(n->watch, wire);
    if (epoch <= n->epoch || at->type != REDIS_REPLY_ARRAY || at->elements != 2 ||
        at->element[0]->type != REDIS_REPLY_STRING || at->element[1]->type != REDIS_REPLY_STRING)
        return;
    port = atoi(at->element[1]->str);
    if (!at->element[0]->str[0] || at->element[0]->len >= sizeof n->master->host || port < 1 || port > 65535)
        return;
    n->epoch = epoch;
    n->master->port = port;
    snprintf(n->master->host, sizeof n->master->host, "%s", at->element[0]->str);
}

/* Puts an error of all Sentinels in words about them. */
static int refused(const struct redis_address *address, struct error *e)
{
    struct error why = *e;

    if (strstr(why.text, "No such master with that name"))
        return error_set(
            e, WEIR_ECONFIG,
            "the Sentinels know no master %s; write the name of their \"sentinel monitor\" behind the hosts: "
            "redis+sentinel://host1,host2/name",
            address->master);
    if (why.status == WEIR_EREFUSED)
        return error_set(
            e, WEIR_EREFUSED,
            "the Sentinels refuse: %.*s; write their login behind the ? of the address: sentinel-user=, "
            "sentinel-password=",
            (int)strcspn(why.text, ";"), why.text);
    if (strstr(why.text, "unknown command"))
        return error_set(e, WEIR_ECONFIG,
                         "no Sentinel stands there but a Redis; name the Sentinels, mostly on port 26379");
    return error_set(e, why.status, "no Sentinel answers; of the last one: %s", why.text);
}

static int ask(const struct redis_address *address, struct named *named, struct error *e)
{
    struct redis_address login = {0};
    struct args questions[2] = {0};
    int n;

    snprintf(login.user, sizeof login.user, "%s", address->sentinel_user);
    snprintf(login.password, sizeof login.password, "%s", address->sentinel_password);
    for (int i = 0; i < 2; i++) {
        args_add(&questions[i], "SENTINEL");
        args_add(&questions[i], i == 0 ? "GET-MASTER-ADDR-BY-NAME" : "MASTER");
        args_add(&questions[i], address->master);
    }
    n = lookup(address, &login, questions, 2, take_answer, named, e);
    for (int i = 0; i < 2; i++)
        args_free(&questions[i]);
    if (n < 0)
        return refused(address, e);
    if (named->epoch < 0)
        return error_set(
            e, WEIR_EUNREACHABLE,
            "the Sentinels' answers about master %s make no sense; are these addresses of Sentinels?",
            address->master);
    return 0;
}

int sentinel_find(const struct redis_address *address, struct redis_address *master, struct watch **watch,
                  struct error *e)
{
    struct named named = {.master = master, .epoch = -1, .watch = watch ? watch_new(address) : NULL};
    int status = ask(address, &named, e);

    if (status) {
        watch_free(named.watch);
        named.watch = NULL;
    }
    if (watch)
        *watch = named.watch;
    return status;
}
