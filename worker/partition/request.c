/* Requests to Redis and their answers, as all files of the worker send and count them; and what it
 * means that Redis refuses one. */
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/partition/inside.h"

void request_send_with(struct partition *p, struct args *a, link_reply *on_reply, void *arg)
{
    p->awaited++;
    link_send(p->link, a, REQUEST_TIMEOUT_S, on_reply, arg);
}

void request_send(struct partition *p, struct args *a, link_reply *on_reply)
{
    request_send_with(p, a, on_reply, p);
}

void request_send_beside(struct partition *p, struct args *a, link_reply *on_reply)
{
    link_send(p->link, a, REQUEST_TIMEOUT_S, on_reply, p);
}

void request_answered(struct partition *p)
{
    if (--p->awaited == 0) {
        p->turns++;
        partition_wake(p);
    }
}

void request_refused(struct partition *p, const struct error *e)
{
    if (turn_is_unregistered(e)) {
        session_unregister(p);
        return;
    }
    if (turn_is_of_another_format(e) && !p->worker->ending.wanted) {
        log_line(LOG_LEVEL_ERROR, "%s; takes no more jobs", e->text);
        worker_fail_and_stop(p->worker, e);
        return;
    }
    if (e->status ==
        WEIR_EREFUSED) { /* a script may have leased jobs before it was: who registers anew hands them back */
        session_permit(p, false);
        session_unregister(p);
    }
    if (strcmp(p->last_error, e->text) != 0) {
        strcpy(p->last_error, e->text);
        log_line(LOG_LEVEL_ERROR, "%s; trying again every second", e->text);
    }
    hear_refusal(&p->mind, clock_mono_us());
}

void request_log_fault(struct partition *p, struct span wrong)
{
    log_once(&p->worker->logged, LOG_LEVEL_WARN, "%.*s: what needs it stands still; run weir doctor --repair",
             (int)wrong.len, wrong.at);
}

void request_accepted(struct partition *p)
{
    p->last_error[0] = '\0';
}
