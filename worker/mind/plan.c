/* What to do now, and when to decide again. One turn is one round trip: what has ended is settled, what is due is promoted, a heartbeat, and
 * a claim for the executors that are free, all written at once. Where Redis is far away and there is much to do, claims for jobs without a
 * limit go beside the turn. */
#include "core/random.h"
#include "worker/mind/inside.h"

/* A claim that stands needs so many executors: it starts CLAIM_FEW jobs, with one to spare. */
#define STAND_LEAST (CLAIM_FEW + 1)

void plan_sends(struct mind *m, int64_t now)
{
    m->sent_us = now;
}

void plan_beat_at(struct mind *m, int64_t at_us)
{
    m->beat_us = at_us;
    m->said_quiet = false;
}

int64_t plan_beat_wait(struct mind *m)
{
    return interval_of_beats(m->all->lease_us, random_draw(&m->random));
}

/* Returns when the next heartbeat is due: at once where it says that the worker takes no more jobs. */
static int64_t when_beat(const struct mind *m)
{
    return m->facts.registered && m->facts.quiet != m->said_quiet ? 0 : m->beat_us;
}

/* Returns when the next turn is due. */
static int64_t next_turn(const struct mind *m, struct room room)
{
    int64_t claim_us = when_claim(m, room);
    int64_t times[] = {claim_us,
                       when_settle(m, claim_us),
                       when_beat(m),
                       when_drained(m),
                       mind_takes_jobs(m) ? when_promote(m) : NEVER,
                       m->facts.learns ? 0 : NEVER,
                       alone_time(m),
                       when_match(m)};
    int64_t at = NEVER;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        at = min_i64(at, times[i]);
    return max_i64(at, m->pause_until_us);
}

/* True when this turn has a claim. The next turn waits for this one, so what is due by then is asked for now. A worker that would only poll
 * asks by the heartbeat whether it need do so. */
static bool has_claim(const struct mind *m, struct room room, bool beats, int64_t now)
{
    if (beats && when_only_polls(m, room))
        return false;
    return when_claim(m, room) <= now + distance_lead(&m->distance);
}

/* True when the claim that is sent will leave no job behind, as far as the last answer shows: then the next one can be waited for behind
 * it, in the same round trip. If that is wrong, the worker wakes once for nothing. */
static bool claims_all(const struct mind *m)
{
    return m->claims.duty_until_us && !m->claims.lacked && m->claims.leases <= CLAIM_FEW;
}

static bool promotes(const struct mind *m, int64_t now)
{
    return mind_takes_jobs(m) && (when_is_due(m, now) || when_promote(m) <= now);
}

static void begin_turn(struct mind *m, struct plan *plan, struct room room, int64_t now)
{
    plan->turn = true;
    plan->drained = when_drained(m) <= now;
    plan->beat = when_beat(m) <= now + polls_along(m);
    plan->claims = has_claim(m, room, plan->beat, now) || (plan->drained && room.free > 0);
    plan->drained &= plan->claims;
    plan->settle = !plan->claims || !m->facts.along;
    plan->promote = promotes(m, now);
    plan->learn = m->facts.learns;
    plan->match = when_match(m) <= now;
    plan_sends(m, now);
    if (plan->promote)
        polls_draw(m);
    if (plan->beat) {
        m->beat_us = now + plan_beat_wait(m);
        m->said_quiet = m->facts.quiet;
    }
    if (plan->beat && m->all->unknown_dead)
        ask_held(m); /* types that no worker runs any more */
    if (plan->claims)
        plan->claim = ask_claim(m, room, now);
    if (plan->claims && claims_all(m))
        plan->wait = PLAN_WAIT_ON_DUTY;
}

/* Notes hunger: the executors are other partitions', and it has the next ones that are its share. */
static void hunger(struct mind *m, struct room room, int64_t now, int64_t *at)
{
    int64_t want = room.free < 1 ? when_wanted(m, room) : NEVER;
    bool wants_more = mind_takes_jobs(m) && (m->claims.more || m->claims.starved);

    share_hunger(m, wants_more || want <= now);
    if (want > now)
        *at = min_i64(*at, want);
}

struct plan plan_turn(struct mind *m, int64_t now)
{
    struct plan plan = {.wait = PLAN_WAIT_NOTHING};
    struct room room;

    if (alone_check(m, now))
        ask_soon(m, false);
    room = room_of(m, now);
    plan.next_us = next_turn(m, room);
    if (m->all->count > 1)
        hunger(m, room, now, &plan.next_us);
    if (plan.next_us <= now)
        begin_turn(m, &plan, room, now);
    else if (mind_takes_jobs(m) && !m->facts.rests && room.idle > 0 && !m->claims.more &&
             !m->claims.wanted) /* a claim is not due already */
        plan.wait = m->claims.duty_until_us ? PLAN_WAIT_ON_DUTY : PLAN_WAIT_OFF_DUTY;
    return plan;
}

bool plan_beside(struct mind *m, int64_t now, struct claim_call *call, int64_t *next_us)
{
    int prefetch = 0;

    *next_us = when_beside(m, now, &prefetch);
    if (*next_us > now)
        return false;
    *call = ask_jobs(m, 0, prefetch, now);
    call->alone = alone_is_wanted(m, now);
    m->claims.beside++;
    m->claims.coming_beside += prefetch;
    *next_us = now + when_apart(m);
    return true;
}

bool plan_standing(struct mind *m, int64_t now, struct claim_call *call)
{
    if (!when_stands(m, now) || room_of(m, now).open < STAND_LEAST)
        return false;
    *call = ask_jobs(m, STAND_LEAST, 0, now);
    call->duty_until_us = m->claims.duty_until_redis_us;
    call->standing = m->claims.stands = true;
    return true;
}

bool plan_is_woken(struct mind *m, bool on_duty_only, int64_t now)
{
    return mind_takes_jobs(m) && !m->facts.rests && room_of(m, now).idle > 0 &&
           !(on_duty_only && !m->claims.duty_until_us);
}
