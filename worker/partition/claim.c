/* Claiming: when a turn asks for jobs, and what the answer to a claim means. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "throttle/gate.h"
#include "worker/partition/partition.h"

/* With more to take than executors: how long to wait for half of them to be free. */
#define HUNGRY_US (MS / 2)
#define POLL_LEAST_US (100 * MS) /* a worker on duty, or its second, does not poll more often */
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
static int64_t slot_life(struct partition *p)
{
    int64_t two_trips = 2 * distance_trip(&p->requests.distance);

    return two_trips > LATE_US ? two_trips : LATE_US;
}

struct cause_run {
    enum record_cause cause;
    long left;
};

/* What let the next lease start: of "Q3A10", a letter and how many. */
static enum record_cause next_cause(struct span *causes, struct cause_run *run)
{
    while (run->left == 0 && causes->len > 0) {
        char *end;

        run->cause = record_cause_of(*causes->at);
        run->left = strtol(causes->at + 1, &end, 10); /* the reply ends with a NUL */
        causes->len -= (size_t)(end - causes->at);
        causes->at = end;
    }
    run->left -= run->left > 0;
    return run->cause;
}

/* The tasks of a claim, in its order. */
static int make_tasks(struct partition *p, const struct claim *claim, int64_t offset_us,
                      struct task_list *tasks)
{
    struct handler *handler = NULL;
    struct span type = {"", 0}, limits = {"", 0}, causes = claim->causes;
    struct cause_run run = {CAUSE_EXECUTOR, 0};
    bool early = false;

    for (size_t i = 0; i < claim->lease_count; i++) {
        const struct lease *lease = &claim->leases[i];
        struct task *task;

        if (!same(lease->type, type)) {
            type = lease->type;
            handler = handlers_find(&p->worker->handlers, type);
            if (p->conditions.trace)
                limits = limits_of(claim, type);
        }
        if (!(task = task_new(lease, handler, &p->conditions, limits)))
            return -1;
        if (lease->slot_us > claim->now_us)
            task->start_us = lease->slot_us + offset_us;
        if (lease->slot_us) {
            task->ahead_us = lease->slot_us > claim->now_us ? lease->slot_us - claim->now_us : 0;
            task->good_us = slot_life(p);
            task->late_us = lease->slot_us + offset_us + task->good_us;
        }
        task->cause = next_cause(&causes, &run);
        task->early = task->ahead_us > p->claims.early_us;
        early |= task->early;
        task_leased(task);
        p->claims.body_bytes += 0.01 * ((double)lease->body.len - p->claims.body_bytes);
        task_list_push(tasks, task);
    }
    if (early)
        waking_listen(p->waking);
    return 0;
}

/* Each name once; not of types of our own, which only rest. */
static void log_waiting(struct partition *p)
{
    for (size_t i = 0; i < p->claims.last.held_count; i++)
        if (!handlers_find(&p->worker->handlers, p->claims.last.held[i]))
            log_once(&p->worker->logged, LOG_LEVEL_WARN,
                     "jobs of type %.*s wait for a worker that has a handler for it",
                     (int)p->claims.last.held[i].len, p->claims.last.held[i].at);
    for (size_t i = 0; i < p->claims.last.broken_count; i++)
        log_once(&p->worker->logged, LOG_LEVEL_WARN,
                 "limit %.*s has a rule that cannot be read: its jobs wait; set it with weir rate set",
                 (int)p->claims.last.broken[i].len, p->claims.last.broken[i].at);
    for (size_t i = 0; i < p->claims.last.fault_count; i++)
        log_once(&p->worker->logged, LOG_LEVEL_WARN,
                 "%.*s: what needs it stands still; run weir doctor --repair",
                 (int)p->claims.last.faults[i].len, p->claims.last.faults[i].at);
}

/* What a claim says holds for the queues that it named. Off duty, when something is due is for another; who
 * takes the duty claims from all, if that claim has not done so. */
static void hear_wide(struct partition *p, int64_t now)
{
    bool on_duty = p->claims.last.duty_until_us != 0, is_wide = p->worker->options.wide;
    int64_t offset_us = distance_offset(&p->requests.distance) - partition_lead_time(p);

    wide_hear(p->wide, &(struct wide_answer){&p->claims.last, p->claims.free, on_duty, p->claims.next_us,
                                             offset_us, now});
    if (is_wide && on_duty && !p->claims.duty_until_redis_us) {
        wide_claim_all(p->wide);
        wide_hold_all(p->wide);
    }
    if (is_wide || on_duty)
        p->claims.more = wide_due(p->wide) <= now;
    if (on_duty)
        p->claims.next_us = wide_due(p->wide) < NEVER ? wide_due(p->wide) : 0;
}

