#include "worker/waking.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "core/link.h"
#include "core/log.h"

#define BLOCK_S                                                                                              \
    30 /* how long one blocking command lasts; then a new one, so that a dead connection is noticed */

enum wait_kind { WAIT_BELL, WAIT_SPARE, WAIT_QUEUE };

struct wait {
    struct waking *waking;
    struct link *link;
    enum wait_kind kind;
    char *key;
    bool started, wanted, blocked, refused;
};

struct waking {
    void (*on_wake)(void *arg, bool look_held);
    void *arg;
    int count;
    struct wait waits[]; /* bell, spare, the queues */
};

static void block(struct wait *w);

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
        w->waking->on_wake(w->waking->arg, w->kind != WAIT_QUEUE);
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
    args_add(&a, w->kind == WAIT_QUEUE ? "BLMOVE" : "BLPOP");
    args_add(&a, w->key);
    if (w->kind == WAIT_QUEUE) {
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
                          void (*on_wake)(void *arg, bool look_held), void *arg)
{
    struct waking *w = calloc(1, sizeof *w + (size_t)(2 + queue_count) * sizeof *w->waits);

    if (!w)
        return NULL;
    w->on_wake = on_wake;
    w->arg = arg;
    for (w->count = 0; w->count < 2 + queue_count; w->count++) {
        struct wait *wait = &w->waits[w->count];

        wait->waking = w;
        wait->kind = w->count == 0 ? WAIT_BELL : w->count == 1 ? WAIT_SPARE : WAIT_QUEUE;
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

        wait->wanted = (wait->kind != WAIT_SPARE) == on_duty;
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
