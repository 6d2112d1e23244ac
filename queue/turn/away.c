#include "queue/turn/away.h"

#include "core/client/reply.h"
#include "core/script/script.h"
#include "queue/job/job.h"

void away_read_request(struct args *a, const char *prefix, int64_t now_us, int to)
{
    script_begin(a, "away_read", prefix, now_us);
    args_add_int(a, to);
}

int away_read_reply(const struct redisReply *reply, size_t *count, struct error *e)
{
    int status = reply_array(reply, 0, "away_read", e);

    for (size_t i = 0; !status && i < reply->elements; i++)
        if (reply->element[i]->type != REDIS_REPLY_STRING)
            status = reply_unexpected("away_read", e);
    *count = status ? 0 : reply->elements;
    return status;
}

void away_arrive_request(struct args *a, const char *prefix, int64_t now_us, int from,
                         const struct redisReply *records)
{
    script_begin(a, "away_arrive", prefix, now_us);
    args_add_int(a, from);
    job_add_seed(a);
    for (size_t i = 0; i < records->elements; i++)
        args_add_bytes(a, records->element[i]->str, records->element[i]->len);
}

static int read_number(const struct redisReply *reply, const char *script, int64_t *number, struct error *e)
{
    *number = 0;
    if (reply && reply->type == REDIS_REPLY_ERROR)
        return redis_fault_error(e, reply->str);
    if (reply && (*number = reply_int(reply, -1)) >= 0)
        return 0;
    return reply_unexpected(script, e);
}

int away_arrive_reply(const struct redisReply *reply, int64_t *number, struct error *e)
{
    return read_number(reply, "away_arrive", number, e);
}

void away_done_request(struct args *a, const char *prefix, int64_t now_us, int to, int64_t number)
{
    script_begin(a, "away_done", prefix, now_us);
    args_add_int(a, to);
    args_add_int(a, number);
}

int away_done_reply(const struct redisReply *reply, int64_t *left, struct error *e)
{
    return read_number(reply, "away_done", left, e);
}

/* Has them arrive at the other partition. */
static int deliver(struct weir *w, int64_t now_us, int from, int to, const struct redisReply *records,
                   int64_t *number)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status = client_at(w, to);

    args_init(&a);
    if (!status) {
        away_arrive_request(&a, w->prefix, now_us, from, records);
        status = client_call(w, &a, &reply, NULL);
    }
    if (!status)
        status = away_arrive_reply(reply, number, &w->error);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

int away_carry(struct weir *w, int64_t now_us, int from, int to, int64_t *left)
{
    struct redisReply *records = NULL, *reply = NULL;
    struct args a;
    int64_t number = 0;
    size_t count = 0;
    int status = client_at(w, from);

    *left = 0;
    args_init(&a);
    if (!status) {
        away_read_request(&a, w->prefix, now_us, to);
        status = client_call(w, &a, &records, NULL);
    }
    if (!status)
        status = away_read_reply(records, &count, &w->error);
    if (!status && count > 0) {
        status = deliver(w, now_us, from, to, records, &number);
        if (!status)
            status = client_at(w, from);
        if (!status) {
            away_done_request(&a, w->prefix, now_us, to, number);
            status = client_call(w, &a, &reply, NULL);
        }
        if (!status)
            status = away_done_reply(reply, left, &w->error);
    }
    freeReplyObject(records);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

uint64_t away_list(const struct redisReply *list)
{
    uint64_t partitions = 0;

    for (size_t i = 0; i < list->elements; i++) {
        int64_t p = reply_int(list->element[i], -1);

        if (p >= 0 && p < PARTITIONS_MOST)
            partitions |= UINT64_C(1) << p;
    }
    return partitions;
}
