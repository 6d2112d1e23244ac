#include "serve/taker.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/redis/link.h"
#include "throttle/take/denials.h"

#define ANSWER_TIMEOUT_S 1 /* somebody's request waits for it */
#define UNDER_WAY_MOST 2   /* one is served, the next one lies ready */

struct list {
    struct asked *first, **end;
    size_t count;
};

struct taker {
    struct ev_loop *loop;
    const struct taker_events *events;
    void *arg;
    char prefix[160];
    struct link *link;
    struct ev_prepare prepare;
    struct denials *denials;
    struct list gathered;
    size_t under_way;
    bool was_up, failing;
    struct error failure; /* why Redis could not be asked last */
};

/* One call. */
struct call {
    struct taker *taker;
    struct list asked;
    int64_t asked_us;
};

static void list_clear(struct list *l)
{
    *l = (struct list){.end = &l->first};
}

static void list_add(struct list *l, struct asked *a)
{
    a->next = NULL;
    *l->end = a;
    l->end = &a->next;
    l->count++;
}

static struct asked *list_take(struct list *l)
{
    struct asked *a = l->first;

    l->first = a->next;
    if (!l->first)
        l->end = &l->first;
    l->count--;
    return a;
}

/* ---- The state of Redis */

static void note_failure(struct taker *t, const struct error *why)
{
    if (!t->failing)
        log_line(LOG_LEVEL_WARN, "%s; requests are answered without it until it is back", why->text);
    t->failing = true;
    t->failure = *why;
}

static void note_success(struct taker *t)
{
    if (t->failing)
        log_line(LOG_LEVEL_INFO, "Redis answers again");
    t->failing = false;
}

static void fail_one(const struct taker *t, struct asked *a)
{
    a->status = WEIR_EUNREACHABLE;
    a->why = t->failure.status ? t->failure.text : "Redis: not connected yet";
}

static void fail_list(struct taker *t, struct list *l)
{
    struct asked *first = l->first;

    for (struct asked *a = first; a; a = a->next)
        fail_one(t, a);
    list_clear(l);
    if (first)
        t->events->on_answers(t->arg, first);
}

/* ---- Answers */

static struct question question_of(const struct asked *a)
{
    return (struct question){a->q.name, a->q.key, a->q.cost};
}

static void read_answers(const struct call *c, const struct redisReply *reply)
{
    size_t i = 0;

    for (struct asked *a = c->asked.first; a; a = a->next) {
        const struct question q = question_of(a);

        a->status = take_answer(reply, i++, &a->take, &a->why);
        if (a->status == 0 && !a->take.allowed)
            denials_keep(c->taker->denials, &q, c->asked_us, &a->take);
    }
}

static void on_reply(void *arg, const struct redisReply *reply)
{
    struct call *c = arg;
    struct taker *t = c->taker;
    struct error e;

    t->under_way--;
    if (!reply) {
        error_set(&t->failure, WEIR_EUNREACHABLE, "Redis: no answer; the connection was lost");
        fail_list(t, &c->asked);
    } else if (take_reply(reply, c->asked.count, &e) < 0) {
        note_failure(t, &e);
        fail_list(t, &c->asked);
    } else {
        note_success(t);
        read_answers(c, reply);
        t->events->on_answers(t->arg, c->asked.first);
    }
    free(c);
}

/* ---- Asking */

/* Sends questions of l, as many as one call takes. false: out of memory, nothing is changed. */
static bool send_call(struct taker *t, struct list *l, bool peek)
{
    struct call *c = malloc(sizeof *c);
    struct args a;

    if (!c) {
        error_set(&t->failure, WEIR_EINTERNAL, "serve: out of memory");
        return false;
    }
    *c = (struct call){.taker = t, .asked_us = clock_mono_us()};
    list_clear(&c->asked);
    args_init(&a);
    take_request(&a, t->prefix, -1, "", peek);
    while (l->first && c->asked.count < TAKE_MOST) {
        struct asked *one = list_take(l);

        take_add(&a, &one->q);
        list_add(&c->asked, one);
    }
    t->under_way++;
    link_send(t->link, &a, ANSWER_TIMEOUT_S, on_reply, c);
    args_free(&a);
    return true;
}

/* Before the loop waits, and before the link's own watcher sends. */
static void on_prepare(struct ev_loop *loop, struct ev_prepare *prepare, int revents)
{
    struct taker *t = prepare->data;
    bool can = link_is_up(t->link);

    (void)loop, (void)revents;
    while (can && t->gathered.first && t->under_way < UNDER_WAY_MOST)
        can = send_call(t, &t->gathered, false);
    if (!can)
        fail_list(t, &t->gathered);
}

bool taker_ask(struct taker *t, struct asked *a)
{
    const struct question q = question_of(a);

    a->status = 0;
    if (denials_find(t->denials, &q, clock_mono_us(), &a->take))
        return true;
    if (!link_is_up(t->link)) {
        fail_one(t, a);
        return true;
    }
    list_add(&t->gathered, a);
    return false;
}

bool taker_check(struct taker *t, struct asked *a)
{
    struct list one;

    a->q = (struct take_question){.name = "healthz", .cost = 1};
    list_clear(&one);
    list_add(&one, a);
    if (link_is_up(t->link) && send_call(t, &one, true))
        return false;
    fail_one(t, a);
    return true;
}

/* ---- The connection */

static void on_up(void *arg)
{
    struct taker *t = arg;

    t->was_up = true;
    note_success(t);
}

static void on_down(void *arg, const struct error *why)
{
    struct taker *t = arg;

    note_failure(t, why);
    fail_list(t, &t->gathered);
    if (!t->was_up && (why->status == WEIR_EREFUSED || why->status == WEIR_ECONFIG))
        t->events->on_refused(t->arg, why);
}

static const struct link_events link_events = {.on_up = on_up, .on_down = on_down};

struct taker *taker_new(struct ev_loop *loop, const struct redis_address *address, const char *prefix,
                        const struct taker_events *events, void *arg)
{
    struct taker *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    *t = (struct taker){.loop = loop, .events = events, .arg = arg};
    strncpy(t->prefix, prefix, sizeof t->prefix - 1);
    list_clear(&t->gathered);
    t->denials = denials_new();
    t->link = t->denials ? link_new(loop, address, &link_events, t) : NULL;
    if (!t->link) {
        free(t->denials);
        free(t);
        return NULL;
    }
    ev_prepare_init(&t->prepare, on_prepare);
    t->prepare.data = t;
    ev_prepare_start(loop, &t->prepare);
    link_start(t->link);
    return t;
}

void taker_free(struct taker *t)
{
    if (!t)
        return;
    ev_prepare_stop(t->loop, &t->prepare);
    fail_list(t, &t->gathered);
    link_free(t->link);
    free(t->denials);
    free(t);
}
