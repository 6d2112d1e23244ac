/* One turn is one round trip: what has ended is settled, what is due is promoted, a heartbeat, and a claim
 * for the executors that are free, all written at once. next_look() says when the next one is; one timer
 * follows it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/log.h"
#include "worker/worker.h"

#define PAUSE_US (1000 * MS) /* after an error answer */
#define DRAINED_US (50 * MS) /* between questions whether anything is left */
#define DRAINED_PAGE_US (2 * MS)
#define DRAINING_US (5000 * MS) /* between lines that say what is left */
#define PROMOTE_MOST 200
#define DUE_US (1600 * MS)        /* who promotes asks again after no news of `later` for that long, */
#define DUE_OTHERS_US (1800 * MS) /* the others after that: they take over. Idle workers claim before */
#define REAP_AGAIN_US (10 * MS)   /* to the next heartbeat while one did not do all */
#define FORGOTTEN_US (60000 * MS) /* between lines that say how many did */

struct names worker_queues(struct weir_worker *w)
{
    return (struct names){w->queues, w->queue_count};
}

struct names worker_types(const struct weir_worker *w)
{
    return (struct names){w->handlers.types, w->handlers.count};
}

bool worker_takes_jobs(struct weir_worker *w)
{
    return w->adopted && !w->stopping_us && !atomic_load(&w->quiet) && w->handlers.count > 0;
}

/* ---- Answers */

void worker_answered(struct weir_worker *w)
{
    if (--w->awaited == 0)
        worker_look(w);
}

void worker_refused(struct weir_worker *w, const struct error *e)
{
    if (turn_is_unregistered(e)) {
        w->adopted = false; /* reaped, or Redis lost its memory: begin anew under another id */
        return;
    }
    /* A script may have leased jobs before it was refused: once all rights are there, adopt hands them back.
     */
    if (e->status == WEIR_EREFUSED)
        w->permitted = w->adopted = false;
    if (strcmp(w->last_error, e->text) != 0) {
        strcpy(w->last_error, e->text);
        log_line(LOG_LEVEL_ERROR, "%s; trying again every second", e->text);
    }
    w->pause_until_us =
        clock_mono_us() + (int64_t)fmin(PAUSE_US, (double)w->lease_us / 8); /* heartbeats wait too */
}

void worker_lives(struct weir_worker *w)
{
    if (w->adopted)
        atomic_store(&w->conditions.lease_end_us, w->beat_us + w->lease_us);
}

/* Is there anything in `later` that is due, as far as is known? */
static bool is_due(const struct weir_worker *w)
{
    return w->later_us && w->later_us <= clock_mono_us();
}

static void on_promoted(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct promoted promoted;
    struct error e;

    if (reply && promote_reply(reply, &promoted, &e) != 0) {
        worker_refused(w, &e);
    } else if (reply) {
        if (promoted.moved > 0 || promoted.due_count > 0 || is_due(w))
            w->promotes = promoted.moved > 0 || promoted.due_count > 0;
        worker_fire(w, &promoted);
        worker_hear_later(w, promoted.now_us, promoted.later_us);
        promoted_free(&promoted);
    }
    worker_answered(w);
}

/* The oldest dead jobs were forgotten: said once a minute. */
static void forget_dead(struct weir_worker *w, const struct reaped *r)
{
    int64_t now = clock_mono_us();

    w->forgotten += r->forgotten;
    if (w->forgotten > 0 && (w->forgotten_us == 0 || now - w->forgotten_us > FORGOTTEN_US)) {
        log_line(LOG_LEVEL_WARN,
                 "reap: the %" PRId64
                 " oldest dead jobs were forgotten: beyond what is kept (weir dead keep)",
                 w->forgotten);
        w->forgotten = 0;
        w->forgotten_us = now;
    }
}

/* What the worker was started with is not what holds: said once, and again when that changes. */
static void tell_bound(struct weir_worker *w, const char *option, int64_t own, int64_t kept, int64_t unit,
                       const char *of)
{
    char line[300];

    if (own == 0 || kept == 0 || own == kept)
        return;
    snprintf(line, sizeof line,
             "--dead-%s: this worker was started with %" PRId64 "%s, and the namespace keeps %" PRId64
             "%s: that holds; weir dead keep --%s changes it",
             option, own / unit, of, kept / unit, of, option);
    if (worker_remember(w, line))
        log_line(LOG_LEVEL_WARN, "%s", line);
}

static void tell_bounds(struct weir_worker *w, const struct dead_bounds *kept)
{
    tell_bound(w, "most", w->dead_most, kept->most, 1, " dead jobs");
    tell_bound(w, "age", w->dead_age_us, kept->age_us, 1000000, " s");
}

