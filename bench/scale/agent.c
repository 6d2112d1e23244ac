/* The life of workers, and what happens to them. */
#include <stdlib.h>
#include <string.h>

#include "bench/scale/agent.h"

#define RECONNECT_US (100 * MS)

struct worker *workers;
struct agent *agents;
int agent_ids;
static int agent_count;

static void connect(int i)
{
    agents[i].up = true;
    distance_begin(&agents[i].mind.distance);
    agent_decide(i);
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
    agent_ids = 0;
    workers = calloc((size_t)world.workers, sizeof *workers);
    agents = calloc((size_t)agent_count, sizeof *agents);
    if (!workers || !agents)
        abort();
    for (int i = 0; i < world.workers; i++) {
        struct worker *w = &workers[i];

        w->first = i * world.partitions;
        open_minds(w);
        for (EACH_AGENT(a, w)) {
            a->worker = w;
            for (int k = 0; k < ROWS; k++)
                row_init(&a->rows[k]);
            events_add((int64_t)(random_part() * (double)SECOND), EVENT_CONNECT, (int)(a - agents), 0, NULL);
        }
    }
}

static void drop_tasks(struct agent *a)
{
    for (int k = 0; k < ROWS; k++)
        row_free(&a->rows[k]);
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
    while (a->rows[SENT].head) /* nobody knows whether it was settled */
        row_push(&a->rows[FINISHED], row_pop(&a->rows[SENT]));
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
        agent_decide(e->agent);
    else if (e->kind == EVENT_ARRIVE)
        arrive(e);
    else if (e->kind == EVENT_ANSWER)
        agent_answer(e->agent, e->data);
    else if (e->kind == EVENT_BESIDE)
        agent_answer_beside(e->agent, e->data);
    else if (e->kind == EVENT_STAND)
        store_stand(e->agent, e->epoch, e->data);
    else if (e->kind == EVENT_TIMEOUT)
        store_timeout(e->agent);
    else if (e->kind == EVENT_STOOD)
        agent_answer_standing(e->agent, e->data);
    else if (e->kind == EVENT_WAIT)
        store_wait(e->agent, e->epoch, (enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_WAKE)
        agent_woken(e->agent, (enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_PASS)
        store_pass(e->agent, (enum wait)(intptr_t)e->data);
    else if (e->kind == EVENT_NEAR)
        agent_near(e->agent, e->data);
    else if (e->kind == EVENT_BEGIN)
        agent_begin(e->agent, e->data);
    else if (e->kind == EVENT_END)
        agent_end(e->agent, e->data);
    else if (e->kind == EVENT_CONNECT)
        connect(e->agent);
}
