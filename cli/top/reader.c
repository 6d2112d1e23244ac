#include "cli/top/reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "core/client/client.h"
#include "core/clock.h"

#define PAST_FRESH_US 10000000 /* workers record every 5 s, and minutes pass slowly */
#define PASTS_AT_ONCE 16       /* between looks at what else is to be done */
#define AGAIN_US 1000000       /* after a failure */
#define ORDER_US 10000000      /* that an order may wait: whoever gave it has gone on */
#define END_US 100000          /* that its end is waited for; whoever quits has no time */

struct reader {
    struct weir *w;
    int wake;
    int64_t interval_us;
    pthread_t thread;
    int64_t due_us; /* its own, as pasts and rows are */
    struct pasts pasts;
    int64_t rows, took_us; /* of the last reading */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct wanted wanted;
    bool wants_others; /* than the thread has heard of */
    struct news news;
    struct order order; /* ORDER_NONE: none waits */
    int64_t ordered_us;
    bool closed;
};

/* ---- On its thread */

static void tell(struct reader *r)
{
    eventfd_write(r->wake, 1);
}

static void note_asking(struct reader *r)
{
    pthread_mutex_lock(&r->mutex);
    if (!r->news.unanswered_us)
        r->news.unanswered_us = clock_mono_us();
    pthread_mutex_unlock(&r->mutex);
}

static void note_answer(struct reader *r)
{
    pthread_mutex_lock(&r->mutex);
    r->news.unanswered_us = 0;
    pthread_mutex_unlock(&r->mutex);
}

static int64_t pause_of(const struct reader *r)
{
    return top_snapshot_pause(r->rows, r->took_us, r->interval_us);
}

static void read_now(struct reader *r)
{
    const struct error none = {.status = 0};
    struct top_snapshot *s, *old;
    int64_t began_us = clock_mono_us();

    note_asking(r);
    s = top_snapshot_read(r->w);
    r->took_us = clock_mono_us() - began_us;
    if (s || r->w->error.status != WEIR_EUNREACHABLE)
        note_answer(r);
    if (s)
        r->rows = (int64_t)(s->status.type_count + s->status.queue_count + s->limit_count);
    r->due_us = clock_mono_us() + (s ? pause_of(r) : AGAIN_US);
    pthread_mutex_lock(&r->mutex);
    old = s ? r->news.snapshot : NULL;
    if (s)
        r->news.snapshot = s;
    r->news.error = s ? none : r->w->error;
    r->news.interval_us = pause_of(r);
    pthread_mutex_unlock(&r->mutex);
    top_snapshot_free(old);
    tell(r);
}

/* ---- The past of what is shown */

static struct past *find_past(struct reader *r, const char *name, bool of_limit)
{
    return (struct past *)pasts_find(&r->pasts, name, of_limit);
}

/* Drops histories that are no longer shown. */
static void drop_others(struct reader *r, const struct wanted *wanted)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->pasts.count; i++) {
        bool shown = false;

        for (size_t j = 0; j < wanted->count && !shown; j++)
            shown = r->pasts.at[i].of_limit == wanted->of_limits &&
                    strcmp(r->pasts.at[i].name, wanted->names[j]) == 0;
        if (shown && kept++ != i)
            r->pasts.at[kept - 1] = r->pasts.at[i];
    }
    r->pasts.count = kept;
}

static void keep_past(struct reader *r, const char *name, bool of_limit, const json_t *history)
{
    struct past past = {.of_limit = of_limit, .read_mono_us = clock_mono_us()}, *known;

    memcpy(past.name, name, strlen(name) + 1);
    past_fill(&past, history);
    known = find_past(r, name, of_limit);
    if (!known)
        known = &r->pasts.at[r->pasts.count++];
    *known = past;
}

static bool is_stale(struct reader *r, const char *name, bool of_limit)
{
    const struct past *past = find_past(r, name, of_limit);

    return !past || clock_mono_us() - past->read_mono_us > PAST_FRESH_US;
}

static void hand_pasts(struct reader *r)
{
    struct pasts *copy = malloc(sizeof *copy), *old;

    if (!copy)
        return;
    *copy = r->pasts;
    pthread_mutex_lock(&r->mutex);
    old = r->news.pasts;
    r->news.pasts = copy;
    pthread_mutex_unlock(&r->mutex);
    free(old);
    tell(r);
}

