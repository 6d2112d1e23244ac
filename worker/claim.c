/* Claiming: how many jobs there is room for, when to ask for them, and what the answer means. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/random.h"
#include "throttle/gate.h"
#include "worker/worker.h"

/* With more to take than executors: how long to wait for half of them to be free. */
#define HUNGRY_US (MS / 2)
#define POLL_US (1500 * MS)      /* hints may be lost: a worker off duty claims at least that often, */
#define POLL_LEAST_US (100 * MS) /* one on duty, or its second, not more often without a reason */
/* The worker on duty claims so often from a queue that nobody watches; of more than UNWATCHED queues from each
 * less often, so that it costs Redis one to two percent at most. */
#define UNWATCHED_US (400 * MS)
#define UNWATCHED 1000
#define MARK_US (1000 * MS)     /* how often the rates are marked */
#define READ_BYTES (512 * 1024) /* of bodies, in one claim */
#define LATE_US (50 * MS)       /* a slot is good for that long, or for two round trips */
#define EARLY_US (50 * MS)      /* how far ahead slots are granted to early jobs, */
#define EARLY_LEAD_US                                                                                        \
    (5 * MS / 2) /* by a worker that is no farther away: one that goes back finds another in time */

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static int at_least(int n, int least)
{
    return n > least ? n : least;
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

/* A job that begins later than that after its slot would begin among those of later slots. */
static int64_t slot_life(struct weir_worker *w)
{
    int64_t two_trips = 2 * distance_trip(&w->requests.distance);

    return two_trips > LATE_US ? two_trips : LATE_US;
}

/* The tasks of a claim, in its order. */
static int make_tasks(struct weir_worker *w, const struct claim *claim, int64_t offset_us,
                      struct task_list *tasks)
{
    struct handler *handler = NULL;
    struct span type = {"", 0}, limits = {"", 0};
    bool early = false;

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
        task->early = task->ahead_us > w->claims.early_us;
        early |= task->early;
        worker_leased(w, task);
        w->claims.body_bytes += 0.01 * ((double)lease->body.len - w->claims.body_bytes);
        task_list_push(tasks, task);
    }
    if (early)
        waking_listen(w->waking);
    return 0;
}

/* Each name once; not of types of our own, which only rest. */
static void log_waiting(struct weir_worker *w)
{
    for (size_t i = 0; i < w->claims.last.held_count; i++)
        if (!handlers_find(&w->handlers, w->claims.last.held[i]))
            log_once(&w->logged, LOG_LEVEL_WARN,
                     "jobs of type %.*s wait for a worker that has a handler for it",
                     (int)w->claims.last.held[i].len, w->claims.last.held[i].at);
    for (size_t i = 0; i < w->claims.last.broken_count; i++)
        log_once(&w->logged, LOG_LEVEL_WARN,
                 "limit %.*s has a rule that cannot be read: its jobs wait; set it with weir rate set",
                 (int)w->claims.last.broken[i].len, w->claims.last.broken[i].at);
    for (size_t i = 0; i < w->claims.last.fault_count; i++)
        log_once(&w->logged, LOG_LEVEL_WARN, "%.*s: what needs it stands still; run weir doctor --repair",
                 (int)w->claims.last.faults[i].len, w->claims.last.faults[i].at);
}

/* What a claim says holds for the queues that it named. Off duty, when something is due is for another; who
 * takes the duty claims from all. */
static void hear_wide(struct weir_worker *w, int64_t now)
{
    bool on_duty = w->claims.last.duty_until_us != 0;

    wide_hear(w->wide,
              &(struct wide_answer){&w->claims.last, w->claims.free, on_duty ? w->claims.next_us : 0, now});
    if (on_duty && !w->claims.duty_until_redis_us) {
        wide_claim_all(w->wide);
        wide_hold_all(w->wide);
    }
    w->claims.more = wide_due(w->wide) <= now;
    if (on_duty)
        w->claims.next_us = wide_due(w->wide) < NEVER ? wide_due(w->wide) : 0;
}

