/* Is the Redis that a link is connected to still the master? One that came back, or was cut off, may think so itself, and what it is told
 * then is lost. So Sentinels are asked from time to time, and sooner when one of them says that there is news. */
#pragma once

#include <ev.h>

#include "core/redis/route.h"

struct master {
    struct ev_loop *loop;
    struct watch *watch;     /* of the Sentinels; NULL: none */
    struct routing *routing; /* NULL: nobody is being asked */
    int64_t asked_us;
    ev_io answer, news;
    void (*on_heard)(void *arg, const struct route *now);
    void *arg;
};

/* Opens it, all zero before. on_heard is called from the loop: when they have answered, with where the master is now (NULL: nobody knows),
 * and when there is news, with NULL: then master_next_us() may be sooner. */
void master_init(struct master *m, struct ev_loop *loop, void (*on_heard)(void *arg, const struct route *now),
                 void *arg);
/* Takes over the watch of Sentinels that have just been asked; NULL: there is none. */
void master_watch(struct master *m, struct watch *watch);
/* Returns when to ask again: never while they are being asked. */
int64_t master_next_us(const struct master *m);
/* Asks anew where the master is. Where nobody can be asked, the connection stays. */
void master_ask(struct master *m, const struct redis_address *address);
/* Forgets the question and the watch. */
void master_forget(struct master *m);
