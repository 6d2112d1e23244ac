#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scale/scale.h"
#include "core/clock.h"
#include "core/random.h"

struct plan plan;
struct sums sums;
int64_t now_us;

static uint64_t state;
static int64_t *pushes;
static int pushed;

bool is_measured(void)
{
    return now_us >= plan.warm_us;
}

double random_part(void)
{
    return random_draw(&state);
}

int64_t way(void)
{
    return plan.way_us + (int64_t)(random_part() * (double)plan.way_us / 4);
}

void must(int rc, const struct error *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "weir-scale: %s\n", e->text);
    store_close();
    exit(-rc);
}

int64_t pushed_us(int number)
{
    return number < pushed ? pushes[number] : 0;
}

/* ---- What comes from outside */

static void push(void)
{
    int64_t end_us = plan.warm_us + plan.run_us;

    if (now_us >= end_us)
        return;
    pushes[pushed] = now_us;
    store_push(pushed++);
    events_add(now_us + (int64_t)(-log(1 - random_part()) / plan.rate * 1e6), EVENT_PUSH, -1, 0, NULL);
}

/* Each second: Redis takes no call for 50 ms, every hundredth worker loses its link, and each ten seconds one process is killed; at
 * least one each. */
static void fail(void)
{
    int cuts = plan.workers / 100 > 0 ? plan.workers / 100 : 1;

    for (int i = 0; i < cuts; i++)
        agent_cut((int)(random_part() * plan.workers));
    sums.cut += cuts;
    if (now_us / SECOND % 10 == 0) {
        agent_kill((int)(random_part() * plan.workers));
        sums.killed++;
    }
    store_stall(50 * MS);
    events_add(now_us + SECOND, EVENT_FAULT, -1, 0, NULL);
}

/* ---- A run */

static int compare_us(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static double late_ms(double part)
{
    return sums.late_count ? (double)sums.late_us[(size_t)(part * (double)(sums.late_count - 1))] / 1e3 : 0;
}

static void print_row(double real_s)
{
    double seconds = (double)plan.run_us / 1e6, starts = sums.starts > 0 ? (double)sums.starts : 1;

    qsort(sums.late_us, sums.late_count, sizeof *sums.late_us, compare_us);
    printf("| %d | %.4f | %.2f | %.2f | %.2f | %.1f %% | %.2f / %.2f / %.1f ms | %.1f | %lld |\n",
           plan.workers, (double)sums.starts / (plan.rate * seconds), (double)sums.claims / starts,
           (double)sums.polls / starts, (double)sums.calls / starts,
           100 * (double)sums.busy_us / (double)plan.run_us, late_ms(0.5), late_ms(0.99), late_ms(0.999),
           agents_share(), sums.before);
    fprintf(stderr, "  %d workers: %lld starts, %lld given back, %lld too late, %.1f s of this machine\n",
            plan.workers, sums.starts, sums.early_back, sums.lost_slots, real_s);
    fflush(stdout);
}

static void run(void)
{
    int64_t end_us = plan.warm_us + plan.run_us, began_us = clock_mono_us();
    double jobs = plan.rate * (double)end_us / 1e6;
    struct event event;

    free(sums.late_us);
    sums = (struct sums){0};
    now_us = 0;
    state = plan.seed;
    pushed = 0;
    pushes = calloc((size_t)(jobs * 2) + 1000, sizeof *pushes);
    store_reset(plan.burst > 0 ? (int)jobs + plan.burst + 1000 : 0);
    agents_start(plan.workers);
    if (plan.burst == 0)
        events_add(plan.warm_us / 2, EVENT_PUSH, -1, 0, NULL);
    if (plan.faults)
        events_add(plan.warm_us, EVENT_FAULT, -1, 0, NULL);
    while (events_next(&event) && event.at_us < end_us) {
        now_us = event.at_us;
        if (event.kind == EVENT_PUSH)
            push();
        else if (event.kind == EVENT_FAULT)
            fail();
        else
            agent_event(&event);
    }
    print_row((double)(clock_mono_us() - began_us) / 1e6);
    agents_stop();
    events_clear();
    free(pushes);
}

/* ---- The table */

static const struct {
    const char *name, *what;
    struct plan plan;
} worlds[] = {
    {"fast",
     "1,000/s, burst 100, jobs of 5 ms, 0.2 ms of round trip",
     {.executors = 10, .rate = 1000, .burst = 100, .job_us = 5 * MS, .way_us = 100}},
    {"slow",
     "100/s, burst 10, jobs of 5 ms, 0.2 ms of round trip",
     {.executors = 10, .rate = 100, .burst = 10, .job_us = 5 * MS, .way_us = 100}},
    {"far",
     "1,000/s, burst 100, jobs of 5 ms, 10 ms of round trip",
     {.executors = 40, .rate = 1000, .burst = 100, .job_us = 5 * MS, .way_us = 5 * MS}},
    {"faults",
     "1,000/s, burst 100, jobs of 5 ms, 0.2 ms of round trip, faults",
     {.executors = 10, .rate = 1000, .burst = 100, .job_us = 5 * MS, .way_us = 100, .faults = true}},
    {"sparse",
     "no limit, jobs come one by one at 200/s, 0.2 ms of round trip",
     {.executors = 10, .rate = 200, .job_us = 5 * MS, .way_us = 100}},
};
#define WORLDS (sizeof worlds / sizeof *worlds)

static void run_world(size_t i, int most, double seconds, uint64_t seed)
{
    printf("\n%s: %s\n\n", worlds[i].name, worlds[i].what);
    puts("| workers | rate kept | claims a job | of them polls | calls a job | Redis busy | late p50 / p99 / "
         "p99.9 | busiest | early |");
    puts("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (int workers = 1; workers <= most; workers *= 10) {
        plan = worlds[i].plan;
        plan.workers = workers;
        plan.warm_us = 4 * SECOND;
        plan.run_us = (int64_t)(seconds * 1e6);
        plan.seed = seed;
        run();
    }
}

static const char usage[] = "usage: weir-scale [--most WORKERS] [--seconds S] [--seed N] [--only WORLD]\n"
                            "Runs 1, 10, 100 ... workers under virtual time on a redis-server of its own.\n";

int main(int argc, char **argv)
{
    static const struct option options[] = {{"most", required_argument, NULL, 'm'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"seed", required_argument, NULL, 'r'},
                                            {"only", required_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    const char *only = NULL;
    double seconds = 10;
    uint64_t seed = 1;
    int most = 10000, c;
    struct error e;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'm')
            most = atoi(optarg);
        else if (c == 's')
            seconds = atof(optarg);
        else if (c == 'r')
            seed = strtoull(optarg, NULL, 10);
        else if (c == 'o')
            only = optarg;
        else
            return fputs(usage, stderr), -WEIR_EUSAGE;
    }
    store_open(&e);
    for (size_t i = 0; i < WORLDS; i++)
        if (!only || strcmp(only, worlds[i].name) == 0)
            run_world(i, most, seconds, seed);
    free(sums.late_us);
    store_close();
    return 0;
}
