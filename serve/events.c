#include "serve/events.h"

#include <ev.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "serve/fields.h"
#include "serve/response.h"

#define LOOK_EVERY_S 2.0
#define PING_EVERY 7 /* looks: a client that is gone is found by writing to it, and knows that we are here */
#define PATIENCE_US 2000000 /* a look at what is quick to read takes longer: Redis does not answer */
#define PING "event: here\ndata:\n\n"
#define STREAMS_MOST 256
#define WATCHES_MOST 64
#define BLOCK_SIZE 32768

/* A page as one event, or that there is none; several send it. */
struct event {
    int users;
    size_t len;
    char text[];
};

/* A page that somebody looks at. */
struct watch {
    struct waiter waiter; /* the first member */
    struct events *events;
    char *address, *key;
    bool actions, asking, gone; /* gone: there is no such page any more */
    enum desk_kind desk;
    int64_t asked_us, seen_us; /* monotonic; seen: the last page was asked for then */
    struct event *latest;      /* NULL: none yet */
    struct stream *streams;
    struct watch *next;
};

struct stream {
    struct watch *watch;
    struct MHD_Connection *connection;
    struct event *sending; /* what is written from `at` on, or was written last */
    size_t at;
    bool suspended, ping;
    struct stream *next;
};

struct events {
    struct ev_loop *loop;
    struct events_options options;
    struct ev_timer timer;
    struct watch *watches;
    size_t stream_count, watch_count;
    unsigned looks;
    bool closed;
};

/* ---- Pages */

/* Of a whole job or of Redis it takes a while. */
static bool is_slow(const char *path)
{
    return strncmp(path, "/jobs", strlen("/jobs")) == 0 || strncmp(path, "/dead", strlen("/dead")) == 0 ||
           strcmp(path, "/ask") == 0 || strcmp(path, "/redis") == 0;
}

struct inquiry *page_inquiry(const char *address, bool fragment, bool actions, bool hide_args,
                             enum desk_kind *desk)
{
    struct inquiry *t = inquiry_new(INQUIRY_PAGE);
    size_t len = strcspn(address, "?");

    if (!t)
        return NULL;
    t->fragment = fragment;
    t->actions = actions;
    t->hide_args = hide_args;
    t->path = malloc(len + 1);
    t->query = strdup(address[len] ? address + len + 1 : "");
    if (!t->path || !t->query || !url_decode(address, len, false, t->path)) {
        inquiry_free(t);
        return NULL;
    }
    *desk = is_slow(t->path) ? DESK_SEARCH : DESK_LOOK;
    return t;
}

/* ---- Events */

static void event_release(struct event *e)
{
    if (e && --e->users == 0)
        free(e);
}

/* "data: " before each line, and an empty line at the end. */
static struct event *event_new(const struct text *page)
{
    size_t lines = 1, len = 0;
    struct event *e;

    for (size_t i = 0; i < page->len; i++)
        lines += page->at[i] == '\n' || page->at[i] == '\r';
    e = malloc(sizeof *e + page->len + lines * strlen("data: ") + sizeof "data: \n\n");
    if (!e)
        return NULL;
    len = (size_t)sprintf(e->text, "data: ");
    for (size_t i = 0; i < page->len; i++) {
        bool ends = page->at[i] == '\n' || page->at[i] == '\r';

        e->text[len++] = ends ? '\n' : page->at[i];
        if (ends)
            len += (size_t)sprintf(e->text + len, "data: ");
    }
    len += (size_t)sprintf(e->text + len, "\n\n");
    e->users = 1;
    e->len = len;
    return e;
}

/* That Redis does not answer, and how old the last page is by now. */
static struct event *event_away(const struct watch *w)
{
    struct event *e = malloc(sizeof *e + 64);

    if (!e)
        return NULL;
    e->users = 1;
    e->len = (size_t)sprintf(e->text, "event: away\ndata: %" PRId64 "\n\n",
                             w->seen_us ? (clock_mono_us() - w->seen_us) / 1000 : -1);
    return e;
}

static bool is_same(const struct event *a, const struct event *b)
{
    return a && b && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* ---- Streams */

static void wake(struct stream *s)
{
    if (s->suspended)
        MHD_resume_connection(s->connection);
    s->suspended = false;
}

/* The next piece; what was begun is ended first. */
static ssize_t on_read(void *arg, uint64_t position, char *out, size_t most)
{
    struct stream *s = arg;
    size_t left;

    (void)position;
    if (s->watch->events->closed)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (s->sending != s->watch->latest && (!s->sending || s->at == s->sending->len)) {
        event_release(s->sending);
        s->sending = s->watch->latest;
        s->sending->users++;
        s->at = 0;
    }
    left = s->sending ? s->sending->len - s->at : 0;
    if (left == 0 && s->ping && most >= strlen(PING)) {
        s->ping = false;
        memcpy(out, PING, strlen(PING));
        return (ssize_t)strlen(PING);
    }
    if (left == 0 && s->watch->gone)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (left == 0) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
        return 0;
    }
    if (left > most)
        left = most;
    memcpy(out, s->sending->text + s->at, left);
    s->at += left;
    return (ssize_t)left;
}

