/* Room: how many jobs a claim may bring. Executors that are idle; some of them reserved for jobs with a limit;
 * and jobs without one that are prefetched, as many as end here in some milliseconds. */
#include <math.h>

#include "core/clock.h"
#include "worker/worker.h"

#define STUCK_US (250 * MS)    /* prefetched jobs that no executor got to in that time are given back */
#define RESERVE_US (1000 * MS) /* executors that are not used stay reserved for that long */
/* Jobs without a limit are leased for that long in advance at the rate they end here. */
#define PREFETCH_S 0.008
#define PREFETCH_MOST 1000 /* two budgets of a claim: one runs while the next is under way */
#define LEASE_MOST 500     /* in one claim: its budget */
/* Early jobs: fewer executors have none, and for so long after one found no executor there are none. */
#define EARLY_LEAST 8
#define CROWDED_US (1000 * MS)

bool worker_takes_jobs(const struct weir_worker *w)
{
    return w->session.registered && !w->stop.since_us && !atomic_load(&w->ending.quiet) &&
           w->handlers.count > 0;
}

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static int at_least(int n, int least)
{
    return n > least ? n : least;
}

struct room worker_room(struct weir_worker *w)
{
    struct pool_load load = pool_load(w->pool);
    int target = (int)fmin(w->capacity.rate * PREFETCH_S, PREFETCH_MOST);
    int timed = load.queued - load.prefetched - load.early;
    int idle = at_least(w->options.executors - load.running - timed, 0);
    int open = at_least(at_most(w->options.executors - w->capacity.reserve - load.unlimited, idle), 0);
    int beginning = at_most(load.prefetched, open), excess = load.prefetched - beginning;
    struct room room = {.free = idle - beginning,
                        .open = open - beginning,
                        .early = load.early,
                        .prefetch = target > excess ? at_most(target - excess, LEASE_MOST) : 0};

    if (alone_keeps_others(w))
        return (struct room){.free = 0};
    if (w->options.executors >= EARLY_LEAST && clock_mono_us() >= w->capacity.crowded_us + CROWDED_US)
        room.early_more = at_least(room.free / 2 - load.early, 0);
    room.worth_it = room.open >= (w->options.executors - w->capacity.reserve + 1) / 2 ||
                    (target > 0 && excess <= target / 2);
    return room;
}

static void reserve(struct weir_worker *w, int executors)
{
    w->capacity.reserve = executors;
    pool_reserve(w->pool, executors);
}

void worker_reserve_none(struct weir_worker *w)
{
    reserve(w, 0);
}

/* Prefetched jobs take each executor as it becomes free. When a job with a limit found none idle, some are
 * kept from them: up to half, and of one every other turn. Once a second they become as few as were used. */
void worker_adapt_reserve(struct weir_worker *w, bool starved, int64_t now)
{
    struct pool_load load = pool_load(w->pool);

    w->capacity.reserve_used = at_least(
        w->capacity.reserve_used, load.running - load.unlimited + load.queued - load.prefetched - load.early);
    if (w->options.executors == 1) {
        reserve(w, starved && !w->capacity.reserve);
    } else if (starved) {
        if (w->capacity.reserve == 0)
            w->capacity.reserve_us = now;
        reserve(w, at_most(at_least(2 * w->capacity.reserve, 1), w->options.executors / 2));
    } else if (now - w->capacity.reserve_us > RESERVE_US) {
        reserve(w, at_most(w->capacity.reserve, w->capacity.reserve_used));
        w->capacity.reserve_used = 0;
        w->capacity.reserve_us = now;
    }
}

void worker_draw_near(struct weir_worker *w)
{
    struct task_list crowded;
    int64_t now = clock_mono_us();

    task_list_init(&crowded);
    worker_begin_near(w, pool_draw_near(w->pool, now, &crowded));
    if (!crowded.head)
        return;
    w->capacity.crowded_us = now;
    worker_give_back(w, &crowded);
    worker_claim_soon(w, false);
}

void worker_recall(struct weir_worker *w)
{
    struct task_list early;

    task_list_init(&early);
    pool_recall(w->pool, NULL, &early);
    worker_give_back(w, &early);
    worker_claim_soon(w, false);
}

bool worker_has_room(struct weir_worker *w)
{
    return worker_takes_jobs(w) && worker_room(w).free > 0;
}

void worker_measure_rate(struct weir_worker *w, int64_t now)
{
    double seconds = (double)(now - w->capacity.rate_us) / 1e6, ended;

    if (seconds < 0.0002)
        return;
    ended = (double)(w->settling.ended - w->capacity.ended);
    w->capacity.rate += seconds / (seconds + PREFETCH_S) * (ended / seconds - w->capacity.rate);
    w->capacity.rate_us = now;
    w->capacity.ended = w->settling.ended;
}

void worker_give_back_stuck(struct weir_worker *w, int64_t now)
{
    struct pool_load load = pool_load(w->pool);
    struct task_list stuck;

    if (load.queued == 0 || load.begun != w->capacity.begun) {
        w->capacity.begun = load.begun;
        w->capacity.stuck_us = now;
        return;
    }
    if (now - w->capacity.stuck_us < STUCK_US)
        return;
    task_list_init(&stuck);
    pool_withdraw(w->pool, &stuck, false);
    worker_give_back(w, &stuck);
    w->capacity.rate = 0;
    w->capacity.stuck_us = now;
}

int64_t worker_stuck_time(struct weir_worker *w)
{
    return pool_load(w->pool).queued > 0 ? w->capacity.stuck_us + STUCK_US : NEVER;
}
