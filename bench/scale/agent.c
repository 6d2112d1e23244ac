/* A worker, as worker/partition/ has it: schedule() of turn.c, the times and the question of claim.c, the room of room.c, the settling of
 * settle.c, the waiting of waking.c. It serves one queue and one type. Its clock is the simulation's.
 * It sends no claim that stands behind a peek: that would start the same job, a round trip earlier. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scale/scale.h"
#include "throttle/gate.h"
#include "worker/mind/interval.h"

#define NEVER INT64_MAX
#define POLL_LEAST_US (100 * MS) /* all of these as in worker/partition and worker/parts */
#define HUNGRY_US (MS / 2)
#define MARK_US SECOND
#define EARLY_US (50 * MS)
#define EARLY_LEAD_US (5 * MS / 2)
#define EARLY_LEAST 8
#define CROWDED_US SECOND
#define RESERVE_US SECOND
#define NEAR_LINK_US (MS / 2)
#define NEAR_TASK_US (5 * MS)
#define PREFETCH_S 0.008
#define LEASE_MOST 500
#define SETTLE_DELAY_US (10 * MS)
#define SETTLE_CLAIM_US (60 * MS)
#define SETTLE_SOON 500
#define LATE_US (50 * MS)
#define RECONNECT_US (100 * MS)

struct agent {
    char id[ID_SIZE], old[ID_SIZE];
    int life;  /* a number that changes when it is killed, */
    int epoch; /* and when its link is cut */
    bool up, registered, in_flight, waits[WAITS];
    bool gives_back; /* among the finished are such */
    int64_t sent_us, beat_us, timer_us, poll_us, workers;
    struct distance distance;

    int64_t turn, claim_sent_us, others_us, duty_us, duty_redis_us, second_us, next_us, mark_us, early_us,
        crowded_us, more_us;
    bool more, starved, reason, held;

    int running, unlimited; /* of them without a limit */
    int reserve, reserve_used;
    int64_t reserve_us, unlimited_us;
    struct task_row timed, early, prefetched, run, finished, sent;
    double pace; /* jobs that end here in a second */
    int64_t pace_us;
    long long ended, ended_then, starts;
};
struct room {
    int free, prefetch, open, early, early_more;
    bool worth_it;
};

static struct agent *agents;
static int agent_count, ids;

static void decide(int i);

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t lead(const struct agent *a)
{
    int64_t trip_us = distance_trip(&a->distance);

    return trip_us > NEAR_LINK_US ? trip_us : 0;
}

static int64_t local(const struct agent *a, int64_t redis_us)
{
    return redis_us <= 0 ? 0 : redis_us - BEGIN_US + distance_offset(&a->distance);
}

/* ---- Room */

static struct room room_of(const struct agent *a)
{
    int target = (int)(a->pace * PREFETCH_S), idle = plan.executors - a->running - a->timed.count;
    int beginning, excess, open;
    struct room room;

    idle = idle > 0 ? idle : 0;
    open = (int)least(plan.executors - a->reserve - a->unlimited, idle);
    open = open > 0 ? open : 0;
    beginning = (int)least(a->prefetched.count, open);
    excess = a->prefetched.count - beginning;
    room = (struct room){.free = idle - beginning,
                         .open = open - beginning,
                         .early = a->early.count,
                         .prefetch = target > excess ? (int)least(target - excess, LEASE_MOST) : 0};
    if (plan.executors >= EARLY_LEAST && now_us >= a->crowded_us + CROWDED_US &&
        room.free / 2 > a->early.count)
        room.early_more = room.free / 2 - a->early.count;
    room.worth_it =
        room.open >= (plan.executors - a->reserve + 1) / 2 || (target > 0 && excess <= target / 2);
    return room;
}

static void adapt_reserve(struct agent *a)
{
    int limited = a->running - a->unlimited + a->timed.count;

    a->reserve_used = limited > a->reserve_used ? limited : a->reserve_used;
    if (a->unlimited + a->prefetched.count > 0)
        a->unlimited_us = now_us;
    if (now_us - a->unlimited_us > RESERVE_US) {
        a->reserve = 0;
        return;
    }
    if (plan.executors == 1) {
        a->reserve = a->starved && !a->reserve;
    } else if (a->starved) {
        if (a->reserve == 0)
            a->reserve_us = now_us;
        a->reserve = (int)least(a->reserve ? 2 * a->reserve : 1, plan.executors / 2);
    } else if (now_us - a->reserve_us > RESERVE_US) {
        a->reserve = (int)least(a->reserve, a->reserve_used);
        a->reserve_used = 0;
        a->reserve_us = now_us;
    }
}

