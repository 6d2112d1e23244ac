/* Reading Redis's answers: every element is checked before it is used. For the <verb>_reply functions only.
 */
#ifndef CORE_REPLY_H
#define CORE_REPLY_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/redis.h"

/* An array of at least n elements? Error replies are turned into their error, anything else into
 * WEIR_EINTERNAL. */
static inline int reply_array(const struct redisReply *reply, size_t n, const char *script, struct error *e)
{
    if (reply && reply->type == REDIS_REPLY_ERROR)
        return redis_fault_error(e, reply->str);
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < n)
        return error_set(e, WEIR_EINTERNAL, "%s: unexpected answer from Redis; is another version at work?",
                         script);
    return 0;
}

/* A whole number, as an integer or as text; fallback when it is neither. */
static inline int64_t reply_int(const struct redisReply *reply, int64_t fallback)
{
    char *end;
    long long value;

    if (reply->type == REDIS_REPLY_INTEGER)
        return reply->integer;
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0)
        return fallback;
    value = strtoll(reply->str, &end, 10);
    return *end == '\0' ? value : fallback;
}

#endif
