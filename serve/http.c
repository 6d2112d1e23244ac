/* libmicrohttpd has an epoll descriptor of its own, which the loop watches; MHD_run does what is due there,
 * and a timer stands at the next connection's time-out, or soon after what was done last. */
#include "serve/http.h"

#include <ev.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "serve/http_routes.h"
#include "serve/response.h"
#include "serve/take_url.h"

#define CONNECTIONS_MOST 8192u
#define PEER_SHARE 2       /* one address may have half of the connections, for a proxy; a unix socket all */
#define SPARE_FILES 64     /* descriptors for all else */
#define AGAIN_S 0.05       /* a request with too many arguments is given up in one run, closed in the next */
#define IDLE_TIMEOUT_S 75u /* proxies keep idle connections for 60 s and close them first */

struct http {
    struct ev_loop *loop;
    struct MHD_Daemon *daemon;
    struct take_batcher *batcher;
    struct http_routes *routes;
    enum serve_policy on_error;
    size_t waiting;
    struct ev_io io;
    struct ev_timer timer;
    bool again; /* the timer stands at a run without need */
    struct callers callers;
};

struct exchange {
    struct MHD_Connection *connection;
    unsigned status; /* 0: not read yet; 200: asked */
    struct wanted wanted;
    const char *why;
    bool answered;
    struct asked asked;

    struct http_request *request; /* NULL: it is a take */
};

static enum MHD_Result respond(const struct http *h, const struct exchange *q)
{
    if (q->status != MHD_HTTP_OK)
        return respond_refusal(q->connection, q->status, q->why);
    if (q->wanted.wish == WISH_HEALTH)
        return respond_health(q->connection, &q->asked);
    return respond_take(q->connection, &q->asked, h->on_error, q->wanted.denied);
}

static void ask(struct http *h, struct exchange *q)
{
    q->asked.q = q->wanted.q;
    q->answered = q->wanted.wish == WISH_HEALTH ? take_batcher_check(h->batcher, &q->asked)
                                                : take_batcher_ask(h->batcher, &q->asked);
    if (q->answered)
        return;
    h->waiting++;
    MHD_suspend_connection(q->connection);
}

/* The whole of a take or a look at health is there, or it was resumed. */
static enum MHD_Result go_on(struct http *h, struct exchange *q, const char *method, const char *path)
{
    if (!q->status) {
        q->status = take_url_read(q->connection, method, path, &q->wanted, &q->why);
        if (q->status == MHD_HTTP_OK && q->wanted.wish == WISH_TAKE && h->routes &&
            (q->why = http_routes_wrong_take(h->routes, q->connection)))
            q->status = MHD_HTTP_FORBIDDEN;
        q->answered = q->status != MHD_HTTP_OK;
        if (!q->answered)
            ask(h, q);
    }
    return q->answered ? respond(h, q) : MHD_YES;
}

static struct caller *caller_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static enum MHD_Result begin(struct http *h, struct MHD_Connection *connection, const char *method,
                             void **own)
{
    struct caller *caller = caller_of(connection);
    struct exchange *q = caller ? calloc(1, sizeof *q) : NULL;

    *own = q;
    if (!q)
        return MHD_NO;
    caller_sent_head(caller);
    q->connection = connection;
    if (!caller->address || !h->routes)
        return MHD_YES;
    q->request = http_request_new(h->routes, connection, method, caller->address);
    return q->request ? http_request_begin(q->request) : MHD_NO;
}

/* libmicrohttpd calls it when the head of a request is there, for each piece of its body, at its end, and
 * again when it was resumed. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **own)
{
    struct http *h = arg;
    struct exchange *q = *own;
    size_t size = *body_size;

    (void)version;
    if (!q)
        return begin(h, connection, method, own);
    *body_size = 0;
    if (size > 0) {
        caller_sent_body(caller_of(connection), size);
        return q->request ? http_request_body(q->request, body, size) : MHD_YES;
    }
    caller_sent_all(caller_of(connection));
    return q->request ? http_request_go_on(q->request) : go_on(h, q, method, path);
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *h = arg;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = caller_new(&h->callers, connection);
    } else if (*socket_context) {
        caller_free(*socket_context);
        *socket_context = NULL;
    }
}

/* Keeps the address as it came, with its escapes; takes do not need it. */
static void *on_address(void *arg, const char *address, struct MHD_Connection *connection)
{
    struct caller *caller = caller_of(connection);

    (void)arg;
    if (caller) {
        free(caller->address);
        caller->address = take_url_is(address) ? NULL : strdup(address);
    }
    return NULL;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **own,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *q = *own;

    (void)arg, (void)code;
    if (!q)
        return;
    caller_answered(caller_of(connection));
    http_request_free(q->request);
    free(q);
    *own = NULL;
}

