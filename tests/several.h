/* Several Redis that belong together, on ports of loopback: a master with two replicas and three Sentinels, or a cluster of
 * three masters with a replica each. Each is a server of its own (server.h), reached by its socket too. */
#pragma once

#include "tests/server.h"
#include "tests/stage.h"

#define SEVERAL_MASTER "weir-test" /* the name that the Sentinels know */
#define SEVERAL_MOST 6

struct several {
    struct server redis[SEVERAL_MOST], sentinels[3];
    int ports[SEVERAL_MOST], sentinel_ports[3];
    int count;
    bool cluster;
    char url[160]; /* redis+sentinel://... or redis+cluster://... */
};

/* redis[0] is the master, 1 and 2 its replicas; waits until the Sentinels know them and each other. options: of each Redis, as server_start_with. */
void several_start_sentinels(struct several *s, const char *const *options);
/* redis[0] to [2] are masters, redis[3] to [5] their replicas; waits until all nodes say that the cluster works. */
void several_start_cluster(struct several *s);
void several_stop(struct several *s);
/* Kills one of the Redis, which is replaced after a second. Until then, and after several_await_holder_other_than, only one that is silent for very
 * long is replaced: a busy machine may silence any. */
void several_kill(struct several *s, int i);

/* The one that holds Weir's keys, by what the servers themselves say: a living master, named by the Sentinels or of Weir's
 * slot. -1: none now. */
int several_holder(struct several *s);
/* Until it is another one than that. */
int several_await_holder_other_than(struct several *s, int old);
/* Moves the slot of Weir's keys to another master, key by key, as redis-cli --cluster reshard does. */
void several_move_slot(struct several *s, int from, int to);
/* A stage (stage.h) of that namespace, with a folder of its own, whose client and workers use s->url; its server is where the keys are. */
void several_stage(struct several *s, const char *ns, struct stage *stage);
/* The keys are elsewhere now: lets the stage look there. */
void several_follow(struct several *s, struct stage *stage);
