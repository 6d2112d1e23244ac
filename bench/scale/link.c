/* What an agent sends, and what it hears. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scale/agent.h"

/* ---- Turns */

static struct turn *new_turn(const struct agent *a)
{
    struct turn *turn = calloc(1, sizeof *turn);

    if (!turn)
        abort();
    snprintf(turn->worker, sizeof turn->worker, "%s", a->id);
    turn->partition = (int)(a - agents) % world.partitions;
    row_init(&turn->settles);
    row_init(&turn->held);
    return turn;
}

static void send(int i, struct turn *turn)
{
    agents[i].in_flight |= !turn->beside;
    events_add(now_us + way(), EVENT_ARRIVE, i, agents[i].epoch, turn);
}

static void send_claim(int i, enum event_kind kind, const struct claim_call *call)
{
    struct turn *turn = new_turn(&agents[i]);

    turn->beside = turn->claims = true;
    turn->claim = *call;
    events_add(now_us + way(), kind, i, agents[i].epoch, turn);
}

/* As block() of waking.c. */
static void block(int i, enum wait wait)
{
    struct agent *a = &agents[i];
    struct claim_call call;

    if (a->waits[wait])
        return;
    a->waits[wait] = true;
    if (wait == WAIT_QUEUE && plan_standing(agent_look(i), clock_us(), &call))
        send_claim(i, EVENT_STAND, &call);
    else
        events_add(now_us + way(), EVENT_WAIT, i, a->epoch, (void *)(intptr_t)wait);
}

static void wait_for(int i, enum plan_wait wait)
{
    if (wait == PLAN_WAIT_OFF_DUTY)
        block(i, WAIT_SPARE);
    if (wait != PLAN_WAIT_ON_DUTY)
        return;
    block(i, WAIT_BELL);
    block(i, WAIT_QUEUE);
}

