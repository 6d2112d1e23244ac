#include "serve/serve.h"

#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <string.h>

#include "core/client/client.h"
#include "core/log/log.h"
#include "core/notify.h"
#include "serve/http.h"
#include "serve/http_routes.h"
#include "serve/listen.h"
#include "serve/take_batcher.h"
#include "view/format.h"

/* A head: as long as a connection may be idle. 16 MiB of lines: at 64 KiB a second or more. */
static const struct callers_patience patience = {
    .head_us = 80000000, .body_us = 30000000, .bytes_per_s = 65536};

static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
#define STOP_SIGNALS (sizeof stop_signals / sizeof *stop_signals)

struct serve {
    struct ev_loop *loop;
    struct listener listener;
    struct http *http;
    struct take_batcher *batcher;
    struct http_routes *routes;
    struct ev_signal signals[STOP_SIGNALS];
    bool stopping;
    struct error error; /* why it cannot go on */
};

/* Breaks the loop as soon as nobody waits for an answer. */
static void stop_when_answered(struct serve *s)
{
    if (s->stopping && http_waiting(s->http) + http_routes_waiting(s->routes) == 0)
        ev_break(s->loop, EVBREAK_ALL);
}

static void stop(struct serve *s)
{
    if (!s->stopping) {
        http_quiesce(s->http);
        listen_close(&s->listener);
        http_routes_close(s->routes);
    }
    s->stopping = true;
    stop_when_answered(s);
}

static void on_signal(struct ev_loop *loop, struct ev_signal *watcher, int revents)
{
    (void)loop, (void)revents;
    stop(watcher->data);
}

static void on_answers(void *arg, struct asked *first)
{
    struct serve *s = arg;

    http_answer(s->http, first);
    stop_when_answered(s);
}

static void on_refused(void *arg, const struct error *why)
{
    struct serve *s = arg;

    s->error = *why;
    stop(s);
}

static const struct take_batcher_events take_batcher_events = {.on_answers = on_answers,
                                                               .on_refused = on_refused};

static void on_resumed(void *arg)
{
    struct serve *s = arg;

    http_run_soon(s->http);
    stop_when_answered(s);
}

static const struct http_routes_events http_routes_events = {.on_resumed = on_resumed};

/* One that is ignored stays so: that of a terminal that is gone, under nohup. */
static void watch_signals(struct serve *s)
{
    for (size_t i = 0; i < STOP_SIGNALS; i++) {
        struct sigaction before;

        if (stop_signals[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 &&
            before.sa_handler == SIG_IGN)
            continue;
        ev_signal_init(&s->signals[i], on_signal, stop_signals[i]);
        s->signals[i].data = s;
        ev_signal_start(s->loop, &s->signals[i]);
    }
    signal(SIGPIPE, SIG_IGN);
}

static int begin(struct serve *s, const struct serve_options *o, struct error *e)
{
    struct redis_address address;
    char prefix[PREFIX_SIZE];

    if (client_address(o->redis_url, &address, e) < 0 || client_prefix(o->ns, prefix, e) < 0 ||
        listen_open(&s->listener, o->listen, o->open_to_all, o->socket_mode, e) < 0)
        return e->status;
    s->http = http_new(s->loop, s->listener.fd, o->on_error, &patience);
    s->batcher = s->http ? take_batcher_new(s->loop, &address, prefix, &take_batcher_events, s) : NULL;
    if (!s->batcher)
        return error_set(e, WEIR_EINTERNAL, "serve: cannot begin: %s; free memory and descriptors",
                         strerror(errno));
    if (http_routes_new(s->loop, o, s->listener.beyond, s->listener.is_unix, &http_routes_events, s,
                        &s->routes, e) < 0)
        return e->status;
    http_use(s->http, s->batcher, s->routes);
    watch_signals(s);
    return 0;
}

int serve_run(const struct serve_options *options, struct error *e)
{
    struct serve s = {.loop = ev_default_loop(0), .listener = {.fd = -1}};
    int status =
        s.loop ? begin(&s, options, e) : error_set(e, WEIR_EINTERNAL, "serve: no event loop; free memory");

    format_in_utc(); /* pages are read anywhere */
    if (status == 0) {
        log_line(LOG_LEVEL_INFO, "serve: listening on %s", s.listener.name);
        notify_send("READY=1");
        ev_run(s.loop, 0);
        notify_send("STOPPING=1");
        if (s.error.status)
            *e = s.error;
        status = s.error.status;
    }
    take_batcher_free(s.batcher);
    http_free(s.http);
    if (!http_routes_free(s.routes))
        log_line(LOG_LEVEL_WARN, "serve: a call to Redis goes on; it is left");
    listen_close(&s.listener);
    return status;
}
