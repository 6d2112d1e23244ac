/* One turn is one round trip: what has ended is settled, what is due is promoted, a heartbeat, and a claim
 * for the executors that are free, all written at once.
 *
 * Where Redis is far away and there is much to do, claims for jobs without a limit go beside the turn.
 *
 * schedule() decides what to do now and sets one timer to the time of its next decision. Only the loop calls
 * it: whoever changes what it decides by leaves a reason (reasons.h). */
#include "core/clock.h"
#include "worker/partition/partition.h"

/* When is the next turn due? */
static int64_t next_turn(struct partition *p, struct room room)
{
    int64_t claim_us = partition_claim_time(p, room);
    int64_t times[] = {claim_us,
                       partition_settle_time(p, claim_us),
                       p->session.next_beat_us,
                       partition_drained_time(p),
                       partition_takes_jobs(p) ? partition_promote_time(p) : NEVER,
                       partition_learn_time(p),
                       alone_time(p),
                       partition_match_time(p)};
    int64_t at = NEVER;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < at)
            at = times[i];
    return at > p->requests.pause_until_us ? at : p->requests.pause_until_us;
}

static bool has_beat(const struct partition *p, int64_t now)
{
    return p->session.next_beat_us <= now + partition_along_time(p);
}

/* Of this turn: does it claim? The next turn waits for this one, so what is due by then is asked for now. A worker that would only poll asks by
 * the heartbeat whether it need do so. */
static bool has_claim(struct partition *p, struct room room, int64_t now)
{
    if (has_beat(p, now) && partition_only_polls(p, room))
        return false;
    return partition_claim_time(p, room) <= now + partition_lead_time(p);
}

static void begin_turn(struct partition *p, struct room room, int64_t now)
{
    bool drained = partition_drained_time(p) <= now;
    bool claims = has_claim(p, room, now) || (drained && room.free > 0);
    struct args a;

    args_init(&a);
    partition_begin_requests(p, now);
    if (!claims || !partition_may_settle_along(p))
        partition_settle(p, &a);
    partition_promote(p, &a, now);
    if (has_beat(p, now)) {
        partition_beat(p, &a, now);
        if (p->worker->options.unknown_dead)
            partition_check_held(p); /* types that no worker runs any more */
        partition_recheck(p, &a, now);
    }
    if (partition_learn_time(p) <= now)
        partition_learn_limits(p, &a);
    if (partition_match_time(p) <= now)
        partition_match(p, &a);
    if (claims) {
        partition_claim(p, &a, room, now);
        if (drained)
            partition_ask_drained(p, &a);
        if (partition_claims_all(p))
            waking_wait(p->waking, true);
    }
    partition_record(p, &a, now, false);
    args_free(&a);
    if (p->requests.awaited == 0)
        partition_wake(p); /* all that had ended was lost with its lease: nothing was sent */
}

static void set_timer(struct partition *p, int64_t at, int64_t now)
{
    ev_now_update(p->worker->loop);
    ev_timer_stop(p->worker->loop, &p->timer);
    ev_timer_set(&p->timer, at > now ? (double)(at - now) / 1e6 : 0, 0);
    ev_timer_start(p->worker->loop, &p->timer);
}

/* The executors are other partitions': it has the next ones that are its share. *at: when it wants some, at the latest. */
static void hunger(struct partition *p, struct room room, int64_t now, int64_t *at)
{
    int64_t want = room.free < 1 ? partition_want_time(p, room) : NEVER;
    bool wants_more = partition_takes_jobs(p) && (p->claims.more || p->claims.starved);

    partition_hunger(p, wants_more || want <= now);
    if (want > now && want < *at)
        *at = want;
}

/* Does the next turn wait for what went beside the last one? Its answers are of an id, or a state, that ends. */
static bool must_be_alone(const struct partition *p)
{
    return !p->session.registered || p->limits.old || p->worker->stop.since_us;
}

static void schedule(struct partition *p)
{
    struct room room;
    int64_t now, at, stuck_at;

    worker_draw_near(p->worker);
    begin_tasks(p->worker);
    tasks_collect(p->worker);
    trace_flush(p->conditions.trace);
    if (!link_is_up(p->link) || p->leaving || p->worker->ending.ended)
        return;
    now = clock_mono_us();
    if (p->requests.awaited > 0) {
        at = partition_claim_beside(p, now);
        if (at < NEVER)
            set_timer(p, at, now);
        return;
    }
    if (p->claims.beside > 0 && must_be_alone(p))
        return;
    if (!p->session.registered) {
        if (now < p->requests.pause_until_us)
            set_timer(p, p->requests.pause_until_us, now);
        else if (partition_precheck(p))
            partition_adopt(p);
        return;
    }
    if (p->limits.old) {
        partition_restore_limits(p);
        return;
    }
    if (partition_take_recall_reason(p))
        partition_recall(p);
    worker_measure_rate(p->worker, now);
    alone_check(p, now);
    worker_give_back_stuck(p->worker, now);
    if (partition_leave_if_done(p))
        return;
    room = partition_room(p);
    at = next_turn(p, room);
    if (p->worker->partition_count > 1)
        hunger(p, room, now, &at);
    if (at <= now) {
        begin_turn(p, room, now);
        return;
    }
    if (partition_takes_jobs(p) && !worker_rests(p->worker) && room.idle > 0 && !p->claims.more &&
        !p->reasons.claim) /* a claim is not due already */
        waking_wait(p->waking, p->claims.duty_until_us != 0);
    stuck_at = worker_stuck_time(p->worker);
    set_timer(p, at < stuck_at ? at : stuck_at, now);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    partition_wake(timer->data);
}

void partition_open_turns(struct partition *p)
{
    partition_open_reasons(p, schedule);
    ev_init(&p->timer, on_timer);
    p->timer.data = p;
}

void partition_close_turns(struct partition *p)
{
    ev_timer_stop(p->worker->loop, &p->timer);
}
