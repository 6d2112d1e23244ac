#include "worker/waking.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "core/link.h"
#include "core/log.h"

#define BLOCK_S 30 /* of one blocking command; then a new one, so that a dead connection is noticed */
#define PASS_S 5
#define TOKEN_MS 60000 /* as in the scripts that ring */

struct wait {
    struct waking *waking;
    struct link *link;
    enum wake kind;
    char *key;
    bool started, wanted, blocked, refused;
};

struct waking {
    bool (*on_wake)(void *arg, enum wake why);
    void *arg;
    int count;
    struct wait waits[]; /* bell, spare, the queues */
};

static void block(struct wait *w);

static void on_passed(void *arg, const struct redisReply *reply)
{
    (void)arg;
    (void)reply;
}

static void pass_on(struct wait *w)
{
    struct args a;

    args_init(&a);
    args_add(&a, "RPUSH");
    args_add(&a, w->key);
    args_add(&a, "1");
    link_send(w->link, &a, PASS_S, on_passed, NULL);
    args_add(&a, "PEXPIRE");
    args_add(&a, w->key);
    args_add_int(&a, TOKEN_MS);
    link_send(w->link, &a, PASS_S, on_passed, NULL);
    args_free(&a);
}

static void on_answer(void *arg, const struct redisReply *reply)
{
    struct wait *w = arg;
    bool woken = reply && (reply->type == REDIS_REPLY_ARRAY || reply->type == REDIS_REPLY_STRING);

    w->blocked = false;
    if (reply && reply->type == REDIS_REPLY_ERROR) {
        if (!w->refused)
            log_line(LOG_LEVEL_WARN, "waiting for %s: %s; jobs are found by looking once a second", w->key,
                     reply->str);
        w->refused = true;
        return;
    }
    w->refused = false;
    if (woken) {
        w->wanted = false;
        if (!w->waking->on_wake(w->waking->arg, w->kind) && w->kind != WAKE_QUEUE)
            pass_on(w);
    } else if (reply) {
        block(w);
    }
}

static void block(struct wait *w)
{
    struct args a;

    if (w->blocked || !w->wanted || !w->key || !link_is_up(w->link))
        return;
    args_init(&a);
    args_add(&a, w->kind == WAKE_QUEUE ? "BLMOVE" : "BLPOP");
    args_add(&a, w->key);
    if (w->kind == WAKE_QUEUE) {
        args_add(&a, w->key);
        args_add(&a, "LEFT");
        args_add(&a, "LEFT");
    }
    args_add_int(&a, BLOCK_S);
    w->blocked = true;
    link_send(w->link, &a, BLOCK_S + 5, on_answer, w);
    args_free(&a);
}

static void on_up(void *arg)
{
    block(arg);
}

static void on_down(void *arg, const struct error *why)
{
    (void)arg; /* the worker's own connection tells of it */
    (void)why;
}

static const struct link_events events = {.on_up = on_up, .on_down = on_down};

struct waking *waking_new(struct ev_loop *loop, const struct redis_address *address, int queue_count,
                          bool (*on_wake)(void *arg, enum wake why), void *arg)
{
    struct waking *w = calloc(1, sizeof *w + (size_t)(2 + queue_count) * sizeof *w->waits);

    if (!w)
        return NULL;
    w->on_wake = on_wake;
    w->arg = arg;
    for (w->count = 0; w->count < 2 + queue_count; w->count++) {
        struct wait *wait = &w->waits[w->count];

        wait->waking = w;
        wait->kind = w->count == 0 ? WAKE_BELL : w->count == 1 ? WAKE_SPARE : WAKE_QUEUE;
        if (!(wait->link = link_new(loop, address, &events, wait))) {
            waking_free(w);
            return NULL;
        }
    }
    return w;
}

void waking_name(struct waking *w, const struct adopt *adopt)
{
    for (int i = 0; i < w->count; i++) {
        const struct span *key = &adopt->words[i]; /* bell, spare, queues: in our order */

        if (!w->waits[i].key)
            w->waits[i].key = strndup(key->at, key->len);
    }
}

void waking_wait(struct waking *w, bool on_duty)
{
    for (int i = 0; i < w->count; i++) {
        struct wait *wait = &w->waits[i];

        wait->wanted = (wait->kind != WAKE_SPARE) == on_duty;
        if (wait->wanted && !wait->started) {
            wait->started = true;
            link_start(wait->link);
        }
        block(wait);
    }
}

void waking_free(struct waking *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->count; i++) {
        if (w->waits[i].link)
            link_free(w->waits[i].link);
        free(w->waits[i].key);
    }
    free(w);
}
