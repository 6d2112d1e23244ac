/* What the weir command needs of a bulk beyond weir.h. */
#pragma once

#include "queue/enqueue/enqueue.h"

/* Sends what is there and waits until Redis has it. */
WEIR_CHECKED int bulk_flush(struct weir_bulk *b);
/* Ends the input, which must not be shorter than what an earlier run had sent. A named batch is then sealed. */
WEIR_CHECKED int bulk_end(struct weir_bulk *b);
/* Does weir_bulk_then for a queue; NULL: "default". */
WEIR_CHECKED int bulk_then(struct weir_bulk *b, const char *queue, const char *type);
/* True when the bulk has failed for good: the last error was not one of a single line. */
bool bulk_has_failed(const struct weir_bulk *b);
/* Counts from now on the jobs in which limits find no key; that asks Redis once for each type. */
void bulk_count_keyless(struct weir_bulk *b);
/* A row counts the jobs of a type that this bulk took, without those that an earlier run had sent. */
struct bulk_type {
    struct span name;
    uint64_t count, costed; /* costed: those that named their cost */
    int64_t cost;           /* of those, in all */
    uint64_t keyless;       /* of bulk_count_keyless */
    struct keyed_by by;
};
/* Reads the row of the index-th type, of which no job may have been taken; false: there are no more. */
bool bulk_type(const struct weir_bulk *b, size_t index, struct bulk_type *type);
