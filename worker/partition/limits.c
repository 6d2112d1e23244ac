/* The limits of its types, as they were at the last heartbeat. When Redis has lost them, or has older ones,
 * they are written again before anything is claimed. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/log/log.h"
#include "worker/partition/inside.h"

static void ask(struct partition *p)
{
    struct args a = {0};

    limits_learn(p, &a);
}

/* Hears a page of limits. The next turn asks for the next page; it is asked for at once where nothing may be claimed before the last. */
static void on_known(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct known_limits *known = &p->limits.known;
    int64_t left_out = known->left_out;
    struct error e;
    int rc = reply ? rate_known_reply(reply, known, &e) : 0;

    if (rc != 0)
        request_refused(p, &e);
    if (!reply) {
        known_limits_ask_anew(known);
    } else if (known_limits_asks_more(known)) {
        if (p->limits.old)
            ask(p);
    } else {
        p->limits.old = false;
        if (known->left_out > left_out)
            log_line(LOG_LEVEL_WARN,
                     "%" PRId64 " limits are too many or too large to be kept here: if Redis loses them, set "
                     "them again",
                     known->left_out);
    }
    request_answered(p);
}

void limits_learn(struct partition *p, struct args *a)
{
    p->limits.newer = false;
    p->limits.types = p->worker->handlers->count;
    rate_known_request(a, p->prefix, -1, &p->limits.known, p->session.birth,
                       handlers_types(p->worker->handlers));
    request_send(p, a, on_known);
}

static void learn_anew(struct partition *p)
{
    known_limits_ask_anew(&p->limits.known);
    ask(p);
}

/* Writes the next page of known limits; where there is none, asks what there is now. Nothing is claimed before that is answered. */
static void write_rest(struct partition *p);

static void on_again(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    char written[500] = "";
    struct error e;
    int rc = reply ? rate_again_reply(reply, &p->limits.known, written, sizeof written, &e) : 0;

    if (rc != 0)
        log_line(LOG_LEVEL_ERROR, "limits that Redis has lost cannot be written again: %s", e.text);
    if (*written)
        log_line(LOG_LEVEL_WARN, "limits that Redis had lost are written again: %s", written);
    if (rc != 0)
        learn_anew(p);
    else if (reply)
        write_rest(p);
    request_answered(p);
}

void limits_are_old(struct partition *p)
{
    p->limits.old = true;
}

void limits_hear_revision(struct partition *p, struct span newest)
{
    p->limits.newer =
        known_limits_are_older(&p->limits.known, newest) || p->limits.types < p->worker->handlers->count;
}

bool limits_must_learn(const struct partition *p)
{
    return p->limits.newer || known_limits_asks_more(&p->limits.known);
}

static void write_rest(struct partition *p)
{
    char host[256] = "", by[400];
    struct args a = {0};

    if (!known_limits_has_more(&p->limits.known)) {
        known_limits_are_written(&p->limits.known);
        learn_anew(p);
        return;
    }
    gethostname(host, sizeof host - 1);
    snprintf(by, sizeof by, "worker %s@%s", p->session.id, host);
    rate_again_request(&a, p->prefix, -1, by, &p->limits.known);
    request_send(p, &a, on_again);
}

void limits_restore(struct partition *p)
{
    known_limits_begin_again(&p->limits.known);
    write_rest(p);
}
