#include "serve/office.h"

#include <stdlib.h>

#include "serve/access.h"
#include "serve/http_request.h"

static bool open_desks(struct office *o, struct ev_loop *loop)
{
    for (int i = 0; i < DESK_COUNT; i++)
        if (!(o->desks[i] = desk_new(loop, o->options.redis_url, o->options.ns)))
            return false;
    o->shared = shared_new(loop, o->desks);
    return o->shared != NULL;
}

int office_new(struct ev_loop *loop, const struct serve_options *options, bool beyond, bool any_host,
               const struct office_events *events, void *arg, struct office **office, struct error *e)
{
    struct office *o = *office = calloc(1, sizeof *o);
    const struct access_options access = {.token_file = options->token_file,
                                          .actions = options->allow_actions,
                                          .enqueue = options->allow_enqueue,
                                          .beyond = beyond,
                                          .any_host = any_host,
                                          .hosts = options->hosts,
                                          .host_count = options->host_count};

    if (!o)
        return error_no_memory(e, "serve");
    *o = (struct office){.events = events, .arg = arg, .options = *options};
    if (access_new(&access, &o->access, e) < 0)
        return e->status;
    if (!open_desks(o, loop))
        return error_set(e, WEIR_EINTERNAL, "serve: cannot begin; free memory and threads");
    return 0;
}

const char *office_wrong_take(const struct office *o, struct MHD_Connection *connection)
{
    return access_wrong_take(o->access, connection);
}

void office_close(struct office *o)
{
    for (int i = 0; i < DESK_COUNT; i++)
        desk_close(o->desks[i]);
}

size_t office_waiting(const struct office *o)
{
    return o->waiting;
}

bool office_free(struct office *o)
{
    bool idle = true;

    if (!o)
        return true;
    for (int i = 0; i < DESK_COUNT; i++)
        idle = desk_free(o->desks[i]) && idle;
    if (!idle)
        return false;
    shared_free(o->shared);
    access_free(o->access);
    free(o);
    return true;
}
