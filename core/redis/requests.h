/* The requests of a link that have no answer yet, the one that was sent first before the others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/redis/link.h"
#include "core/wire/handshake.h"

struct request {
    struct args args;     /* for the repeat when its function is missing */
    link_reply *on_reply; /* NULL: a step of the handshake */
    void *arg;
    double timeout_s;
    int64_t deadline_us;
    enum handshake_step step;
    bool repeated;
};

struct requests {
    struct request *ring;
    size_t first, count, capacity; /* capacity is a power of two */
    uint64_t answered;             /* that have left: the number of the first one that is here */
};

/* Opens it, all zero before. False: out of memory. */
bool requests_open(struct requests *r);
void requests_free(struct requests *r);
/* Puts one behind the others. False: there is no memory for many more; those of this run of the loop still have a place. */
bool requests_push(struct requests *r, const struct request *q);
/* Takes the first one out. */
struct request requests_pop(struct requests *r);

static inline struct request *requests_at(const struct requests *r, size_t i)
{
    return &r->ring[(r->first + i) & (r->capacity - 1)];
}