/* The answer came so late that others have got the executors: that many stay, of those with a slot, or of all. */
static void give_back_beyond(int executors, bool all, struct task_list *tasks)
{
    struct task_list kept, back;
    struct task *task;

    task_list_init(&kept);
    task_list_init(&back);
    while ((task = task_list_pop(tasks)))
        task_list_push((all || (task->slot_us && !task->early)) && executors-- <= 0 ? &back : &kept, task);
    task_list_append(tasks, &kept);
    tasks_give_back(&back);
}

void partition_take_jobs(struct partition *p, int asked, struct task_list *tasks)
{
    int unlimited = 0;

    task_list_init(tasks);
    partition_count_claim(p, &p->claims.last);
    if (make_tasks(p, &p->claims.last, distance_offset(&p->requests.distance), tasks) != 0)
        link_drop(p->link, "out of memory"); /* the next adopt hands back what did not fit */
    for (const struct task *task = tasks->head; task; task = task->next)
        unlimited += task->slot_us == 0;
    p->claims.plenty = p->claims.last.more && unlimited >= asked / 2;
    if (tasks->head)
        p->claims.few_us = p->claims.last.brief ? clock_mono_us() : 0;
}

/* On its way out, or back from an absence that cost it its leases, it can run nothing. */
static bool may_begin(const struct partition *p)
{
    return !p->worker->stop.since_us && !p->leaving && p->session.registered &&
           !lease_is_over(&p->conditions);
}

void partition_run_jobs(struct partition *p, int executors, bool all, struct task_list *tasks)
{
    if (may_begin(p))
        give_back_beyond(executors, all, tasks);
    else
        tasks_give_back(tasks);
    if (tasks->head)
        pool_add(p->worker->pool, tasks);
}

void partition_hear_claim(struct partition *p, int asked, struct task_list *tasks)
{
    partition_take_jobs(p, asked, tasks);
    partition_carry(p, p->claims.last.away);
    p->claims.more = p->claims.last.more;
    p->claims.next_us = partition_local_time(p, p->claims.last.next_us);
    if (p->claims.next_us)
        p->claims.next_us -= partition_lead_time(p);
    log_waiting(p);
}

/* One of several partitions has asked for jobs ahead, as the others have all executors, and there are only such as cannot wait
 * here. */
static bool needs_executors(const struct partition *p)
{
    return p->worker->partition_count > 1 && p->claims.free < 1 && p->claims.last.more &&
           p->claims.last.lease_count == 0;
}

static void on_claimed(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    int64_t now = clock_mono_us();
    int executors = partition_release_executors(p), asked = p->claims.coming;
    struct task_list tasks;
    struct error e;
    bool fits;

    p->claims.coming = 0;
    p->claims.plenty = false;
    if (!reply) {
        partition_reserve_none(p);
        partition_answered(p); /* what it leased under this id is handed back when the next id is adopted */
        return;
    }
    if (claim_reply(reply, &p->claims.last, &e) != 0) {
        partition_reserve_none(p);
        wide_hold_all(p->wide);
        partition_refused(p, &e);
        partition_answered(p);
        return;
    }
    partition_hear_due(p, p->claims.last.now_us, p->claims.last.later_us);
    partition_hear_claim(p, asked, &tasks);
    partition_accepted(p);
    p->claims.starved = p->claims.last.starved || needs_executors(p);
    fits = alone_hear(p, &p->claims.last, tasks.head, now);
    if (p->wide)
        hear_wide(p, now);
    p->claims.more_us = p->claims.more ? now : 0;
    if (p->claims.last.lease_count > 0 || p->claims.last.duty_until_us > p->claims.duty_until_redis_us)
        partition_seen(p, p->claims.last.now_us);
    p->claims.duty_until_redis_us = p->claims.last.duty_until_us;
    p->claims.duty_until_us = partition_local_time(p, p->claims.last.duty_until_us);
    p->claims.second_us = partition_local_time(p, p->claims.last.look_us);
    waking_pause(p->waking, p->claims.last.paused, p->claims.last.paused_count);
    if (!fits)
        tasks_give_back(&tasks);
    partition_run_jobs(p, executors, false, &tasks);
    partition_adapt_reserve(p, p->claims.starved, now);
    partition_wake(p); /* tasks of the loop can begin */
    partition_answered(p);
}