static void measure_pace(struct agent *a)
{
    double seconds = (double)(now_us - a->pace_us) / 1e6;

    if (seconds < 0.0002)
        return;
    a->pace += seconds / (seconds + PREFETCH_S) * ((double)(a->ended - a->ended_then) / seconds - a->pace);
    a->pace_us = now_us;
    a->ended_then = a->ended;
}

/* ---- Tasks */

static void take_out(struct task_row *row, struct task *task)
{
    for (int n = row->count; n > 0; n--) {
        struct task *other = row_pop(row);

        if (other != task)
            row_push(row, other);
    }
}

static void finish(struct agent *a, struct task *task, bool back)
{
    task->back = back;
    task->finished_us = now_us;
    a->gives_back |= back;
    row_push(&a->finished, task);
    if (is_measured() && back)
        sums.early_back++;
}

static void note_start(struct agent *a, const struct task *task)
{
    int64_t late_us = task->slot_us      ? now_us - task->slot_us
                      : task->number < 0 ? 0
                                         : now_us - pushed_us(task->number);

    if (!is_measured())
        return;
    a->starts++;
    sums.starts++;
    sums.before += task->slot_us && late_us < 0;
    if (sums.late_count == sums.late_capacity) {
        sums.late_capacity = sums.late_capacity ? 2 * sums.late_capacity : 4096;
        sums.late_us = realloc(sums.late_us, sums.late_capacity * sizeof *sums.late_us);
        if (!sums.late_us)
            abort();
    }
    sums.late_us[sums.late_count++] = late_us;
}

static void run(int i, struct task *task)
{
    struct agent *a = &agents[i];

    a->running++;
    a->unlimited += task->slot_us == 0;
    row_push(&a->run, task);
    note_start(a, task);
    events_add(now_us + plan.job_us, EVENT_END, i, a->life, task);
}

/* It holds its executor until its time. */
static void hold(int i, struct task *task)
{
    row_push(&agents[i].timed, task);
    events_add(task->start_us, EVENT_BEGIN, i, agents[i].life, task);
}

static void begin(int i, struct task *task)
{
    struct agent *a = &agents[i];

    take_out(&a->timed, task);
    if (task->lost) {
        free(task);
        return;
    }
    if (now_us <= task->start_us + LATE_US) {
        run(i, task);
        return;
    }
    if (is_measured())
        sums.lost_slots++;
    finish(a, task, true);
    decide(i);
}

static void draw_near(int i, struct task *task)
{
    struct agent *a = &agents[i];

    take_out(&a->early, task);
    if (task->lost) {
        free(task);
        return;
    }
    if (a->running + a->timed.count < plan.executors) {
        hold(i, task);
        return;
    }
    finish(a, task, true);
    a->crowded_us = now_us;
    a->reason = true;
    decide(i);
}

/* To a job without a limit. */
static bool is_open(const struct agent *a)
{
    return a->running + a->timed.count < plan.executors && a->unlimited < plan.executors - a->reserve;
}

static void add(int i, struct task *task)
{
    struct agent *a = &agents[i];

    if (task->early) {
        row_push(&a->early, task);
        events_add(task->start_us - NEAR_TASK_US, EVENT_NEAR, i, a->life, task);
    } else if (task->slot_us) {
        hold(i, task);
    } else if (is_open(a)) {
        run(i, task);
    } else {
        row_push(&a->prefetched, task);
    }
}

static void end(int i, struct task *task)
{
    struct agent *a = &agents[i];

    a->running--;
    a->unlimited -= task->slot_us == 0;
    a->ended++;
    take_out(&a->run, task);
    if (task->lost)
        free(task);
    else
        finish(a, task, false);
    while (a->prefetched.head && is_open(a))
        run(i, row_pop(&a->prefetched));
    decide(i);
}

/* ---- When */

static bool is_off_duty(const struct agent *a)
{
    return !a->duty_us && !a->second_us;
}

static int64_t poll_time(const struct agent *a)
{
    int64_t at = a->duty_us     ? a->claim_sent_us + (a->duty_us - a->claim_sent_us) / 2
                 : a->second_us ? a->second_us
                                : NEVER;

    at = at > a->claim_sent_us + POLL_LEAST_US ? at : a->claim_sent_us + POLL_LEAST_US;
    return least(at, (a->claim_sent_us > a->others_us ? a->claim_sent_us : a->others_us) + a->poll_us);
}

