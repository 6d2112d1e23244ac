/* Room: how many jobs a claim may bring. Executors that are idle; some of them reserved for jobs with a limit;
 * and jobs without one that are prefetched, as many as end here in some milliseconds. */
#include <limits.h>
#include <math.h>

#include "core/clock.h"
#include "worker/partition/partition.h"

#define STUCK_US                                                                                             \
    (250 * MS) /* prefetched jobs that have waited for that long, and three round trips, are given back */
#define RESERVE_US (1000 * MS) /* executors that are not used stay reserved for that long */
/* Jobs without a limit are leased for that long in advance at the rate they end here; where Redis is far away for two
 * round trips more: one is on its way, and with the other one the rate can double in each. */
#define PREFETCH_S 0.008
#define PREFETCH_MOST 1000  /* two budgets of a claim: one runs while the next is under way */
#define CROWD_MOST 4096     /* in hand of all workers together that claim ahead, */
#define CROWD_RATE 100000.0 /* and in each second of the way to Redis */
#define WAIT_MOST_US                                                                                         \
    (100 * MS)          /* on a Redis that lets wait for longer nothing is in hand for all that time */
#define BESIDE_LEAST 16 /* jobs that a claim of its own is worth */
/* Early jobs: fewer executors have none, and for so long after one found no executor there are none. */
#define EARLY_LEAST 8
#define CROWDED_US (1000 * MS)
#define TAKEN_US                                                                                             \
    (100 *                                                                                                   \
     MS) /* and two round trips: for so long a claim without an answer keeps executors from other partitions */

bool partition_takes_jobs(const struct partition *p)
{
    return p->session.registered && !p->worker->stop.since_us && !atomic_load(&p->worker->ending.quiet) &&
           p->worker->handlers.count > 0;
}

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static int at_least(int n, int least)
{
    return n > least ? n : least;
}

/* The executors that run jobs of a partition, or wait for their start time. */
static int executors_of(const struct partition *p)
{
    return p->settling.here - pool_prefetched(p->worker->pool, &p->conditions);
}

/* As many as any of the partitions needs. */
static int reserved_of(const struct worker *w)
{
    int most = 0;

    for (int i = 0; i < w->partition_count; i++)
        most = at_least(w->partitions[i]->capacity.reserve, most);
    return most;
}

/* ---- Shares of partitions */

static bool is_taken(const struct partition *q, int64_t now)
{
    return q->capacity.taken > 0 &&
           now - q->capacity.taken_us < TAKEN_US + 2 * distance_trip(&q->requests.distance);
}

/* Idle executors that claims of other partitions may fill. */
static int taken_by_others(const struct partition *p, int64_t now)
{
    const struct worker *w = p->worker;
    int taken = 0;

    for (int i = 0; i < w->partition_count; i++)
        if (w->partitions[i] != p && is_taken(w->partitions[i], now))
            taken += w->partitions[i]->capacity.taken;
    return taken;
}

/* Does it want executors, and could it claim? An answer that does not come keeps none from the others. */
static bool is_hungry(const struct partition *q, int64_t now)
{
    return q->capacity.hungry && q->capacity.taken == 0 && link_is_up(q->link) && partition_takes_jobs(q) &&
           now >= q->requests.pause_until_us &&
           (q->requests.awaited == 0 || now - q->requests.sent_us < TAKEN_US);
}

/* Who shares free executors; sum: these, and what they have. */
struct sharers {
    struct sharer {
        const struct partition *p;
        int has;
    } at[PARTITIONS_MOST];
    int count, sum;
};

static void add_sharers(struct sharers *s, const struct partition *p, int free, int64_t now)
{
    const struct worker *w = p->worker;

    *s = (struct sharers){.sum = free};
    for (int i = 0; i < w->partition_count; i++) {
        const struct partition *q = w->partitions[i];

        if (q != p && !is_hungry(q, now))
            continue;
        s->at[s->count] = (struct sharer){q, executors_of(q)};
        s->sum += s->at[s->count++].has;
    }
}

/* Those that have more than the others can get have enough. */
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

static bool claimed_before(const struct partition *q, const struct partition *p)
{
    return q->claims.sent_us != p->claims.sent_us ? q->claims.sent_us < p->claims.sent_us : q < p;
}

/* How many of the free executors are for it. One by one they go to who has the fewest, of equals to who has waited longest. */
static int share_of(const struct partition *p, int free, int64_t now)
{
    struct sharers s;
    int before = 0, has = INT_MAX;

    add_sharers(&s, p, free, now);
    drop_sated(&s);
    for (int i = 0; i < s.count; i++) {
        has = s.at[i].p == p ? s.at[i].has : has;
        before += claimed_before(s.at[i].p, p);
    }
    return s.count == 0 ? 0 : at_least(s.sum / s.count + (before < s.sum % s.count) - has, 0);
}

