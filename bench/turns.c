#include "bench/turns.h"

#include <hiredis/hiredis.h>

#define WORKER "bench"
#define LEASE_US 600000000

static const char *const queue_name[] = {"default"};

void turns_begin(struct turns *t)
{
    struct adopt_call call = {.worker = WORKER,
                              .old_worker = "",
                              .group = WORKER,
                              .lease_us = LEASE_US,
                              .info = "{}",
                              .birth = "",
                              .queues = {queue_name, 1}};
    struct args a = {0};

    adopt_request(&a, PREFIX, -1, &call);
    freeReplyObject(server_call(t->server, &a));
}

static void send(const struct turns *t, struct args *a)
{
    must(redis_append(t->server->redis, a, &failure));
    args_clear(a);
}

static void send_settle(const struct turns *t, struct args *a)
{
    settle_request(a, PREFIX, t->now_us, WORKER);
    settle_done(a, t->type, (struct span){"", 0}, t->claim.lease_count);
    for (size_t i = 0; i < t->claim.lease_count; i++)
        settle_token(a, t->claim.leases[i].token);
    send(t, a);
}

static void send_claim(struct turns *t, struct args *a)
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
    send(t, a);
}

void turns_next(struct turns *t)
{
    bool settles = t->claim.lease_count > 0;
    struct redisReply *settled = NULL;
    struct args a = {0};

    if (settles)
        send_settle(t, &a);
    send_claim(t, &a);
    args_free(&a);
    freeReplyObject(t->reply);
    t->claim.lease_count = 0;
    if (settles)
        must(redis_result(t->server->redis, &settled, &failure));
    freeReplyObject(settled);
    must(redis_result(t->server->redis, &t->reply, &failure));
    must(claim_reply(t->reply, &t->claim, &failure));
    t->started += t->claim.lease_count;
    bench_check();
}

void turns_free(struct turns *t)
{
    freeReplyObject(t->reply);
    t->reply = NULL;
    claim_free(&t->claim);
}
