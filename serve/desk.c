#include "serve/desk.h"

#include <ev.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "core/client/client.h"
#include "serve/page/page.h"

#define WAITING_MOST 128
#define END_S 2

struct list {
    struct errand *first, **end;
    size_t count;
};

struct desk {
    struct ev_loop *loop;
    struct ev_async ready;
    pthread_t thread;
    bool started; /* at its first errand: a process of one thread is faster, and most only take */
    struct tools tools;

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t given;
    struct list waiting, done;
    bool closed;
};

static void list_clear(struct list *l)
{
    *l = (struct list){.end = &l->first};
}

static void list_add(struct list *l, struct errand *e)
{
    e->next = NULL;
    *l->end = e;
    l->end = &e->next;
    l->count++;
}

static struct errand *list_take(struct list *l)
{
    struct errand *e = l->first;

    if (!e)
        return NULL;
    l->first = e->next;
    if (!l->first)
        l->end = &l->first;
    l->count--;
    return e;
}

/* ---- Its thread */

/* The next one; NULL: it closes. */
static struct errand *await_errand(struct desk *d)
{
    struct errand *e;

    pthread_mutex_lock(&d->mutex);
    while (!(e = list_take(&d->waiting)) && !d->closed)
        pthread_cond_wait(&d->given, &d->mutex);
    pthread_mutex_unlock(&d->mutex);
    return e;
}

/* To the loop, or to the end of those that wait. Is nothing else to do? */
static bool hand_back(struct desk *d, struct errand *e)
{
    bool idle;

    pthread_mutex_lock(&d->mutex);
    list_add(e->again && !d->closed ? &d->waiting : &d->done, e);
    idle = !d->waiting.first && !d->closed;
    pthread_mutex_unlock(&d->mutex);
    ev_async_send(d->loop, &d->ready);
    return idle;
}

static void *work(void *arg)
{
    struct desk *d = arg;

    for (struct errand *e; (e = await_errand(d));) {
        e->again = false;
        e->run(e, &d->tools);
        if (hand_back(d, e))
            page_cache_renew(d->tools.w, d->tools.pages);
    }
    return NULL;
}

/* ---- The loop */

static void on_ready(struct ev_loop *loop, struct ev_async *ready, int revents)
{
    struct desk *d = ready->data;
    struct list done;
    struct errand *e;

    (void)loop, (void)revents;
    pthread_mutex_lock(&d->mutex);
    done = d->done;
    if (!done.first)
        done.end = &done.first;
    list_clear(&d->done);
    pthread_mutex_unlock(&d->mutex);
    while ((e = list_take(&done)))
        e->done(e);
}

/* Signals are the loop's. */
static bool start(struct desk *d)
{
    sigset_t all, before;

    if (d->started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    d->started = pthread_create(&d->thread, NULL, work, d) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return d->started;
}

bool desk_give(struct desk *d, struct errand *e)
{
    bool taken;

    if (!start(d))
        return false;
    pthread_mutex_lock(&d->mutex);
    taken = !d->closed && d->waiting.count < WAITING_MOST;
    if (taken) {
        e->dropped = false;
        list_add(&d->waiting, e);
        pthread_cond_signal(&d->given);
    }
    pthread_mutex_unlock(&d->mutex);
    return taken;
}

static void free_tools(struct tools *t)
{
    weir_free(t->w);
    page_cache_free(t->pages);
}

struct desk *desk_new(struct ev_loop *loop, const char *url, const char *ns)
{
    struct desk *d = calloc(1, sizeof *d);

    if (!d)
        return NULL;
    *d = (struct desk){.loop = loop, .tools = {.w = weir_new(url, ns), .pages = page_cache_new()}};
    pthread_mutex_init(&d->mutex, NULL);
    pthread_cond_init(&d->given, NULL);
    list_clear(&d->waiting);
    list_clear(&d->done);
    ev_async_init(&d->ready, on_ready);
    d->ready.data = d;
    if (!d->tools.w || !d->tools.pages) {
        free_tools(&d->tools);
        free(d);
        return NULL;
    }
    ev_async_start(loop, &d->ready);
    return d;
}

void desk_close(struct desk *d)
{
    struct errand *e;

    pthread_mutex_lock(&d->mutex);
    d->closed = true;
    while ((e = list_take(&d->waiting))) {
        e->dropped = true;
        list_add(&d->done, e);
    }
    pthread_cond_signal(&d->given);
    pthread_mutex_unlock(&d->mutex);
    ev_async_send(d->loop, &d->ready);
}

bool desk_free(struct desk *d)
{
    struct timespec until;

    if (!d)
        return true;
    desk_close(d);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_S;
    if (d->started && pthread_timedjoin_np(d->thread, NULL, &until) != 0)
        return false;
    on_ready(d->loop, &d->ready, 0);
    ev_async_stop(d->loop, &d->ready);
    free_tools(&d->tools);
    free(d);
    return true;
}
