#include "serve/redis_thread.h"

#include <ev.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "serve/page/page.h"

#define WAITING_MOST 128
#define RESTING_MOST 128 /* more are done as they are */
#define END_S 2

struct list {
    struct work *first, **end;
    size_t count;
};

struct redis_thread {
    struct ev_loop *loop;
    struct ev_async ready;
    pthread_t thread;
    bool started; /* at its first item: a process of one thread is faster, and most only take */
    struct tools tools;

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t given;
    struct list waiting, resting, done; /* resting: to be run again later */
    bool closed;
};

static void list_clear(struct list *l)
{
    *l = (struct list){.end = &l->first};
}

static void list_add(struct list *l, struct work *e)
{
    e->next = NULL;
    *l->end = e;
    l->end = &e->next;
    l->count++;
}

static struct work *list_take(struct list *l)
{
    struct work *e = l->first;

    if (!e)
        return NULL;
    l->first = e->next;
    if (!l->first)
        l->end = &l->first;
    l->count--;
    return e;
}

/* ---- Its thread */

/* Those that have rested wait again. Returns when the next one will have; 0: none rests. */
static int64_t wake_rested(struct redis_thread *t)
{
    int64_t now_us = clock_mono_us(), next_us = 0;
    size_t count = t->resting.count;
    struct work *e;

    while (count-- > 0) {
        e = list_take(&t->resting);
        list_add(e->at_us <= now_us ? &t->waiting : &t->resting, e);
        if (e->at_us > now_us && (next_us == 0 || e->at_us < next_us))
            next_us = e->at_us;
    }
    return next_us;
}

static void await_change(struct redis_thread *t, int64_t until_us)
{
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};

    if (until_us)
        pthread_cond_clockwait(&t->given, &t->mutex, CLOCK_MONOTONIC, &until);
    else
        pthread_cond_wait(&t->given, &t->mutex);
}

/* Awaits the next work; NULL: the thread closes. */
static struct work *await_work(struct redis_thread *t)
{
    struct work *e;
    int64_t next_us;

    pthread_mutex_lock(&t->mutex);
    for (;;) {
        next_us = wake_rested(t);
        if ((e = list_take(&t->waiting)) || t->closed)
            break;
        await_change(t, next_us);
    }
    pthread_mutex_unlock(&t->mutex);
    return e;
}

static struct list *list_behind(struct redis_thread *t, const struct work *e)
{
    if (!e->again || t->closed)
        return &t->done;
    if (e->at_us <= clock_mono_us())
        return &t->waiting;
    return t->resting.count < RESTING_MOST ? &t->resting : &t->done;
}

/* Hands work back to the loop, or to the end of what waits. Returns whether nothing else is to do. */
static bool hand_back(struct redis_thread *t, struct work *e)
{
    bool idle;

    pthread_mutex_lock(&t->mutex);
    list_add(list_behind(t, e), e);
    idle = !t->waiting.first && !t->closed;
    pthread_mutex_unlock(&t->mutex);
    ev_async_send(t->loop, &t->ready);
    return idle;
}

static void *work(void *arg)
{
    struct redis_thread *t = arg;

    for (struct work *e; (e = await_work(t));) {
        e->again = false;
        e->at_us = 0;
        e->run(e, &t->tools);
        if (hand_back(t, e))
            page_cache_renew(t->tools.w, t->tools.pages);
    }
    return NULL;
}

/* ---- The loop */

static void on_ready(struct ev_loop *loop, struct ev_async *ready, int revents)
{
    struct redis_thread *t = ready->data;
    struct list done;
    struct work *e;

    (void)loop, (void)revents;
    pthread_mutex_lock(&t->mutex);
    done = t->done;
    if (!done.first)
        done.end = &done.first;
    list_clear(&t->done);
    pthread_mutex_unlock(&t->mutex);
    while ((e = list_take(&done)))
        e->done(e);
}

/* Signals are the loop's. */
static bool start(struct redis_thread *t)
{
    sigset_t all, before;

    if (t->started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    t->started = pthread_create(&t->thread, NULL, work, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t->started;
}

bool redis_thread_give(struct redis_thread *t, struct work *e)
{
    bool taken;

    if (!start(t))
        return false;
    pthread_mutex_lock(&t->mutex);
    taken = !t->closed && t->waiting.count < WAITING_MOST;
    if (taken) {
        e->dropped = false;
        list_add(&t->waiting, e);
        pthread_cond_signal(&t->given);
    }
    pthread_mutex_unlock(&t->mutex);
    return taken;
}

static void free_tools(struct tools *tools)
{
    weir_free(tools->w);
    page_cache_free(tools->pages);
}

struct redis_thread *redis_thread_new(struct ev_loop *loop, const char *url, const char *ns)
{
    struct redis_thread *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    *t = (struct redis_thread){.loop = loop, .tools = {.w = weir_new(url, ns), .pages = page_cache_new()}};
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->given, NULL);
    list_clear(&t->waiting);
    list_clear(&t->resting);
    list_clear(&t->done);
    ev_async_init(&t->ready, on_ready);
    t->ready.data = t;
    if (!t->tools.w || !t->tools.pages) {
        free_tools(&t->tools);
        free(t);
        return NULL;
    }
    ev_async_start(loop, &t->ready);
    return t;
}

void redis_thread_close(struct redis_thread *t)
{
    struct work *e;

    pthread_mutex_lock(&t->mutex);
    t->closed = true;
    while ((e = list_take(&t->waiting)) || (e = list_take(&t->resting))) {
        e->dropped = true;
        list_add(&t->done, e);
    }
    pthread_cond_signal(&t->given);
    pthread_mutex_unlock(&t->mutex);
    ev_async_send(t->loop, &t->ready);
}

bool redis_thread_free(struct redis_thread *t)
{
    struct timespec until;

    if (!t)
        return true;
    redis_thread_close(t);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_S;
    if (t->started && pthread_timedjoin_np(t->thread, NULL, &until) != 0)
        return false;
    on_ready(t->loop, &t->ready, 0);
    ev_async_stop(t->loop, &t->ready);
    free_tools(&t->tools);
    free(t);
    return true;
}