/* How many want to share what is prefetched. */
static int count_hungry(const struct partition *p, int64_t now)
{
    int n = 1;

    for (int i = 0; i < p->worker->partition_count; i++)
        n += p->worker->partitions[i] != p && is_hungry(p->worker->partitions[i], now);
    return n;
}

/* Jobs without a limit that may be on their way here. */
static int coming(const struct partition *p)
{
    return p->claims.coming + p->claims.coming_beside;
}

/* One of several: of the free executors its share, and half of it where nobody knows that it needs more, so that another one that
 * wakes need not wait for the answer. */
static void share_room(const struct partition *p, struct room *room, int *target, int *excess)
{
    int64_t now = clock_mono_us();
    int free = at_least(room->free - taken_by_others(p, now), 0), share = share_of(p, free, now);

    room->free = p->claims.more || p->claims.starved ? share : (share + 1) / 2;
    room->open = at_most(room->open, room->free);
    *target /= count_hungry(p, now);
    *excess = at_least(pool_prefetched(p->worker->pool, &p->conditions) + coming(p) - room->free, 0);
}

/* Are the idle executors for jobs with a limit, of which it is not known to have any? Its claims for jobs ahead tell. */
static bool leaves_reserved(const struct partition *p, const struct room *room)
{
    return room->open < 1 && room->prefetch > 0 && !p->claims.starved;
}

/* What all workers of this Redis that claim ahead may have in hand together, divided by them. */
static double part_of_crowd(const struct partition *p)
{
    double all = CROWD_MOST + CROWD_RATE * (double)partition_trip_time(p) / 1e6;

    return all / at_least(p->claims.last.crowd, 1);
}

bool partition_is_in_crowd(const struct partition *p)
{
    return part_of_crowd(p) < LEASE_MOST;
}

/* How long an answer takes. In a crowd it waits for the claims of the others, however far away Redis is: who came while it was busy
 * has never seen how far. */
static int64_t wait_time(const struct partition *p)
{
    int64_t trip_us = partition_trip_time(p), usual_us = partition_usual_time(p);

    if (!partition_is_in_crowd(p))
        return trip_us;
    return usual_us < trip_us + WAIT_MOST_US ? usual_us : trip_us + WAIT_MOST_US;
}

/* In a crowd each wants twice what it runs while it waits, and gets its part: so all come to have the same, however little one had. */
static int prefetch_target(const struct partition *p)
{
    double rate = p->worker->pace.rate, waits_s = 2 * (double)wait_time(p) / 1e6;
    double target = fmin(rate * PREFETCH_S, PREFETCH_MOST) + fmin(rate * waits_s, BESIDE_MOST * LEASE_MOST);

    return (int)(partition_is_in_crowd(p) ? fmin(target, part_of_crowd(p)) : target);
}

struct room partition_room(struct partition *p)
{
    struct worker *w = p->worker;
    struct pool_load load = pool_load(w->pool);
    int executors = w->options.executors, most = executors - reserved_of(w);
    int target = prefetch_target(p), prefetched = load.prefetched + coming(p);
    int timed = load.queued - load.prefetched - load.early;
    int idle = at_least(executors - load.running - timed, 0);
    int open = at_least(at_most(most - load.unlimited, idle), 0);
    int beginning = at_most(prefetched, open), excess = prefetched - beginning;
    struct room room = {
        .idle = idle - beginning, .free = idle - beginning, .open = open - beginning, .early = load.early};

    if (alone_keeps_others(p))
        return (struct room){.free = 0};
    if (w->partition_count > 1)
        share_room(p, &room, &target, &excess);
    room.prefetch = target > excess ? at_most(target - excess, LEASE_MOST) : 0;
    if (w->partition_count > 1 && leaves_reserved(p, &room))
        room.free = 0;
    if (executors >= EARLY_LEAST && clock_mono_us() >= w->pace.crowded_us + CROWDED_US)
        room.early_more = at_least(room.free / 2 - load.early, 0);
    room.worth_it = room.open >= (most + 1) / 2 || (target > 0 && excess <= target / 2);
    room.worth_more = room.prefetch >= at_most(at_least(target / 4, BESIDE_LEAST), LEASE_MOST);
    return room;
}

void partition_take_executors(struct partition *p, int executors, int64_t now)
{
    p->capacity.taken = executors;
    p->capacity.taken_us = now;
    p->capacity.hungry &= executors == 0;
}

int partition_release_executors(struct partition *p)
{
    int taken = p->capacity.taken;

    if (p->worker->partition_count > 1 && !is_taken(p, clock_mono_us()))
        taken = at_most(taken, partition_room(p).free);
    p->capacity.taken = 0;
    worker_feed(p->worker);
    return taken;
}

void partition_hunger(struct partition *p, bool hungry)
{
    p->capacity.hungry = hungry;
}

