/* The connections to Redis of weir serve, one for each partition: all that was asked there since the last call goes in the next one,
 * and at most two calls are under way, so that the more is asked the less each costs. Partition 0 is asked first; where a limit
 * lives elsewhere its answer says so, and the question goes there. Denials are remembered (throttle/take/denials.h) and answered
 * without Redis. */
#pragma once

#include "throttle/take/take.h"

struct ev_loop;
struct take_batcher;

/* A question stands here with its answer, once it has come. */
struct asked {
    struct take_question q;
    int status;      /* 0: take is the answer; WEIR_EUNREACHABLE: Redis could not be asked; else see take.h */
    const char *why; /* when status is not 0; valid until the loop goes on */
    struct weir_take take;
    bool checks; /* whether each partition answers */
    int hops; /* so often it was asked where its limit does not live; of a check: the partition that is asked */
    struct asked *next;
};

struct take_batcher_events {
    /* Hears the answers of one call, a list. From the loop, never inside of take_batcher_ask. */
    void (*on_answers)(void *arg, struct asked *first);
    /* Redis refuses us, and did from the beginning. */
    void (*on_refused)(void *arg, const struct error *why);
};

/* Starts to connect. NULL only when out of memory. events is borrowed; prefix: client_prefix. */
struct take_batcher *take_batcher_new(struct ev_loop *loop, const struct redis_address *address,
                                      const char *prefix, const struct take_batcher_events *events,
                                      void *arg);
/* Answers all with WEIR_EUNREACHABLE. */
void take_batcher_free(struct take_batcher *b);

/* true: *a has its answer. false: on_answers brings it. */
bool take_batcher_ask(struct take_batcher *b, struct asked *a);
/* Asks, as take_batcher_ask, whether Redis answers a take on each partition; status says it. a->q need not be set. */
bool take_batcher_check(struct take_batcher *b, struct asked *a);
