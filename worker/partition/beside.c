/* Claims that no turn makes: those beside one that is under way, as Redis is far away, and the one that stands behind
 * the peek, where jobs come one by one. All but their jobs is left to turns. */
#include <limits.h>

#include "core/clock.h"
#include "core/number.h"
#include "worker/partition/partition.h"

/* Claims that come to Redis together are answered together, and what they bring is asked for again together: Redis would rest
 * meanwhile. */
#define APART_US 500
#define STAND_LEAST                                                                                          \
    (CLAIM_FEW + 1) /* executors of a claim that stands: it starts that many jobs, with one to spare */
/* A claim stands for so long after jobs that came one by one: a worker that hangs then keeps CLAIM_FEW more. */
#define STAND_US (250 * MS)
/* None stands for so long after an answer was lost, which cost the worker's id. */
#define LOST_US (60000 * MS)

/* ---- Beside a turn */

static void hear_beside(struct partition *p, int asked)
{
    struct task_list tasks;

    partition_hear_claim(p, asked, &tasks);
    wide_claim_all(p->wide);
    p->claims.more_us = p->claims.more ? clock_mono_us() : 0;
    if (p->claims.last.lease_count > 0)
        partition_seen(p, p->claims.last.now_us);
    partition_run_jobs(p, INT_MAX, true, &tasks);
}

static void on_claimed_beside(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    int asked = p->claims.coming_beside / p->claims.beside; /* nearly; by the last one all are counted off */
    struct error e;

    p->claims.beside--;
    p->claims.coming_beside -= asked;
    p->claims.plenty = false;
    if (reply && claim_reply(reply, &p->claims.last, &e) != 0)
        partition_refused(p, &e);
    else if (reply)
        hear_beside(p, asked);
    partition_wake(p);
}

/* Of large bodies none: a claim brings as many bytes as it may. */
static bool may_claim_beside(const struct partition *p)
{
    return p->claims.plenty && partition_trip_time(p) > 0 && !partition_is_in_crowd(p) &&
           p->claims.beside < BESIDE_MOST && !p->worker->options.wide && !p->alone.on && !p->reasons.claim &&
           partition_takes_jobs(p) && partition_chunk(p, LEASE_MOST) == LEASE_MOST;
}

static void claim_beside(struct partition *p, int prefetch, int64_t now)
{
    struct claim_call call = partition_begin_call(p, 0, prefetch, now);
    struct args a;

    call.alone = alone_is_wanted(p, now);
    p->claims.beside++;
    p->claims.coming_beside += prefetch;
    args_init(&a);
    claim_request(&a, p->prefix, -1, &call);
    partition_send_beside(p, &a, on_claimed_beside);
    args_free(&a);
}

/* When the next one may go: so long after the last that Redis meets them apart. */
static int64_t next_beside(const struct partition *p)
{
    return p->claims.went_us + least(partition_trip_time(p) / 4, APART_US);
}

int64_t partition_claim_beside(struct partition *p, int64_t now)
{
    struct room room;

    if (!may_claim_beside(p) || !(room = partition_room(p)).worth_more)
        return NEVER;
    if (next_beside(p) > now)
        return next_beside(p);
    claim_beside(p, room.prefetch, now);
    return next_beside(p);
}

/* ---- Behind the peek */

/* Only where the next job is most likely to be one that comes alone, too: all else is for turns. */
static bool may_stand(const struct partition *p, int64_t now)
{
    const struct options *o = &p->worker->options;

    return now < p->claims.few_us + STAND_US && p->claims.duty_until_us && !p->claims.more &&
           !p->claims.next_us && !p->alone.on && !p->wide && !o->drain && o->queue_count == 1 &&
           p->worker->partition_count == 1 && partition_takes_jobs(p) &&
           (!p->claims.lost_us || now > p->claims.lost_us + LOST_US);
}

bool partition_stand(struct partition *p, struct args *a)
{
    struct claim_call call;
    int64_t now = clock_mono_us();

    if (!may_stand(p, now) || partition_room(p).open < STAND_LEAST)
        return false;
    call = partition_begin_call(p, STAND_LEAST, 0, now);
    call.duty_until_us = p->claims.duty_until_redis_us;
    call.standing = p->claims.stands = true;
    claim_request(a, p->prefix, -1, &call);
    return true;
}

/* It was sent a while ago: the executors may have got other jobs since, from turns. */
static void take_standing(struct partition *p)
{
    int executors = partition_takes_jobs(p) && !p->alone.on ? partition_room(p).idle : 0;
    struct task_list tasks;

    partition_take_jobs(p, CLAIM_FEW, &tasks);
    p->claims.stands = tasks.head != NULL;
    if (tasks.head)
        partition_seen(p, p->claims.last.now_us);
    partition_run_jobs(p, executors, true, &tasks);
}

/* Where it was declined, a turn claims, and meets the error too. What it leased under an id that has ended, or that ends as nobody knows,
 * is handed back as the next one is adopted: such an answer is not heard. */
void partition_hear_standing(struct partition *p, const struct redisReply *reply)
{
    bool stood = p->claims.stands && p->session.registered;
    struct error e;

    p->claims.stands = false;
    if (stood && claim_is_declined(reply)) {
        p->claims.few_us = 0;
        partition_claim_soon(p, false);
    } else if (stood && (!reply || claim_reply(reply, &p->claims.last, &e) != 0)) {
        p->claims.lost_us = clock_mono_us();
        partition_unregister(p);
    } else if (stood) {
        take_standing(p);
    }
    partition_wake(p);
}
