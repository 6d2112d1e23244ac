/* cluster: which node of a Redis Cluster holds our keys. All of a partition carry the hash tag {p}, so they share one slot.
 * Protocol: "CLUSTER SLOTS" and hash tags of https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/ */
#pragma once

#include "core/error.h"
#include "core/redis/redis.h"

/* Sets host and port of *node. Of several answers the one that most nodes give counts: a node that was away does not yet
 * know who took over. WEIR_EUNREACHABLE: no node answers, or nobody holds the slot. WEIR_ECONFIG: these are no nodes of
 * a cluster. */
WEIR_CHECKED int cluster_find(const struct redis_address *address, struct redis_address *node,
                              struct error *e);
