/* When each thing is due. plan.c takes the soonest, to which schedule() in worker/partition/turn.c sets its timer. */
#include <math.h>

#include "worker/mind/inside.h"

/* With more to take than executors it waits so long for half of them to be free. */
#define HUNGRY_US (MS / 2)
#define POLL_LEAST_US (100 * MS) /* a worker on duty, or its second, does not poll more often */
/* Of more queues each is looked at less often, so that it costs Redis one to two percent at most. */
#define UNWATCHED 1000
#define READ_BYTES (512 * 1024) /* of bodies, in one claim */

#define SETTLE_DELAY_US                                                                                      \
    (10 * MS) /* how long an end that nobody waits for stays until a turn that is due anyway */
#define SETTLE_CLAIM_US (60 * MS) /* how long the end of a job that is simply done stays until a claim */
#define SETTLE_SOON 500           /* so many ends are settled at once */
#define SETTLE_STANDING 64        /* so many ends of jobs that are simply done are, where a claim stands */

/* Who promotes asks again so long after the time of a poll, as it has not heard what is due. */
#define DUE_US (100 * MS)
#define DUE_OTHERS_US                                                                                        \
    (300 * MS) /* other workers ask so long after it and take over; idle ones claim before */

#define DRAINED_US (50 * MS)     /* between questions whether anything is left */
#define DRAINED_PAGE_US (2 * MS) /* more for each page of what may be left */
#define PAIRS 6400               /* pairs of a queue and a type on such a page */
#define TYPES_LEAST 100
#define TYPES_MOST 400

/* Claims that come to Redis together are answered together, and what they bring is asked for again together: Redis would rest
 * meanwhile. */
#define APART_US 500
/* A claim stands for so long after jobs that came one by one: a worker that hangs then keeps CLAIM_FEW more. */
#define STAND_US (250 * MS)
/* No claim stands for so long after an answer was lost, which cost the worker's id. */
#define LOST_US (60000 * MS)

/* ---- A claim */

int64_t when_unwatched(const struct mind *m)
{
    int queues = wide_count(m->wide);

    return queues > UNWATCHED ? UNWATCHED_US * queues / UNWATCHED : UNWATCHED_US;
}

/* Returns when to claim without a reason: on duty, to renew it in time. */
static int64_t poll_time(const struct mind *m)
{
    const struct claims *c = &m->claims;
    int64_t latest_us = max_i64(c->sent_us, c->others_us) + m->polls.wait_us;
    int64_t at = c->duty_until_us ? c->sent_us + (c->duty_until_us - c->sent_us) / 2
                 : c->second_us   ? c->second_us
                                  : NEVER;

    return min_i64(max_i64(at, c->sent_us + POLL_LEAST_US), latest_us);
}

/* Returns when to claim for what is known. Gates are for the worker on duty, and for one that keeps executors for jobs with a limit as long as its
 * claims bring jobs: where all did so, each would ask at each opening. */
int64_t when_wanted(const struct mind *m, struct room room)
{
    const struct claims *c = &m->claims;
    bool on_duty = c->duty_until_us != 0;
    int64_t at = poll_time(m);

    if (!mind_takes_jobs(m) || (m->facts.rests && !c->passes))
        return NEVER;
    if (m->alone.on)
        return alone_claim_time(m);
    if (c->wanted || (c->starved && room.free > 0))
        return 0;
    if (c->more && (room.worth_it || room.open > 0 || (room.free > 0 && room_is_wanted(m))))
        return room.worth_it ? 0 : c->more_us + HUNGRY_US;
    if ((on_duty || (m->capacity.reserve > 0 && c->leases > 0)) && c->next_us)
        at = min_i64(at, c->next_us);
    if (on_duty && m->due.at_us)
        at = min_i64(at, m->due.at_us);
    if (m->all->count > 1 && room.idle < 1) /* other partitions have all executors, and here nobody watches */
        at = min_i64(at, c->sent_us + UNWATCHED_US);
    if (on_duty && m->all->wide && wide_oldest(m->wide) < at - when_unwatched(m))
        at = wide_oldest(m->wide) + when_unwatched(m);
    return at;
}

/* Returns when to claim. No jobs ahead are asked for while the last answer brought none and says that more wait, as those need an executor;
 * nor, of one of several partitions, while one needs its share. */