/* All that it holds, by its name for it. */
static void name_held(const struct agent *a, struct task_row *held)
{
    for (int k = RUNNING; k <= FINISHED; k++)
        for (const struct task *task = a->rows[k].head; task; task = task->next) {
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
    struct turn *turn;

    snprintf(a->old, sizeof a->old, "%s", a->id);
    snprintf(a->id, sizeof a->id, "w%d", agent_ids++);
    turn = new_turn(a);
    snprintf(turn->old, sizeof turn->old, "%s", a->old);
    turn->adopts = true;
    name_held(a, &turn->held);
    plan_sends(&a->mind, clock_us());
    send(i, turn);
}

/* As turn.c. */
static void begin_turn(int i, const struct plan *p)
{
    struct agent *a = &agents[i];
    struct turn *turn = new_turn(a);

    turn->along = p->claims && !p->settle;
    a->gives_back = a->frees_slots = false;
    row_take(&a->rows[SENT], &a->rows[FINISHED]);
    turn->settles = a->rows[SENT];
    turn->promotes = p->promote;
    turn->beats = p->beat;
    turn->claims = p->claims;
    turn->claim = p->claim;
    send(i, turn);
    wait_for(i, p->wait);
}

static void set_timer(int i, int64_t at_us)
{
    struct agent *a = &agents[i];

    if (at_us == NEVER || (a->timer_us > now_us && at_us - UP_US >= a->timer_us))
        return;
    a->timer_us = max_i64(at_us - UP_US, now_us + 1);
    events_add(a->timer_us, EVENT_DECIDE, i, a->life, NULL);
}

static void claim_beside(int i)
{
    struct claim_call call;
    int64_t next_us;

    if (plan_beside(agent_look(i), clock_us(), &call, &next_us))
        send_claim(i, EVENT_ARRIVE, &call);
    set_timer(i, next_us);
}

static void give_back_stuck(struct worker *w)
{
    for (EACH_AGENT(a, w)) {
        if (a->rows[PREFETCHED].head)
            events_add(now_us, EVENT_DECIDE, (int)(a - agents), a->life, NULL);
        while (a->rows[PREFETCHED].head)
            agent_finish(a, row_pop(&a->rows[PREFETCHED]), true);
    }
    room_was_stuck(&w->all, clock_us());
}

static void take_turn(int i)
{
    const struct claims *c = &agents[i].mind.claims;
    bool calm = !c->wanted && !c->more && !c->starved && !c->duty_until_us;
    struct plan p = plan_turn(agent_look(i), clock_us());

    if (is_measured() && p.claims && calm)
        sums.polls++;
    if (p.turn) {
        begin_turn(i, &p);
        return;
    }
    wait_for(i, p.wait);
    set_timer(i, min_i64(p.next_us, room_stuck_time(&agents[i].worker->all)));
}

void agent_decide(int i)
{
    struct agent *a = &agents[i];

    if (!a->up)
        return;
    if (a->in_flight) {
        claim_beside(i);
        return;
    }
    if (!a->registered) {
        if (a->mind.claims.beside == 0)
            adopt(i);
        return;
    }
    agent_look(i);
    room_measure(&a->worker->all, a->worker->ended, clock_us());
    if (clock_us() >= room_stuck_time(&a->worker->all))
        give_back_stuck(a->worker);
    take_turn(i);
}

/* ---- Answers */

static struct task *new_task(const struct agent *a, const struct claim *claim, const struct lease *lease)
{
    struct task *task = calloc(1, sizeof *task);

    if (!task || lease->token.len >= sizeof task->token)
        abort();
    memcpy(task->token, lease->token.at, lease->token.len);
    task->number = atoi(lease->body.at + strlen("{\"id\":\"j"));
    if (!lease->slot_us)
        return task;
    task->slot_us = lease->slot_us - BEGIN_US;
    task->start_us =
        lease->slot_us > claim->now_us ? distance_local(&a->mind.distance, lease->slot_us) - UP_US : now_us;
    task->start_us = max_i64(task->start_us, now_us);
    task->early = lease->slot_us - claim->now_us > a->mind.claims.early_us;
    return task;
}

/* As many of those with a slot, or of all, as find executors; the others go back: claim.c. */
static void run_jobs(int i, const struct claim *claim, int executors, bool all)
{
    for (size_t k = 0; k < claim->lease_count; k++) {
        struct task *task = new_task(&agents[i], claim, &claim->leases[k]);

        if ((all || (task->slot_us && !task->early)) && executors-- <= 0)
            agent_finish(&agents[i], task, true);
        else
            agent_add(i, task);
    }
}

static struct claim claim; /* the last answer, of any of them */

static void take_claim(int i, const struct turn *turn, int executors)
{
    bool fits;

    must(claim_reply(turn_claim(turn), &claim, &failure));
    fits = hear_claim(agent_look(i), &claim, clock_us());
    run_jobs(i, &claim, fits ? executors : 0, !fits);
    room_adapt(agent_look(i), clock_us());
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
    for (int k = RUNNING; k <= PREFETCHED; k++)
        for (struct task *task = a->rows[k].head; task; task = task->next)
            task->lost |= is_lost(adopt, task);
}

static void take_adopt(int i, const struct redisReply *reply)
{
    struct agent *a = &agents[i];
    struct adopt adopt;

    must(adopt_reply(reply, 1, &adopt, &failure));
    hear_clock(&a->mind, adopt.now_us, clock_us());
    drop_lost(a, &adopt);
    a->registered = true;
    plan_beat_at(&a->mind, clock_us() + plan_beat_wait(&a->mind));
    hear_adopt(&a->mind, adopt.workers);
    adopt_free(&adopt);
}

static void take_beat(int i, const struct redisReply *reply)
{
    struct reaped reaped;

    must(reap_reply(reply, &reaped, &failure));
    hear_beat(agent_look(i), &reaped, clock_us());
}

/* Nothing is ever due at a later time. */
static void take_promoted(int i, const struct redisReply *reply)
{
    struct promoted promoted;

    must(promote_reply(reply, &promoted, &failure));
    hear_promoted(&agents[i].mind, promoted.moved > 0, clock_us());
    hear_due(&agents[i].mind, promoted.now_us, promoted.later_us, clock_us());
    promoted_free(&promoted);
}

void agent_answer(int i, struct turn *turn)
{
    struct agent *a = &agents[i];
    int executors = 0;

    a->in_flight = false;
    if (turn->claims) {
        executors = room_release(agent_look(i), clock_us());
        agents_feed(a->worker);
    }
    if (turn->adopted)
        take_adopt(i, turn->adopted);
    row_free(&a->rows[SENT]);
    if ((turn->beats && !turn->beaten) || (turn->claims && !turn->claimed))
        a->registered = false;
    if (turn->promoted)
        take_promoted(i, turn->promoted);
    if (turn->beaten)
        take_beat(i, turn->beaten);
    if (turn->claimed)
        take_claim(i, turn, executors);
    else if (turn->claims)
        hear_no_claim(&a->mind, true);
    turn_free(turn);
    agent_decide(i);
}

/* As beside.c. */
void agent_answer_beside(int i, struct turn *turn)
{

    if (turn->claimed)
        must(claim_reply(turn->claimed, &claim, &failure));
    hear_beside(agent_look(i), turn->claimed ? &claim : NULL, clock_us());
    if (turn->claimed)
        run_jobs(i, &claim, INT_MAX, false);
    agents[i].registered &= turn->claimed != NULL;
    turn_free(turn);
    agent_decide(i);
}

void agent_answer_standing(int i, struct turn *turn)
{
    struct mind *m = agent_look(i);
    int executors;

    agents[i].waits[WAIT_QUEUE] = false;
    if (hear_stood(m) && agents[i].registered) {
        if (claim_is_declined(turn->claimed)) {
            hear_declined(m);
        } else if (!turn->claimed) {
            hear_lost_standing(m, clock_us());
            agents[i].registered = false;
        } else {
            must(claim_reply(turn->claimed, &claim, &failure));
            executors = hear_standing(m, &claim, clock_us());
            run_jobs(i, &claim, executors, true);
        }
    }
    turn_free(turn);
    agent_decide(i);
}

/* As partition.c; of a token that it does not need waking.c passes on. */
void agent_woken(int i, enum wait wait)
{
    struct agent *a = &agents[i];

    a->waits[wait] = false;
    if (plan_is_woken(agent_look(i), wait == WAIT_BELL, clock_us())) {
        ask_soon(&a->mind, wait != WAIT_QUEUE);
        agent_decide(i);
    } else if (wait != WAIT_QUEUE) {
        events_add(now_us + way(), EVENT_PASS, i, a->epoch, (void *)(intptr_t)wait);
    }
}
