/* Claiming: how many jobs there is room for, when to ask for them, and what the answer means. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/random.h"
#include "throttle/gate.h"
#include "worker/worker.h"

/* With more to take than executors: how long to wait for half of them to be free. */
#define HUNGRY_US (MS / 2)
#define POLL_US (1500 * MS)      /* hints may be lost: a worker off duty looks at least that often, */
#define POLL_LEAST_US (100 * MS) /* one on duty, or its second, not more often without a reason */
#define LOOK_US (400 * MS)  /* a queue that nobody watches is looked at that often by the worker on duty */
#define MARK_US (1000 * MS) /* how often the rates are marked */
#define STUCK_US (250 * MS) /* prefetched jobs that no executor got to in that time are given back */
/* Jobs without a limit are leased for that long in advance at the rate they end here. */
#define PREFETCH_S 0.008
#define PREFETCH_MOST 1000      /* two budgets of a claim: one runs while the next is under way */
#define LEASE_MOST 500          /* in one claim: its budget */
#define LOOK_BYTES (512 * 1024) /* what a claim reads */
#define RESERVE_US (1000 * MS)  /* executors that are not used stay reserved for that long */
#define NEAR_US (MS / 2)        /* Redis is as good as here: slots are granted ahead as usual */
#define LATE_US (50 * MS)       /* a slot is good for that long, or for two round trips */
#define TOLD_MOST 1000

/* ---- How much there is room for */

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
    int target = (int)fmin(w->rate * PREFETCH_S, PREFETCH_MOST);
    int idle = at_least(w->executors - load.running - (load.queued - load.prefetched), 0);
    int open = at_least(at_most(w->executors - w->reserve - load.unlimited, idle), 0);
    int beginning = at_most(load.prefetched, open), excess = load.prefetched - beginning;
    struct room room = {.free = idle - beginning,
                        .open = open - beginning,
                        .prefetch = target > excess ? at_most(target - excess, LEASE_MOST) : 0};

    if (alone_keeps_others(w))
        return (struct room){.free = 0};
    room.worth_it = room.open >= (w->executors - w->reserve + 1) / 2 || (target > 0 && excess <= target / 2);
    return room;
}

static void reserve(struct weir_worker *w, int executors)
{
    w->reserve = executors;
    pool_reserve(w->pool, executors);
}

/* Prefetched jobs take each executor as it becomes free. When a job with a limit found none idle, some are
 * kept from them: up to half, and of one every other turn. Once a second they become as few as were used. */
static void adapt_reserve(struct weir_worker *w, bool starved, int64_t now)
{
    struct pool_load load = pool_load(w->pool);

    w->reserve_used =
        at_least(w->reserve_used, load.running - load.unlimited + load.queued - load.prefetched);
    if (w->executors == 1) {
        reserve(w, starved && !w->reserve);
    } else if (starved) {
        if (w->reserve == 0)
            w->reserve_us = now;
        reserve(w, at_most(at_least(2 * w->reserve, 1), w->executors / 2));
    } else if (now - w->reserve_us > RESERVE_US) {
        reserve(w, at_most(w->reserve, w->reserve_used));
        w->reserve_used = 0;
        w->reserve_us = now;
    }
}

bool worker_has_room(struct weir_worker *w)
{
    return worker_takes_jobs(w) && worker_room(w).free > 0;
}

void worker_measure_rate(struct weir_worker *w, int64_t now)
{
    double seconds = (double)(now - w->rate_us) / 1e6;

    if (seconds < 0.0002)
        return;
    w->rate += seconds / (seconds + PREFETCH_S) * ((double)w->ended / seconds - w->rate);
    w->rate_us = now;
    w->ended = 0;
}

void worker_give_back_stuck(struct weir_worker *w, int64_t now)
{
    struct pool_load load = pool_load(w->pool);
    struct task_list stuck;

    if (load.queued == 0 || load.begun != w->begun) {
        w->begun = load.begun;
        w->stuck_us = now;
        return;
    }
    if (now - w->stuck_us < STUCK_US)
        return;
    task_list_init(&stuck);
    pool_withdraw(w->pool, &stuck, false);
    worker_give_back(w, &stuck);
    w->rate = 0;
    w->stuck_us = now;
}

