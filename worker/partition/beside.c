/* Claims that no turn makes: those beside one that is under way, as Redis is far away, and the one that stands behind
 * the peek, where jobs come one by one. All but their jobs is left to turns. */
#include <limits.h>

#include "core/clock.h"
#include "worker/partition/inside.h"

/* ---- Beside a turn */

static void run_beside(struct partition *p)
{
    struct task_list tasks;

    claiming_take_jobs(p, &tasks);
    claiming_log_waiting(p);
    if (p->answer.lease_count > 0)
        session_seen(p, p->answer.now_us);
    claiming_run_jobs(p, INT_MAX, true, &tasks);
}

static void on_claimed_beside(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct error e;
    int rc = reply ? claim_reply(reply, &p->answer, &e) : WEIR_EUNREACHABLE;

    hear_beside(&p->mind, rc == 0 ? &p->answer : NULL, clock_mono_us());
    if (rc == 0)
        run_beside(p);
    else if (reply)
        claiming_refused(p, &e);
    partition_wake(p);
}

void beside_claim(struct partition *p, struct claim_call *call)
{
    struct args a = {0};

    claiming_name_call(p, call);
    claim_request(&a, p->prefix, -1, call);
    request_send_beside(p, &a, on_claimed_beside);
}

/* ---- Behind the peek */

bool beside_stand(struct partition *p, struct args *a)
{
    struct claim_call call;

    executors_look(p);
    if (!plan_standing(&p->mind, clock_mono_us(), &call))
        return false;
    claiming_name_call(p, &call);
    claim_request(a, p->prefix, -1, &call);
    return true;
}

static void take_standing(struct partition *p, int64_t now)
{
    struct task_list tasks;
    int executors;

    executors_look(p);
    executors = hear_standing(&p->mind, &p->answer, now);
    claiming_take_jobs(p, &tasks);
    if (tasks.head)
        session_seen(p, p->answer.now_us);
    claiming_run_jobs(p, executors, true, &tasks);
}

/* An answer under an id that has ended, or whose end nobody knows, is not heard: what it leased is handed back when the next id is adopted. */
void beside_hear_standing(struct partition *p, const struct redisReply *reply)
{
    bool stood = hear_stood(&p->mind) && p->session.registered;
    int64_t now = clock_mono_us();
    struct error e;

    if (stood && claim_is_declined(reply)) {
        hear_declined(&p->mind);
    } else if (stood && (!reply || claim_reply(reply, &p->answer, &e) != 0)) {
        hear_lost_standing(&p->mind, now);
        session_unregister(p);
    } else if (stood) {
        take_standing(p, now);
    }
    partition_wake(p);
}
