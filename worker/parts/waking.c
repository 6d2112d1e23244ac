#include "worker/parts/waking.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/redis/link.h"

#define PASS_S 5
#define ANSWER_S 5     /* for an answer that is due */
#define TOKEN_MS 60000 /* as in the scripts that ring */

struct block {
    const char *text;
    double s;
};
static const struct block USUAL = {
    "30", 30}; /* seconds; then it waits anew, so that a dead connection is noticed */
static const struct block SHORT = {"0.25", 0.25}; /* where a claim stands behind the peek */

struct wait {
    struct waking *waking;
    struct link *link;
    enum wake kind;
    char *key;
    bool started, wanted, blocked, refused, paused;
    bool claims; /* a claim stands behind the peek */
};

struct waking {
    const struct waking_events *events;
    struct partition *partition;
    int count;
    struct wait waits[]; /* bell, spare, cancelled jobs, the queues */
};

static void block(struct wait *w);

static void on_passed(void *arg, const struct redisReply *reply)
{
    (void)arg;
    (void)reply;
}

static void pass_on(struct wait *w, struct span token)
{
    struct args a = {0};

    args_add(&a, "RPUSH");
    args_add(&a, w->key);
    args_add_bytes(&a, token.at, token.len);
    link_send(w->link, &a, PASS_S, on_passed, NULL);
    args_add(&a, "PEXPIRE");
    args_add(&a, w->key);
    args_add_int(&a, TOKEN_MS);
    link_send(w->link, &a, PASS_S, on_passed, NULL);
}

/* Waits again after a token was removed: there may be more. */
static void on_removed(void *arg, const struct redisReply *reply)
{
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        block(arg);
}

/* Hears of a cancelled job. A token leaves its list when it has come, so a connection that is lost on the way loses none. After half a
 * minute without any the caller waits again if it needs to. */
static void on_cancelled(struct wait *w, const struct redisReply *reply)
{
    struct args a = {0};

    w->wanted = reply && reply->type == REDIS_REPLY_STRING;
    if (!w->wanted)
        return;
    w->waking->events->on_cancelled(w->waking->partition, (struct span){reply->str, reply->len}, &a);
    link_send(w->link, &a, PASS_S, on_removed, w);
}

/* Returns the token that a bell had, or the name of the queue, which is the end of its key. */
static struct span what_woke(const struct wait *w, const struct redisReply *reply)
{
    const char *colon = strrchr(w->key, ':');

    if (w->kind == WAKE_QUEUE)
        return (struct span){colon + 1, strlen(colon + 1)};
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        reply->element[1]->type == REDIS_REPLY_STRING)
        return (struct span){reply->element[1]->str, reply->element[1]->len};
    return (struct span){"1", 1};
}

/* True when the answer is an error, which is logged once. */
static bool is_refused(struct wait *w, const struct redisReply *reply)
{
    bool refused = reply && reply->type == REDIS_REPLY_ERROR;

    if (refused && !w->refused)
        log_line(LOG_LEVEL_WARN, "waiting for %s: %s; jobs are found by polling, some seconds late", w->key,
                 reply->str);
    w->refused = refused;
    return refused;
}

static void on_answer(void *arg, const struct redisReply *reply)
{
    struct wait *w = arg;
    bool woken = reply && (reply->type == REDIS_REPLY_ARRAY || reply->type == REDIS_REPLY_STRING);

    w->blocked = false;
    if (is_refused(w, reply))
        return;
    if (w->kind == WAKE_CANCELLED) {
        on_cancelled(w, reply);
    } else if (woken) {
        struct span what = what_woke(w, reply);

        w->wanted = false;
        if (!w->waking->events->on_wake(w->waking->partition, w->kind, what) && w->kind != WAKE_QUEUE)
            pass_on(w, what);
    } else if (reply) {
        block(w);
    } else if (w->kind == WAKE_BELL) { /* a token may have been on its way */
        w->waking->events->on_wake(w->waking->partition, WAKE_BELL, (struct span){"*", 1});
    }
}

/* Hears that a peek has found a job: the claim will say what follows. */
static void on_peeked(void *arg, const struct redisReply *reply)
{
    is_refused(arg, reply);
}

