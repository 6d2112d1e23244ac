/* The executors of the worker: what minds are told of them, and what minds have them do. */
#include "worker/partition/inside.h"

static void look(struct partition *p, const struct pool_load *load)
{
    const struct worker *w = p->worker;
    const struct settling *s = &p->settling;

    p->mind.facts = (struct facts){
        .running = load->running,
        .timed = load->queued - load->prefetched - load->early,
        .prefetched = load->prefetched,
        .early = load->early,
        .unlimited = load->unlimited,
        .oldest_us = load->oldest_us,
        .stopping = w->stop.since_us != 0,
        .quiet = atomic_load(&w->ending.quiet),
        .rests = w->resting == w->handlers->word_count,
        .up = p->link && link_is_up(p->link), /* p->link is NULL once the loop has ended */
        .registered = p->session.registered,
        .awaited = p->awaited,
        .here = s->here,
        .here_prefetched = atomic_load(&p->conditions.prefetched),
        .idle = settling_is_idle(p),
        .finished = s->finished.count,
        .finished_us = s->finished.head ? s->finished.head->finished_us : 0,
        .urgent = s->urgent,
        .soon = s->soon,
        .learns = limits_must_learn(p),
        .match_us = p->matching.at_us,
    };
}

void executors_look(struct partition *p)
{
    struct worker *w = p->worker;
    struct pool_load load = pool_load(w->pool);

    for (int i = 0; i < w->partition_count; i++)
        look(w->partitions[i], &load);
    p->mind.facts.along = settling_may_go_along(p);
}

void worker_reserve(struct worker *w)
{
    int reserved = room_reserved(&w->minds);

    if (reserved == w->reserved)
        return;
    w->reserved = reserved;
    pool_reserve(w->pool, reserved);
}

void worker_feed(struct worker *w)
{
    for (int i = 0; w->partition_count > 1 && i < w->partition_count; i++)
        if (w->partitions[i]->mind.capacity.hungry)
            partition_wake(w->partitions[i]);
}

void worker_draw_near(struct worker *w, int64_t now)
{
    struct task_list crowded = {0};

    begin_near(w, pool_draw_near(w->pool, now, &crowded));
    if (!crowded.head)
        return;
    room_was_crowded(&w->minds, now);
    for (const struct task *task = crowded.head; task; task = task->next)
        partition_claim_soon(task->conditions->partition, false);
    tasks_give_back(&crowded);
}

void executors_recall(struct partition *p)
{
    struct task_list early = {0};

    pool_recall(p->worker->pool, &p->conditions, NULL, &early);
    tasks_give_back(&early);
    partition_claim_soon(p, false);
}

void worker_give_back_stuck(struct worker *w, int64_t now)
{
    struct task_list stuck = {0};

    pool_withdraw(w->pool, &stuck);
    tasks_give_back(&stuck);
    room_was_stuck(&w->minds, now);
}
