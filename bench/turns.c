#include "bench/turns.h"

#include <hiredis/hiredis.h>

#define WORKER "bench"
#define LEASE_US 600000000

static const char *const queue_name[] = {"default"};

int turns_begin(struct bench *b, struct turns *t)
{
    struct adopt_call call = {.worker = WORKER,
                              .old_worker = "",
                              .group = WORKER,
                              .lease_us = LEASE_US,
                              .info = "{}",
                              .birth = "",
                              .queues = {queue_name, 1}};
    struct redisReply *reply;
    struct args a;
    int rc;

    args_init(&a);
    adopt_request(&a, PREFIX, -1, &call);
    rc = redis_call(t->server->redis, &a, &reply, NULL, &b->error);
    if (rc == 0)
        freeReplyObject(reply);
    args_free(&a);
    return rc;
}

/* Sends the settling of the last turn's leases, when there are some. */
static int send_settle(struct bench *b, const struct turns *t, struct args *a)
{
    if (t->claim.lease_count == 0)
        return 0;
    settle_request(a, PREFIX, t->now_us, WORKER);
    settle_done(a, t->type, (struct span){"", 0}, t->claim.lease_count);
    for (size_t i = 0; i < t->claim.lease_count; i++)
        settle_token(a, t->claim.leases[i].token);
    return redis_append(t->server->redis, a, &b->error);
}

static int send_claim(struct bench *b, struct turns *t, struct args *a)
{
    struct claim_call call = {.worker = WORKER,
                              .group = WORKER,
                              .turn = ++t->number,
                              .free = t->free,
                              .prefetch = t->prefetch,
                              .chunk = t->chunk,
                              .duty_until_us = t->claim.duty_until_us,
                              .queues = {queue_name, 1},
                              .types = {&t->type, 1}};

    claim_request(a, PREFIX, t->now_us, &call);
    return redis_append(t->server->redis, a, &b->error);
}

int turns_next(struct bench *b, struct turns *t)
{
    bool settles = t->claim.lease_count > 0;
    struct redisReply *settled = NULL;
    struct args a;
    int rc;

    args_init(&a);
    rc = send_settle(b, t, &a);
    args_clear(&a);
    if (rc == 0)
        rc = send_claim(b, t, &a);
    args_free(&a);
    freeReplyObject(t->reply);
    t->reply = NULL;
    t->claim.lease_count = 0;
    if (rc == 0 && settles)
        rc = redis_result(t->server->redis, &settled, &b->error);
    freeReplyObject(settled);
    if (rc == 0)
        rc = redis_result(t->server->redis, &t->reply, &b->error);
    if (rc == 0)
        rc = claim_reply(t->reply, &t->claim, &b->error);
    t->started += t->claim.lease_count;
    return rc == 0 ? bench_check(b) : rc;
}

int turns_run(struct bench *b, struct turns *t)
{
    int rc;

    do
        rc = turns_next(b, t);
    while (rc == 0 && t->claim.lease_count > 0);
    return rc;
}

void turns_free(struct turns *t)
{
    freeReplyObject(t->reply);
    t->reply = NULL;
    claim_free(&t->claim);
}
