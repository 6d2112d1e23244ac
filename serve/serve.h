/* weir serve over HTTP: the limits, for proxies and programs of any language; and what there is: documents, actions, pages, metrics.
 *
 *   GET /take/NAME[/KEY][?cost=N]  takes: 200 allowed, 429 denied, 404 no such limit, 400 a wrong request
 *   GET /take/NAME?key=KEY         (a cost that can never fit too); 503, or as on_error says, without Redis
 *       ...denied=403              the status of a denial: nginx's auth_request knows only this one
 *   GET /healthz                   200 when Redis answers a take, else 503
 *   GET /metrics                   for Prometheus: metrics.h
 *   /api/..., /, ...               doc/api.md, doc/pages.md: http_routes.h
 *
 * HEAD is answered as GET, without the body. Allowed and denied carry RateLimit-Limit, RateLimit-Remaining
 * and RateLimit-Reset, denied Retry-After, in whole seconds rounded up; the body is that of weir take --json.
 *
 *   serve.c          the loop, signals
 *   listen.c         the socket
 *   http.c           libmicrohttpd on the loop: a request waits until it is answered
 *   callers.c        connections, and how long one may take to send a request
 *   take_url.c       what a take asks
 *   response.c       what it is answered
 *   take_batcher.c   one connection to Redis: what came together is asked together
 *   http_routes.c    all that is no take
 *
 * The loop is one thread, and answers takes. What takes longer runs on threads of its own: redis_thread.h. */
#pragma once

#include <stdbool.h>

#include "core/error.h"

/* What a request is answered when Redis is away. */
enum serve_policy { SERVE_ERROR, SERVE_ALLOW, SERVE_DENY };

struct serve_options {
    const char *redis_url, *ns; /* as weir_new */
    const char *listen;         /* "unix:/path" or "127.0.0.1:8379" */
    bool open_to_all;           /* addresses other than those of this machine may be listened on */
    int socket_mode;            /* permissions of the unix socket; -1: as the umask says */
    enum serve_policy on_error;
    bool allow_actions, allow_enqueue;
    bool hide_args;           /* no body of a job is shown */
    const char *token_file;   /* access.h; NULL: none */
    const char *const *hosts; /* names by which it is reached, besides addresses and localhost */
    int host_count;
};

/* Serves until SIGTERM or SIGINT; then answers what has been asked, and 0. */
WEIR_CHECKED int serve_run(const struct serve_options *options, struct error *e);
