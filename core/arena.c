#include "core/arena.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE (256 * 1024) /* an answer of 1,000 jobs */

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

static void *take(struct arena *a, size_t size)
{
    struct arena_block *block = a->block;
    void *at;

    size = (size + 15) & ~(size_t)15;
    if (!block || size > block->size - block->used) {
        size_t block_size = size > BLOCK_SIZE ? size : BLOCK_SIZE;

        block = malloc(sizeof *block + block_size);
        if (!block)
            return NULL;
        *block = (struct arena_block){.next = a->block, .size = block_size};
        a->block = block;
    }
    at = block->bytes + block->used;
    block->used += size;
    return at;
}

void arena_clear(struct arena *a)
{
    while (a->block && (a->block->next || a->block->size > BLOCK_SIZE)) {
        struct arena_block *next = a->block->next;

        free(a->block);
        a->block = next;
    }
    if (a->block)
        a->block->used = 0;
}

void arena_free(struct arena *a)
{
    arena_clear(a);
    free(a->block);
    a->block = NULL;
}

/* ---- What hiredis's parser calls */

static redisReply *add_reply(const redisReadTask *task, size_t size)
{
    redisReply *reply = take(task->privdata, sizeof *reply + size);

    if (!reply)
        return NULL;
    *reply = (redisReply){.type = task->type};
    if (task->parent)
        ((redisReply *)task->parent->obj)->element[task->idx] = reply;
    return reply;
}

static void *add_string(const redisReadTask *task, char *text, size_t len)
{
    redisReply *reply = add_reply(task, len + 1);

    if (!reply)
        return NULL;
    reply->str = (char *)(reply + 1);
    memcpy(reply->str, text, len);
    reply->str[len] = '\0';
    reply->len = len;
    return reply;
}

static void *add_array(const redisReadTask *task, int elements)
{
    size_t count = elements > 0 ? (size_t)elements : 0;
    redisReply *reply = add_reply(task, count * sizeof *reply->element);

    if (!reply)
        return NULL;
    reply->element = (redisReply **)(reply + 1);
    reply->elements = count;
    return reply;
}

static void *add_integer(const redisReadTask *task, long long value)
{
    redisReply *reply = add_reply(task, 0);

    if (reply)
        reply->integer = value;
    return reply;
}

/* The task's type is what there is none of: a string, or an array. */
static void *add_nil(const redisReadTask *task)
{
    redisReply *reply = add_reply(task, 0);

    if (reply)
        reply->type = REDIS_REPLY_NIL;
    return reply;
}

static void leave_to_the_arena(void *reply)
{
    (void)reply;
}

struct redisReader *arena_reader(struct arena *a)
{
    static redisReplyObjectFunctions functions = {
        .createString = add_string,
        .createArray = add_array,
        .createInteger = add_integer,
        .createNil = add_nil,
        .freeObject = leave_to_the_arena,
    };
    struct redisReader *reader = redisReaderCreateWithFunctions(&functions);

    if (reader)
        reader->privdata = a;
    return reader;
}
