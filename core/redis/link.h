/* link: the connection of an event-driven worker: a socket and hiredis's parser on a libev loop.
 *
 * A link connects, logs in, and is then up. When it is lost (closed, reset, a request over its time, a
 * protocol error, READONLY: a replica) every request under way gets its callback with a NULL reply: outcome unknown; then on_down is called, and the link connects again after a delay with full jitter:
 * 0 to 0.1 s, the bound doubling to 5 s until a request has had a good answer again.
 *
 * Every callback runs exactly once, from the loop, never inside of a call of these functions but link_free.
 * A request that misses its function is sent again, once, behind the functions. Several such keep their order; their answers come
 * behind those of the requests that were sent after them. Callbacks may call link_send and link_drop, not link_free.
 */
#pragma once

#include "core/error.h"
#include "core/redis/redis.h"
#include "core/script/args.h"

struct ev_loop;
struct link;

struct link_events {
    void (*on_up)(void *arg);
    /* Hears that the link was lost, or could not connect, and why; called once for each attempt that failed, except the first that
     * was refused with a password that is asked for: it is asked for again, at once. */
    void (*on_down)(void *arg, const struct error *why);
};

/* reply NULL: the connection was lost and nobody knows whether the command ran. Error replies are passed on
 * as they are (type REDIS_REPLY_ERROR). The reply is the link's and gone after the call. */
typedef void link_reply(void *arg, const struct redisReply *reply);

/* Makes a link. It borrows events and copies address. NULL: out of memory. */
struct link *link_new(struct ev_loop *loop, const struct redis_address *address,
                      const struct link_events *events, void *arg);
/* From now on it goes to where the leader is, and asks no Sentinels and nodes itself; what it sends goes out behind what the leader
 * sends. The leader lives as long as the link. */
void link_follow(struct link *l, const struct link *leader);
/* Drops it where the leader is connected to another Redis now. */
void link_stay(struct link *l);
/* Starts connecting. Host names are resolved at each connect, on a thread of their own. */
void link_start(struct link *l);
/* True while the link is up. Only then may link_send be called; and still in the callback that has dropped it. */
bool link_is_up(const struct link *l);
/* Sends a command; takes the contents of *a, which is empty afterwards. timeout_s: for the answer. All that
 * is sent in one run of the loop goes out in one write. */
void link_send(struct link *l, struct args *a, double timeout_s, link_reply *on_reply, void *arg);
/* Closes the connection as if it had been lost (callbacks with NULL, on_down, reconnect); from the loop,
 * soon. */
void link_drop(struct link *l, const char *why);
/* Closes it for good: pending callbacks get NULL, on_down is not called. Not from a callback of this link. */
void link_free(struct link *l);
