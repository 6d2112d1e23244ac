/* Workers: their links, their executors and what happens to them. An agent is one partition of a worker, and the agents of a worker share its
 * executors. What they decide is worker/mind/, as in a real one: each function here that does as a file of worker/partition/ or worker/parts/
 * does names it. Each serves one queue and one type. Their clock is the simulation's. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scale/scale.h"
#include "core/number.h"

#define UP_US (3600 * SECOND) /* its machine has been up for so long when a run begins */
#define NEAR_TASK_US (5 * MS) /* pool.c */
#define LATE_US (50 * MS)     /* claim.c */
#define ALONG_MOST 16         /* settle.h */
#define RECONNECT_US (100 * MS)

struct worker {
    int first; /* of its agents */
    struct minds all;
    int running, unlimited; /* of them without a limit */
    uint64_t ended;
};
struct agent {
    struct worker *worker;
    char id[ID_SIZE], old[ID_SIZE];
    int life;  /* a number that changes when it is killed, */
    int epoch; /* and when its link is cut */
    bool up, registered, in_flight, waits[WAITS];
    bool gives_back, frees_slots; /* among the finished are such that go back; with slots */
    int64_t timer_us;
    struct mind mind;
    struct task_row timed, early, prefetched, run, finished, sent;
    long long starts;
};

static struct worker *workers;
static struct agent *agents;
static int agent_count, ids;

#define EACH_AGENT(a, w)                                                                                     \
    struct agent *a = agents + (w)->first;                                                                   \
    a < agents + (w)->first + world.partitions;                                                              \
    a++

static void decide(int i);

/* Its own clock. */
static int64_t clock_us(void)
{
    return now_us + UP_US;
}

/* What waits for an executor, or for its time, in all partitions of a worker. */
struct load {
    int timed, early, prefetched;
    struct agent *first; /* that has the oldest of the prefetched */
};

static struct load load_of(const struct worker *w)
{
    struct load load = {0};

    for (EACH_AGENT(a, w)) {
        load.timed += a->timed.count;
        load.early += a->early.count;
        load.prefetched += a->prefetched.count;
        if (a->prefetched.head &&
            (!load.first || a->prefetched.head->came_us < load.first->prefetched.head->came_us))
            load.first = a;
    }
    return load;
}

/* As executors.c: the facts of all partitions. */
static struct mind *look(int i)
{
    const struct worker *w = agents[i].worker;
    struct load load = load_of(w);

    for (EACH_AGENT(a, w)) {
        const struct task *first = a->finished.head;
        int here = a->run.count + a->timed.count + a->early.count + a->prefetched.count;

        a->mind.facts = (struct facts){
            .running = w->running,
            .timed = load.timed,
            .prefetched = load.prefetched,
            .early = load.early,
            .unlimited = w->unlimited,
            .oldest_us = load.first ? load.first->prefetched.head->came_us : 0,
            .up = a->up,
            .registered = a->registered,
            .awaited = a->in_flight,
            .here = here,
            .here_prefetched = a->prefetched.count,
            .idle = here == 0 && !first && !a->sent.head && a->mind.claims.beside == 0,
            .finished = a->finished.count,
            .finished_us = first ? first->finished_us : 0,
            .urgent = a->frees_slots,
            .soon = a->gives_back,
            .along = first && !a->gives_back && a->finished.count <= ALONG_MOST && !a->sent.head,
        };
    }
    return &agents[i].mind;
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
    task->finished_us = clock_us();
    a->gives_back |= back;
    a->frees_slots |= back && task->slot_us;
    row_push(&a->finished, task);
    if (is_measured() && back)
        sums.early_back++;
}

static void note_start(struct agent *a, const struct task *task)
{
    int partition = (int)(a - agents) % world.partitions;
    int64_t pushed_us = job_starts(task->number),
            late_us = now_us - (task->slot_us ? task->slot_us : pushed_us);

    sums.begun_of[partition] += now_us < world.warm_us + world.run_us;
    if (!is_measured())
        return;
    a->starts++;
    sums.starts++;
    sums.starts_of[partition]++;
    sums.before += task->slot_us && late_us < 0;
    if (is_flooded(partition))
        return;
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

    a->worker->running++;
    a->worker->unlimited += task->slot_us == 0;
    row_push(&a->run, task);
    note_start(a, task);
    events_add(now_us + world.job_us, EVENT_END, i, a->life, task);
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
    if (now_us <= task->start_us + max_i64(LATE_US, 2 * distance_trip(&a->mind.distance))) {
        run(i, task);
        return;
    }
    if (is_measured())
        sums.lost_slots++;
    finish(a, task, true);
    decide(i);
}