int64_t worker_stuck_time(struct weir_worker *w)
{
    return pool_load(w->pool).queued > 0 ? w->stuck_us + STUCK_US : NEVER;
}

/* ---- The answer */

static bool same(struct span a, struct span b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* The limits of a type, for the trace. */
static struct span limits_of(const struct claim *claim, struct span type)
{
    for (size_t i = 0; i + 1 < claim->limit_count; i += 2)
        if (same(claim->limits[i], type))
            return claim->limits[i + 1];
    return (struct span){"", 0};
}

/* A claim that should be there at a time is sent so long before it: the offset has the way back already. */
int64_t worker_way_there(const struct weir_worker *w)
{
    int64_t trip_us = distance_trip(&w->distance);

    return trip_us > NEAR_US ? trip_us : 0;
}

/* A job that begins later than that after its slot would begin among those of later slots. */
static int64_t slot_life(struct weir_worker *w)
{
    int64_t two_trips = 2 * distance_trip(&w->distance);

    return two_trips > LATE_US ? two_trips : LATE_US;
}

/* The tasks of a claim, in its order. */
static int make_tasks(struct weir_worker *w, const struct claim *claim, int64_t offset_us,
                      struct task_list *tasks)
{
    struct handler *handler = NULL;
    struct span type = {"", 0}, limits = {"", 0};

    for (size_t i = 0; i < claim->lease_count; i++) {
        const struct lease *lease = &claim->leases[i];
        struct task *task;

        if (!same(lease->type, type)) {
            type = lease->type;
            handler = handlers_find(&w->handlers, type);
            if (w->trace)
                limits = limits_of(claim, type);
        }
        if (!(task = task_new(lease, handler, limits)))
            return -1;
        if (lease->slot_us > claim->now_us)
            task->start_us = lease->slot_us + offset_us;
        if (lease->slot_us) {
            task->ahead_us = lease->slot_us > claim->now_us ? lease->slot_us - claim->now_us : 0;
            task->good_us = slot_life(w);
            task->late_us = lease->slot_us + offset_us + task->good_us;
        }
        batches_enter(&w->batches, task);
        w->body_bytes += 0.01 * ((double)lease->body.len - w->body_bytes);
        task_list_push(tasks, task);
    }
    return 0;
}

/* Names come from outside: after too many of them, none is new. */
bool worker_remember(struct weir_worker *w, const char *line)
{
    size_t size = strlen(line) + 1;
    struct told *told;

    for (told = w->told; told; told = told->next)
        if (strcmp(told->line, line) == 0)
            return false;
    if (w->told_count == TOLD_MOST || !(told = malloc(sizeof *told + size)))
        return false;
    memcpy(told->line, line, size);
    told->next = w->told;
    w->told = told;
    w->told_count++;
    return true;
}

static const char no_handler[] = "jobs of type %.*s wait for a worker that has a handler for it";

/* Those that have not been told yet; not of types of our own, which only rest. */
static void tell_once(struct weir_worker *w, const struct span *names, size_t count, const char *what)
{
    char line[512];

    assert(what);
    for (size_t i = 0; i < count; i++) {
        snprintf(line, sizeof line, what, (int)names[i].len, names[i].at);
        if (!(what == no_handler && handlers_find(&w->handlers, names[i])) && worker_remember(w, line))
            log_line(LOG_LEVEL_WARN, "%s", line);
    }
}

/* A time of Redis's clock on our monotonic one; 0: never. */
static int64_t local_time(int64_t redis_us, int64_t offset_us)
{
    return redis_us <= 0 ? 0 : redis_us + offset_us;
}

void worker_hear_later(struct weir_worker *w, int64_t redis_us, int64_t later_us)
{
    int64_t now = clock_mono_us();

    if (distance_hear(&w->distance, w->turn_us, redis_us, now))
        w->tick_us = now; /* a heartbeat follows a clock that was set back */
    w->later_us = local_time(later_us, distance_offset(&w->distance));
    if (w->later_us && w->left_us && w->later_us < w->left_us)
        w->later_us = w->left_us;
    w->later_heard_us = now;
}

/* What a claim says holds for the queues that it named. Off duty, when something is due is for another; who
 * takes the duty looks at all. */
static void hear_wide(struct weir_worker *w, int64_t now)
{
    bool on_duty = w->claim.duty_until_us != 0;

    wide_hear(w->wide, &(struct wide_answer){&w->claim, w->claimed_free, on_duty ? w->next_us : 0, now});
    if (on_duty && !w->duty_until_redis_us) {
        wide_look_at_all(w->wide);
        wide_hold_all(w->wide);
    }
    w->more = wide_due(w->wide) <= now;
    if (on_duty)
        w->next_us = wide_due(w->wide) < NEVER ? wide_due(w->wide) : 0;
}

static void on_claimed(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    int64_t offset_us, now = clock_mono_us();
    struct task_list tasks;
    struct error e;

    task_list_init(&tasks);
    if (!reply) {
        reserve(w, 0);
        worker_answered(w); /* what it leased under this id is handed back when the next id is adopted */
        return;
    }
    if (claim_reply(reply, &w->claim, &e) != 0) {
        reserve(w, 0);
        wide_hold_all(w->wide);
        worker_refused(w, &e);
        worker_answered(w);
        return;
    }
    worker_hear_later(w, w->claim.now_us, w->claim.later_us);
    offset_us = distance_offset(&w->distance);
    if (make_tasks(w, &w->claim, offset_us, &tasks) != 0)
        link_drop(w->link, "out of memory"); /* the next adopt hands back what did not fit */
    w->last_error[0] = '\0';
    w->more = w->claim.more;
    w->starved = w->claim.starved;
    alone_hear(w, &w->claim, now);
    w->next_us = local_time(w->claim.next_us, offset_us - worker_way_there(w));
    if (w->wide)
        hear_wide(w, now);
    w->hungry_us = w->more ? now : 0;
    if (w->claim.lease_count > 0 || w->claim.duty_until_us > w->duty_until_redis_us)
        worker_seen(w, w->claim.now_us);
    w->duty_until_redis_us = w->claim.duty_until_us;
    w->duty_until_us = local_time(w->claim.duty_until_us, offset_us);
    w->second_us = local_time(w->claim.look_us, offset_us);
    waking_pause(w->waking, w->claim.paused, w->claim.paused_count);
    tell_once(w, w->claim.aside, w->claim.aside_count, no_handler);
    tell_once(w, w->claim.broken, w->claim.broken_count,
              "limit %.*s has a rule that cannot be read: its jobs wait; set it with weir rate set");
    tell_once(w, w->claim.faults, w->claim.fault_count,
              "%.*s: what needs it stands still; run weir doctor --repair");
    if (w->stopping_us || w->leaving || !w->adopted || lease_is_over(&w->conditions))
        worker_give_back(w, &tasks); /* on its way out, or back from an absence that cost it its leases */
    else if (tasks.head)
        pool_add(w->pool, &tasks);
    adapt_reserve(w, w->starved, now);
    worker_begin(w);
    worker_answered(w);
}

/* ---- The question */

/* Queues by weight: at each turn another order, in which a queue comes first as often as its weight says. */
static void shuffle_queues(struct weir_worker *w)
{
    for (int first = 0; first < w->queue_count - 1; first++) {
        int sum = 0, at = first;

        for (int i = first; i < w->queue_count; i++)
            sum += w->weights[i];
        for (double draw = random_fraction() * sum; at < w->queue_count - 1 && (draw -= w->weights[at]) >= 0;)
            at++;
        const char *name = w->queues[at];
        int weight = w->weights[at];

        w->queues[at] = w->queues[first];
        w->weights[at] = w->weights[first];
        w->queues[first] = name;
        w->weights[first] = weight;
    }
}

void worker_type_serves(struct weir_worker *w)
{
    w->look_now = w->look_held = true;
    wide_look_at_all(w->wide);
    worker_wake(w);
}

/* The types whose jobs may come now. */
static struct names awake_types(struct weir_worker *w)
{
    struct names types = {w->handlers.awake, 0};

    for (int i = 0; i < w->handlers.count; i++)
        if (!w->handlers.at[i].rests)
            w->handlers.awake[types.count++] = w->handlers.types[i];
    return types;
}

/* How far ahead slots may be granted: until the claim after this one can be there. */
static int64_t ahead(struct weir_worker *w)
{
    int64_t ahead_us = GATE_AHEAD_US + worker_way_there(w);

    return ahead_us < GATE_AHEAD_MOST_US ? ahead_us : GATE_AHEAD_MOST_US;
}

/* A worker that is to run a job alone stays with the queues in which that was found. */
static void pick_queues(struct weir_worker *w, struct claim_call *call, int64_t now)
{
    int64_t stale_us = now - (w->duty_until_us ? LOOK_US : POLL_US) / 2;

    if (w->look_held)
        wide_hold_all(w->wide);
    call->wide = true;
    call->queues = w->alone.on ? wide_picked(w->wide) : wide_pick(w->wide, now, stale_us);
    call->held = wide_take_held(w->wide);
}

void worker_claim(struct weir_worker *w, struct args *a, struct room room, int64_t now)
{
    int most = (int)fmax(1, fmin(1000, LOOK_BYTES / fmax(64, w->body_bytes)));
    int look = room.free + room.prefetch;
    struct claim_call call = {
        .worker = w->id,
        .group = w->group,
        .turn = ++w->turn,
        .free = room.free,
        .prefetch = room.prefetch,
        .look = at_most(at_least(look, 16), most),
        .duty_until_us = w->duty_until_redis_us,
        .ahead_us = ahead(w),
        .far =
            at_least(room.free - at_least(w->executors / 4, 1), 0), /* the others are for who needs no slot */
        .reserved = room.free > 0 && room.open == 0,
        .held = w->look_held,
        .mark = now - w->mark_us >= MARK_US,
        .alone = alone_is_wanted(w, now),
    };

    if (w->weighted)
        shuffle_queues(w);
    if (w->wide)
        pick_queues(w, &call, now);
    else
        call.queues = worker_queues(w);
    w->claimed_free = room.free;
    call.types = awake_types(w);
    call.unknown_dead = w->unknown_dead && call.types.count == w->handlers.count;
    if (call.mark)
        w->mark_us = now;
    w->looked_us = now;
    w->look_now = w->look_held = w->more = w->starved = false;
    claim_request(a, w->prefix, -1, &call);
    worker_send(w, a, on_claimed);
}

/* When to look though nothing calls: on duty, to renew it in time. */
static int64_t poll_time(const struct weir_worker *w)
{
    int64_t at = w->duty_until_us ? w->looked_us + (w->duty_until_us - w->looked_us) / 2
                 : w->second_us   ? w->second_us
                                  : NEVER;

    at = at > w->looked_us + POLL_LEAST_US ? at : w->looked_us + POLL_LEAST_US;
    return at < w->looked_us + POLL_US ? at : w->looked_us + POLL_US;
}

int64_t worker_claim_time(struct weir_worker *w, struct room room)
{
    bool on_duty = w->duty_until_us != 0;
    int64_t at = poll_time(w);

    if (!worker_takes_jobs(w) || room.free + room.prefetch < 1 || awake_types(w).count == 0)
        return NEVER;
    if (w->alone.on)
        return alone_claim_time(w);
    if (w->look_now || (w->starved && room.free > 0))
        return 0;
    if (w->more && (room.worth_it || room.open > 0))
        return room.worth_it ? 0 : w->hungry_us + HUNGRY_US;
    if ((on_duty || w->reserve > 0) && w->next_us && w->next_us < at)
        at = w->next_us;
    if (on_duty && w->later_us && w->later_us < at)
        at = w->later_us;
    if (on_duty && w->wide && wide_oldest(w->wide) < at - LOOK_US)
        at = wide_oldest(w->wide) + LOOK_US;
    return at;
}
