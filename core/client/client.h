/* struct weir: what weir_new makes: a blocking connection, the key prefix of the namespace, the last error.
 *
 * Where a namespace has partitions, calls go to one of them at a time: client_at. A call whose type or limit lives elsewhere is
 * refused there before it has changed anything; client_call follows to where it lives, and stays there. So code for one partition
 * works on any: it says first where it wants to be, and w->prefix and w->redis are those of that partition.
 *
 *   one type or limit:   client_at_home(w, name, len), then as ever
 *   each partition:      for (int p = 0; p < client_count(w); p++) client_at(w, p), then as ever; the first answer of an
 *                        administrative script says how many there are */
#pragma once

#include "core/client/partition.h"
#include "core/redis/redis.h"

struct denials;

struct weir {
    struct redis *redis;                        /* of the partition that calls go to */
    char prefix[PREFIX_SIZE];                   /* "weir:{0}:" */
    int at;                                     /* that one */
    int count;                                  /* of partitions; 0: not known */
    struct redis *connections[PARTITIONS_MOST]; /* each made at its first use */
    struct error error;                         /* of the last call */
    struct error setup;                         /* a wrong url or namespace, reported by each call */
    struct denials *denials;                    /* of weir_take; throttle/take/denials.h */
};

/* A client as of weir_new, of an address and a prefix ("weir:{0}:") that are right. NULL: out of memory. */
struct weir *client_new(const struct redis_address *address, const char *prefix);
/* Makes "weir:{0}:" of a namespace; NULL: $WEIR_NAMESPACE, else "weir". WEIR_ECONFIG when it is no valid name. */
WEIR_CHECKED int client_prefix(const char *ns, char prefix[PREFIX_SIZE], struct error *e);
#define REDIS_USUAL "redis://127.0.0.1:6379"
/* Reads the address of a url; NULL: $REDIS_URL, else REDIS_USUAL. */
WEIR_CHECKED int client_address(const char *url, struct redis_address *address, struct error *e);
/* Calls from now on go to partition p. */
WEIR_CHECKED int client_at(struct weir *w, int p);
/* Sends calls to the home of a type or limit. Where the count is not known, partition 0 is asked, and client_call follows its refusal. */
WEIR_CHECKED int client_at_home(struct weir *w, const char *name, size_t len);
/* Sends calls to the next partition, unless *status is not 0; false: it is not now, or there is none. */
bool client_at_next(struct weir *w, int *status);
/* Calls look at each partition, until one does not return 0, which is returned. */
WEIR_CHECKED int client_look_at_all(struct weir *w, int (*look)(struct weir *w, void *arg), void *arg);
/* Calls change at each partition. One that fails holds up no other, but the first one, which knows how many there are; w->error then
 * says which were changed and which were not. */
WEIR_CHECKED int client_change_all(struct weir *w, int (*change)(struct weir *w, void *arg), void *arg);
/* How many partitions there are, as far as is known: 1 before anything was answered. */
int client_count(const struct weir *w);
/* Learns how many partitions there are, and asks where that is not known: for what must know it before its first call. */
WEIR_CHECKED int client_learn(struct weir *w, int *count);
/* What the partition that calls go to says itself. */
WEIR_CHECKED int client_read_count(struct weir *w, int *count);
/* A script's answer said how many there are; 0: it did not, so there is one. */
void client_counted(struct weir *w, int64_t count);
/* How long the partition that calls go to takes to answer a PING. */
WEIR_CHECKED int client_ping(struct weir *w, int64_t *took_us);
/* Calls a script (begun with script_begin and w->prefix) once: redis_call, with w->setup checked first. Follows to the partition
 * where its type or limit lives.
 * *reply is the caller's. Fills w->error and returns its status on failure. */
WEIR_CHECKED int client_call(struct weir *w, const struct args *a, struct redisReply **reply, bool *sent);