/* The answer to a claim that settles. */
static void on_turned(void *arg, const struct redisReply *reply)
{
    struct turn_replies replies = turn_replies(reply);

    partition_hear_settled(arg, replies.settle);
    on_claimed(arg, replies.claim);
}

/* ---- The question */

void partition_free_claims(struct partition *p)
{
    claim_free(&p->claims.last);
}

struct names partition_queues(const struct partition *p)
{
    const struct options *o = &p->worker->options;

    return (struct names){(const char *const *)o->queues, o->wide ? 0 : o->queue_count};
}

void partition_lose_duty(struct partition *p)
{
    p->claims.duty_until_us = p->claims.duty_until_redis_us = p->claims.second_us = 0;
    p->claims.stands = false;
}

/* The types whose jobs may not come now. */
static struct names resting_types(struct partition *p)
{
    struct names types = {p->worker->handlers.resting, 0};

    for (int i = 0; p->worker->resting > types.count && i < p->worker->handlers.count; i++)
        if (handler_rests(&p->worker->handlers.at[i]))
            p->worker->handlers.resting[types.count++] = p->worker->handlers.types[i];
    return types;
}

void partition_pass_duty(struct partition *p)
{
    if (!p->claims.duty_until_us)
        return;
    p->claims.passes = true;
    partition_claim_soon(p, false);
}

void partition_serve_again(struct partition *p)
{
    wide_claim_all(p->wide);
    partition_claim_soon(p, true);
}

/* How far ahead slots may be granted, and to how many jobs farther than to a near worker; the other executors are
 * for who needs no slot. At least until the claim after this one can be there. A worker on duty, with executors to
 * spare, takes more slots at once, which saves claims: jobs that wait longer than others would are early. */
static void look_ahead(struct partition *p, struct room room, struct claim_call *call)
{
    int64_t lead_us = partition_lead_time(p), ahead_us = GATE_AHEAD_US + lead_us;

    call->ahead_us = ahead_us < GATE_AHEAD_MOST_US ? ahead_us : GATE_AHEAD_MOST_US;
    call->far = at_least(room.free - at_least(p->worker->options.executors / 4, 1) - room.early, 0);
    call->early = p->claims.duty_until_us && lead_us <= EARLY_LEAD_US && room.early_more > 0;
    p->claims.early_us = call->early ? ahead_us : INT64_MAX;
    if (!call->early)
        return;
    call->ahead_us = EARLY_US;
    if (lead_us == 0 || call->far < room.early_more)
        call->far = room.early_more;
}

static int64_t unwatched_time(const struct partition *p)
{
    int queues = wide_count(p->wide);

    return queues > UNWATCHED ? UNWATCHED_US * queues / UNWATCHED : UNWATCHED_US;
}

/* A worker that is to run a job alone stays with the queues in which that was found. */
static void pick_queues(struct partition *p, struct claim_call *call, int64_t now)
{
    int64_t stale_us =
        now - (p->claims.duty_until_us ? unwatched_time(p) * 7 / 8 : partition_poll_wait(p) / 2);

    call->wide = p->worker->options.wide;
    call->told = true;
    if (call->held)
        wide_hold_all(p->wide);
    if (!call->wide && !p->claims.duty_until_us)
        wide_claim_all(p->wide); /* nobody tells it what is due */
    if (p->worker->options.weighted)
        wide_draw(p->wide, p->worker->options.weights, &p->random);
    if (!call->wide || !p->alone.on) {
        wide_pick(p->wide, now, stale_us);
        call->asked = wide_asked(p->wide);
    }
    call->queues = wide_picked(p->wide);
    call->held = wide_take_held(p->wide);
}

/* So many bodies are read at first for that many jobs: few where they are large. */
int partition_chunk(const struct partition *p, int jobs)
{
    int most = (int)fmax(1, fmin(1000, READ_BYTES / fmax(64, p->claims.body_bytes)));

    return at_most(at_least(jobs, 16), most);
}

struct claim_call partition_begin_call(struct partition *p, int free, int prefetch, int64_t now)
{
    p->claims.went_us = now;
    return (struct claim_call){.worker = p->session.id,
                               .group = p->adoption.group,
                               .turn = ++p->claims.turn,
                               .free = free,
                               .prefetch = prefetch,
                               .chunk = partition_chunk(p, free + prefetch),
                               .ahead_us = GATE_AHEAD_US,
                               .queues = partition_queues(p),
                               .digest = p->session.types_digest,
                               .types = resting_types(p)};
}

