#include "queue/limits/known.h"

#include <stdio.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/script.h"

void known_limits_free(struct known_limits *known)
{
    args_free(&known->records);
    *known = (struct known_limits){0};
}

void known_limits_are_written(struct known_limits *known)
{
    known->newest[0] = '\0';
}

void rate_known_request(struct args *a, const char *prefix, int64_t now_us, const struct known_limits *known,
                        const char *birth, struct names types)
{
    script_begin(a, "rate_known", prefix, now_us);
    args_add(a, known->newest);
    args_add(a, birth);
    for (int i = 0; i < types.count; i++)
        args_add(a, types.at[i]);
}

/* The elements from `first` on are texts. */
static int check_texts(const struct redisReply *reply, size_t first, const char *script, struct error *e)
{
    for (size_t i = first; i < reply->elements; i++)
        if (reply->element[i]->type != REDIS_REPLY_STRING)
            return reply_unexpected(script, e);
    return 0;
}

int rate_known_reply(const struct redisReply *reply, struct known_limits *known, struct error *e)
{
    struct args records;
    int rc = reply_array(reply, 1, "rate_known", e);

    if (rc == 0)
        rc = check_texts(reply, reply->elements > 1 ? 2 : 0, "rate_known", e);
    if (rc != 0)
        return rc;
    if (reply->element[0]->type != REDIS_REPLY_STRING || reply->element[0]->len >= sizeof known->newest)
        return reply_unexpected("rate_known", e);
    if (reply->elements == 1)
        return 0;
    args_init(&records);
    for (size_t i = 2; i < reply->elements; i++)
        args_add_bytes(&records, reply->element[i]->str, reply->element[i]->len);
    if (records.failed) {
        args_free(&records);
        return error_set(e, WEIR_EINTERNAL, "rate_known: out of memory");
    }
    args_free(&known->records);
    known->records = records;
    known->left_out = reply_int(reply->element[1], 0);
    strcpy(known->newest, reply->element[0]->str);
    return 0;
}

void known_limits_begin_again(struct known_limits *known)
{
    known->again = 0;
    strcpy(known->cursor, "0");
    known->revision[0] = '\0';
}

bool known_limits_has_more(const struct known_limits *known)
{
    return known->again < known->records.count;
}

#define AGAIN_MOST 40     /* records of one request: each limit is some 20 commands */
#define AGAIN_BYTES 16384 /* and the one that passes that, as a record may have many lines */

/* The record behind those of the next request. */
static size_t again_end(const struct known_limits *known)
{
    const size_t *ends = known->records.ends;
    size_t at = known->again, begin = at ? ends[at - 1] : 0;

    while (at < known->records.count && at - known->again < AGAIN_MOST &&
           (at == known->again || ends[at - 1] - begin < AGAIN_BYTES))
        at++;
    return at;
}

void rate_again_request(struct args *a, const char *prefix, int64_t now_us, const char *by,
                        const struct known_limits *known)
{
    const struct args *records = &known->records;

    script_begin(a, "rate_again", prefix, now_us);
    args_add(a, by);
    args_add(a, known->cursor);
    args_add(a, known->revision);
    for (size_t i = known->again, end = again_end(known); i < end; i++) {
        size_t begin = i ? records->ends[i - 1] : 0;

        args_add_bytes(a, records->bytes + begin, records->ends[i] - begin);
    }
}

int rate_again_reply(const struct redisReply *reply, struct known_limits *known, char *written, size_t size,
                     struct error *e)
{
    int rc = reply_array(reply, 2, "rate_again", e);
    size_t len = 0;

    if (rc == 0)
        rc = check_texts(reply, 0, "rate_again", e);
    *written = '\0';
    if (rc != 0)
        return rc;
    if (reply->element[0]->len >= sizeof known->cursor || reply->element[1]->len >= sizeof known->revision)
        return reply_unexpected("rate_again", e);
    strcpy(known->cursor, reply->element[0]->str);
    strcpy(known->revision, reply->element[1]->str);
    if (strcmp(known->cursor, "0") == 0)
        known->again = again_end(known);
    for (size_t i = 2; i < reply->elements && len < size; i++)
        len += (size_t)snprintf(written + len, size - len, "%s%s", i > 2 ? ", " : "", reply->element[i]->str);
    return 0;
}
