/* The limits of its types, as they were at the last heartbeat. When Redis has lost them, or has older ones,
 * they are written again before anything is claimed. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/log/log.h"
#include "worker/worker.h"

static void on_known(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    int64_t left_out = w->limits.known.left_out;
    struct error e;

    if (reply) {
        w->limits.old = false;
        if (rate_known_reply(reply, &w->limits.known, &e) != 0)
            worker_refused(w, &e);
        else if (w->limits.known.left_out > left_out)
            log_line(LOG_LEVEL_WARN,
                     "%" PRId64 " limits are too many or too large to be kept here: if Redis loses them, set "
                     "them again",
                     w->limits.known.left_out);
    }
    worker_answered(w);
}

static void on_again(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    char written[500];
    struct error e;

    if (reply && rate_again_reply(reply, written, sizeof written, &e) != 0)
        log_line(LOG_LEVEL_ERROR, "limits that Redis has lost cannot be written again: %s", e.text);
    else if (reply)
        known_limits_are_written(&w->limits.known);
    if (reply && *written)
        log_line(LOG_LEVEL_WARN, "limits that Redis had lost are written again: %s", written);
    worker_answered(w);
}

static void add_again(struct weir_worker *w, struct args *a)
{
    char host[256] = "", by[400];

    gethostname(host, sizeof host - 1);
    snprintf(by, sizeof by, "worker %s@%s", w->session.id, host);
    rate_again_request(a, w->options.prefix, -1, by, &w->limits.known);
}

void worker_limits_are_old(struct weir_worker *w)
{
    w->limits.old = true;
}

void worker_learn_limits(struct weir_worker *w, struct args *a)
{
    rate_known_request(a, w->options.prefix, -1, &w->limits.known, w->session.birth,
                       handlers_types(&w->handlers));
    worker_send(w, a, on_known);
}

void worker_restore_limits(struct weir_worker *w)
{
    struct args a;

    args_init(&a);
    if (w->limits.known.records.count > 0) {
        add_again(w, &a);
        worker_send(w, &a, on_again);
    } else {
        known_limits_are_written(&w->limits.known);
    }
    worker_learn_limits(w, &a);
    args_free(&a);
}
