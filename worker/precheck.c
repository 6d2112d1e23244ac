/* Before the first job: is this a Redis on which jobs are kept and rates hold? One that evicts keys would
 * lose jobs in silence, so a worker does not begin there. */
#include "core/log.h"
#include "queue/settings.h"
#include "worker/worker.h"

static void tell(const struct settings *settings)
{
    if (settings->hidden)
        log_line(LOG_LEVEL_WARN, "not allowed to look at Redis's settings: give the user +info, or run weir "
                                 "doctor as one who has it");
    else if (!settings->has_aof)
        log_line(LOG_LEVEL_WARN,
                 "Redis keeps no AOF: jobs are lost when it restarts; weir doctor says what to do");
}

static void on_settings(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct settings settings;
    struct error e;
    int status;

    w->awaited--;
    if (!reply)
        return;
    status = settings_reply(reply, &settings, &e);
    if (status == WEIR_ECONFIG) {
        w->error = e;
        w->result = status;
        ev_break(w->loop, EVBREAK_ALL);
        return;
    }
    if (status == 0)
        tell(&settings);
    w->checked = true;
    worker_look(w);
}

bool worker_precheck(struct weir_worker *w)
{
    struct args a;

    if (w->checked)
        return true;
    args_init(&a);
    settings_request(&a);
    w->awaited++; /* nothing else until the answer */
    link_send(w->link, &a, REQUEST_TIMEOUT_S, on_settings, w);
    args_free(&a);
    return false;
}
