/* A run of one world: what comes from outside, and all events until it is over. */
#include <math.h>
#include <stdlib.h>

#include "bench/scale/scale.h"
#include "core/random.h"

struct world world;
struct sums sums;
int64_t now_us;

static uint64_t state;
static struct job {
    int64_t pushed_us;
    bool started;
} * jobs;
static int job_count;

bool is_measured(void)
{
    return now_us >= world.warm_us && now_us < world.warm_us + world.run_us;
}

double random_part(void)
{
    return random_draw(&state);
}

int64_t way(void)
{
    return world.way_us + (int64_t)(random_part() * (double)world.way_us / 4);
}

bool is_flooded(int partition)
{
    return world.flood > 0 && partition == world.partitions - 1;
}

int64_t job_starts(int number)
{
    jobs[number].started = true;
    return jobs[number].pushed_us;
}

/* ---- What comes from outside */

static void push(int partition)
{
    if (now_us >= world.warm_us + world.run_us)
        return;
    jobs[job_count].pushed_us = now_us;
    store_push(partition, job_count++);
    events_add(now_us + (int64_t)(-log(1 - random_part()) / world.rate * 1e6), EVENT_PUSH, partition, 0,
               NULL);
}

/* Each second: Redis takes no call for 50 ms, every hundredth worker loses its link, and each ten seconds one process is killed; at
 * least one each. */
static void break_something(void)
{
    int cuts = world.workers / 100 > 0 ? world.workers / 100 : 1;

    if (now_us >= world.warm_us + world.run_us)
        return;
    for (int i = 0; i < cuts; i++)
        agent_cut((int)(random_part() * world.workers * world.partitions));
    sums.cut += cuts;
    if (now_us / SECOND % 10 == 0) {
        worker_kill((int)(random_part() * world.workers));
        sums.killed++;
    }
    store_stall(50 * MS);
    events_add(now_us + SECOND, EVENT_FAULT, -1, 0, NULL);
}

void world_run(void)
{
    int64_t end_us = world.warm_us + world.run_us + world.rest_us;
    int served = world.partitions - (world.flood > 0), waiting = served * world.jobs + world.flood;
    size_t most_jobs = (size_t)waiting + (size_t)(served * world.rate * (double)end_us / 1e6 * 2) + 1000;
    struct event event;

    free(sums.late_us);
    sums = (struct sums){0};
    now_us = 0;
    state = world.seed;
    job_count = waiting;
    jobs = calloc(most_jobs, sizeof *jobs);
    if (!jobs)
        abort();
    store_reset();
    agents_start();
    for (int i = 0; i < served && world.jobs == 0; i++)
        events_add(world.warm_us / 2, EVENT_PUSH, i, 0, NULL);
    if (world.faults)
        events_add(world.warm_us, EVENT_FAULT, -1, 0, NULL);
    while (events_next(&event) && event.at_us < end_us) {
        now_us = event.at_us;
        if (event.kind == EVENT_PUSH)
            push(event.agent);
        else if (event.kind == EVENT_FAULT)
            break_something();
        else
            agent_event(&event);
    }
    sums.share = agents_share();
    for (int i = 0; i < job_count; i++)
        sums.lost += !jobs[i].started;
    agents_stop();
    events_clear();
    free(jobs);
}
