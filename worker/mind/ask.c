/* What a claim asks for. */
#include "worker/mind/inside.h"

#include "throttle/gate.h"

#define MARK_US (1000 * MS) /* how often the rates are marked */
#define EARLY_US (50 * MS)  /* how far ahead slots are granted to early jobs, */
/* A worker that is farther away has no early jobs: one that goes back would find no other in time. */
#define EARLY_LEAD_US (5 * MS / 2)

void ask_soon(struct mind *m, bool held)
{
    m->claims.wanted = true;
    m->claims.held |= held;
}

void ask_held(struct mind *m)
{
    m->claims.held = true;
}

bool ask_passes(struct mind *m)
{
    if (!m->claims.duty_until_us)
        return false;
    m->claims.passes = true;
    ask_soon(m, false);
    return true;
}

struct claim_call ask_jobs(struct mind *m, int free, int prefetch, int64_t now)
{
    m->claims.went_us = now;
    return (struct claim_call){.turn = ++m->claims.turn,
                               .free = free,
                               .prefetch = prefetch,
                               .chunk = when_chunk(m, free + prefetch),
                               .ahead_us = GATE_AHEAD_US};
}

/* Chooses how far ahead slots may be granted, and to how many jobs farther than to a near worker; the other executors are for jobs that
 * need no slot. It looks ahead at least until the claim after this one can be there. A worker on duty, with executors to spare, takes more
 * slots at once, which saves claims: jobs that wait longer than others would are early. */
static void look_ahead(struct mind *m, struct room room, struct claim_call *call)
{
    int64_t lead_us = distance_lead(&m->distance), ahead_us = GATE_AHEAD_US + lead_us;
    int kept = (int)max_i64(m->all->executors / 4, 1) + m->facts.early;

    call->ahead_us = min_i64(ahead_us, GATE_AHEAD_MOST_US);
    call->far = (int)positive(min_i64(room.free, room.unclaimed - kept));
    call->early = m->claims.duty_until_us && lead_us <= EARLY_LEAD_US && room.early_more > 0;
    m->claims.early_us = call->early ? ahead_us : INT64_MAX;
    if (!call->early)
        return;
    call->ahead_us = EARLY_US;
    if (lead_us == 0 || call->far < room.early_more)
        call->far = room.early_more;
}

/* Picks the queues of a claim. A worker that is to run a job alone stays with the queues in which it was found. */
static void pick_queues(struct mind *m, struct claim_call *call, int64_t now)
{
    int64_t stale_us = now - (m->claims.duty_until_us ? when_unwatched(m) * 7 / 8 : m->polls.wait_us / 2);

    call->wide = m->all->wide;
    call->told = true;
    if (call->held)
        wide_hold_all(m->wide);
    if (!call->wide && !m->claims.duty_until_us)
        wide_claim_all(m->wide); /* nobody tells it what is due */
    if (m->all->weights)
        wide_draw(m->wide, m->all->weights, &m->random);
    if (!call->wide || !m->alone.on) {
        wide_pick(m->wide, now, stale_us);
        call->asked = wide_asked(m->wide, &call->known);
    }
    call->queues = wide_picked(m->wide);
    call->held = wide_take_held(m->wide);
}

struct claim_call ask_claim(struct mind *m, struct room room, int64_t now)
{
    struct claims *c = &m->claims;
    struct claim_call call;

    if (c->passes)
        room = (struct room){.free = 0}; /* who has no executor free passes the duty on */
    call = ask_jobs(m, room.free, room.prefetch, now);
    call.duty_until_us = c->duty_until_redis_us;
    call.reserved = room.free > 0 && room.open == 0;
    call.held = c->held;
    call.mark = now - c->mark_us >= MARK_US;
    call.alone = alone_is_wanted(m, now);
    call.parked = c->next_us != 0;
    call.elsewhere = alone_is_elsewhere(m);
    if (m->wide)
        pick_queues(m, &call, now);
    look_ahead(m, room, &call);
    c->lacked = c->more || c->starved || c->leases >= c->free;
    c->free = room.free;
    c->coming = room.prefetch;
    c->passes = c->wanted = c->held = c->more = c->starved = false;
    if (call.mark)
        c->mark_us = now;
    c->sent_us = now;
    share_take(m, room.free, now);
    polls_draw(m);
    return call;
}