/* As pool_draw_near(). */
static void draw_near(int i, struct task *task)
{
    struct agent *a = &agents[i];

    take_out(&a->early, task);
    if (task->lost) {
        free(task);
        return;
    }
    if (a->worker->running + load_of(a->worker).timed < world.executors) {
        hold(i, task);
        return;
    }
    finish(a, task, true);
    room_was_crowded(&a->worker->all, clock_us());
    ask_soon(&a->mind, false);
    decide(i);
}

/* To a job without a limit. */
static bool is_open(const struct worker *w)
{
    return w->running + load_of(w).timed < world.executors &&
           w->unlimited < world.executors - room_reserved(&w->all);
}

static void add(int i, struct task *task)
{
    struct agent *a = &agents[i];

    if (task->early) {
        row_push(&a->early, task);
        events_add(task->start_us - NEAR_TASK_US, EVENT_NEAR, i, a->life, task);
    } else if (task->slot_us) {
        hold(i, task);
    } else if (is_open(a->worker)) {
        run(i, task);
    } else {
        task->came_us = clock_us();
        row_push(&a->prefetched, task);
    }
}

/* As worker_feed(). */
static void feed(const struct worker *w)
{
    for (EACH_AGENT(a, w))
        if (world.partitions > 1 && a->mind.capacity.hungry)
            events_add(now_us, EVENT_DECIDE, (int)(a - agents), a->life, NULL);
}

static void end(int i, struct task *task)
{
    struct agent *a = &agents[i], *next;
    struct worker *w = a->worker;

    w->running--;
    w->unlimited -= task->slot_us == 0;
    w->ended++;
    take_out(&a->run, task);
    if (task->lost)
        free(task);
    else
        finish(a, task, false);
    while ((next = load_of(w).first) && is_open(w))
        run((int)(next - agents), row_pop(&next->prefetched));
    decide(i);
    feed(w);
}

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
    if (wait == WAIT_QUEUE && plan_standing(look(i), clock_us(), &call))
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
    struct turn *turn;

    snprintf(a->old, sizeof a->old, "%s", a->id);
    snprintf(a->id, sizeof a->id, "w%d", ids++);
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
    row_take(&a->sent, &a->finished);
    turn->settles = a->sent;
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

    if (plan_beside(look(i), clock_us(), &call, &next_us))
        send_claim(i, EVENT_ARRIVE, &call);
    set_timer(i, next_us);
}

static void give_back_stuck(struct worker *w)
{
    for (EACH_AGENT(a, w)) {
        if (a->prefetched.head)
            events_add(now_us, EVENT_DECIDE, (int)(a - agents), a->life, NULL);
        while (a->prefetched.head)
            finish(a, row_pop(&a->prefetched), true);
    }
    room_was_stuck(&w->all, clock_us());
}

static void take_turn(int i)
{
    const struct claims *c = &agents[i].mind.claims;
    bool calm = !c->wanted && !c->more && !c->starved && !c->duty_until_us;
    struct plan p = plan_turn(look(i), clock_us());

    if (is_measured() && p.claims && calm)
        sums.polls++;
    if (p.turn) {
        begin_turn(i, &p);
        return;
    }
    wait_for(i, p.wait);
    set_timer(i, min_i64(p.next_us, room_stuck_time(&agents[i].worker->all)));
}

static void decide(int i)
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
    look(i);
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
            finish(&agents[i], task, true);
        else
            add(i, task);
    }
}

static struct claim claim; /* the last answer, of any of them */

