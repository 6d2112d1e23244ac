/* arena: the memory of one answer. An answer of a thousand jobs is thousands of objects that hiredis would
 * allocate and free one by one, half of what reading them costs; here they lie side by side and go together.
 */
#pragma once

struct arena_block;
struct redisReader;

struct arena {
    struct arena_block *block; /* the one in use, before those that are full; NULL at first */
};

/* Makes a parser whose answers live in a until arena_clear(); freeReplyObject is not for them. NULL: out of memory.
 */
struct redisReader *arena_reader(struct arena *a);
/* Forgets the last answer. Before the next one is begun. */
void arena_clear(struct arena *a);
void arena_free(struct arena *a);
