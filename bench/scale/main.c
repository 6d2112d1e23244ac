#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scale/scale.h"
#include "core/clock.h"

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
    double seconds = (double)world.run_us / 1e6, starts = sums.starts > 0 ? (double)sums.starts : 1;

    qsort(sums.late_us, sums.late_count, sizeof *sums.late_us, compare_us);
    printf("| %d | %.4f | %.2f | %.2f | %.2f | %.1f %% | %.2f / %.2f / %.1f ms | %.1f | %lld |\n",
           world.workers, (double)sums.starts / (world.rate * seconds), (double)sums.claims / starts,
           (double)sums.polls / starts, (double)sums.calls / starts,
           100 * (double)sums.busy_us / (double)world.run_us, late_ms(0.5), late_ms(0.99), late_ms(0.999),
           sums.share, sums.before);
    fprintf(stderr, "  %d workers: %lld starts, %lld given back, %lld too late, %.1f s of this machine\n",
            world.workers, sums.starts, sums.early_back, sums.lost_slots, real_s);
    fflush(stdout);
}

/* ---- The table */

static const struct {
    const char *name, *what;
    struct world world;
} worlds[] = {
    {"fast",
     "1,000/s, burst 100, jobs of 5 ms, 0.2 ms of round trip",
     {.partitions = 1, .executors = 10, .rate = 1000, .burst = 100, .job_us = 5 * MS, .way_us = 100}},
    {"slow",
     "100/s, burst 10, jobs of 5 ms, 0.2 ms of round trip",
     {.partitions = 1, .executors = 10, .rate = 100, .burst = 10, .job_us = 5 * MS, .way_us = 100}},
    {"far",
     "1,000/s, burst 100, jobs of 5 ms, 10 ms of round trip",
     {.partitions = 1, .executors = 40, .rate = 1000, .burst = 100, .job_us = 5 * MS, .way_us = 5 * MS}},
    {"faults",
     "1,000/s, burst 100, jobs of 5 ms, 0.2 ms of round trip, faults",
     {.partitions = 1,
      .executors = 10,
      .rate = 1000,
      .burst = 100,
      .job_us = 5 * MS,
      .way_us = 100,
      .faults = true}},
    {"sparse",
     "no limit, jobs come one by one at 200/s, 0.2 ms of round trip",
     {.partitions = 1, .executors = 10, .rate = 200, .job_us = 5 * MS, .way_us = 100}},
};
#define WORLDS (sizeof worlds / sizeof *worlds)

static void run_world(size_t i, int most, double seconds, uint64_t seed)
{
    int64_t began_us;

    printf("\n%s: %s\n\n", worlds[i].name, worlds[i].what);
    puts("| workers | rate kept | claims a job | of them polls | calls a job | Redis busy | late p50 / p99 / "
         "p99.9 | busiest | early |");
    puts("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (int workers = 1; workers <= most; workers *= 10) {
        world = worlds[i].world;
        world.workers = workers;
        world.warm_us = 4 * SECOND;
        world.run_us = (int64_t)(seconds * 1e6);
        world.seed = seed;
        if (world.burst > 0) /* a backlog that lasts */
            world.jobs =
                (int)(world.rate * (double)(world.warm_us + world.run_us) / 1e6) + world.burst + 1000;
        began_us = clock_mono_us();
        world_run();
        print_row((double)(clock_mono_us() - began_us) / 1e6);
    }
}

static const char usage[] =
    "usage: weir-scale [--most WORKERS] [--seconds S] [--seed N] [--only WORLD] [--worlds COUNT]\n"
    "Runs 1, 10, 100 ... workers under virtual time on a redis-server of its own;\n"
    "or so many random worlds, from the seed on.\n";

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"most", required_argument, NULL, 'm'},   {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'r'},   {"only", required_argument, NULL, 'o'},
        {"worlds", required_argument, NULL, 'w'}, {NULL, 0, NULL, 0}};
    const char *only = NULL;
    double seconds = 10;
    uint64_t seed = 1;
    long random_worlds = 0;
    int wrong = 0, most = 10000, c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'm')
            most = atoi(optarg);
        else if (c == 's')
            seconds = atof(optarg);
        else if (c == 'r')
            seed = strtoull(optarg, NULL, 10);
        else if (c == 'o')
            only = optarg;
        else if (c == 'w')
            random_worlds = atol(optarg);
        else
            return fputs(usage, stderr), -WEIR_EUSAGE;
    }
    store_open();
    if (random_worlds > 0)
        wrong = worlds_run(seed, random_worlds);
    for (size_t i = 0; i < WORLDS && random_worlds == 0; i++)
        if (!only || strcmp(only, worlds[i].name) == 0)
            run_world(i, most, seconds, seed);
    free(sums.late_us);
    store_close();
    return wrong > 0;
}