static void tell_late(struct weir_worker *w)
{
    int late = atomic_exchange(&w->conditions.late, 0);

    if (late > 0)
        log_line(
            LOG_LEVEL_WARN,
            "%d jobs could not start in time and take other slots: this machine, Redis or the link to it "
            "stalled",
            late);
}

/* Each key once. */
static void tell_wrong_keys(struct weir_worker *w, const struct reaped *r)
{
    char line[512];

    for (size_t i = 0; i < r->wrong_count; i++) {
        snprintf(line, sizeof line,
                 "reap: jobs of silent workers cannot be taken back: %.*s; somebody else writes here: rename "
                 "or delete it (weir doctor)",
                 (int)r->wrong[i].len, r->wrong[i].at);
        if (worker_remember(w, line))
            log_line(LOG_LEVEL_ERROR, "%s", line);
    }
}

static void on_reaped(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct reaped r;
    struct error e;

    if (reply && reap_reply(reply, &r, &e) != 0) {
        worker_refused(w, &e);
    } else if (reply) {
        worker_lives(w);
        worker_seen(w, r.now_us);
        worker_hear_back(w, &r.back);
        w->reaped += r.taken;
        if (r.workers > 0) {
            log_line(LOG_LEVEL_WARN,
                     "reap: %" PRId64 " workers were silent for a lease; %" PRId64 " jobs taken back",
                     r.workers, w->reaped);
            w->reaped = 0;
        }
        forget_dead(w, &r);
        tell_bounds(w, &r.kept);
        tell_late(w);
        tell_wrong_keys(w, &r);
        if (r.left > 0 && w->tick_us > clock_mono_us() + REAP_AGAIN_US)
            w->tick_us = clock_mono_us() + REAP_AGAIN_US;
    }
    worker_answered(w);
}

/* Of a worker that serves more queues than it can name at once: in how many parts it asks for them. */
static int pages(const struct weir_worker *w)
{
    return w->wide ? 1 + wide_count(w->wide) / WIDE_CLAIM : 0;
}

/* All is done but what waits for a person. */
static void end_drained(struct weir_worker *w, const struct drained *d)
{
    char paused[80] = "", aside[80] = "";

    if (d->paused > 0)
        snprintf(paused, sizeof paused, "%" PRId64 " in paused queues (weir queue list)", d->paused);
    if (d->aside > 0)
        snprintf(aside, sizeof aside, "%" PRId64 " aside, of paused batches (weir batch list)", d->aside);
    if (d->paused + d->aside > 0)
        w->result = error_set(&w->error, WEIR_ENOTNOW,
                              "worker: drained, but jobs are left: %s%s%s; resume them and run it again",
                              paused, *paused && *aside ? ", " : "", aside);
    worker_leave(w);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What it says of types each page says. Was this the last one? */
static bool add_drained(struct weir_worker *w, const struct drained *d)
{
    struct drained *all = &w->drained;

    all->waiting += d->waiting;
    all->paused += d->paused;
    all->parked = larger(all->parked, d->parked);
    all->running = larger(all->running, d->running);
    all->due = larger(all->due, d->due);
    all->aside = larger(all->aside, d->aside);
    return --w->drained_left == 0;
}

static void judge_drained(struct weir_worker *w, const struct drained *d)
{
    if (d->waiting + d->parked + d->running + d->due == 0) {
        if (!w->finished.head && !w->more && (!w->wide || wide_is_complete(w->wide)))
            end_drained(w, d);
    } else if (clock_mono_us() - w->drained_us > DRAINING_US) {
        log_line(LOG_LEVEL_INFO,
                 "draining: %" PRId64 " waiting, %" PRId64 " parked, %" PRId64 " running, %" PRId64 " due",
                 d->waiting, d->parked, d->running, d->due);
        w->drained_us = clock_mono_us();
    }
}

static void on_drained(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct drained d;
    struct error e;

    if (reply && drained_reply(reply, &d, &e) != 0) {
        worker_refused(w, &e);
    } else if (reply && add_drained(w, &d)) {
        judge_drained(w, &w->drained);
    }
    worker_answered(w);
}

/* Is anything left? A page for as many queues as one claim names. */
static void ask_drained(struct weir_worker *w, struct args *a)
{
    const char *page[WIDE_CLAIM];
    struct names queues = worker_queues(w);
    int first = 0;

    w->drained = (struct drained){0};
    w->drained_left = w->wide ? pages(w) : 1;
    for (int left = w->drained_left; left > 0; left--) {
        if (w->wide)
            queues = (struct names){page, wide_page(w->wide, first, page, WIDE_CLAIM)};
        first += queues.count;
        drained_request(a, w->prefix, -1, queues, worker_types(w));
        worker_send(w, a, on_drained);
    }
}

/* ---- What goes into a turn */

void worker_send(struct weir_worker *w, struct args *a, link_reply *on_reply)
{
    w->awaited++;
    link_send(w->link, a, REQUEST_TIMEOUT_S, on_reply, w);
}

bool worker_is_idle(struct weir_worker *w)
{
    struct pool_load load = pool_load(w->pool);

    return load.running + load.queued == 0 && !w->finished.head && !w->settling.head;
}

/* A draining worker that has nothing to do asks whether there is anything left. */
static int64_t drained_time(struct weir_worker *w)
{
    return w->drain && worker_takes_jobs(w) && !w->more && worker_is_idle(w)
               ? w->looked_us + DRAINED_US + pages(w) * DRAINED_PAGE_US
               : NEVER;
}

/* Claims tell when something is due, and on duty come then. Where none comes, as no executor is free or Redis
 * refuses them, the worker asks by itself: in time if nobody was faster the last time, else now and then. */
static int64_t promote_time(const struct weir_worker *w)
{
    int64_t at = w->later_heard_us + (w->promotes ? DUE_US : DUE_OTHERS_US);

    return w->promotes && w->later_us && w->later_us < at ? w->later_us : at;
}

/* When must the worker look again? */
static int64_t next_look(struct weir_worker *w, struct room room)
{
    int64_t times[] = {worker_claim_time(w, room),
                       worker_settle_time(w),
                       w->tick_us,
                       drained_time(w),
                       worker_takes_jobs(w) ? promote_time(w) : NEVER,
                       alone_time(w),
                       worker_match_time(w)};
    int64_t at = NEVER;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < at)
            at = times[i];
    return at > w->pause_until_us ? at : w->pause_until_us;
}

