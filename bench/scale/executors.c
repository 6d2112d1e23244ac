/* The executors of a worker, and the tasks of its agents. */
#include <stdlib.h>

#include "bench/scale/agent.h"

#define NEAR_TASK_US (5 * MS) /* pool.c */
#define LATE_US (50 * MS)     /* claim.c */
#define ALONG_MOST 16         /* settle.h */

/* Its own clock. */
int64_t clock_us(void)
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
        load.timed += a->rows[TIMED].count;
        load.early += a->rows[EARLY].count;
        load.prefetched += a->rows[PREFETCHED].count;
        if (a->rows[PREFETCHED].head &&
            (!load.first || a->rows[PREFETCHED].head->came_us < load.first->rows[PREFETCHED].head->came_us))
            load.first = a;
    }
    return load;
}

/* As worker/partition/executors.c: the facts of all partitions. */
struct mind *agent_look(int i)
{
    const struct worker *w = agents[i].worker;
    struct load load = load_of(w);

    for (EACH_AGENT(a, w)) {
        const struct task *first = a->rows[FINISHED].head;
        int here =
            a->rows[RUNNING].count + a->rows[TIMED].count + a->rows[EARLY].count + a->rows[PREFETCHED].count;

        a->mind.facts = (struct facts){
            .running = w->running,
            .timed = load.timed,
            .prefetched = load.prefetched,
            .early = load.early,
            .unlimited = w->unlimited,
            .oldest_us = load.first ? load.first->rows[PREFETCHED].head->came_us : 0,
            .up = a->up,
            .registered = a->registered,
            .awaited = a->in_flight,
            .here = here,
            .here_prefetched = a->rows[PREFETCHED].count,
            .idle = here == 0 && !first && !a->rows[SENT].head && a->mind.claims.beside == 0,
            .finished = a->rows[FINISHED].count,
            .finished_us = first ? first->finished_us : 0,
            .urgent = a->frees_slots,
            .soon = a->gives_back,
            .along = first && !a->gives_back && a->rows[FINISHED].count <= ALONG_MOST && !a->rows[SENT].head,
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

void agent_finish(struct agent *a, struct task *task, bool back)
{
    task->back = back;
    task->finished_us = clock_us();
    a->gives_back |= back;
    a->frees_slots |= back && task->slot_us;
    row_push(&a->rows[FINISHED], task);
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

static void agent_run(int i, struct task *task)
{
    struct agent *a = &agents[i];

    a->worker->running++;
    a->worker->unlimited += task->slot_us == 0;
    row_push(&a->rows[RUNNING], task);
    note_start(a, task);
    events_add(now_us + world.job_us, EVENT_END, i, a->life, task);
}

/* It holds its executor until its time. */
static void hold(int i, struct task *task)
{
    row_push(&agents[i].rows[TIMED], task);
    events_add(task->start_us, EVENT_BEGIN, i, agents[i].life, task);
}

void agent_begin(int i, struct task *task)
{
    struct agent *a = &agents[i];

    take_out(&a->rows[TIMED], task);
    if (task->lost) {
        free(task);
        return;
    }
    if (now_us <= task->start_us + max_i64(LATE_US, 2 * distance_trip(&a->mind.distance))) {
        agent_run(i, task);
        return;
    }
    if (is_measured())
        sums.lost_slots++;
    agent_finish(a, task, true);
    agent_decide(i);
}

/* As pool_draw_near(). */
void agent_near(int i, struct task *task)
{
    struct agent *a = &agents[i];

    take_out(&a->rows[EARLY], task);
    if (task->lost) {
        free(task);
        return;
    }
    if (a->worker->running + load_of(a->worker).timed < world.executors) {
        hold(i, task);
        return;
    }
    agent_finish(a, task, true);
    room_was_crowded(&a->worker->all, clock_us());
    ask_soon(&a->mind, false);
    agent_decide(i);
}

/* To a job without a limit. */
static bool is_open(const struct worker *w)
{
    return w->running + load_of(w).timed < world.executors &&
           w->unlimited < world.executors - room_reserved(&w->all);
}

void agent_add(int i, struct task *task)
{
    struct agent *a = &agents[i];

    if (task->early) {
        row_push(&a->rows[EARLY], task);
        events_add(task->start_us - NEAR_TASK_US, EVENT_NEAR, i, a->life, task);
    } else if (task->slot_us) {
        hold(i, task);
    } else if (is_open(a->worker)) {
        agent_run(i, task);
    } else {
        task->came_us = clock_us();
        row_push(&a->rows[PREFETCHED], task);
    }
}

/* As worker_feed(). */
void agents_feed(const struct worker *w)
{
    for (EACH_AGENT(a, w))
        if (world.partitions > 1 && a->mind.capacity.hungry)
            events_add(now_us, EVENT_DECIDE, (int)(a - agents), a->life, NULL);
}

void agent_end(int i, struct task *task)
{
    struct agent *a = &agents[i], *next;
    struct worker *w = a->worker;

    w->running--;
    w->unlimited -= task->slot_us == 0;
    w->ended++;
    take_out(&a->rows[RUNNING], task);
    if (task->lost)
        free(task);
    else
        agent_finish(a, task, false);
    while ((next = load_of(w).first) && is_open(w))
        agent_run((int)(next - agents), row_pop(&next->rows[PREFETCHED]));
    agent_decide(i);
    agents_feed(w);
}
