/* An argument vector: the words of one Redis command, copied in as they are added.
 * Allocation failures are remembered and reported once, by the connection that sends it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as {0}. */
struct args {
    char *bytes; /* all words, one after the other */
    size_t len, capacity;
    size_t *ends; /* ends[i]: where word i ends in bytes */
    size_t count, ends_capacity;
    bool failed; /* out of memory: must not be sent */
};

/* Frees the memory; *a is empty and usable again. */
void args_free(struct args *a);
/* Empties a and keeps its memory. */
void args_clear(struct args *a);
void args_add(struct args *a, const char *word); /* NUL-terminated */
void args_add_bytes(struct args *a, const void *word, size_t len);
void args_add_int(struct args *a, int64_t value);
/* Appends bytes to the last word. */
void args_extend(struct args *a, const void *bytes, size_t len);
