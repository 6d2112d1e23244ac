/* Before the first job: is this a Redis on which jobs are kept and rates hold? One that evicts keys would
 * lose jobs in silence, so a worker does not begin there; once a minute it checks whether that has become so.
 * And after each connect, and whenever Redis has refused a right: may the user run all that scripts call? A
 * script that is refused a command halfway leaves jobs at two places, so nothing is moved before it may. */
#include "core/log/log.h"
#include "queue/doctor/doctor_access.h"
#include "queue/doctor/settings.h"
#include "worker/partition/inside.h"

#define RECHECK_US (60000 * MS)

static const char *hint_of(const struct settings *settings)
{
    if (settings->hidden)
        return "not allowed to read Redis's settings: give the user +info, or undo the rename-command of "
               "INFO";
    return settings->has_aof
               ? NULL
               : "Redis keeps no AOF: jobs are lost when it restarts; weir doctor says what to do";
}

void precheck_tell_settings(struct partition *p)
{
    if (p->precheck.hint)
        log_once(&p->worker->logged, LOG_LEVEL_WARN, "%s", p->precheck.hint);
    p->precheck.hint = NULL;
}

/* Reads the settings of Redis. A node of a cluster is refused where it is named as one Redis: it holds the keys only as long as the cluster
 * likes. */
static int read_settings(const struct partition *p, const struct redisReply *reply, struct settings *settings,
                         struct error *e)
{
    int status = settings_reply(reply, settings, e);

    if (!status && settings->in_cluster && p->worker->options.address.finder != REDIS_BY_CLUSTER)
        return error_set(
            e, WEIR_ECONFIG,
            "Redis: is a node of a cluster; write its address as redis+cluster://host1:port,host2:port");
    return status;
}

/* Hears the settings. Later, a wrong one is logged each time; the worker stays, as leaving would strand the jobs. */
static void on_settings(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    bool first = !p->precheck.checked;
    struct settings settings;
    struct error e;
    int status;

    request_answered(p);
    if (!reply)
        return;
    status = read_settings(p, reply, &settings, &e);
    if (status == WEIR_ECONFIG && !first)
        log_line(LOG_LEVEL_ERROR, "%s", e.text);
    else if (status == WEIR_ECONFIG && session_is_hopeless(p, &e))
        return;
    if (status == 0 && first)
        p->precheck.hint = hint_of(&settings);
    p->precheck.checked = true;
}

void precheck_again(struct partition *p, struct args *a, int64_t now)
{
    if (now < p->precheck.again_us)
        return;
    p->precheck.again_us =
        now + (p->worker->options.lease_us < RECHECK_US ? p->worker->options.lease_us : RECHECK_US);
    settings_request(a);
    request_send(p, a, on_settings);
}

static void on_access(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct error e;
    int status;

    request_answered(p);
    if (!reply)
        return;
    status = access_check(reply, p->prefix, p->worker->options.address.user, &e);
    if (status == 0)
        session_permit(p, true);
    else if (!session_is_hopeless(p, &e))
        request_refused(p, &e);
}

bool precheck_passes(struct partition *p)
{
    bool done = p->precheck.checked && p->session.permitted;
    struct args a = {0};

    if (!p->precheck.checked) {
        settings_request(&a);
        request_send(p, &a, on_settings);
    }
    if (!p->session.permitted) {
        access_request(&a, "worker", p->prefix, -1);
        request_send(p, &a, on_access);
    }
    return done;
}