void partition_claim(struct partition *p, struct args *a, struct room room, int64_t now)
{
    struct claim_call call;
    struct span done[ALONG_MOST];

    if (p->claims.passes)
        room = (struct room){.free = 0}; /* who has no executor free passes the duty on */
    p->claims.passes = false;
    call = partition_begin_call(p, room.free, room.prefetch, now);
    call.duty_until_us = p->claims.duty_until_redis_us;
    call.reserved = room.free > 0 && room.open == 0;
    call.held = partition_take_claim_reasons(p);
    call.mark = now - p->claims.mark_us >= MARK_US;
    call.alone = alone_is_wanted(p, now);
    call.parked = p->claims.next_us != 0;
    call.elsewhere = alone_is_elsewhere(p);
    call.unknown_dead = p->worker->options.unknown_dead && call.types.count == 0;
    if (p->wide)
        pick_queues(p, &call, now);
    look_ahead(p, room, &call);
    p->claims.lacked =
        p->claims.more || p->claims.starved || (int)p->claims.last.lease_count >= p->claims.free;
    p->claims.free = room.free;
    p->claims.coming = room.prefetch;
    partition_take_executors(p, room.free, now);
    if (call.mark)
        p->claims.mark_us = now;
    p->claims.sent_us = now;
    partition_polls(p);
    p->claims.more = p->claims.starved = false;
    if (partition_may_settle_along(p))
        partition_settle_along(p, &call, done);
    claim_request(a, p->prefix, -1, &call);
    partition_send(p, a, call.done_count > 0 ? on_turned : on_claimed);
}

/* Jobs come one by one, as far as the last answer shows. If not, it wakes once for nothing. */
bool partition_claims_all(const struct partition *p)
{
    return p->claims.duty_until_us && !p->claims.lacked && p->claims.last.lease_count <= CLAIM_FEW;
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When to claim without a reason: on duty, to renew it in time. */
static int64_t poll_time(const struct partition *p)
{
    int64_t most_us = latest(p->claims.sent_us, p->claims.others_us) + partition_poll_wait(p);
    int64_t at = p->claims.duty_until_us
                     ? p->claims.sent_us + (p->claims.duty_until_us - p->claims.sent_us) / 2
                 : p->claims.second_us ? p->claims.second_us
                                       : NEVER;

    at = latest(at, p->claims.sent_us + POLL_LEAST_US);
    return at < most_us ? at : most_us;
}

int64_t partition_want_time(struct partition *p, struct room room)
{
    bool on_duty = p->claims.duty_until_us != 0;
    int64_t at = poll_time(p);

    if (!partition_takes_jobs(p) || (worker_rests(p->worker) && !p->claims.passes))
        return NEVER;
    if (p->alone.on)
        return alone_claim_time(p);
    if (p->reasons.claim || (p->claims.starved && room.free > 0))
        return 0;
    if (p->claims.more && (room.worth_it || room.open > 0))
        return room.worth_it ? 0 : p->claims.more_us + HUNGRY_US;
    if ((on_duty || p->capacity.reserve > 0) && p->claims.next_us && p->claims.next_us < at)
        at = p->claims.next_us;
    if (on_duty && p->due.at_us && p->due.at_us < at)
        at = p->due.at_us;
    if (p->worker->partition_count > 1 && room.idle < 1 && p->claims.sent_us + UNWATCHED_US < at)
        at = p->claims.sent_us +
             UNWATCHED_US; /* other partitions have all executors, and here nobody watches */
    if (on_duty && p->worker->options.wide && wide_oldest(p->wide) < at - unwatched_time(p))
        at = wide_oldest(p->wide) + unwatched_time(p);
    return at;
}

int64_t partition_claim_time(struct partition *p, struct room room)
{
    bool waits = p->claims.starved && p->worker->partition_count > 1; /* for its share of the executors */

    return room.free + (waits ? 0 : room.prefetch) < 1 ? NEVER : partition_want_time(p, room);
}

bool partition_only_polls(struct partition *p, struct room room)
{
    return !p->worker->options.wide && partition_is_off_duty(p) &&
           partition_claim_time(p, room) >= poll_time(p);
}

/* They promote what is due, too. */
void partition_leave_to_others(struct partition *p, int64_t redis_us)
{
    if (p->worker->options.wide || !partition_is_off_duty(p))
        return;
    p->claims.others_us = clock_mono_us();
    partition_polls(p);
    partition_hear_due(p, redis_us, -1);
}