static int64_t claim_time(const struct agent *a, const struct room *room)
{
    int64_t at = poll_time(a);

    if (room->free + room->prefetch < 1)
        return NEVER;
    if (a->reason || (a->starved && room->free > 0))
        return 0;
    if (a->more && (room->worth_it || room->open > 0))
        return room->worth_it ? 0 : a->more_us + HUNGRY_US;
    return (a->duty_us || a->reserve > 0) && a->next_us ? least(at, a->next_us) : at;
}

static int64_t settle_time(const struct agent *a, int64_t claim_us)
{
    if (!a->finished.head)
        return NEVER;
    if (a->finished.count >= SETTLE_SOON)
        return 0;
    if (!a->gives_back && claim_us <= a->finished.head->finished_us + SETTLE_CLAIM_US)
        return claim_us;
    return a->finished.head->finished_us + SETTLE_DELAY_US;
}

static void wait_for(int i, enum wait wait)
{
    struct agent *a = &agents[i];

    if (!a->waits[wait])
        events_add(now_us + way(), EVENT_WAIT, i, a->epoch, (void *)(intptr_t)wait);
    a->waits[wait] = true;
}

static void look_ahead(struct agent *a, const struct room *room, struct claim_call *call)
{
    int64_t lead_us = lead(a), ahead_us = least(GATE_AHEAD_US + lead_us, GATE_AHEAD_MOST_US);
    int kept = plan.executors / 4 > 1 ? plan.executors / 4 : 1;

    call->ahead_us = ahead_us;
    call->far = room->free - kept - room->early > 0 ? room->free - kept - room->early : 0;
    call->early = a->duty_us && lead_us <= EARLY_LEAD_US && room->early_more > 0;
    a->early_us = call->early ? GATE_AHEAD_US + lead_us : NEVER;
    if (!call->early)
        return;
    call->ahead_us = EARLY_US;
    if (lead_us == 0 || call->far < room->early_more)
        call->far = room->early_more;
}

static void put_claim(struct agent *a, const struct room *room, struct turn *turn)
{
    int wanted = room->free + room->prefetch;

    turn->claims = true;
    turn->claim = (struct claim_call){.turn = ++a->turn,
                                      .free = room->free,
                                      .prefetch = room->prefetch,
                                      .chunk = wanted < 16     ? 16
                                               : wanted < 1000 ? wanted
                                                               : 1000,
                                      .duty_until_us = a->duty_redis_us,
                                      .reserved = room->free > 0 && room->open == 0,
                                      .held = a->held,
                                      .mark = now_us - a->mark_us >= MARK_US};
    look_ahead(a, room, &turn->claim);
    if (turn->claim.mark)
        a->mark_us = now_us;
    if (is_measured() && !a->reason && !a->more && !a->starved && !a->duty_us)
        sums.polls++;
    a->claim_sent_us = now_us;
    a->poll_us = interval_of_polls(a->workers, random_part());
    a->more = a->starved = a->reason = a->held = false;
}

/* As partition_along_time(). */
static int64_t along(const struct agent *a)
{
    return is_off_duty(a) ? interval_along(LEASE_US) : 0;
}

static void send(int i, struct turn *turn)
{
    struct agent *a = &agents[i];

    snprintf(turn->worker, sizeof turn->worker, "%s", a->id);
    a->in_flight = true;
    a->sent_us = now_us;
    events_add(now_us + way(), EVENT_ARRIVE, i, a->epoch, turn);
}

static struct turn *new_turn(void)
{
    struct turn *turn = calloc(1, sizeof *turn);

    if (!turn)
        abort();
    row_init(&turn->settles);
    row_init(&turn->held);
    return turn;
}

/* All that it holds, by its name for it. */
static void name_held(const struct agent *a, struct task_row *held)
{
    const struct task_row *const rows[] = {&a->run, &a->timed, &a->early, &a->prefetched, &a->finished};

    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (const struct task *task = rows[k]->head; task; task = task->next) {
            struct task *copy = malloc(sizeof *copy);

            if (!copy)
                abort();
            *copy = *task;
            row_push(held, copy);
        }
}

static void adopt(int i)
{
    struct agent *a = &agents[i];
    struct turn *turn = new_turn();

    snprintf(turn->old, sizeof turn->old, "%s", a->id);
    snprintf(a->id, sizeof a->id, "w%d", ids++);
    turn->adopts = true;
    name_held(a, &turn->held);
    send(i, turn);
}