static void on_claimed(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    int64_t offset_us, now = clock_mono_us();
    struct task_list tasks;
    struct error e;

    task_list_init(&tasks);
    if (!reply) {
        worker_reserve_none(w);
        worker_answered(w); /* what it leased under this id is handed back when the next id is adopted */
        return;
    }
    if (claim_reply(reply, &w->claims.last, &e) != 0) {
        worker_reserve_none(w);
        wide_hold_all(w->wide);
        worker_refused(w, &e);
        worker_answered(w);
        return;
    }
    worker_hear_due(w, w->claims.last.now_us, w->claims.last.later_us);
    offset_us = distance_offset(&w->requests.distance);
    if (make_tasks(w, &w->claims.last, offset_us, &tasks) != 0)
        link_drop(w->link, "out of memory"); /* the next adopt hands back what did not fit */
    worker_accepted(w);
    w->claims.more = w->claims.last.more;
    w->claims.starved = w->claims.last.starved;
    alone_hear(w, &w->claims.last, now);
    w->claims.next_us = worker_local_time(w, w->claims.last.next_us);
    if (w->claims.next_us)
        w->claims.next_us -= worker_lead_time(w);
    if (w->wide)
        hear_wide(w, now);
    w->claims.more_us = w->claims.more ? now : 0;
    if (w->claims.last.lease_count > 0 || w->claims.last.duty_until_us > w->claims.duty_until_redis_us)
        worker_seen(w, w->claims.last.now_us);
    w->claims.duty_until_redis_us = w->claims.last.duty_until_us;
    w->claims.duty_until_us = worker_local_time(w, w->claims.last.duty_until_us);
    w->claims.second_us = worker_local_time(w, w->claims.last.look_us);
    waking_pause(w->waking, w->claims.last.paused, w->claims.last.paused_count);
    log_waiting(w);
    if (w->stop.since_us || w->stop.leaving || !w->session.registered || lease_is_over(&w->conditions))
        worker_give_back(w, &tasks); /* on its way out, or back from an absence that cost it its leases */
    else if (tasks.head)
        pool_add(w->pool, &tasks);
    worker_adapt_reserve(w, w->claims.starved, now);
    worker_wake(w); /* tasks of the loop can begin */
    worker_answered(w);
}

/* ---- The question */

void worker_open_claims(struct weir_worker *w)
{
    for (int i = 0; !w->wide && i < w->options.queue_count; i++) {
        w->claims.queues[i] = w->options.queues[i];
        w->claims.weights[i] = w->options.weights[i];
    }
}

void worker_free_claims(struct weir_worker *w)
{
    claim_free(&w->claims.last);
}

struct names worker_queues(const struct weir_worker *w)
{
    return (struct names){(const char *const *)w->claims.queues, w->wide ? 0 : w->options.queue_count};
}

/* Queues by weight: at each turn another order, in which a queue comes first as often as its weight says. */
static void shuffle_queues(struct weir_worker *w)
{
    for (int first = 0; first < w->options.queue_count - 1; first++) {
        int sum = 0, at = first;

        for (int i = first; i < w->options.queue_count; i++)
            sum += w->claims.weights[i];
        for (double draw = random_fraction() * sum;
             at < w->options.queue_count - 1 && (draw -= w->claims.weights[at]) >= 0;)
            at++;
        const char *name = w->claims.queues[at];
        int weight = w->claims.weights[at];

        w->claims.queues[at] = w->claims.queues[first];
        w->claims.weights[at] = w->claims.weights[first];
        w->claims.queues[first] = name;
        w->claims.weights[first] = weight;
    }
}

