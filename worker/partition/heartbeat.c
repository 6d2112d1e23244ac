/* The heartbeat: at least four times a lease a request renews it, takes back what workers that are silent
 * held, and forgets dead jobs beyond what is kept (queue/turn/reap.lua). */
#include <inttypes.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/partition/inside.h"

#define FORGOTTEN_US (60000 * MS) /* between lines that say how many dead jobs were forgotten */

/* Logs once a minute how many dead jobs were forgotten. */
static void log_forgotten(struct partition *p, int64_t forgotten, int64_t now)
{
    struct heartbeat *h = &p->heartbeat;

    h->forgotten += forgotten;
    if (h->forgotten == 0 || (h->forgotten_us != 0 && now - h->forgotten_us <= FORGOTTEN_US))
        return;
    log_line(LOG_LEVEL_WARN,
             "reap: the %" PRId64 " oldest dead jobs were forgotten: beyond what is kept (weir dead keep)",
             h->forgotten);
    h->forgotten = 0;
    h->forgotten_us = now;
}

/* Logs that a bound with which the worker was started is not the one that holds: once, and again when that changes. */
static void log_bound(struct partition *p, const char *option, int64_t own, int64_t kept, int64_t unit,
                      const char *of)
{
    if (own != 0 && kept != 0 && own != kept)
        log_once(&p->worker->logged, LOG_LEVEL_WARN,
                 "--dead-%s: this worker was started with %" PRId64 "%s, and the namespace keeps %" PRId64
                 "%s: that holds; weir dead keep --%s changes it",
                 option, own / unit, of, kept / unit, of, option);
}

static void log_late(struct partition *p)
{
    int late = handler_take_late(&p->conditions);

    if (late > 0)
        log_line(
            LOG_LEVEL_WARN,
            "%d job%s missed a slot and will take a later one: this machine, Redis or the link to it stalled",
            late, late == 1 ? "" : "s");
}

/* Logs each key once that is of a wrong kind. */
static void log_wrong_keys(struct partition *p, const struct reaped *r)
{
    for (size_t i = 0; i < r->wrong_count; i++)
        log_once(&p->worker->logged, LOG_LEVEL_ERROR,
                 "reap: jobs of silent workers cannot be taken back: %.*s; somebody else writes here: rename "
                 "or delete it (weir doctor)",
                 (int)r->wrong[i].len, r->wrong[i].at);
}

static const char *what_became(const struct reaped_job *job)
{
    if (job->dead)
        return "dead: its worker died too often";
    return job->interrupted ? "interrupted: its worker died while it ran"
                            : "back: its worker died, and it cannot be what killed it";
}

static void log_jobs(const struct redisReply *reply)
{
    struct reaped_job job;

    for (size_t i = 0; reap_job(reply, i, &job); i++)
        log_fields(LOG_LEVEL_INFO,
                   (const struct log_field[]){{"job", job.id.at, job.id.len, false},
                                              {"type", job.type.at, job.type.len, false},
                                              {"attempt", job.attempt.at, job.attempt.len, true}},
                   3, "%s", what_became(&job));
}

/* Logs what was taken back from workers that died. Of one that held many jobs each heartbeat takes back some, and the last says all. */
static void log_taken_back(struct partition *p, const struct reaped *r)
{
    p->heartbeat.taken += r->taken;
    if (r->workers == 0)
        return;
    log_line(LOG_LEVEL_WARN, "reap: %" PRId64 " workers were silent for a lease; %" PRId64 " jobs taken back",
             r->workers, p->heartbeat.taken);
    p->heartbeat.taken = 0;
}

/* Obeys an order, once: it stays in Redis for as long as this worker lives. */
static void hear_order(struct partition *p, enum worker_order order)
{
    struct worker *w = p->worker;

    if (order == ORDER_QUIET && !atomic_load(&w->ending.quiet)) {
        log_line(LOG_LEVEL_INFO, "ordered to be quiet: takes no more jobs, and stays");
        worker_quiet(w, true);
    } else if (order == ORDER_RESUME && atomic_load(&w->ending.quiet)) {
        log_line(LOG_LEVEL_INFO, "ordered to take jobs again");
        worker_quiet(w, false);
    } else if (order == ORDER_STOP && !w->ending.wanted) {
        log_line(LOG_LEVEL_INFO, "ordered to stop");
        worker_stop(w);
    }
}

static void hear_reaped(struct partition *p, const struct reaped *r, int64_t now)
{
    session_renewed(p);
    session_seen(p, r->now_us);
    hear_beat(&p->mind, r, now);
    if (session_hear_back(p, &r->back))
        limits_are_old(p);
    limits_hear_revision(p, r->newest);
    log_taken_back(p, r);
    log_forgotten(p, r->forgotten, now);
    log_bound(p, "most", p->worker->options.dead_most, r->kept.most, 1, " dead jobs");
    log_bound(p, "age", p->worker->options.dead_age_us, r->kept.age_us, 1000000, " s");
    log_late(p);
    log_wrong_keys(p, r);
    hear_order(p, r->order);
}

static void on_reaped(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct reaped r;
    struct error e;

    if (reply && reap_reply(reply, &r, &e) != 0) {
        request_refused(p, &e);
    } else if (reply) {
        log_jobs(reply);
        hear_reaped(p, &r, clock_mono_us());
    }
    request_answered(p);
}

void heartbeat_send(struct partition *p, struct args *a)
{
    struct reap_call call = {.worker = p->session.id,
                             .lease_us = p->worker->options.lease_us,
                             .interrupted_most = INTERRUPTED_MOST,
                             .dead_most = p->worker->options.dead_most,
                             .dead_age_us = p->worker->options.dead_age_us,
                             .group = p->adoption.group,
                             .quiet = atomic_load(&p->worker->ending.quiet)};

    session_is_renewing(p);
    reap_request(a, p->prefix, -1, &call);
    request_send(p, a, on_reaped);
}