static void decide(int i)
{
    struct agent *a = &agents[i];
    struct room room;
    struct turn *turn;
    int64_t at;
    bool claims;

    if (a->in_flight || !a->up)
        return;
    if (!a->registered) {
        adopt(i);
        return;
    }
    measure_pace(a);
    room = room_of(a);
    at = claim_time(a, &room);
    at = least(least(at, settle_time(a, at)), a->beat_us);
    if (at > now_us) {
        if (room.free > 0 && !a->more && !a->reason) {
            wait_for(i, a->duty_us ? WAIT_BELL : WAIT_SPARE);
            if (a->duty_us)
                wait_for(i, WAIT_QUEUE);
        }
        if (a->timer_us <= now_us || at < a->timer_us) {
            a->timer_us = at;
            events_add(at, EVENT_DECIDE, i, a->life, NULL);
        }
        return;
    }
    turn = new_turn();
    a->gives_back = false;
    a->sent = a->finished;
    if (!a->sent.head)
        a->sent.tail = &a->sent.head;
    row_init(&a->finished);
    turn->settles = a->sent;
    turn->beats = a->beat_us <= now_us + along(a);
    claims = !(turn->beats && is_off_duty(a) && claim_time(a, &room) >= poll_time(a)) &&
             claim_time(a, &room) <= now_us + lead(a);
    if (turn->beats) {
        a->held = true;
        a->beat_us = now_us + interval_of_beats(LEASE_US, random_part());
    }
    if (claims)
        put_claim(a, &room, turn);
    send(i, turn);
}

/* ---- Answers */

static struct task *new_task(struct agent *a, const struct claim *claim, const struct lease *lease)
{
    struct task *task = calloc(1, sizeof *task);

    if (!task || lease->token.len >= sizeof task->token)
        abort();
    memcpy(task->token, lease->token.at, lease->token.len);
    task->number = lease->body.len > 9 ? atoi(lease->body.at + strlen("{\"id\":\"j")) : -1;
    if (!lease->slot_us)
        return task;
    task->slot_us = lease->slot_us - BEGIN_US;
    task->start_us = lease->slot_us > claim->now_us ? local(a, lease->slot_us) : now_us;
    task->early = lease->slot_us - claim->now_us > a->early_us;
    return task;
}

static void take_claim(int i, const struct redisReply *reply)
{
    static struct claim claim;
    struct agent *a = &agents[i];
    struct error e;

    must(claim_reply(reply, &claim, &e), &e);
    distance_hear(&a->distance, a->sent_us, claim.now_us - BEGIN_US, now_us);
    a->more = claim.more;
    a->more_us = now_us;
    a->starved = claim.starved;
    a->next_us = local(a, claim.next_us);
    if (a->next_us)
        a->next_us -= lead(a);
    a->duty_redis_us = claim.duty_until_us > 0 ? claim.duty_until_us : 0;
    a->duty_us = local(a, claim.duty_until_us);
    a->second_us = local(a, claim.look_us);
    for (size_t k = 0; k < claim.lease_count; k++)
        add(i, new_task(a, &claim, &claim.leases[k]));
    adapt_reserve(a);
}

static bool is_lost(const struct adopt *adopt, const struct task *task)
{
    for (size_t i = 0; i < adopt->lost_count; i++)
        if (adopt->lost[i].len == strlen(task->token) &&
            memcmp(adopt->lost[i].at, task->token, adopt->lost[i].len) == 0)
            return true;
    return false;
}

/* What was given to others meanwhile is dropped when its time or its end comes. */
static void drop_lost(struct agent *a, const struct adopt *adopt)
{
    struct task_row *const rows[] = {&a->run, &a->timed, &a->early, &a->prefetched};

    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (struct task *task = rows[k]->head; task; task = task->next)
            task->lost |= is_lost(adopt, task);
}

static void take_adopt(struct agent *a, const struct redisReply *reply)
{
    struct adopt adopt;
    struct error e;

    must(adopt_reply(reply, 1, &adopt, &e), &e);
    distance_hear(&a->distance, a->sent_us, adopt.now_us - BEGIN_US, now_us);
    drop_lost(a, &adopt);
    adopt_free(&adopt);
    a->registered = true;
    a->workers = adopt.workers;
    a->beat_us = now_us + interval_of_beats(LEASE_US, random_part());
    a->duty_us = a->duty_redis_us = a->second_us = a->next_us = 0;
    a->reason = a->held = true;
}

static void take_beat(struct agent *a, const struct redisReply *reply)
{
    struct reaped reaped;
    struct error e;

    must(reap_reply(reply, &reaped, &e), &e);
    a->workers = reaped.registered;
    if (!reaped.of_others || !is_off_duty(a))
        return;
    distance_hear(&a->distance, a->sent_us, reaped.now_us - BEGIN_US, now_us);
    a->others_us = now_us;
    a->poll_us = interval_of_polls(a->workers, random_part());
}