void worker_lose_duty(struct weir_worker *w)
{
    w->claims.duty_until_us = w->claims.duty_until_redis_us = w->claims.second_us = 0;
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

/* How far ahead slots may be granted, and to how many jobs farther than to a near worker; the other executors are
 * for who needs no slot. At least until the claim after this one can be there. A worker on duty, with executors to
 * spare, takes more slots at once, which saves claims: jobs that wait longer than others would are early. */
static void look_ahead(struct weir_worker *w, struct room room, struct claim_call *call)
{
    int64_t lead_us = worker_lead_time(w), ahead_us = GATE_AHEAD_US + lead_us;

    call->ahead_us = ahead_us < GATE_AHEAD_MOST_US ? ahead_us : GATE_AHEAD_MOST_US;
    call->far = at_least(room.free - at_least(w->options.executors / 4, 1) - room.early, 0);
    call->early = w->claims.duty_until_us && lead_us <= EARLY_LEAD_US && room.early_more > 0;
    w->claims.early_us = call->early ? ahead_us : INT64_MAX;
    if (!call->early)
        return;
    call->ahead_us = EARLY_US;
    if (lead_us == 0 || call->far < room.early_more)
        call->far = room.early_more;
}

static int64_t unwatched_time(const struct weir_worker *w)
{
    int queues = wide_count(w->wide);

    return queues > UNWATCHED ? UNWATCHED_US * queues / UNWATCHED : UNWATCHED_US;
}

/* A worker that is to run a job alone stays with the queues in which that was found. */
static void pick_queues(struct weir_worker *w, struct claim_call *call, int64_t now)
{
    int64_t stale_us = now - (w->claims.duty_until_us ? unwatched_time(w) : POLL_US) / 2;

    if (call->held)
        wide_hold_all(w->wide);
    call->wide = true;
    call->queues = w->alone.on ? wide_picked(w->wide) : wide_pick(w->wide, now, stale_us);
    call->held = wide_take_held(w->wide);
}

void worker_claim(struct weir_worker *w, struct args *a, struct room room, int64_t now)
{
    int most = (int)fmax(1, fmin(1000, READ_BYTES / fmax(64, w->claims.body_bytes)));
    int wanted = room.free + room.prefetch;
    struct claim_call call = {
        .worker = w->session.id,
        .group = w->adoption.group,
        .turn = ++w->claims.turn,
        .free = room.free,
        .prefetch = room.prefetch,
        .chunk = at_most(at_least(wanted, 16), most),
        .duty_until_us = w->claims.duty_until_redis_us,
        .reserved = room.free > 0 && room.open == 0,
        .held = worker_take_claim_reasons(w),
        .mark = now - w->claims.mark_us >= MARK_US,
        .alone = alone_is_wanted(w, now),
    };

    if (w->options.weighted)
        shuffle_queues(w);
    if (w->wide)
        pick_queues(w, &call, now);
    else
        call.queues = worker_queues(w);
    look_ahead(w, room, &call);
    w->claims.free = room.free;
    call.types = awake_types(w);
    call.unknown_dead = w->options.unknown_dead && call.types.count == w->handlers.count;
    if (call.mark)
        w->claims.mark_us = now;
    w->claims.sent_us = now;
    w->claims.more = w->claims.starved = false;
    claim_request(a, w->options.prefix, -1, &call);
    worker_send(w, a, on_claimed);
}

/* When to claim without a reason: on duty, to renew it in time. */
static int64_t poll_time(const struct weir_worker *w)
{
    int64_t at = w->claims.duty_until_us
                     ? w->claims.sent_us + (w->claims.duty_until_us - w->claims.sent_us) / 2
                 : w->claims.second_us ? w->claims.second_us
                                       : NEVER;

    at = at > w->claims.sent_us + POLL_LEAST_US ? at : w->claims.sent_us + POLL_LEAST_US;
    return at < w->claims.sent_us + POLL_US ? at : w->claims.sent_us + POLL_US;
}

int64_t worker_claim_time(struct weir_worker *w, struct room room)
{
    bool on_duty = w->claims.duty_until_us != 0;
    int64_t at = poll_time(w);

    if (!worker_takes_jobs(w) || room.free + room.prefetch < 1 || awake_types(w).count == 0)
        return NEVER;
    if (w->alone.on)
        return alone_claim_time(w);
    if (w->reasons.claim || (w->claims.starved && room.free > 0))
        return 0;
    if (w->claims.more && (room.worth_it || room.open > 0))
        return room.worth_it ? 0 : w->claims.more_us + HUNGRY_US;
    if ((on_duty || w->capacity.reserve > 0) && w->claims.next_us && w->claims.next_us < at)
        at = w->claims.next_us;
    if (on_duty && w->due.at_us && w->due.at_us < at)
        at = w->due.at_us;
    if (on_duty && w->wide && wide_oldest(w->wide) < at - unwatched_time(w))
        at = wide_oldest(w->wide) + unwatched_time(w);
    return at;
}
