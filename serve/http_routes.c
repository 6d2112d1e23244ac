#include "serve/http_routes.h"

#include <stdlib.h>

#include "serve/access.h"
#include "serve/http_request.h"

static bool open_threads(struct http_routes *routes, struct ev_loop *loop)
{
    for (int i = 0; i < THREAD_COUNT; i++)
        if (!(routes->threads[i] = redis_thread_new(loop, routes->options.redis_url, routes->options.ns)))
            return false;
    routes->shared = shared_new(loop, routes->threads);
    return routes->shared != NULL;
}

int http_routes_new(struct ev_loop *loop, const struct serve_options *options, bool beyond, bool any_host,
                    const struct http_routes_events *events, void *arg, struct http_routes **made,
                    struct error *e)
{
    struct http_routes *routes = *made = calloc(1, sizeof *routes);
    const struct access_options access = {.token_file = options->token_file,
                                          .actions = options->allow_actions,
                                          .enqueue = options->allow_enqueue,
                                          .beyond = beyond,
                                          .any_host = any_host,
                                          .hosts = options->hosts,
                                          .host_count = options->host_count};

    if (!routes)
        return error_no_memory(e, "serve");
    *routes = (struct http_routes){.events = events, .arg = arg, .options = *options};
    if (access_new(&access, &routes->access, e) < 0)
        return e->status;
    if (!open_threads(routes, loop))
        return error_set(e, WEIR_EINTERNAL, "serve: cannot begin; free memory and threads");
    return 0;
}

const char *http_routes_wrong_take(const struct http_routes *routes, struct MHD_Connection *connection)
{
    return access_wrong_take(routes->access, connection);
}

void http_routes_close(struct http_routes *routes)
{
    for (int i = 0; i < THREAD_COUNT; i++)
        redis_thread_close(routes->threads[i]);
}

size_t http_routes_waiting(const struct http_routes *routes)
{
    return routes->waiting;
}

bool http_routes_free(struct http_routes *routes)
{
    bool idle = true;

    if (!routes)
        return true;
    for (int i = 0; i < THREAD_COUNT; i++)
        idle = redis_thread_free(routes->threads[i]) && idle;
    if (!idle)
        return false;
    shared_free(routes->shared);
    access_free(routes->access);
    free(routes);
    return true;
}