static void beat(struct weir_worker *w, struct args *a)
{
    struct reap_call call = {.worker = w->id,
                             .lease_us = w->lease_us,
                             .interrupted_most = INTERRUPTED_MOST,
                             .dead_most = w->dead_most,
                             .dead_age_us = w->dead_age_us};

    w->beat_us = clock_boot_us();
    reap_request(a, w->prefix, -1, &call);
    worker_send(w, a, on_reaped);
}

static void begin_turn(struct weir_worker *w, struct room room, int64_t now)
{
    struct args a;

    args_init(&a);
    w->turn_us = now;
    w->awaited++; /* until all is sent */
    worker_settle(w, &a);
    if (worker_takes_jobs(w) && (is_due(w) || promote_time(w) <= now)) {
        promote_request(&a, w->prefix, -1, PROMOTE_MOST);
        worker_send(w, &a, on_promoted);
    }
    if (w->tick_us <= now) {
        beat(w, &a);
        w->tick_us = now + w->lease_us / 4;
        w->look_held |= w->unknown_dead; /* types that no worker runs any more */
        worker_learn_limits(w, &a);
        worker_recheck(w, &a, now);
    }
    if (worker_match_time(w) <= now)
        worker_match(w, &a);
    if (worker_claim_time(w, room) <= now + worker_way_there(w) || /* the next turn waits for this one */
        (drained_time(w) <= now && room.free > 0)) {
        bool drained = drained_time(w) <= now;

        worker_claim(w, &a, room, now);
        if (drained)
            ask_drained(w, &a);
    }
    args_free(&a);
    worker_answered(w);
}

static void look_at(struct weir_worker *w, int64_t at, int64_t now)
{
    ev_now_update(w->loop);
    ev_timer_stop(w->loop, &w->timer);
    ev_timer_set(&w->timer, at > now ? (double)(at - now) / 1e6 : 0, 0);
    ev_timer_start(w->loop, &w->timer);
}

void worker_look(struct weir_worker *w)
{
    struct room room;
    int64_t now, at;

    worker_begin(w);
    worker_collect(w);
    trace_flush(w->trace);
    if (w->awaited > 0 || !link_is_up(w->link) || w->leaving)
        return;
    now = clock_mono_us();
    if (!w->adopted) {
        if (now < w->pause_until_us)
            look_at(w, w->pause_until_us, now);
        else if (worker_precheck(w))
            worker_adopt(w);
        return;
    }
    if (w->limits_due) {
        worker_restore_limits(w);
        return;
    }
    worker_measure_rate(w, now);
    alone_check(w, now);
    worker_give_back_stuck(w, now);
    if (w->forced_us ? !w->finished.head : w->stopping_us && worker_is_idle(w)) {
        worker_leave(w);
        return;
    }
    room = worker_room(w);
    at = next_look(w, room);
    if (at <= now) {
        begin_turn(w, room, now);
        return;
    }
    if (worker_takes_jobs(w) && room.free > 0 && !w->more && !w->look_now) /* a claim is not due already */
        waking_wait(w->waking, w->duty_until_us != 0);
    look_at(w, at < worker_stuck_time(w) ? at : worker_stuck_time(w), now);
}