static void on_claimed(void *arg, const struct redisReply *reply)
{
    struct wait *w = arg;

    w->blocked = w->claims = w->wanted = false;
    w->waking->events->on_claimed(w->waking->partition, reply);
}

static void block(struct wait *w)
{
    bool peeks = w->kind == WAKE_QUEUE || w->kind == WAKE_CANCELLED;
    struct block time = USUAL;
    struct args a = {0}, claim = {0};

    if (w->blocked || !w->wanted || !w->key || !link_is_up(w->link))
        return;
    w->claims =
        w->kind == WAKE_QUEUE && !w->refused && w->waking->events->stand(w->waking->partition, &claim);
    if (w->claims)
        time = SHORT;
    args_add(&a, peeks ? "BLMOVE" : "BLPOP");
    args_add(&a, w->key);
    if (peeks) {
        args_add(&a, w->key);
        args_add(&a, "LEFT");
        args_add(&a, "LEFT");
    }
    args_add(&a, time.text);
    w->blocked = true;
    link_send(w->link, &a, time.s + ANSWER_S, w->claims ? on_peeked : on_answer, w);
    if (w->claims)
        link_send(w->link, &claim, time.s + ANSWER_S, on_claimed, w);
}

static void on_up(void *arg)
{
    block(arg);
}

static void on_down(void *arg, const struct error *why)
{
    (void)arg; /* the worker's own connection logs it */
    (void)why;
}

static const struct link_events link_events = {.on_up = on_up, .on_down = on_down};

struct waking *waking_new(struct ev_loop *loop, const struct redis_address *address,
                          const struct link *leader, int queue_count, const struct waking_events *events,
                          struct partition *p)
{
    struct waking *w = calloc(1, sizeof *w + (size_t)(3 + queue_count) * sizeof *w->waits);

    if (!w)
        return NULL;
    w->events = events;
    w->partition = p;
    for (w->count = 0; w->count < 3 + queue_count; w->count++) {
        struct wait *wait = &w->waits[w->count];

        wait->waking = w;
        wait->kind = w->count < WAKE_QUEUE ? (enum wake)w->count : WAKE_QUEUE;
        if (!(wait->link = link_new(loop, address, &link_events, wait))) {
            waking_free(w);
            return NULL;
        }
        link_follow(wait->link, leader);
    }
    return w;
}

/* Names the key of a wait. That of cancelled jobs changes with the worker's id: a wait for the old one is dropped. */
static void name(struct wait *w, struct span key)
{
    if (w->key && span_is(span_str(w->key), key))
        return;
    free(w->key);
    w->key = strndup(key.at, key.len);
    if (w->blocked && link_is_up(w->link))
        link_drop(w->link, "a new name");
}

void waking_name(struct waking *w, const struct adopt *adopt)
{
    const struct span *key = adopt->keys;

    for (int i = 0; i < w->count; i++, key++) { /* in our order */
        while (i >= WAKE_QUEUE && key->at[key->len - 1] == '*')
            key++;
        name(&w->waits[i], *key);
        link_stay(w->waits[i].link);
    }
}

static void want(struct wait *wait)
{
    wait->wanted = true;
    if (!wait->started) {
        wait->started = true;
        link_start(wait->link);
    }
    block(wait);
}

void waking_listen(struct waking *w)
{
    want(&w->waits[WAKE_CANCELLED]);
}

/* True for "weir:{0}:queue:<name>". */
static bool is_queue(const char *key, struct span name)
{
    size_t len = strlen(key);

    return len > name.len && key[len - name.len - 1] == ':' &&
           memcmp(key + len - name.len, name.at, name.len) == 0;
}

void waking_pause(struct waking *w, const struct span *queues, size_t count)
{
    for (int i = 0; i < w->count; i++) {
        struct wait *wait = &w->waits[i];

        wait->paused = false;
        for (size_t k = 0; k < count && wait->kind == WAKE_QUEUE && wait->key; k++)
            wait->paused |= is_queue(wait->key, queues[k]);
    }
}

void waking_wait(struct waking *w, bool on_duty)
{
    for (int i = 0; i < w->count; i++) {
        struct wait *wait = &w->waits[i];

        if (wait->kind == WAKE_CANCELLED)
            continue;
        wait->wanted = (wait->kind != WAKE_SPARE) == on_duty && !wait->paused;
        if (wait->wanted)
            want(wait);
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
