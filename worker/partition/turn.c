/* A turn is one round trip: what the plan of the mind says (worker/mind/plan.c) is written at once.
 *
 * schedule() asks the mind what to do now, and sets one timer to the time of its next decision. Only the loop calls
 * it: whoever changes what it decides by wakes it (reasons.c). */
#include "core/clock.h"
#include "core/number.h"
#include "worker/partition/inside.h"

static void begin_turn(struct partition *p, struct plan *plan, int64_t now)
{
    struct args a = {0};

    if (plan->settle)
        settling_send(p, &a);
    if (plan->promote)
        due_promote(p, &a);
    if (plan->beat) {
        heartbeat_send(p, &a);
        precheck_again(p, &a, now);
    }
    if (plan->learn)
        limits_learn(p, &a);
    if (plan->match)
        match_ask(p, &a);
    if (plan->claims)
        claiming_ask(p, &a, plan);
    if (plan->drained)
        drained_ask(p, &a);
    if (plan->wait != PLAN_WAIT_NOTHING)
        waking_wait(p->waking, plan->wait == PLAN_WAIT_ON_DUTY);
    recording_send(p, &a, now, false);
    if (p->awaited == 0)
        partition_wake(p); /* all that had ended was lost with its lease: nothing was sent */
}

static void set_timer(struct partition *p, int64_t at, int64_t now)
{
    ev_now_update(p->worker->loop);
    ev_timer_stop(p->worker->loop, &p->timer);
    ev_timer_set(&p->timer, at > now ? (double)(at - now) / 1e6 : 0, 0);
    ev_timer_start(p->worker->loop, &p->timer);
}

static void claim_beside(struct partition *p, int64_t now)
{
    struct claim_call call;
    int64_t next_us;

    if (plan_beside(&p->mind, now, &call, &next_us))
        beside_claim(p, &call);
    if (next_us < NEVER)
        set_timer(p, next_us, now);
}

/* Joins Redis, or restores there what Redis has lost. True: there is no turn before that is done. */
static bool is_joining(struct partition *p, int64_t now)
{
    if (!p->session.registered) {
        if (now < p->mind.pause_until_us)
            set_timer(p, p->mind.pause_until_us, now);
        else if (precheck_passes(p))
            adoption_ask(p, now);
        return true;
    }
    if (p->limits.old) {
        limits_restore(p);
        return true;
    }
    return false;
}

/* True if the next turn waits for the answers to claims that went beside the last one: they are of an id, or a state, that ends. */
static bool must_be_alone(const struct partition *p)
{
    return !p->session.registered || p->limits.old || p->worker->stop.since_us;
}

static void take_turn(struct partition *p, int64_t now)
{
    struct plan plan = plan_turn(&p->mind, now);

    if (plan.turn) {
        begin_turn(p, &plan, now);
        return;
    }
    if (plan.wait != PLAN_WAIT_NOTHING)
        waking_wait(p->waking, plan.wait == PLAN_WAIT_ON_DUTY);
    set_timer(p, min_i64(plan.next_us, room_stuck_time(&p->worker->minds)), now);
}

static void schedule(struct partition *p)
{
    struct worker *w = p->worker;
    int64_t now;

    worker_draw_near(w, clock_mono_us());
    begin_tasks(w);
    tasks_collect(w);
    trace_flush(p->conditions.trace);
    if (!link_is_up(p->link) || p->leaving || w->ending.ended)
        return;
    now = clock_mono_us();
    executors_look(p);
    if (p->awaited > 0) {
        claim_beside(p, now);
        return;
    }
    if ((p->mind.claims.beside > 0 && must_be_alone(p)) || is_joining(p, now))
        return;
    if (reasons_take_recall(p))
        executors_recall(p);
    room_measure(&w->minds, w->ended, now);
    if (now >= room_stuck_time(&w->minds))
        worker_give_back_stuck(w, now);
    if (leaving_if_done(p))
        return;
    executors_look(p);
    take_turn(p, now);
}

static void on_wake(struct ev_loop *loop, struct ev_watcher *watcher, int events)
{
    (void)loop, (void)events;
    schedule(watcher->data);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    partition_wake(timer->data);
}

void turn_open(struct partition *p)
{
    ev_init(&p->reasons.event, on_wake);
    /* It comes before any other event, so that what has come starts and is answered at once. */
    ev_set_priority(&p->reasons.event, EV_MAXPRI);
    p->reasons.event.data = p;
    ev_init(&p->timer, on_timer);
    p->timer.data = p;
}