/* Some of those that are missing or old; false: there are none, or Redis does not answer. */
static bool read_pasts(struct reader *r, const struct wanted *wanted)
{
    struct history_call calls[PASTS_AT_ONCE];
    json_t *histories[PASTS_AT_ONCE];
    size_t asked = 0;

    drop_others(r, wanted);
    for (size_t i = 0; i < wanted->count && asked < PASTS_AT_ONCE; i++)
        if (is_stale(r, wanted->names[i], wanted->of_limits))
            calls[asked++] = (struct history_call){
                .name = wanted->names[i], .of_limit = wanted->of_limits, .slots = PAST_MINUTES};
    if (asked == 0)
        return false;
    note_asking(r);
    if (history_ask_each(r->w, -1, calls, asked, histories) < 0)
        return false;
    note_answer(r);
    for (size_t i = 0; i < asked; i++) {
        keep_past(r, calls[i].name, calls[i].of_limit, histories[i]);
        json_decref(histories[i]);
    }
    hand_pasts(r);
    return true;
}

/* ---- Orders */

/* Takes the one that waits; ORDER_NONE: none does. */
static struct order take_order(struct reader *r, int64_t *since_us)
{
    struct order order;

    pthread_mutex_lock(&r->mutex);
    order = r->order;
    *since_us = r->ordered_us;
    r->order.kind = ORDER_NONE;
    pthread_mutex_unlock(&r->mutex);
    return order;
}

static void carry_out(struct reader *r)
{
    int64_t since_us;
    struct order order = take_order(r, &since_us);
    struct result *result = order.kind ? calloc(1, sizeof *result) : NULL;

    if (!result)
        return;
    result->status = WEIR_ENOTNOW;
    snprintf(result->said, sizeof result->said, "Redis did not answer in time; nothing was changed");
    if (clock_mono_us() - since_us < ORDER_US)
        order_do(r->w, &order, result);
    r->due_us = 0;
    pthread_mutex_lock(&r->mutex);
    r->news.result = result;
    pthread_mutex_unlock(&r->mutex);
    tell(r);
}

/* ---- Its life */

/* Waits until something is to be done or time is up; false: it ends. */
static bool await(struct reader *r, bool busy, struct wanted *wanted)
{
    int64_t now_us = clock_mono_us(), until_us = busy || r->due_us < now_us ? now_us : r->due_us;
    struct timespec until = {until_us / 1000000, until_us % 1000000 * 1000};
    bool closed;

    pthread_mutex_lock(&r->mutex);
    if (!busy && !r->closed && !r->order.kind && !r->wants_others)
        pthread_cond_timedwait(&r->changed, &r->mutex, &until);
    closed = r->closed;
    r->wants_others = false;
    *wanted = r->wanted;
    pthread_mutex_unlock(&r->mutex);
    return !closed;
}

static void *work(void *arg)
{
    struct reader *r = arg;
    struct wanted *wanted = calloc(1, sizeof *wanted);
    bool busy = true;

    while (wanted && await(r, busy, wanted)) {
        carry_out(r);
        if (clock_mono_us() >= r->due_us)
            read_now(r);
        busy = read_pasts(r, wanted);
    }
    free(wanted);
    return NULL;
}

/* ---- From the screen's thread */

/* Signals are the screen's. */
static bool start_thread(struct reader *r)
{
    sigset_t all, before;
    bool started;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&r->thread, NULL, work, r) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void free_all(struct reader *r)
{
    top_snapshot_free(r->news.snapshot);
    free(r->news.pasts);
    free(r->news.result);
    weir_free(r->w);
    free(r);
}

struct reader *reader_start(struct weir *w, int64_t interval_us, int wake)
{
    struct reader *r = calloc(1, sizeof *r);
    pthread_condattr_t monotonic;

    if (!r) {
        weir_free(w);
        return NULL;
    }
    *r = (struct reader){.w = w, .wake = wake, .interval_us = interval_us};
    pthread_mutex_init(&r->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &monotonic);
    if (start_thread(r))
        return r;
    free_all(r);
    return NULL;
}

void reader_want(struct reader *r, const struct wanted *wanted)
{
    pthread_mutex_lock(&r->mutex);
    if (wanted->of_limits != r->wanted.of_limits || wanted->count != r->wanted.count ||
        memcmp(wanted->names, r->wanted.names, wanted->count * sizeof *wanted->names) != 0) {
        r->wanted = *wanted;
        r->wants_others = true;
        pthread_cond_signal(&r->changed);
    }
    pthread_mutex_unlock(&r->mutex);
}

void reader_order(struct reader *r, const struct order *order)
{
    pthread_mutex_lock(&r->mutex);
    r->order = *order;
    r->ordered_us = clock_mono_us();
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

struct news reader_take(struct reader *r)
{
    struct news news;

    pthread_mutex_lock(&r->mutex);
    news = r->news;
    r->news.snapshot = NULL;
    r->news.pasts = NULL;
    r->news.result = NULL;
    pthread_mutex_unlock(&r->mutex);
    return news;
}

bool reader_end(struct reader *r)
{
    struct timespec until;

    pthread_mutex_lock(&r->mutex);
    r->closed = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += END_US * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_timedjoin_np(r->thread, NULL, &until) != 0)
        return false;
    free_all(r);
    return true;
}
