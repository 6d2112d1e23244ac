/* Room: how many jobs a claim may bring. Executors that are idle; some of them reserved for jobs with a limit;
 * and jobs without one that are prefetched, as many as end here in some milliseconds. */
#include <math.h>

#include "worker/mind/inside.h"

/* Prefetched jobs that have waited for that long, and three round trips, are given back. */
#define STUCK_US (250 * MS)
#define RESERVE_US (1000 * MS) /* executors that are not used stay reserved for that long */
/* Jobs without a limit are leased for that long in advance at the rate they end here; where Redis is far away for two
 * round trips more: one is on its way, and with the other one the rate can double in each. */
#define PREFETCH_S 0.008
#define PREFETCH_MOST 1000  /* two budgets of a claim: one runs while the next is under way */
#define CROWD_MOST 4096     /* in hand of all workers together that claim ahead, */
#define CROWD_RATE 100000.0 /* and in each second of the way to Redis */
/* A Redis that lets wait for longer gets nothing in hand for all that time. */
#define WAIT_MOST_US (100 * MS)
#define BESIDE_LEAST 16 /* jobs that a claim of its own is worth */
/* A worker with fewer executors has no early jobs; and for so long after one found no executor there are none. */
#define EARLY_LEAST 8
#define CROWDED_US (1000 * MS)

static int at_most(int n, int limit)
{
    return n < limit ? n : limit;
}

static int at_least(int n, int limit)
{
    return n > limit ? n : limit;
}

int room_reserved(const struct minds *all)
{
    int reserved = 0;

    for (int i = 0; i < all->count; i++)
        reserved = at_least(all->at[i]->capacity.reserve, reserved);
    return reserved;
}

bool room_is_wanted(const struct mind *m)
{
    const struct claims *c = &m->claims;

    return c->starved || (c->more && (c->barren || c->limited > 0));
}

/* True when the idle executors are for jobs with a limit, of which it is not known to have any. Its claims for jobs ahead tell. */
static bool leaves_reserved(const struct mind *m, const struct room *room)
{
    return room->open < 1 && room->prefetch > 0 && !room_is_wanted(m);
}

/* Returns what all workers of this Redis that claim ahead may have in hand together, divided by them. */
static double part_of_crowd(const struct mind *m)
{
    double all = CROWD_MOST + CROWD_RATE * (double)distance_far(&m->distance) / 1e6;

    return all / at_least(m->claims.crowd, 1);
}

bool room_is_in_crowd(const struct mind *m)
{
    return part_of_crowd(m) < LEASE_MOST;
}

/* Returns how long an answer takes. In a crowd it waits for the claims of the others, however far away Redis is: who came while it was busy
 * has never seen how far. */
static int64_t wait_time(const struct mind *m)
{
    int64_t trip_us = distance_far(&m->distance);

    return room_is_in_crowd(m) ? min_i64(distance_at_present(&m->distance), trip_us + WAIT_MOST_US) : trip_us;
}

/* Returns how many jobs to have ahead. In a crowd each wants twice what it runs while it waits, and gets its part: so all come to have the
 * same, however little one had. */
static int prefetch_target(const struct mind *m)
{
    double rate = m->all->pace.rate, waits_s = 2 * (double)wait_time(m) / 1e6;
    double target = fmin(rate * PREFETCH_S, PREFETCH_MOST) + fmin(rate * waits_s, BESIDE_MOST * LEASE_MOST);

    return (int)(room_is_in_crowd(m) ? fmin(target, part_of_crowd(m)) : target);
}

struct room room_of(const struct mind *m, int64_t now)
{
    const struct facts *f = &m->facts;
    int executors = m->all->executors, most_open = executors - room_reserved(m->all);
    int target = prefetch_target(m), prefetched = f->prefetched + share_coming(m);
    int idle = at_least(executors - f->running - f->timed, 0);
    int open = at_least(at_most(most_open - f->unlimited, idle), 0);
    int beginning = at_most(prefetched, open), excess = prefetched - beginning;
    struct room room = {.idle = idle - beginning, .open = open - beginning};

