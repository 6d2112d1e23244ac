#include "core/redis/cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/redis/lookup.h"

struct vote {
    char text[256];
    int port, votes;
};

struct votes {
    struct vote all[SEEDS_MOST];
    int count;
    int slot;
};

static void count_vote(struct votes *v, const char *host, long long port)
{
    int i = 0;

    if (!*host || strlen(host) >= sizeof v->all[0].text || port < 1 || port > 65535)
        return;
    while (i < v->count && (strcmp(v->all[i].text, host) != 0 || v->all[i].port != port))
        i++;
    if (i == SEEDS_MOST)
        return;
    if (i == v->count)
        snprintf(v->all[v->count++].text, sizeof v->all[i].text, "%s", host);
    v->all[i].port = (int)port;
    v->all[i].votes++;
}

static bool is_range_with(const struct redisReply *range, int slot)
{
    return range->type == REDIS_REPLY_ARRAY && range->elements >= 3 &&
           range->element[0]->type == REDIS_REPLY_INTEGER && range->element[1]->type == REDIS_REPLY_INTEGER &&
           range->element[0]->integer <= slot && slot <= range->element[1]->integer;
}

/* Behind [ host, port, id ] may stand [ name, value, ... ]; "": nothing of that name. */
static const char *further(const struct redisReply *node, const char *name)
{
    const struct redisReply *more = node->elements > 3 ? node->element[3] : NULL;

    for (size_t i = 0; more && more->type == REDIS_REPLY_ARRAY && i + 1 < more->elements; i += 2)
        if (more->element[i]->type == REDIS_REPLY_STRING && strcmp(more->element[i]->str, name) == 0 &&
            more->element[i + 1]->type == REDIS_REPLY_STRING)
            return more->element[i + 1]->str;
    return "";
}

/* nil or "": that of the node which answers. "?": nodes are to be named by hosts, and this one has none: by its address. */
static const char *host_of(const struct redisReply *node, const struct redis_address *from)
{
    const char *host = node->element[0]->type == REDIS_REPLY_STRING ? node->element[0]->str : "";

    if (strcmp(host, "?") == 0)
        host = further(node, "ip");
    return *host ? host : from->host;
}

/* The answer has [ first slot, last slot, [ host, port, ... ] of the master, replicas ... ] for each range. */
static void take_answer(void *arg, const struct redis_address *from,
                        struct redisReply *const replies[LOOKUP_QUESTIONS], struct wire *wire)
{
    struct votes *votes = arg;
    const struct redisReply *reply = replies[0];

    (void)wire;
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const struct redisReply *range = reply->element[i],
                                *master = is_range_with(range, votes->slot) ? range->element[2] : NULL;

        if (!master || master->type != REDIS_REPLY_ARRAY || master->elements < 2 ||
            master->element[1]->type != REDIS_REPLY_INTEGER)
            continue;
        count_vote(votes, host_of(master, from), master->element[1]->integer);
        return;
    }
}

static int refused(struct error *e)
{
    struct error why = *e;

    if (strstr(why.text, "cluster support disabled"))
        return error_set(e, WEIR_ECONFIG, "no node of a cluster; write redis:// instead of redis+cluster://");
    return error_set(e, why.status, "no node of the cluster answers; of the last one: %s", why.text);
}

int cluster_find(const struct redis_address *address, struct redis_address *node, struct error *e)
{
    struct votes votes = {.slot = address->slot};
    const struct vote *most = &votes.all[0];
    struct args question = {0};
    int n;

    args_add(&question, "CLUSTER");
    args_add(&question, "SLOTS");
    n = lookup(address, address, &question, 1, take_answer, &votes, e);
    args_free(&question);
    if (n < 0)
        return refused(e);
    for (int i = 1; i < votes.count; i++)
        if (votes.all[i].votes > most->votes)
            most = &votes.all[i];
    if (most->votes == 0)
        return error_set(e, WEIR_EUNREACHABLE,
                         "no node of the cluster holds slot %d, which has the keys of Weir; see CLUSTER INFO",
                         address->slot);
    node->port = most->port;
    snprintf(node->host, sizeof node->host, "%s", most->text);
    return 0;
}
