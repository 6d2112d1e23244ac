/* Before the first job: is this a Redis on which jobs are kept and rates hold? One that evicts keys would
 * lose jobs in silence, so a worker does not begin there; once a minute it looks whether that has become so.
 * And after each connect, and whenever Redis has refused a right: may the user run all that scripts call? A
 * script that is refused a command halfway leaves jobs at two places, so nothing is moved before it may. */
#include "core/log.h"
#include "queue/doctor/doctor_access.h"
#include "queue/doctor/settings.h"
#include "worker/worker.h"

#define RECHECK_US (60000 * MS)

static void tell(const struct settings *settings)
{
    if (settings->hidden)
        log_line(LOG_LEVEL_WARN, "not allowed to look at Redis's settings: give the user +info, or undo the "
                                 "rename-command of INFO");
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
    if (status == WEIR_ECONFIG && worker_is_hopeless(w, &e))
        return;
    if (status == 0)
        tell(&settings);
    w->checked = true;
    worker_look(w);
}

/* Leaving would strand the jobs: it is logged, each time. */
static void on_rechecked(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct settings settings;
    struct error e;

    if (reply && settings_reply(reply, &settings, &e) == WEIR_ECONFIG)
        log_line(LOG_LEVEL_ERROR, "%s", e.text);
    worker_answered(w);
}

void worker_recheck(struct weir_worker *w, struct args *a, int64_t now)
{
    if (now < w->recheck_us)
        return;
    w->recheck_us = now + (w->lease_us < RECHECK_US ? w->lease_us : RECHECK_US);
    settings_request(a);
    worker_send(w, a, on_rechecked);
}

static void on_access(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct error e;
    int status;

    w->awaited--;
    if (!reply)
        return;
    status = access_check(reply, w->prefix, w->address.user, &e);
    w->permitted = status == 0;
    if (status != 0) {
        if (worker_is_hopeless(w, &e))
            return;
        worker_refused(w, &e);
    }
    worker_look(w);
}

bool worker_precheck(struct weir_worker *w)
{
    bool done = w->checked && w->permitted;
    struct args a;

    args_init(&a);
    if (!w->checked) {
        settings_request(&a);
        w->awaited++; /* nothing else until the answers */
        link_send(w->link, &a, REQUEST_TIMEOUT_S, on_settings, w);
    }
    if (!w->permitted) {
        access_request(&a, w->prefix, -1);
        w->awaited++;
        link_send(w->link, &a, REQUEST_TIMEOUT_S, on_access, w);
    }
    args_free(&a);
    return done;
}