void worker_feed(struct worker *w)
{
    for (int i = 0; w->partition_count > 1 && i < w->partition_count; i++)
        if (w->partitions[i]->capacity.hungry)
            partition_wake(w->partitions[i]);
}

/* ---- Executors that are reserved for jobs with a limit */

static void reserve(struct partition *p, int executors)
{
    p->capacity.reserve = executors;
    pool_reserve(p->worker->pool, reserved_of(p->worker));
}

void partition_reserve_none(struct partition *p)
{
    reserve(p, 0);
}

/* Prefetched jobs take each executor as it becomes free. When a job with a limit found none idle, some are
 * kept from them: up to half, and of one every other turn. Once a second they become as few as were used; none
 * while all jobs have limits, unless Redis is far away: a worker that keeps some claims when gates open, beside the
 * one on duty, and that one alone would not keep a high rate. */
void partition_adapt_reserve(struct partition *p, bool starved, int64_t now)
{
    struct pool_load load = pool_load(p->worker->pool);

    p->capacity.reserve_used = at_least(
        p->capacity.reserve_used, load.running - load.unlimited + load.queued - load.prefetched - load.early);
    if (load.unlimited + load.prefetched > 0)
        p->capacity.unlimited_us = now;
    if (now - p->capacity.unlimited_us > RESERVE_US && partition_trip_time(p) == 0) {
        reserve(p, 0);
        return;
    }
    if (p->worker->options.executors == 1) {
        reserve(p, starved && !p->capacity.reserve);
    } else if (starved) {
        if (p->capacity.reserve == 0)
            p->capacity.reserve_us = now;
        reserve(p, at_most(at_least(2 * p->capacity.reserve, 1), p->worker->options.executors / 2));
    } else if (now - p->capacity.reserve_us > RESERVE_US) {
        reserve(p, at_most(p->capacity.reserve, p->capacity.reserve_used));
        p->capacity.reserve_used = 0;
        p->capacity.reserve_us = now;
    }
}

void worker_draw_near(struct worker *w)
{
    struct task_list crowded;
    int64_t now = clock_mono_us();

    task_list_init(&crowded);
    begin_near(w, pool_draw_near(w->pool, now, &crowded));
    if (!crowded.head)
        return;
    w->pace.crowded_us = now;
    for (const struct task *task = crowded.head; task; task = task->next)
        partition_claim_soon(task->conditions->partition, false);
    tasks_give_back(&crowded);
}

void partition_recall(struct partition *p)
{
    struct task_list early;

    task_list_init(&early);
    pool_recall(p->worker->pool, &p->conditions, NULL, &early);
    tasks_give_back(&early);
    partition_claim_soon(p, false);
}

bool worker_rests(const struct worker *w)
{
    return w->resting == w->handlers.count;
}

bool partition_has_room(struct partition *p)
{
    return partition_takes_jobs(p) && !worker_rests(p->worker) && partition_room(p).idle > 0;
}

/* The longest of the round trips to its partitions; 0: they are near. */
static int64_t longest_trip(const struct worker *w)
{
    int64_t most_us = 0;

    for (int i = 0; i < w->partition_count; i++)
        if (partition_trip_time(w->partitions[i]) > most_us)
            most_us = partition_trip_time(w->partitions[i]);
    return most_us;
}

static int64_t longest_wait(const struct worker *w)
{
    int64_t most_us = 0;

    for (int i = 0; i < w->partition_count; i++)
        if (wait_time(w->partitions[i]) > most_us)
            most_us = wait_time(w->partitions[i]);
    return most_us;
}

void worker_measure_rate(struct worker *w, int64_t now)
{
    struct pace *pace = &w->pace;
    double seconds = (double)(now - pace->rate_us) / 1e6, ended;
    double over_s = PREFETCH_S + (double)longest_wait(w) / 1e6;

    if (seconds < 0.0002)
        return;
    ended = (double)(w->ended - pace->ended);
    pace->rate += seconds / (seconds + over_s) * (ended / seconds - pace->rate);
    pace->rate_us = now;
    pace->ended = w->ended;
}

void worker_give_back_stuck(struct worker *w, int64_t now)
{
    struct pace *pace = &w->pace;
    struct task_list stuck;

    if (now < worker_stuck_time(w))
        return;
    task_list_init(&stuck);
    pool_withdraw(w->pool, &stuck);
    tasks_give_back(&stuck);
    pace->rate = 0;
    pace->stuck_us = now;
}

int64_t worker_stuck_time(struct worker *w)
{
    int64_t oldest_us = pool_load(w->pool).oldest_us;

    if (!oldest_us)
        return NEVER;
    if (oldest_us < w->pace.stuck_us)
        oldest_us = w->pace.stuck_us;
    return oldest_us + STUCK_US + 3 * longest_trip(w);
}
