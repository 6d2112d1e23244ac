#include "serve/shared.h"

#include <ev.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "serve/response.h"

#define FRESH_US 1000000
#define SWEEP_S 2.0
#define KEPT_MOST 256

/* One answer, asked or there. */
struct answer {
    struct work_item *item; /* gone when it is there and nobody waits */
    struct shared *shared;
    char *key;           /* NULL: shared with nobody */
    unsigned long round; /* of shared_drop() */
    int64_t made_us;     /* 0: asked */
    struct MHD_Response *response;
    int users; /* the list is one */
    struct waiter *waiting;
    struct answer *next;
};

struct shared {
    struct ev_loop *loop;
    struct ev_timer sweep;
    struct redis_thread *const *threads;
    struct answer *answers;
    size_t count;
    unsigned long round;
    unsigned long seen[THREAD_COUNT]; /* the last round in which a thread read pages */
};

void answer_release(struct answer *a)
{
    if (!a || --a->users > 0)
        return;
    if (a->response)
        MHD_destroy_response(a->response);
    work_item_free(a->item);
    free(a->key);
    free(a);
}

struct answer *answer_hold(struct answer *a)
{
    a->users++;
    return a;
}

struct MHD_Response *answer_response(const struct answer *a)
{
    return a->response;
}

/* Removes those that nobody gets any more. */
static void sweep(struct shared *s)
{
    int64_t now_us = clock_mono_us();

    for (struct answer **at = &s->answers, *a; (a = *at);) {
        if (a->made_us && (now_us - a->made_us >= FRESH_US || a->round != s->round || !a->key)) {
            *at = a->next;
            s->count--;
            answer_release(a);
        } else {
            at = &a->next;
        }
    }
    if (!s->answers)
        ev_timer_stop(s->loop, &s->sweep);
    else if (!ev_is_active(&s->sweep))
        ev_timer_again(s->loop, &s->sweep);
}

static void on_sweep(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
    (void)loop, (void)revents;
    sweep(timer->data);
}

/* ---- Answers */

static void make_response(struct answer *a)
{
    struct work_item *item = a->item;
    bool any = item->text.at != NULL;

    a->response =
        MHD_create_response_from_buffer(item->text.len, any ? item->text.at : (void *)(uintptr_t) "",
                                        any ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!a->response)
        return;
    item->text = (struct text){0};
    MHD_add_response_header(a->response, MHD_HTTP_HEADER_CONTENT_TYPE, item->type);
    response_secure(a->response);
}

static void on_done(struct work *work)
{
    struct work_item *item = (struct work_item *)work;
    struct answer *a = item->answer;
    struct waiter *w = a->waiting;

    a->made_us = clock_mono_us();
    if (!work->dropped)
        make_response(a);
    if (work->dropped || item->status == MHD_HTTP_NOT_FOUND)
        a->round--; /* for nobody else: it may be there in a moment */
    a->waiting = NULL;
    while (w) {
        struct waiter *next = w->next;

        w->on_answer(w, work->dropped ? NULL : item, a);
        w = next;
    }
    sweep(a->shared);
}

/* ---- Asking */

static struct answer *find(const struct shared *s, const char *key)
{
    int64_t now_us = clock_mono_us();

    for (struct answer *a = s->answers; a && key; a = a->next)
        if (a->key && strcmp(a->key, key) == 0 && a->round == s->round &&
            (!a->made_us || now_us - a->made_us < FRESH_US))
            return a;
    return NULL;
}

static void join(struct answer *a, struct waiter *w)
{
    if (a->made_us) {
        w->on_answer(w, a->item, a);
        return;
    }
    w->next = a->waiting;
    a->waiting = w;
}

static struct answer *answer_new(struct shared *s, const char *key, struct work_item *item)
{
    struct answer *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    *a = (struct answer){
        .item = item, .shared = s, .key = key ? strdup(key) : NULL, .round = s->round, .users = 1};
    item->answer = a;
    item->work.done = on_done;
    if (key && !a->key) {
        free(a);
        return NULL;
    }
    return a;
}

bool shared_ask(struct shared *s, enum redis_thread_kind thread, const char *key, struct work_item *item,
                struct waiter *w)
{
    struct answer *a = find(s, key);

    if (a) {
        work_item_free(item);
        join(a, w);
        return true;
    }
    sweep(s);
    a = s->count < KEPT_MOST ? answer_new(s, key, item) : NULL;
    item->drop_pages = s->seen[thread] != s->round;
    if (!a || !redis_thread_give(s->threads[thread], &item->work)) {
        if (a)
            answer_release(a);
        else
            work_item_free(item);
        return false;
    }
    s->seen[thread] = s->round;
    a->next = s->answers;
    s->answers = a;
    s->count++;
    join(a, w);
    return true;
}

void shared_drop(struct shared *s)
{
    s->round++;
}

struct shared *shared_new(struct ev_loop *loop, struct redis_thread *const *threads)
{
    struct shared *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    *s = (struct shared){.loop = loop, .threads = threads};
    ev_timer_init(&s->sweep, on_sweep, 0, SWEEP_S);
    s->sweep.data = s;
    return s;
}

void shared_free(struct shared *s)
{
    if (!s)
        return;
    ev_timer_stop(s->loop, &s->sweep);
    while (s->answers) {
        struct answer *a = s->answers;

        s->answers = a->next;
        answer_release(a);
    }
    free(s);
}
