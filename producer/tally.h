/* A tally: how many jobs of each name (of their types, of their queues) a bulk has, in the chunk being made
 * and in all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/enqueue/enqueue.h"

struct tally_name {
    char *text;
    size_t len;
    uint64_t total;       /* counted by the bulk */
    uint64_t costed;      /* of a type: its jobs that named their cost, */
    int64_t cost;         /* which is so much in all; */
    struct job_cost fits; /* and the highest cost, of each name, that its limits were asked about */
    bool learned;         /* by what its limits tell jobs apart: */
    struct keyed_by by;
    uint64_t keyless; /* and its jobs that have nothing there */
    uint32_t in_chunk;
};

struct tally {
    struct tally_name *names;
    size_t count, capacity;
    uint32_t *slots; /* a hash table: 1 + index into names, 0: free; its size is a power of two */
    size_t slot_count;
    uint64_t seed;
    uint32_t last; /* the name that was counted last: mostly the next one too */
    uint32_t *used,
        used_count; /* names with in_chunk > 0, in the order of their coming; as many slots as names */
};

void tally_init(struct tally *t);
void tally_free(struct tally *t);
/* Returns the row of a name, and makes it when it was not there. It is valid until the next one is made. NULL: out of memory. */
struct tally_name *tally_row(struct tally *t, struct span name);
/* Counts one more of a name in the chunk being made; index is that of its row, t->last after tally_row. */
void tally_count(struct tally *t, uint32_t index);
/* Begins a new chunk. */
void tally_next_chunk(struct tally *t);