    room.free = room.unclaimed = room.idle;

    if (alone_keeps_others(m))
        return (struct room){.free = 0};
    if (m->all->count > 1)
        share_room(m, now, &room, &target, &excess);
    room.prefetch = target > excess ? at_most(target - excess, LEASE_MOST) : 0;
    if (m->all->count > 1 && leaves_reserved(m, &room))
        room.free = 0;
    if (executors >= EARLY_LEAST && now >= m->all->pace.crowded_us + CROWDED_US)
        room.early_more = at_least(room.free / 2 - f->early, 0);
    room.worth_it = room.open >= (most_open + 1) / 2 || (target > 0 && excess <= target / 2);
    room.worth_more = room.prefetch >= at_most(at_least(target / 4, BESIDE_LEAST), LEASE_MOST);
    return room;
}

int room_release(struct mind *m, int64_t now)
{
    int taken = m->capacity.taken;

    if (m->all->count > 1 && !share_is_taken(m, now))
        taken = at_most(taken, room_of(m, now).free);
    m->capacity.taken = 0;
    return taken;
}

/* ---- Executors that are reserved for jobs with a limit */

void room_reserve_none(struct mind *m)
{
    m->capacity.reserve = 0;
}

/* Prefetched jobs take each executor as it becomes free. When a job with a limit found none idle, some are
 * kept from them: up to half, and of one every other turn. Once a second they become as few as were used; none
 * while all jobs have limits, unless Redis is far away: a worker that keeps some claims when gates open, beside the
 * one on duty, and that one alone would not keep a high rate. */
void room_adapt(struct mind *m, int64_t now)
{
    struct capacity *c = &m->capacity;
    const struct facts *f = &m->facts;
    bool starved = m->claims.starved;

    c->reserve_used = at_least(c->reserve_used, f->running - f->unlimited + f->timed);
    if (f->unlimited + f->prefetched > 0)
        c->unlimited_us = now;
    if (now - c->unlimited_us > RESERVE_US && distance_far(&m->distance) == 0) {
        c->reserve = 0;
    } else if (m->all->executors == 1) {
        c->reserve = starved && !c->reserve;
    } else if (starved) {
        if (c->reserve == 0)
            c->reserve_us = now;
        c->reserve = at_most(at_least(2 * c->reserve, 1), m->all->executors / 2);
    } else if (now - c->reserve_us > RESERVE_US) {
        c->reserve = at_most(c->reserve, c->reserve_used);
        c->reserve_used = 0;
        c->reserve_us = now;
    }
}

/* ---- How fast jobs end */

/* Returns the longest of the round trips to the partitions of a worker; 0: they are near. */
static int64_t longest(const struct minds *all, int64_t (*time)(const struct mind *m))
{
    int64_t longest_us = 0;

    for (int i = 0; i < all->count; i++)
        longest_us = max_i64(time(all->at[i]), longest_us);
    return longest_us;
}

static int64_t trip_time(const struct mind *m)
{
    return distance_far(&m->distance);
}

void room_measure(struct minds *all, uint64_t ended, int64_t now)
{
    struct pace *pace = &all->pace;
    double seconds = (double)(now - pace->rate_us) / 1e6;
    double over_s = PREFETCH_S + (double)longest(all, wait_time) / 1e6;

    if (seconds < 0.0002)
        return;
    pace->rate += seconds / (seconds + over_s) * ((double)(ended - pace->ended) / seconds - pace->rate);
    pace->rate_us = now;
    pace->ended = ended;
}

int64_t room_stuck_time(const struct minds *all)
{
    int64_t oldest_us = all->at[0]->facts.oldest_us;

    return oldest_us ? max_i64(oldest_us, all->pace.stuck_us) + STUCK_US + 3 * longest(all, trip_time)
                     : NEVER;
}

void room_was_stuck(struct minds *all, int64_t now)
{
    all->pace.rate = 0;
    all->pace.stuck_us = now;
}

void room_was_crowded(struct minds *all, int64_t now)
{
    all->pace.crowded_us = now;
}
