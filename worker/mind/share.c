/* Partitions share the executors: those that want more get the same number each. */
#include <limits.h>

#include "worker/mind/inside.h"

/* A claim without an answer keeps executors from other partitions for so long, and two round trips. */
#define TAKEN_US (100 * MS)

/* Counts the executors that run jobs of a partition, or wait for their start time. */
static int executors_of(const struct mind *m)
{
    return m->facts.here - m->facts.here_prefetched;
}

bool share_is_taken(const struct mind *m, int64_t now)
{
    return m->capacity.taken > 0 && now - m->capacity.taken_us < TAKEN_US + 2 * distance_trip(&m->distance);
}

/* Counts the idle executors that claims of other partitions may fill. */
static int taken_by_others(const struct mind *m, int64_t now)
{
    int taken = 0;

    for (int i = 0; i < m->all->count; i++)
        if (m->all->at[i] != m && share_is_taken(m->all->at[i], now))
            taken += m->all->at[i]->capacity.taken;
    return taken;
}

/* True if this partition wants executors and could claim. An answer that does not come keeps no executor from the others. */
static bool is_hungry(const struct mind *m, int64_t now)
{
    return m->capacity.hungry && m->capacity.taken == 0 && m->facts.up && mind_takes_jobs(m) &&
           now >= m->pause_until_us && (m->facts.awaited == 0 || now - m->sent_us < TAKEN_US);
}

/* Partitions that share the free executors; sum: the free ones, and those that the partitions have. */
struct sharers {
    struct sharer {
        const struct mind *m;
        int has;
    } at[PARTITIONS_MOST];
    int count, sum;
};

static void add_sharers(struct sharers *s, const struct mind *m, int free, int64_t now)
{
    *s = (struct sharers){.sum = free};
    for (int i = 0; i < m->all->count; i++) {
        const struct mind *other = m->all->at[i];

        if (other != m && !is_hungry(other, now))
            continue;
        s->at[s->count] = (struct sharer){other, executors_of(other)};
        s->sum += s->at[s->count++].has;
    }
}

/* Drops partitions that have more executors than the others can get: they have enough. */
static void drop_sated(struct sharers *s)
{
    for (bool dropped = true; dropped;) {
        dropped = false;
        for (int i = 0; i < s->count; i++)
            if (s->count > 1 && s->at[i].has > s->sum / s->count) {
                s->sum -= s->at[i].has;
                s->at[i--] = s->at[--s->count];
                dropped = true;
            }
    }
}

static bool claimed_before(const struct mind *a, const struct mind *b)
{
    return a->claims.sent_us != b->claims.sent_us ? a->claims.sent_us < b->claims.sent_us : a < b;
}

/* Returns how many of the free executors are for this partition. They go one at a time to the partition with the fewest; ties go to the one that waited
 * longest. */
static int share_of(const struct mind *m, int free, int64_t now)
{
    struct sharers s;
    int before = 0, has = INT_MAX;

    add_sharers(&s, m, free, now);
    drop_sated(&s);
    for (int i = 0; i < s.count; i++) {
        has = s.at[i].m == m ? s.at[i].has : has;
        before += claimed_before(s.at[i].m, m);
    }
    return s.count == 0 ? 0 : (int)positive((int64_t)(s.sum / s.count + (before < s.sum % s.count)) - has);
}

/* Counts the partitions that share what is prefetched: this one, and those that are hungry. */
static int count_hungry(const struct mind *m, int64_t now)
{
    int n = 1;

    for (int i = 0; i < m->all->count; i++)
        n += m->all->at[i] != m && is_hungry(m->all->at[i], now);
    return n;
}

int share_coming(const struct mind *m)
{
    return m->claims.coming + m->claims.coming_beside;
}

/* Gives a partition its room: half of its share where nobody knows that it needs more, so that another one that wakes need not wait for the
 * answer. */
void share_room(const struct mind *m, int64_t now, struct room *room, int *target, int *excess)
{
    int share;

    room->unclaimed = (int)positive(room->idle - taken_by_others(m, now));
    share = share_of(m, room->unclaimed, now);
    room->free = m->claims.more || m->claims.starved ? share : (share + 1) / 2;
    room->open = (int)min_i64(room->open, room->free);
    *target /= count_hungry(m, now);
    *excess = (int)positive(m->facts.here_prefetched + share_coming(m) - room->free);
}

void share_take(struct mind *m, int executors, int64_t now)
{
    m->capacity.taken = executors;
    m->capacity.taken_us = now;
    m->capacity.hungry &= executors == 0;
}

void share_hunger(struct mind *m, bool hungry)
{
    m->capacity.hungry = hungry;
}
