/* A job whose worker died while it ran may have killed it. Such suspects are granted, some together, to a worker that
 * has nothing else in flight (queue/claim/claim_alone.lua). When a claim says that this worker is to run some, nothing more is
 * claimed until all that runs here has ended; then the next claim gets them, and nothing beside them.
 *
 * Others go on: for as long as the waiting and these jobs took, this worker takes no other suspects, unless it
 * has nothing else to do. It waits for a second at most, and twice as long each time that this was in vain.
 * So neither jobs that take long nor gates that open seldom keep it from jobs of the usual kind for more than
 * half of the time, and none of these keeps such a job waiting for ever. */
#include "core/clock.h"
#include "core/log/log.h"
#include "worker/partition/partition.h"

#define WAIT_FIRST_US (1000 * MS)
#define ASK_US (500 * MS) /* its gates are kept for 1.5 s: see claim_wait.lua */

static void end(struct alone *a, int64_t now)
{
    a->on = a->runs = false;
    a->rest_until_us = now + (now - a->since_us);
}

void alone_check(struct partition *p, int64_t now)
{
    struct alone *a = &p->alone;

    if (a->on && a->runs && partition_is_idle(p)) {
        end(a, now);
        a->wait_most_us = 2 * a->waited_us;
    } else if (now >= alone_time(p)) {
        end(a, now);
        a->wait_most_us = 2 * (now - a->since_us);
    } else {
        return;
    }
    if (a->wait_most_us < WAIT_FIRST_US)
        a->wait_most_us = WAIT_FIRST_US;
    partition_claim_soon(p, false);
}

int64_t alone_time(const struct partition *p)
{
    const struct alone *a = &p->alone;
    int64_t most_us = a->wait_most_us ? a->wait_most_us : WAIT_FIRST_US;

    return a->on && !a->runs ? a->since_us + most_us : NEVER;
}

bool alone_is_elsewhere(const struct partition *p)
{
    const struct worker *w = p->worker;

    for (int i = 0; i < w->partition_count; i++)
        if (w->partitions[i] != p &&
            (!partition_is_idle(w->partitions[i]) || w->partitions[i]->capacity.taken > 0))
            return true;
    return false;
}

/* Another partition that is to run some. */
static bool is_anothers(const struct partition *p)
{
    const struct worker *w = p->worker;

    for (int i = 0; i < w->partition_count; i++)
        if (w->partitions[i] != p && w->partitions[i]->alone.on)
            return true;
    return false;
}

bool alone_is_wanted(const struct partition *p, int64_t now)
{
    return p->alone.on || (now >= p->alone.rest_until_us && !is_anothers(p));
}

bool alone_keeps_others(struct partition *p)
{
    return p->alone.on ? p->alone.runs || !partition_is_idle(p) || alone_is_elsewhere(p) : is_anothers(p);
}

int64_t alone_claim_time(struct partition *p)
{
    int64_t at = p->claims.sent_us + ASK_US;

    if (alone_keeps_others(p))
        return NEVER;
    if (!p->alone.asked || p->claims.more || p->reasons.claim)
        return 0;
    return p->claims.next_us && p->claims.next_us < at ? p->claims.next_us : at;
}

bool alone_hear(struct partition *p, const struct claim *claim, struct task *first, int64_t now)
{
    struct alone *a = &p->alone;
    struct error e;

    if (claim->alone && !a->on)
        a->since_us = now;
    a->on = claim->alone;
    a->runs = a->on && claim->lease_count > 0 && !alone_is_elsewhere(p);
    a->asked = partition_is_idle(p);
    if (!a->runs)
        return !a->on || claim->lease_count == 0;
    a->waited_us = now - a->since_us;
    if (claim->lease_count > 1)
        log_line(LOG_LEVEL_INFO,
                 "%zu jobs run together and nothing beside them: their worker died while they ran",
                 claim->lease_count);
    else if (first && job_read(first->body.at, first->body.len, &first->view, &e) == 0)
        task_log(LOG_LEVEL_INFO, first, "runs alone: its worker died while it ran");
    return true;
}
