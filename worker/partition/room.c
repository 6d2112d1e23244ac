/* Room: how many jobs a claim may bring. Executors that are idle; some of them reserved for jobs with a limit;
 * and jobs without one that are prefetched, as many as end here in some milliseconds. */
#include <math.h>

#include "core/clock.h"
#include "worker/partition/partition.h"

#define STUCK_US (250 * MS)    /* prefetched jobs that no executor got to in that time are given back */
#define RESERVE_US (1000 * MS) /* executors that are not used stay reserved for that long */
/* Jobs without a limit are leased for that long in advance at the rate they end here. */
#define PREFETCH_S 0.008
#define PREFETCH_MOST 1000 /* two budgets of a claim: one runs while the next is under way */
#define LEASE_MOST 500     /* in one claim: its budget */
/* Early jobs: fewer executors have none, and for so long after one found no executor there are none. */
#define EARLY_LEAST 8
#define CROWDED_US (1000 * MS)

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

struct room partition_room(struct partition *p)
{
    struct pool_load load = pool_load(p->worker->pool);
    int target = (int)fmin(p->capacity.rate * PREFETCH_S, PREFETCH_MOST);
    int timed = load.queued - load.prefetched - load.early;
    int idle = at_least(p->worker->options.executors - load.running - timed, 0);
    int open =
        at_least(at_most(p->worker->options.executors - p->capacity.reserve - load.unlimited, idle), 0);
    int beginning = at_most(load.prefetched, open), excess = load.prefetched - beginning;
    struct room room = {.free = idle - beginning,
                        .open = open - beginning,
                        .early = load.early,
                        .prefetch = target > excess ? at_most(target - excess, LEASE_MOST) : 0};

    if (alone_keeps_others(p))
        return (struct room){.free = 0};
    if (p->worker->options.executors >= EARLY_LEAST && clock_mono_us() >= p->capacity.crowded_us + CROWDED_US)
        room.early_more = at_least(room.free / 2 - load.early, 0);
    room.worth_it = room.open >= (p->worker->options.executors - p->capacity.reserve + 1) / 2 ||
                    (target > 0 && excess <= target / 2);
    return room;
}

static void reserve(struct partition *p, int executors)
{
    p->capacity.reserve = executors;
    pool_reserve(p->worker->pool, executors);
}

void partition_reserve_none(struct partition *p)
{
    reserve(p, 0);
}

/* Prefetched jobs take each executor as it becomes free. When a job with a limit found none idle, some are
 * kept from them: up to half, and of one every other turn. Once a second they become as few as were used. */
void partition_adapt_reserve(struct partition *p, bool starved, int64_t now)
{
    struct pool_load load = pool_load(p->worker->pool);

    p->capacity.reserve_used = at_least(
        p->capacity.reserve_used, load.running - load.unlimited + load.queued - load.prefetched - load.early);
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

void partition_draw_near(struct partition *p)
{
    struct task_list crowded;
    int64_t now = clock_mono_us();

    task_list_init(&crowded);
    begin_near(p->worker, pool_draw_near(p->worker->pool, now, &crowded));
    if (!crowded.head)
        return;
    p->capacity.crowded_us = now;
    tasks_give_back(&crowded);
    partition_claim_soon(p, false);
}

void partition_recall(struct partition *p)
{
    struct task_list early;

    task_list_init(&early);
    pool_recall(p->worker->pool, &p->conditions, NULL, &early);
    tasks_give_back(&early);
    partition_claim_soon(p, false);
}

bool partition_has_room(struct partition *p)
{
    return partition_takes_jobs(p) && partition_room(p).free > 0;
}

void partition_measure_rate(struct partition *p, int64_t now)
{
    double seconds = (double)(now - p->capacity.rate_us) / 1e6, ended;

    if (seconds < 0.0002)
        return;
    ended = (double)(p->settling.ended - p->capacity.ended);
    p->capacity.rate += seconds / (seconds + PREFETCH_S) * (ended / seconds - p->capacity.rate);
    p->capacity.rate_us = now;
    p->capacity.ended = p->settling.ended;
}

void partition_give_back_stuck(struct partition *p, int64_t now)
{
    struct pool_load load = pool_load(p->worker->pool);
    struct task_list stuck;

    if (load.queued == 0 || load.begun != p->capacity.begun) {
        p->capacity.begun = load.begun;
        p->capacity.stuck_us = now;
        return;
    }
    if (now - p->capacity.stuck_us < STUCK_US)
        return;
    task_list_init(&stuck);
    pool_withdraw(p->worker->pool, &stuck);
    tasks_give_back(&stuck);
    p->capacity.rate = 0;
    p->capacity.stuck_us = now;
}

int64_t partition_stuck_time(struct partition *p)
{
    return pool_load(p->worker->pool).queued > 0 ? p->capacity.stuck_us + STUCK_US : NEVER;
}
