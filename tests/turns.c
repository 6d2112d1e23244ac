#include "tests/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/script.h"
#include "queue/enqueue.h"
#include "throttle/limit.h"

struct turns turns;

int turns_start(void **state)
{
    struct redis_address address;

    (void)state;
    server_start(&turns.server, false);
    assert_int_equal(redis_address_parse(turns.server.url, &address, &turns.error), 0);
    turns.redis = redis_new(&address);
    assert_non_null(turns.redis);
    return 0;
}

int turns_stop(void **state)
{
    (void)state;
    freeReplyObject(turns.reply);
    claim_free(&turns.claim);
    redis_free(turns.redis);
    server_stop(&turns.server);
    return 0;
}

int turns_flush(void **state)
{
    struct args a;

    (void)state;
    args_init(&a);
    args_add(&a, "FLUSHALL");
    assert_int_equal(turns_send(&a), 0);
    turns.now_us = BEGIN_US;
    return 0;
}

int turns_send(struct args *a)
{
    int rc;

    freeReplyObject(turns.reply);
    turns.reply = NULL;
    turns.error.text[0] = '\0';
    rc = redis_call(turns.redis, a, &turns.reply, NULL, &turns.error);
    args_free(a);
    return rc;
}

int turns_script(const char *script, const char *const *words, size_t count)
{
    struct args a;

    args_init(&a);
    script_begin(&a, script, PREFIX, turns.now_us);
    for (size_t i = 0; i < count; i++)
        args_add(&a, words[i]);
    return turns_send(&a);
}

int turns_claim(const struct claim_call *call)
{
    struct args a;
    int rc;

    args_init(&a);
    claim_request(&a, PREFIX, turns.now_us, call);
    rc = turns_send(&a);
    return rc ? rc : claim_reply(turns.reply, &turns.claim, &turns.error);
}

int turns_adopt(const char *new, const char *old, const struct span *running, size_t count,
                struct names queues, size_t *lost)
{
    struct adopt_call call = {.worker = new,
                              .old_worker = old,
                              .group = "g",
                              .lease_us = new[0] ? LEASE_US : 0,
                              .info = "{}",
                              .queues = queues};
    struct adopt adopt;
    struct args a;
    int rc;

    args_init(&a);
    adopt_request(&a, PREFIX, turns.now_us, &call);
    for (size_t i = 0; i < count; i++)
        settle_token(&a, running[i]);
    rc = turns_send(&a);
    if (rc != 0)
        return rc;
    rc = adopt_reply(turns.reply, queues.count, &adopt, &turns.error);
    if (rc == 0 && lost)
        *lost = adopt.lost_count;
    adopt_free(&adopt);
    return rc;
}

int turns_reap(const char *worker, int64_t *taken, int64_t *workers)
{
    struct args a;
    int rc;

    args_init(&a);
    reap_request(&a, PREFIX, turns.now_us, worker, LEASE_US, 3);
    rc = turns_send(&a);
    return rc ? rc : reap_reply(turns.reply, taken, workers, &turns.error);
}

int turns_promote(int most, int64_t *moved)
{
    struct args a;
    int rc;

    args_init(&a);
    promote_request(&a, PREFIX, turns.now_us, most);
    rc = turns_send(&a);
    return rc ? rc : promote_reply(turns.reply, moved, &turns.error);
}

int turns_settle_end(const char *worker, enum settle_verb verb, struct span token, int64_t delay_us,
                     const char *reason, int64_t *stale)
{
    struct args a;
    int rc;

    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, worker);
    settle_end(&a, verb, token, delay_us, reason);
    rc = turns_send(&a);
    return rc ? rc : settle_reply(turns.reply, stale, &turns.error);
}

int turns_settle_done(const char *worker, const char *type, const struct span *tokens, size_t count,
                      int64_t *stale)
{
    struct args a;
    int rc;

    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, worker);
    settle_done(&a, type, count);
    for (size_t i = 0; i < count; i++)
        settle_token(&a, tokens[i]);
    rc = turns_send(&a);
    return rc ? rc : settle_reply(turns.reply, stale, &turns.error);
}

static struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

int turns_enqueue(const char *queue, const char *type, const char *id, int64_t delay_us)
{
    char body[512];
    struct enqueue job = {.queue = span_of(queue),
                          .type = span_of(type),
                          .id = span_of(id),
                          .keep_ms = 1000,
                          .tag = "tag",
                          .delay_us = delay_us,
                          .at_us = -1};
    struct args a;
    bool is_new;
    int rc;

    snprintf(body, sizeof body, "{\"id\":\"%s\",\"type\":\"%s\",\"args\":{}}", id, type);
    job.body = span_of(body);
    args_init(&a);
    enqueue_request(&a, PREFIX, turns.now_us, &job);
    rc = turns_send(&a);
    return rc ? rc : enqueue_reply(turns.reply, &is_new, &turns.error);
}

int turns_rate(const char *type, const char *stored)
{
    struct args a;
    bool existed;
    int rc;

    args_init(&a);
    rate_set_request(&a, PREFIX, turns.now_us, type, stored);
    rc = turns_send(&a);
    return rc ? rc : rate_set_reply(turns.reply, &existed, &turns.error);
}

struct invariants turns_check(void)
{
    struct invariants seen;
    const char *why = invariants_broken(turns.redis, PREFIX, turns.now_us, LEASE_US, &seen);

    if (why)
        fail_msg("%s", why);
    return seen;
}

char *turns_digest(void)
{
    return server_ask(&turns.server, "DEBUG", "DIGEST", NULL);
}
