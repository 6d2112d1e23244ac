/* libmicrohttpd on the loop. A request that waits for Redis is suspended, and resumed when it has its answer.
 */
#pragma once

#include "serve/callers.h"
#include "serve/serve.h"
#include "serve/take_batcher.h"

struct http;
struct http_routes;

/* Takes connections of listen_fd, which stays the caller's. NULL: out of memory or descriptors. */
struct http *http_new(struct ev_loop *loop, int listen_fd, enum serve_policy on_error,
                      const struct callers_patience *patience);
/* What http's requests are asked of, before the loop runs: takes of the batcher, all else of routes, which may be NULL. */
void http_use(struct http *h, struct take_batcher *batcher, struct http_routes *routes);
/* Connections were resumed. */
void http_run_soon(struct http *h);
/* Answers of the batcher. */
void http_answer(struct http *h, struct asked *first);
/* Takes no more connections. */
void http_quiesce(struct http *h);
/* Counts the takes that wait for an answer. */
size_t http_waiting(const struct http *h);
/* None may wait. */
void http_free(struct http *h);
