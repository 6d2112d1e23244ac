/* The connections to Redis of weir serve, one for each partition: all that was asked there since the last call goes in the next one,
 * and at most two calls are under way, so that the more is asked the less each costs. Partition 0 is asked first; where a limit
 * lives elsewhere its answer says so, and the question goes there. Denials are remembered (throttle/take/denials.h) and answered
 * without Redis. */
#ifndef SERVE_TAKER_H
#define SERVE_TAKER_H

#include "core/redis/redis.h"
#include "throttle/take/take.h"

struct ev_loop;
struct taker;

/* A question and, then, its answer. */
struct asked {
    struct take_question q;
    int status;      /* 0: take is the answer; WEIR_EUNREACHABLE: Redis could not be asked; else see take.h */
    const char *why; /* when status is not 0; valid until the loop goes on */
    struct weir_take take;
    bool checks; /* whether each partition answers */
    int hops; /* so often it was asked where its limit does not live; of a check: the partition that is asked */
    struct asked *next;
};

struct taker_events {
    /* The answers of one call, a list. From the loop, never inside of taker_ask. */
    void (*on_answers)(void *arg, struct asked *first);
    /* Redis refuses us, and did from the beginning. */
    void (*on_refused)(void *arg, const struct error *why);
};

/* Starts to connect. NULL only when out of memory. events is borrowed; prefix: client_prefix. */
struct taker *taker_new(struct ev_loop *loop, const struct redis_address *address, const char *prefix,
                        const struct taker_events *events, void *arg);
/* Answers all with WEIR_EUNREACHABLE. */
void taker_free(struct taker *t);

/* true: *a has its answer. false: on_answers brings it. */
bool taker_ask(struct taker *t, struct asked *a);
/* Asks, as taker_ask, whether Redis answers a take on each partition; status says it. a->q need not be set. */
bool taker_check(struct taker *t, struct asked *a);

#endif
