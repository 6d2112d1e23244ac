/* All that weir serve answers besides takes: documents, actions, jobs, pages. A request comes with its
 * head, brings its body, and waits, suspended, until a thread has its answer. The loop never waits.
 *
 *   http_request.c   one, from its head to its answer: _plan.c what it asks for, and whether it may;
 *                    _answer.c responses; _audit.c the log line of an action
 *   access.c         who may ask for what
 *   work_item.c      one request as work of a Redis thread
 *   redis_thread.c   a thread with a connection of its own
 *   shared.c         answers that several share
 *   resource.c       which row of a table it is; documents.c, actions.c, post_jobs.c, post_hold.c: what is asked */
#pragma once

#include <microhttpd.h>

#include "serve/access.h"
#include "serve/serve.h"

struct ev_loop;
struct http_routes;
struct http_request;

struct http_routes_events {
    /* Connections were resumed: run the daemon. */
    void (*on_resumed)(void *arg);
};

/* beyond, any_host: of struct access_options. events is borrowed. */
WEIR_CHECKED int http_routes_new(struct ev_loop *loop, const struct serve_options *options, bool beyond,
                                 bool any_host, const struct http_routes_events *events, void *arg,
                                 struct http_routes **routes, struct error *e);
/* Closes them; requests that wait for a thread are answered. */
void http_routes_close(struct http_routes *routes);
/* Counts the requests that wait. */
size_t http_routes_waiting(const struct http_routes *routes);
/* None may wait. false: a thread is stuck, and what it uses stays. */
bool http_routes_free(struct http_routes *routes);

/* Why a take is not for who asks for it; NULL: it is. */
const char *http_routes_wrong_take(const struct http_routes *routes, struct MHD_Connection *connection);

/* Makes a request with this method and address, as it came ("/api/jobs?q=x"). NULL: out of memory. */
struct http_request *http_request_new(struct http_routes *routes, struct MHD_Connection *connection,
                                      const char *method, const char *address);
/* Each as libmicrohttpd calls for its handler: at the head, for each piece of the body, at its end and when it was
 * resumed. MHD_NO closes the connection. */
enum MHD_Result http_request_begin(struct http_request *request);
enum MHD_Result http_request_body(struct http_request *request, const char *bytes, size_t len);
enum MHD_Result http_request_go_on(struct http_request *request);
void http_request_free(struct http_request *request);
