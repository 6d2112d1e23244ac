/* A job whose worker died while it ran may have killed it. Such suspects are granted, some together, to a worker that
 * has nothing else in flight (queue/claim/claim_alone.lua). When a claim says that this worker is to run some, nothing more is
 * claimed until all that runs here has ended; then the next claim gets them, and nothing beside them.
 *
 * Others go on: for as long as the waiting and these jobs took, this worker takes no other suspects, unless it
 * has nothing else to do. It waits for a second at most, and twice as long each time that this was in vain.
 * So neither jobs that take long nor gates that open seldom keep it from jobs of the usual kind for more than
 * half of the time, and none of these keeps such a job waiting for ever. */
#include "worker/mind/inside.h"

#define WAIT_FIRST_US (1000 * MS)
#define ASK_US (500 * MS) /* between claims; claim_wait.lua keeps the gates for 1.5 s */

static void end(struct alone *a, int64_t now)
{
    a->on = a->runs = false;
    a->rest_until_us = now + (now - a->since_us);
}

bool alone_check(struct mind *m, int64_t now)
{
    struct alone *a = &m->alone;

    if (a->on && a->runs && m->facts.idle) {
        end(a, now);
        a->wait_most_us = 2 * a->waited_us;
    } else if (now >= alone_time(m)) {
        end(a, now);
        a->wait_most_us = 2 * (now - a->since_us);
    } else {
        return false;
    }
    a->wait_most_us = max_i64(a->wait_most_us, WAIT_FIRST_US);
    return true;
}

int64_t alone_time(const struct mind *m)
{
    const struct alone *a = &m->alone;

    return a->on && !a->runs ? a->since_us + (a->wait_most_us ? a->wait_most_us : WAIT_FIRST_US) : NEVER;
}

bool alone_is_elsewhere(const struct mind *m)
{
    for (int i = 0; i < m->all->count; i++) {
        const struct mind *other = m->all->at[i];

        if (other != m && (!other->facts.idle || other->capacity.taken > 0))
            return true;
    }
    return false;
}

/* True when another partition is to run suspects. */
static bool is_anothers(const struct mind *m)
{
    for (int i = 0; i < m->all->count; i++)
        if (m->all->at[i] != m && m->all->at[i]->alone.on)
            return true;
    return false;
}

bool alone_is_wanted(const struct mind *m, int64_t now)
{
    return m->alone.on || (now >= m->alone.rest_until_us && !is_anothers(m));
}

bool alone_keeps_others(const struct mind *m)
{
    return m->alone.on ? m->alone.runs || !m->facts.idle || alone_is_elsewhere(m) : is_anothers(m);
}

int64_t alone_claim_time(const struct mind *m)
{
    int64_t at = m->claims.sent_us + ASK_US;

    if (alone_keeps_others(m))
        return NEVER;
    if (!m->alone.asked || m->claims.more || m->claims.wanted)
        return 0;
    return m->claims.next_us ? min_i64(m->claims.next_us, at) : at;
}

bool alone_hear(struct mind *m, const struct claim *claim, int64_t now)
{
    struct alone *a = &m->alone;

    if (claim->alone && !a->on)
        a->since_us = now;
    a->on = claim->alone;
    a->runs = a->on && claim->lease_count > 0 && !alone_is_elsewhere(m);
    a->asked = m->facts.idle && claim->lease_count == 0;
    if (a->runs)
        a->waited_us = now - a->since_us;
    return a->runs || !a->on || claim->lease_count == 0;
}