static void take_claim(int i, const struct turn *turn, int executors)
{
    bool fits;

    must(claim_reply(turn_claim(turn), &claim, &failure));
    fits = hear_claim(look(i), &claim, clock_us());
    run_jobs(i, &claim, fits ? executors : 0, !fits);
    room_adapt(look(i), clock_us());
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
    hear_beat(look(i), &reaped, clock_us());
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

static void answer(int i, struct turn *turn)
{
    struct agent *a = &agents[i];
    int executors = 0;

    a->in_flight = false;
    if (turn->claims) {
        executors = room_release(look(i), clock_us());
        feed(a->worker);
    }
    if (turn->adopted)
        take_adopt(i, turn->adopted);
    row_free(&a->sent);
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
    decide(i);
}

/* As beside.c. */
static void answer_beside(int i, struct turn *turn)
{

    if (turn->claimed)
        must(claim_reply(turn->claimed, &claim, &failure));
    hear_beside(look(i), turn->claimed ? &claim : NULL, clock_us());
    if (turn->claimed)
        run_jobs(i, &claim, INT_MAX, false);
    agents[i].registered &= turn->claimed != NULL;
    turn_free(turn);
    decide(i);
}

static void answer_standing(int i, struct turn *turn)
{
    struct mind *m = look(i);
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
    decide(i);
}

/* As partition.c; of a token that it does not need waking.c passes on. */
static void woken(int i, enum wait wait)
{
    struct agent *a = &agents[i];

    a->waits[wait] = false;
    if (plan_is_woken(look(i), wait == WAIT_BELL, clock_us())) {
        ask_soon(&a->mind, wait != WAIT_QUEUE);
        decide(i);
    } else if (wait != WAIT_QUEUE) {
        events_add(now_us + way(), EVENT_PASS, i, a->epoch, (void *)(intptr_t)wait);
    }
}

/* ---- Life */

static void connect(int i)
{
    agents[i].up = true;
    distance_begin(&agents[i].mind.distance);
    decide(i);
}

static void open_minds(struct worker *w)
{
    w->all = (struct minds){.executors = world.executors,
                            .queue_count = 1,
                            .type_count = 1,
                            .lease_us = LEASE_US,
                            .count = world.partitions};
    for (EACH_AGENT(a, w)) {
        w->all.at[a - agents - w->first] = &a->mind;
        a->mind = (struct mind){.all = &w->all, .random = (uint64_t)(random_part() * 9e15)};
    }
}

void agents_start(void)
{
    agent_count = world.workers * world.partitions;
    ids = 0;
    workers = calloc((size_t)world.workers, sizeof *workers);
    agents = calloc((size_t)agent_count, sizeof *agents);
    if (!workers || !agents)
        abort();
    for (int i = 0; i < world.workers; i++) {
        struct worker *w = &workers[i];

        w->first = i * world.partitions;
        open_minds(w);
        for (EACH_AGENT(a, w)) {
            struct task_row *const rows[] = {&a->timed, &a->early,    &a->prefetched,
                                             &a->run,   &a->finished, &a->sent};

            a->worker = w;
            for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
                row_init(rows[k]);
            events_add((int64_t)(random_part() * (double)SECOND), EVENT_CONNECT, (int)(a - agents), 0, NULL);
        }
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
    free(workers);
    agents = NULL;
    workers = NULL;
}

/* All that was under way is lost. */
static void lose_link(int i)
{
    struct agent *a = &agents[i];

    if (a->in_flight)
        hear_no_claim(&a->mind, true);
    while (a->mind.claims.beside > 0)
        hear_beside(&a->mind, NULL, clock_us());
    hear_stood(&a->mind);
    a->epoch++;
    a->up = a->registered = a->in_flight = false;
    memset(a->waits, 0, sizeof a->waits);
    store_forget(i);
}

/* Another process takes its place a second later. */
void worker_kill(int i)
{
    struct worker *w = &workers[i];

    for (EACH_AGENT(a, w)) {
        lose_link((int)(a - agents));
        drop_tasks(a);
        a->life++;
        a->timer_us = 0;
        a->id[0] = '\0';
        events_add(now_us + SECOND, EVENT_CONNECT, (int)(a - agents), a->epoch, NULL);
    }
    open_minds(w);
    w->running = w->unlimited = 0;
    w->ended = 0;
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

    for (int i = 0; i < world.workers; i++) {
        long long starts = 0;

        for (EACH_AGENT(a, &workers[i]))
            starts += a->starts;
        all += starts;
        most = starts > most ? starts : most;
    }
    return all ? (double)most * world.workers / (double)all : 0;
}

static void arrive(const struct event *e)
{
    struct turn *turn = e->data;

    events_add(store_turn(turn) + way(), turn->beside ? EVENT_BESIDE : EVENT_ANSWER, e->agent, e->epoch,
               turn);
}

void agent_event(const struct event *e)
{
    struct agent *a = &agents[e->agent];
    bool of_life =
        e->kind == EVENT_DECIDE || e->kind == EVENT_NEAR || e->kind == EVENT_BEGIN || e->kind == EVENT_END;

    if (e->epoch != (of_life ? a->life : a->epoch)) {
        if (event_has_turn(e->kind))
            turn_free(e->data);
        return;
    }
    if (e->kind == EVENT_DECIDE)
        decide(e->agent);
    else if (e->kind == EVENT_ARRIVE)
        arrive(e);
    else if (e->kind == EVENT_ANSWER)
        answer(e->agent, e->data);
    else if (e->kind == EVENT_BESIDE)
        answer_beside(e->agent, e->data);
    else if (e->kind == EVENT_STAND)
        store_stand(e->agent, e->epoch, e->data);
    else if (e->kind == EVENT_TIMEOUT)
        store_timeout(e->agent);
    else if (e->kind == EVENT_STOOD)
        answer_standing(e->agent, e->data);
    else if (e->kind == EVENT_WAIT)
        store_wait(e->agent, e->epoch, (enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_WAKE)
        woken(e->agent, (enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_PASS)
        store_pass(e->agent, (enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_NEAR)
        draw_near(e->agent, e->data);
    else if (e->kind == EVENT_BEGIN)
        begin(e->agent, e->data);
    else if (e->kind == EVENT_END)
        end(e->agent, e->data);
    else if (e->kind == EVENT_CONNECT)
        connect(e->agent);
}