static void watch_free(struct watch *w)
{
    struct events *e = w->events;

    for (struct watch **at = &e->watches; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            e->watch_count--;
            break;
        }
    if (w->asking)
        shared_leave(e->options.shared, &w->waiter);
    if (!e->watches)
        ev_timer_stop(e->loop, &e->timer);
    event_release(w->latest);
    free(w->address);
    free(w->key);
    free(w);
}

static void on_closed(void *arg)
{
    struct stream *s = arg;
    struct watch *w = s->watch;

    for (struct stream **at = &w->streams; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    w->events->stream_count--;
    event_release(s->sending);
    free(s);
    if (!w->streams)
        watch_free(w);
}

/* ---- Looks */

/* Takes the event, which streams send unless it is the one that they sent last. */
static void tell(struct watch *w, struct event *fresh)
{
    if (!fresh || is_same(fresh, w->latest)) {
        event_release(fresh);
        return;
    }
    event_release(w->latest);
    w->latest = fresh;
    for (struct stream *s = w->streams; s; s = s->next)
        wake(s);
    w->events->options.on_resumed(w->events->options.arg);
}

static void on_answer(struct waiter *waiter, const struct inquiry *inquiry, struct answer *answer)
{
    struct watch *w = (struct watch *)waiter;

    (void)answer;
    w->asking = false;
    if (inquiry && inquiry->status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        tell(w, event_away(w));
    } else if (inquiry) {
        w->seen_us = w->asked_us;
        w->gone = inquiry->status == MHD_HTTP_NOT_FOUND;
        tell(w, event_new(&inquiry->text));
    }
}

static void look(struct watch *w)
{
    const struct events_options *o = &w->events->options;
    enum desk_kind desk;
    struct inquiry *inquiry =
        w->asking || w->gone ? NULL : page_inquiry(w->address, true, w->actions, o->hide_args, &desk);

    if (w->asking && w->desk == DESK_LOOK && clock_mono_us() - w->asked_us > PATIENCE_US)
        tell(w, event_away(w));
    if (!inquiry)
        return;
    w->desk = desk;
    w->asking = true;
    w->asked_us = clock_mono_us();
    if (!shared_ask(o->shared, desk, w->key, inquiry, &w->waiter))
        w->asking = false;
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
    struct events *e = timer->data;
    bool ping = ++e->looks % PING_EVERY == 0;
    struct watch *next;

    (void)loop, (void)revents;
    for (struct watch *w = e->watches; w; w = next) {
        next = w->next;
        for (struct stream *s = w->streams; ping && s; s = s->next) {
            s->ping = true;
            wake(s);
        }
        look(w);
    }
    if (ping)
        e->options.on_resumed(e->options.arg);
}

/* ---- Beginning and end */

char *events_key(const char *address, bool actions)
{
    char *key;

    return asprintf(&key, "events%d %s", actions, address) < 0 ? NULL : key;
}

static struct watch *watch_of(struct events *e, const char *address, bool actions)
{
    struct watch *w;
    char *key = events_key(address, actions);

    if (!key)
        return NULL;
    for (w = e->watches; w; w = w->next)
        if (!w->gone && strcmp(w->key, key) == 0) {
            free(key);
            return w;
        }
    w = e->watch_count < WATCHES_MOST ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        free(key);
        return NULL;
    }
    *w = (struct watch){.waiter = {.on_answer = on_answer},
                        .events = e,
                        .address = strdup(address),
                        .key = key,
                        .actions = actions,
                        .next = e->watches};
    if (!w->address) {
        free(key);
        free(w);
        return NULL;
    }
    e->watches = w;
    e->watch_count++;
    return w;
}

/* Looks at once. */
static void begin(struct events *e, struct watch *w)
{
    look(w);
    if (!ev_is_active(&e->timer)) {
        ev_timer_set(&e->timer, LOOK_EVERY_S, LOOK_EVERY_S);
        ev_timer_start(e->loop, &e->timer);
    }
}

struct MHD_Response *events_open(struct events *e, struct MHD_Connection *connection, const char *address,
                                 bool actions)
{
    struct watch *w = e->stream_count < STREAMS_MOST && !e->closed ? watch_of(e, address, actions) : NULL;
    struct stream *s = w ? calloc(1, sizeof *s) : NULL;
    struct MHD_Response *r =
        s ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, on_read, s, on_closed) : NULL;

    if (!r) {
        free(s);
        if (w && !w->streams)
            watch_free(w);
        return NULL;
    }
    *s = (struct stream){.watch = w, .connection = connection, .next = w->streams};
    w->streams = s;
    e->stream_count++;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    MHD_add_response_header(r, "X-Accel-Buffering", "no"); /* of nginx */
    response_secure(r);
    begin(e, w);
    return r;
}

struct events *events_new(struct ev_loop *loop, const struct events_options *options)
{
    struct events *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    *e = (struct events){.loop = loop, .options = *options};
    ev_timer_init(&e->timer, on_timer, 0, 0);
    e->timer.data = e;
    return e;
}

void events_close(struct events *e)
{
    e->closed = true;
    ev_timer_stop(e->loop, &e->timer);
    for (struct watch *w = e->watches; w; w = w->next)
        for (struct stream *s = w->streams; s; s = s->next)
            wake(s);
    e->options.on_resumed(e->options.arg);
}

void events_free(struct events *e)
{
    free(e);
}