int64_t when_claim(const struct mind *m, struct room room)
{
    const struct claims *c = &m->claims;
    bool waits = (c->more && c->barren) || (c->starved && m->all->count > 1);

    return room.free + (waits ? 0 : room.prefetch) < 1 ? NEVER : when_wanted(m, room);
}

bool when_only_polls(const struct mind *m, struct room room)
{
    return !m->all->wide && polls_is_off_duty(m) && when_claim(m, room) >= poll_time(m);
}

/* ---- One that no turn makes */

int when_chunk(const struct mind *m, int jobs)
{
    double limit = fmax(1, fmin(1000, READ_BYTES / fmax(64, m->claims.body_bytes)));

    return (int)min_i64(max_i64(jobs, 16), (int)limit);
}

/* True when a claim may go beside a turn: it names all queues, in their order. Where bodies are large none does: one claim brings as many bytes as
 * it may. */
static bool may_claim_beside(const struct mind *m)
{
    return m->claims.plenty && distance_far(&m->distance) > 0 && !room_is_in_crowd(m) &&
           m->claims.beside < BESIDE_MOST && !m->all->wide && !m->all->weights && !m->alone.on &&
           !m->claims.wanted && mind_takes_jobs(m) && when_chunk(m, LEASE_MOST) == LEASE_MOST;
}

int64_t when_apart(const struct mind *m)
{
    return min_i64(distance_far(&m->distance) / 4, APART_US);
}

int64_t when_beside(const struct mind *m, int64_t now, int *prefetch)
{
    struct room room;

    if (!may_claim_beside(m) || !(room = room_of(m, now)).worth_more)
        return NEVER;
    *prefetch = room.prefetch;
    return m->claims.went_us + when_apart(m);
}

/* True when a claim stands: only where the next job is most likely to come alone, too. All else is for turns. */
bool when_stands(const struct mind *m, int64_t now)
{
    const struct claims *c = &m->claims;

    return now < c->few_us + STAND_US && c->duty_until_us && !c->more && !c->next_us && !m->alone.on &&
           !m->wide && !m->all->drain && m->all->queue_count == 1 && m->all->count == 1 &&
           mind_takes_jobs(m) && (!c->lost_us || now > c->lost_us + LOST_US);
}

/* ---- The rest of a turn */

int64_t when_settle(const struct mind *m, int64_t claim_us)
{
    const struct facts *f = &m->facts;

    if (f->finished == 0)
        return NEVER;
    if (f->finished >= SETTLE_SOON || f->urgent || f->stopping)
        return 0;
    if (!f->soon && claim_us <= f->finished_us + SETTLE_CLAIM_US)
        return claim_us;
    if (!f->soon && m->claims.stands && f->finished < SETTLE_STANDING)
        return f->finished_us + SETTLE_CLAIM_US;
    return f->finished_us + SETTLE_DELAY_US;
}

bool when_is_due(const struct mind *m, int64_t now)
{
    return m->due.at_us && m->due.at_us <= now;
}

int64_t when_promote(const struct mind *m)
{
    const struct due *d = &m->due;
    int64_t at = d->heard_us + m->polls.wait_us + (d->promotes ? DUE_US : DUE_OTHERS_US);

    return d->promotes && d->at_us ? min_i64(d->at_us, at) : at;
}

int when_drained_queue_pages(const struct mind *m)
{
    return m->all->wide ? 1 + wide_count(m->wide) / WIDE_CLAIM : 1;
}

int when_drained_types(const struct mind *m)
{
    return (int)min_i64(max_i64(PAIRS / (m->all->wide ? WIDE_CLAIM : m->all->queue_count), TYPES_LEAST),
                        TYPES_MOST);
}

int when_drained_pages(const struct mind *m)
{
    int types = when_drained_types(m);

    return when_drained_queue_pages(m) * (int)max_i64((m->all->type_count + types - 1) / types, 1);
}

int64_t when_drained(const struct mind *m)
{
    return m->all->drain && mind_takes_jobs(m) && !m->claims.more && m->facts.idle
               ? m->claims.sent_us + DRAINED_US + (when_drained_pages(m) - 1) * DRAINED_PAGE_US
               : NEVER;
}

int64_t when_match(const struct mind *m)
{
    return m->all->wide && mind_takes_jobs(m) ? m->facts.match_us : NEVER;
}
