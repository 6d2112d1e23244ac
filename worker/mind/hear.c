/* What an answer changes. */
#include <math.h>

#include "worker/mind/inside.h"

#define LEFT_US (1000 * MS)     /* a schedule that this worker must leave to others is tried again so late */
#define PAUSE_US (1000 * MS)    /* after an error answer */
#define REAP_AGAIN_US (10 * MS) /* to the next heartbeat while one did not do all */

/* ---- The clock, and what is due */

void hear_clock(struct mind *m, int64_t redis_us, int64_t now)
{
    if (distance_hear(&m->distance, m->sent_us, redis_us, now))
        m->beat_us = now;
}

void hear_due(struct mind *m, int64_t redis_us, int64_t due_us, int64_t now)
{
    struct due *d = &m->due;

    hear_clock(m, redis_us, now);
    d->at_us = distance_local(&m->distance, due_us);
    if (d->at_us && d->left_us)
        d->at_us = max_i64(d->at_us, d->left_us);
    d->heard_us = now;
}

void hear_promoted(struct mind *m, bool found, int64_t now)
{
    if (found || when_is_due(m, now))
        m->due.promotes = found;
}

void hear_fired(struct mind *m)
{
    m->due.at_us = m->due.heard_us = 0;
    ask_soon(m, false);
}

void hear_left(struct mind *m, int64_t now)
{
    m->due.left_us = now + LEFT_US;
}

/* ---- Claims */

/* Hears what every answer to a claim says; the claim asked for so many jobs without a limit. */
static void hear_jobs(struct mind *m, const struct claim *claim, int asked, int64_t now)
{
    struct claims *c = &m->claims;
    int unlimited = 0;

    for (size_t i = 0; i < claim->lease_count; i++) {
        unlimited += claim->leases[i].slot_us == 0;
        c->body_bytes += 0.01 * ((double)claim->leases[i].body.len - c->body_bytes);
    }
    c->leases = (int)claim->lease_count;
    c->limited = c->leases - unlimited;
    c->crowd = claim->crowd;
    c->plenty = claim->more && unlimited > 0 && unlimited >= asked / 2;
    c->barren = unlimited == 0 && asked > 0;
    if (claim->lease_count > 0)
        c->few_us = claim->brief ? now : 0;
}

/* Hears what an answer says of jobs that it did not bring. */
static void hear_others(struct mind *m, const struct claim *claim)
{
    m->claims.more = claim->more;
    m->claims.next_us = distance_local(&m->distance, claim->next_us);
    if (m->claims.next_us)
        m->claims.next_us -= distance_lead(&m->distance);
}

/* Hears what a claim says of the queues that it named. Off duty, when something is due is for another; who takes the duty claims from all,
 * if that claim has not done so. */
static void hear_wide(struct mind *m, const struct claim *claim, int64_t now)
{
    struct claims *c = &m->claims;
    bool on_duty = claim->duty_until_us != 0;
    int64_t offset_us = distance_offset(&m->distance) - distance_lead(&m->distance);

    wide_hear(m->wide, &(struct wide_answer){claim, c->free, on_duty, c->next_us, offset_us, now});
    if (m->all->wide && on_duty && !c->duty_until_redis_us) {
        wide_claim_all(m->wide);
        wide_hold_all(m->wide);
    }
    if (m->all->wide || on_duty)
        c->more = wide_due(m->wide) <= now;
    if (on_duty)
        c->next_us = wide_due(m->wide) < NEVER ? wide_due(m->wide) : 0;
}

/* True when one of several partitions has asked for jobs ahead, as the others have all executors, and there are only jobs that cannot wait
 * here. */
static bool needs_executors(const struct mind *m, const struct claim *claim)
{
    return m->all->count > 1 && m->claims.free < 1 && claim->more && claim->lease_count == 0;
}

bool hear_claim(struct mind *m, const struct claim *claim, int64_t now)
{
    struct claims *c = &m->claims;
    int asked = c->coming;
    bool fits;

    c->coming = 0;
    hear_due(m, claim->now_us, claim->later_us, now);
    hear_jobs(m, claim, asked, now);
    hear_others(m, claim);
    c->starved = claim->starved || needs_executors(m, claim);
    fits = alone_hear(m, claim, now);
    if (m->wide)
        hear_wide(m, claim, now);
    c->more_us = c->more ? now : 0;
    c->duty_until_redis_us = claim->duty_until_us;
    c->duty_until_us = distance_local(&m->distance, claim->duty_until_us);
    c->second_us = distance_local(&m->distance, claim->look_us);
    return fits;
}

void hear_no_claim(struct mind *m, bool lost)
{
    m->claims.coming = 0;
    m->claims.plenty = false;
    room_reserve_none(m);
    if (!lost)
        wide_hold_all(m->wide);
}

void hear_beside(struct mind *m, const struct claim *claim, int64_t now)
{
    struct claims *c = &m->claims;
    int asked = c->coming_beside / c->beside; /* nearly; by the last one all are counted off */

    c->beside--;
    c->coming_beside -= asked;
    c->plenty = false;
    if (!claim)
        return;
    hear_jobs(m, claim, asked, now);
    hear_others(m, claim);
    wide_claim_all(m->wide);
    c->more_us = c->more ? now : 0;
}

/* Hears the answer of a claim that was sent a while ago: the executors may have got other jobs since, from turns. */
int hear_standing(struct mind *m, const struct claim *claim, int64_t now)
{
    int executors = mind_takes_jobs(m) && !m->alone.on ? room_of(m, now).idle : 0;

    hear_jobs(m, claim, CLAIM_FEW, now);
    m->claims.stands = claim->lease_count > 0;
    return executors;
}

bool hear_stood(struct mind *m)
{
    bool stood = m->claims.stands;

    m->claims.stands = false;
    return stood;
}

void hear_declined(struct mind *m)
{
    m->claims.few_us = 0;
    ask_soon(m, false);
}

void hear_lost_standing(struct mind *m, int64_t now)
{
    m->claims.lost_us = now;
}

/* ---- The rest */

void hear_adopt(struct mind *m, int64_t workers)
{
    polls_hear(m, workers);
    m->claims.duty_until_us = m->claims.duty_until_redis_us = m->claims.second_us = 0;
    hear_stood(m); /* what stood on the last connection stands no more */
    m->pause_until_us = 0;
    wide_claim_all(m->wide);
    ask_soon(m, true);
}

/* Hears a heartbeat; others promote what is due, too. */
void hear_beat(struct mind *m, const struct reaped *r, int64_t now)
{
    polls_hear(m, r->registered);
    if (r->of_others && !m->all->wide && polls_is_off_duty(m)) {
        m->claims.others_us = now;
        polls_draw(m);
        hear_due(m, r->now_us, -1, now);
    }
    if (r->left > 0)
        m->beat_us = min_i64(m->beat_us, now + REAP_AGAIN_US);
}

/* Hears that Redis refused something; heartbeats wait, too. */
void hear_refusal(struct mind *m, int64_t now)
{
    m->pause_until_us = now + (int64_t)fmin(PAUSE_US, (double)m->all->lease_us / 8);
}
