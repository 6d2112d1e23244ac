/* Claims that no turn makes: those beside one that is under way, as Redis is far away, and the one that stands behind
 * the peek, where jobs come one by one. All but their jobs is left to turns. */
#include <limits.h>

#include "core/clock.h"
#include "worker/partition/partition.h"

/* ---- Beside a turn */

static void run_beside(struct partition *p)
{
    struct task_list tasks;

    partition_take_jobs(p, &tasks);
    partition_log_waiting(p);
    if (p->answer.lease_count > 0)
        partition_seen(p, p->answer.now_us);
    partition_run_jobs(p, INT_MAX, true, &tasks);
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
        partition_refused(p, &e);
    partition_wake(p);
}

void partition_claim_beside(struct partition *p, struct claim_call *call)
{
    struct args a;

    args_init(&a);
    partition_name_call(p, call);
    claim_request(&a, p->prefix, -1, call);
    partition_send_beside(p, &a, on_claimed_beside);
    args_free(&a);
}

/* ---- Behind the peek */

bool partition_stand(struct partition *p, struct args *a)
{
    struct claim_call call;

    partition_look(p);
    if (!plan_standing(&p->mind, clock_mono_us(), &call))
        return false;
    partition_name_call(p, &call);
    claim_request(a, p->prefix, -1, &call);
    return true;
}

static void take_standing(struct partition *p, int64_t now)
{
    struct task_list tasks;
    int executors;

    partition_look(p);
    executors = hear_standing(&p->mind, &p->answer, now);
    partition_take_jobs(p, &tasks);
    if (tasks.head)
        partition_seen(p, p->answer.now_us);
    partition_run_jobs(p, executors, true, &tasks);
}

/* What it leased under an id that has ended, or that ends as nobody knows, is handed back as the next one is adopted: such an answer is not
 * heard. */
void partition_hear_standing(struct partition *p, const struct redisReply *reply)
{
    bool stood = hear_stood(&p->mind) && p->session.registered;
    int64_t now = clock_mono_us();
    struct error e;

    if (stood && claim_is_declined(reply)) {
        hear_declined(&p->mind);
    } else if (stood && (!reply || claim_reply(reply, &p->answer, &e) != 0)) {
        hear_lost_standing(&p->mind, now);
        partition_unregister(p);
    } else if (stood) {
        take_standing(p, now);
    }
    partition_wake(p);
}