/* ---- On the loop */

/* The next run is when libmicrohttpd wants it; without need soon, if again, to close what this one gave up.
 */
static void run(struct http *h, bool again)
{
    double wait_s = again ? AGAIN_S : IDLE_TIMEOUT_S;
    MHD_UNSIGNED_LONG_LONG timeout_ms;

    MHD_run(h->daemon);
    h->again = again;
    if (MHD_get_timeout(h->daemon, &timeout_ms) == MHD_YES && (double)timeout_ms / 1e3 < wait_s) {
        wait_s = (double)timeout_ms / 1e3;
        h->again = false;
    }
    ev_timer_stop(h->loop, &h->timer);
    ev_timer_set(&h->timer, wait_s, 0);
    ev_timer_start(h->loop, &h->timer);
}

static void on_io(struct ev_loop *loop, struct ev_io *io, int revents)
{
    (void)loop, (void)revents;
    run(io->data, true);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
    (void)loop, (void)revents;
    run(timer->data, !((struct http *)timer->data)->again);
}

static struct exchange *exchange_of(struct asked *a)
{
    return (struct exchange *)((char *)a - offsetof(struct exchange, asked));
}

void http_answer(struct http *h, struct asked *first)
{
    for (struct asked *a = first, *next; a; a = next) {
        struct exchange *q = exchange_of(a);

        next = a->next;
        q->answered = true;
        h->waiting--;
        MHD_resume_connection(q->connection);
    }
    run(h, true);
}

/* ---- Beginning and end */

/* As many as the system lets us have. */
static unsigned connections_most(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 256;
    if (files.rlim_cur < CONNECTIONS_MOST + SPARE_FILES) {
        files.rlim_cur =
            files.rlim_max < CONNECTIONS_MOST + SPARE_FILES ? files.rlim_max : CONNECTIONS_MOST + SPARE_FILES;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        (void)getrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur >= CONNECTIONS_MOST + SPARE_FILES)
        return CONNECTIONS_MOST;
    return files.rlim_cur > 2 * SPARE_FILES ? (unsigned)files.rlim_cur - SPARE_FILES : SPARE_FILES;
}

static void watch(struct http *h)
{
    ev_io_init(&h->io, on_io, MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, EV_READ);
    ev_timer_init(&h->timer, on_timer, 0, 0);
    h->io.data = h->timer.data = h;
    ev_io_start(h->loop, &h->io);
}

struct http *http_new(struct ev_loop *loop, int listen_fd, enum serve_policy on_error,
                      const struct callers_patience *patience)
{
    unsigned connections = connections_most();
    struct http *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    *h = (struct http){.loop = loop, .on_error = on_error};
    callers_init(&h->callers, loop, patience);
    h->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
                         h, MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
                         MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_CONNECTION_LIMIT,
                         connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT, connections / PEER_SHARE,
                         MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S, MHD_OPTION_UNESCAPE_CALLBACK,
                         url_unescape, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_address, h, MHD_OPTION_END);
    if (!h->daemon) {
        callers_end(&h->callers);
        free(h);
        return NULL;
    }
    watch(h);
    return h;
}

void http_use(struct http *h, struct take_batcher *batcher, struct http_routes *routes)
{
    h->batcher = batcher;
    h->routes = routes;
}

void http_run_soon(struct http *h)
{
    ev_timer_stop(h->loop, &h->timer);
    ev_timer_set(&h->timer, 0, 0);
    ev_timer_start(h->loop, &h->timer);
}

void http_quiesce(struct http *h)
{
    (void)MHD_quiesce_daemon(h->daemon);
}

size_t http_waiting(const struct http *h)
{
    return h->waiting;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    ev_io_stop(h->loop, &h->io);
    ev_timer_stop(h->loop, &h->timer);
    MHD_run(h->daemon); /* answers that are not sent yet */
    MHD_stop_daemon(h->daemon);
    callers_end(&h->callers);
    free(h);
}