static void answer(int i, struct turn *turn)
{
    struct agent *a = &agents[i];

    a->in_flight = false;
    if (turn->adopted)
        take_adopt(a, turn->adopted);
    row_free(&a->sent);
    if ((turn->beats && !turn->beaten) || (turn->claims && !turn->claimed))
        a->registered = false;
    if (turn->beaten)
        take_beat(a, turn->beaten);
    if (turn->claimed)
        take_claim(i, turn->claimed);
    turn_free(turn);
    decide(i);
}

static void woken(int i, enum wait wait)
{
    struct agent *a = &agents[i];
    struct room room = room_of(a);

    a->waits[wait] = false;
    if (a->registered && room.free > 0 && (wait != WAIT_BELL || a->duty_us)) {
        a->reason = true;
        a->held |= wait != WAIT_QUEUE;
        decide(i);
    } else if (wait != WAIT_QUEUE) {
        events_add(now_us + way(), EVENT_PASS, i, a->epoch, (void *)(intptr_t)wait);
    }
}

/* ---- Life */

static void connect(int i)
{
    agents[i].up = true;
    decide(i);
}

void agents_start(int count)
{
    agent_count = count;
    ids = 0;
    agents = calloc((size_t)count, sizeof *agents);
    if (!agents)
        abort();
    for (int i = 0; i < count; i++) {
        struct task_row *const rows[] = {&agents[i].timed, &agents[i].early,    &agents[i].prefetched,
                                         &agents[i].run,   &agents[i].finished, &agents[i].sent};

        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            row_init(rows[k]);
        agents[i].crowded_us = agents[i].mark_us = agents[i].unlimited_us = -10 * SECOND;
        events_add((int64_t)(random_part() * (double)SECOND), EVENT_CONNECT, i, 0, NULL);
    }
}

static void drop_tasks(struct agent *a)
{
    struct task_row *const rows[] = {&a->timed, &a->early, &a->prefetched, &a->run, &a->finished, &a->sent};

    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        row_free(rows[k]);
}

void agents_stop(void)
{
    for (int i = 0; i < agent_count; i++)
        drop_tasks(&agents[i]);
    free(agents);
    agents = NULL;
}

static void lose_link(int i)
{
    struct agent *a = &agents[i];

    a->epoch++;
    a->up = a->registered = a->in_flight = false;
    memset(a->waits, 0, sizeof a->waits);
    store_forget(i);
}

/* Another process takes its place a second later. */
void agent_kill(int i)
{
    struct agent *a = &agents[i];

    lose_link(i);
    drop_tasks(a);
    a->life++;
    a->running = a->unlimited = a->reserve = 0;
    a->timer_us = 0;
    a->id[0] = '\0';
    events_add(now_us + SECOND, EVENT_CONNECT, i, a->epoch, NULL);
}

void agent_cut(int i)
{
    struct agent *a = &agents[i];

    if (!a->up)
        return;
    lose_link(i);
    while (a->sent.head) /* nobody knows whether it was settled */
        row_push(&a->finished, row_pop(&a->sent));
    events_add(now_us + (int64_t)(random_part() * RECONNECT_US), EVENT_CONNECT, i, a->epoch, NULL);
}

double agents_share(void)
{
    long long most = 0, all = 0;

    for (int i = 0; i < agent_count; i++) {
        all += agents[i].starts;
        most = agents[i].starts > most ? agents[i].starts : most;
    }
    return all ? (double)most * agent_count / (double)all : 0;
}

void agent_event(const struct event *e)
{
    struct agent *a = &agents[e->agent];
    bool of_life =
        e->kind == EVENT_DECIDE || e->kind == EVENT_NEAR || e->kind == EVENT_BEGIN || e->kind == EVENT_END;

    if (e->epoch != (of_life ? a->life : a->epoch)) {
        if (e->kind == EVENT_ARRIVE || e->kind == EVENT_ANSWER)
            turn_free(e->data);
        return;
    }
    if (e->kind == EVENT_DECIDE)
        decide(e->agent);
    else if (e->kind == EVENT_ARRIVE)
        events_add(store_turn(e->data) + way(), EVENT_ANSWER, e->agent, e->epoch, e->data);
    else if (e->kind == EVENT_ANSWER)
        answer(e->agent, e->data);
    else if (e->kind == EVENT_WAIT)
        store_wait(e->agent, e->epoch, (enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_WAKE)
        woken(e->agent, (enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_PASS)
        store_pass((enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_NEAR)
        draw_near(e->agent, e->data);
    else if (e->kind == EVENT_BEGIN)
        begin(e->agent, e->data);
    else if (e->kind == EVENT_END)
        end(e->agent, e->data);
    else if (e->kind == EVENT_CONNECT)
        connect(e->agent);
}
