/* watch: the Sentinels that have been asked stay connected, and say when they name another master (+switch-master). A client that
 * asks again then leaves a master that was replaced at once. It asks from time to time all the same: a Sentinel that is cut off
 * from the others hears of nothing. A watch never waits. */
#pragma once

#include <stdint.h>

#include "core/redis/redis.h"

struct watch;
struct wire;

/* Watches the master of that address. NULL: out of memory, or of files. */
struct watch *watch_new(const struct redis_address *address);
/* Takes over the connection to one that has answered. */
void watch_add(struct watch *w, struct wire *wire);
/* Readable when something has come; the watch's own. */
int watch_fd(const struct watch *w);
/* Takes what has come. */
void watch_hear(struct watch *w);
/* How long after the last question the next one is due. w may be NULL. */
int64_t watch_rest_us(const struct watch *w);
/* Frees a watch, which may be NULL. Nothing is sent: after a fork() the connections are the parent's too. */
void watch_free(struct watch *w);
