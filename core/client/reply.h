/* Reading Redis's answers: every element is checked before it is used. For the <verb>_reply functions only.
 */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/redis/redis.h"

/* What a script of this version does not answer. WEIR_EINTERNAL. */
static inline int reply_unexpected(const char *script, struct error *e)
{
    return error_set(e, WEIR_EINTERNAL, "%s: unexpected answer from Redis; is another version at work?",
                     script);
}

/* Checks that a reply is an array of at least n elements. Error replies are turned into their error, anything else into WEIR_EINTERNAL. */
static inline int reply_array(const struct redisReply *reply, size_t n, const char *script, struct error *e)
{
    if (reply && reply->type == REDIS_REPLY_ERROR)
        return redis_fault_error(e, reply->str);
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < n)
        return reply_unexpected(script, e);
    return 0;
}

/* A list, which goes as an empty text where it has nothing. */
static inline int reply_list(const struct redisReply *reply, const char *script, struct error *e)
{
    bool empty = reply && reply->type == REDIS_REPLY_STRING && reply->len == 0;

    return empty ? 0 : reply_array(reply, 0, script, e);
}

#define REPLY_INT_MOST (INT64_C(1) << 53) /* Lua's numbers are exact to there; sums of some of them fit */

/* Reads a whole number, an integer or text; `fallback` when it is neither, or beyond REPLY_INT_MOST. */
static inline int64_t reply_int(const struct redisReply *reply, int64_t fallback)
{
    long long value = reply->integer;
    char *end = NULL;

    if (reply->type == REDIS_REPLY_STRING && reply->len > 0)
        value = strtoll(reply->str, &end, 10);
    if (end ? *end != '\0' : reply->type != REDIS_REPLY_INTEGER)
        return fallback;
    return value <= REPLY_INT_MOST && value >= -REPLY_INT_MOST ? value : fallback;
}
