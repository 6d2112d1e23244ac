/* One turn is one round trip: what has ended is settled, what is due is promoted, a heartbeat, and a claim
 * for the executors that are free, all written at once.
 *
 * schedule() decides what to do now and sets one timer to the time of its next decision. Only the loop calls
 * it: whoever changes what it decides by leaves a reason (reasons.h). */
#include "core/clock.h"
#include "worker/worker.h"

/* When is the next turn due? */
static int64_t next_turn(struct weir_worker *w, struct room room)
{
    int64_t times[] = {worker_claim_time(w, room),
                       worker_settle_time(w),
                       w->session.next_beat_us,
                       worker_drained_time(w),
                       worker_takes_jobs(w) ? worker_promote_time(w) : NEVER,
                       alone_time(w),
                       worker_match_time(w)};
    int64_t at = NEVER;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < at)
            at = times[i];
    return at > w->requests.pause_until_us ? at : w->requests.pause_until_us;
}

static void begin_turn(struct weir_worker *w, struct room room, int64_t now)
{
    struct args a;

    args_init(&a);
    worker_begin_requests(w, now);
    worker_settle(w, &a);
    worker_promote(w, &a, now);
    if (w->session.next_beat_us <= now) {
        worker_beat(w, &a, now);
        if (w->options.unknown_dead)
            worker_check_held(w); /* types that no worker runs any more */
        worker_learn_limits(w, &a);
        worker_recheck(w, &a, now);
    }
    if (worker_match_time(w) <= now)
        worker_match(w, &a);
    if (worker_claim_time(w, room) <= now + worker_lead_time(w) || /* the next turn waits for this one */
        (worker_drained_time(w) <= now && room.free > 0)) {
        bool drained = worker_drained_time(w) <= now;

        worker_claim(w, &a, room, now);
        if (drained)
            worker_ask_drained(w, &a);
    }
    args_free(&a);
    if (w->requests.awaited == 0)
        worker_wake(w); /* all that had ended was lost with its lease: nothing was sent */
}

static void set_timer(struct weir_worker *w, int64_t at, int64_t now)
{
    ev_now_update(w->loop);
    ev_timer_stop(w->loop, &w->timer);
    ev_timer_set(&w->timer, at > now ? (double)(at - now) / 1e6 : 0, 0);
    ev_timer_start(w->loop, &w->timer);
}

static void schedule(struct weir_worker *w)
{
    struct room room;
    int64_t now, at;

    if (worker_take_stop_reason(w))
        worker_check_stop(w);
    worker_draw_near(w);
    worker_begin(w);
    worker_collect(w);
    trace_flush(w->trace);
    if (w->requests.awaited > 0 || !link_is_up(w->link) || w->stop.leaving || w->ending.ended)
        return;
    now = clock_mono_us();
    if (!w->session.registered) {
        if (now < w->requests.pause_until_us)
            set_timer(w, w->requests.pause_until_us, now);
        else if (worker_precheck(w))
            worker_adopt(w);
        return;
    }
    if (w->limits.old) {
        worker_restore_limits(w);
        return;
    }
    if (worker_take_recall_reason(w))
        worker_recall(w);
    worker_measure_rate(w, now);
    alone_check(w, now);
    worker_give_back_stuck(w, now);
    if (worker_leave_if_done(w))
        return;
    room = worker_room(w);
    at = next_turn(w, room);
    if (at <= now) {
        begin_turn(w, room, now);
        return;
    }
    if (worker_takes_jobs(w) && room.free > 0 && !w->claims.more &&
        !w->reasons.claim) /* a claim is not due already */
        waking_wait(w->waking, w->claims.duty_until_us != 0);
    set_timer(w, at < worker_stuck_time(w) ? at : worker_stuck_time(w), now);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    worker_wake(timer->data);
}

void worker_open_turns(struct weir_worker *w)
{
    worker_open_reasons(w, schedule);
    ev_init(&w->timer, on_timer);
    w->timer.data = w;
}

void worker_close_turns(struct weir_worker *w)
{
    ev_timer_stop(w->loop, &w->timer);
}
