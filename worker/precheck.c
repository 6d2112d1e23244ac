/* Before the first job: is this a Redis on which jobs are kept and rates hold? One that evicts keys would
 * lose jobs in silence, so a worker does not begin there; once a minute it checks whether that has become so.
 * And after each connect, and whenever Redis has refused a right: may the user run all that scripts call? A
 * script that is refused a command halfway leaves jobs at two places, so nothing is moved before it may. */
#include "core/log/log.h"
#include "queue/doctor/doctor_access.h"
#include "queue/doctor/settings.h"
#include "worker/worker.h"

#define RECHECK_US (60000 * MS)

static void log_settings(const struct settings *settings)
{
    if (settings->hidden)
        log_line(LOG_LEVEL_WARN, "not allowed to read Redis's settings: give the user +info, or undo the "
                                 "rename-command of INFO");
    else if (!settings->has_aof)
        log_line(LOG_LEVEL_WARN,
                 "Redis keeps no AOF: jobs are lost when it restarts; weir doctor says what to do");
}

/* A cluster's node holds the keys for as long as it likes. */
static int read_settings(const struct weir_worker *w, const struct redisReply *reply,
                         struct settings *settings, struct error *e)
{
    int status = settings_reply(reply, settings, e);

    if (!status && settings->in_cluster && w->options.address.finder != REDIS_BY_CLUSTER)
        return error_set(
            e, WEIR_ECONFIG,
            "Redis: is a node of a cluster; write its address as redis+cluster://host1:port,host2:port");
    return status;
}

static void on_settings(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct settings settings;
    struct error e;
    int status;

    worker_answered(w);
    if (!reply)
        return;
    status = read_settings(w, reply, &settings, &e);
    if (status == WEIR_ECONFIG && worker_is_hopeless(w, &e))
        return;
    if (status == 0)
        log_settings(&settings);
    w->precheck.checked = true;
}

/* Leaving would strand the jobs: it is logged, each time. */
static void on_rechecked(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct settings settings;
    struct error e;

    if (reply && read_settings(w, reply, &settings, &e) == WEIR_ECONFIG)
        log_line(LOG_LEVEL_ERROR, "%s", e.text);
    worker_answered(w);
}

void worker_recheck(struct weir_worker *w, struct args *a, int64_t now)
{
    if (now < w->precheck.again_us)
        return;
    w->precheck.again_us = now + (w->options.lease_us < RECHECK_US ? w->options.lease_us : RECHECK_US);
    settings_request(a);
    worker_send(w, a, on_rechecked);
}

static void on_access(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct error e;
    int status;

    worker_answered(w);
    if (!reply)
        return;
    status = access_check(reply, w->options.prefix, w->options.address.user, &e);
    if (status == 0)
        worker_has_rights(w);
    else if (!worker_is_hopeless(w, &e))
        worker_refused(w, &e);
}

bool worker_precheck(struct weir_worker *w)
{
    bool done = w->precheck.checked && w->session.permitted;
    struct args a;

    args_init(&a);
    if (!w->precheck.checked) {
        settings_request(&a);
        worker_send(w, &a, on_settings);
    }
    if (!w->session.permitted) {
        access_request(&a, "worker", w->options.prefix, -1);
        worker_send(w, &a, on_access);
    }
    args_free(&a);
    return done;
}
