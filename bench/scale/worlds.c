/* Random worlds: what a worker promises holds, whatever its executors, its link, its limit and its faults are. A seed gives the same world on
 * any machine. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/scale/scale.h"
#include "core/number.h"
#include "core/random.h"

#define FLOOD_MOST 20000 /* jobs without a limit that wait */
#define NEAR_US 300      /* what calls cost Redis meanwhile */
#define ONE_OF(random, ...)                                                                                  \
    one_of(random, (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static int64_t one_of(uint64_t *random, const int64_t values[], size_t count)
{
    return values[(size_t)(random_draw(random) * (double)count)];
}

/* Of all executors for one partition, in a second: each job holds one for two round trips more, as a rule less. */
static double capacity(void)
{
    double each_us = (double)(world.job_us + 5 * world.way_us + 5 * MS);

    return world.workers * world.executors / each_us * 1e6 / world.partitions;
}

/* A job of a worker that is killed comes back when its lease ends. */
static void draw(uint64_t seed)
{
    uint64_t random = seed;
    bool waits;

    world = (struct world){
        .seed = seed, .partitions = 1, .warm_us = 2 * SECOND, .run_us = 3 * SECOND, .rest_us = 12 * SECOND};
    world.workers = (int)ONE_OF(&random, 1, 2, 3, 10, 30, 64);
    world.executors = (int)ONE_OF(&random, 1, 2, 8, 20, 40);
    world.job_us = ONE_OF(&random, 0, 1 * MS, 5 * MS, 30 * MS);
    world.way_us = ONE_OF(&random, 50, 100, 500, 3 * MS, 20 * MS);
    world.rate = (double)ONE_OF(&random, 20, 100, 300, 1000);
    world.burst = (int)ONE_OF(&random, 0, 1, 10, 100);
    world.faults = ONE_OF(&random, 0, 0, 1);
    waits = ONE_OF(&random, 0, 1);
    world.partitions = (int)ONE_OF(&random, 1, 2, 3, SPREAD_MOST);
    if (world.partitions > 1 && ONE_OF(&random, 0, 1))
        world.flood = (int)fmin(10 * world.partitions * capacity(), FLOOD_MOST / 2.0);
    if (world.faults) {
        world.warm_us = 8 * SECOND;
        world.rest_us = LEASE_US + 10 * SECOND;
    }
    if (waits && world.burst > 0)
        world.jobs = (int)(world.rate * (double)(world.warm_us + world.run_us + SECOND) / 1e6) + world.burst;
    else if (waits)
        world.jobs = (int)fmin(10 * capacity(), (double)FLOOD_MOST / world.partitions);
}

static int compare_us(const void *a, const void *b)
{
    return by_number(*(const int64_t *)a, *(const int64_t *)b);
}

/* Of a job that comes alone: it wakes a worker by half of a round trip, which claims. */
static double usual_late_us(void)
{
    if (sums.late_count == 0)
        return 0;
    qsort(sums.late_us, sums.late_count, sizeof *sums.late_us, compare_us);
    return (double)sums.late_us[sums.late_count / 2];
}

static int complain(const char *what, double is, double bound)
{
    printf("seed %" PRIu64
           ": %s: %.2f, and may be %.2f: %d workers with %d executors, %d partitions, jobs of "
           "%.1f ms, %.2f ms of way, %.0f/s, burst %d, %d jobs, flood of %d%s\n",
           world.seed, what, is, bound, world.workers, world.executors, world.partitions,
           (double)world.job_us / 1e3, (double)world.way_us / 1e3, world.rate, world.burst, world.jobs,
           world.flood, world.faults ? ", faults" : "");
    return 1;
}

/* What one partition has started. A slot that is used late lies in an earlier window. */
static int check_starts(double starts)
{
    double seconds = (double)world.run_us / 1e6, at_most = world.rate * (seconds + 0.05) + world.burst + 1;
    bool lasts = world.burst > 0 && world.jobs > 0 && capacity() > 2 * world.rate;
    double least = world.faults ? world.workers > 2 ? 0.6 : 0 : 0.95;
    int wrong = 0;

    if (world.burst > 0 && starts > at_most)
        wrong += complain("starts", starts, at_most);
    if (lasts && starts < least * world.rate * seconds)
        wrong += complain("starts, least", starts, least * world.rate * seconds);
    return wrong;
}

/* Partitions in which jobs wait for nothing but executors have the same number of them each. */
static int check_shares(void)
{
    int first = world.flood > 0 ? world.partitions - 1 : 0, wrong = 0;
    long long most = world.flood > 0 ? world.flood : world.jobs;
    double seconds = (double)world.run_us / 1e6, mean = (double)sums.starts / world.partitions;
    double least = 0.5 * (world.flood > 0 ? capacity() * seconds : mean);

    for (int i = first; i < world.partitions; i++)
        if (sums.begun_of[i] < most && (double)sums.starts_of[i] < least)
            wrong += complain("starts of a partition, least", (double)sums.starts_of[i], least);
    return wrong;
}

static int check(void)
{
    int served = world.partitions - (world.flood > 0);
    double starts = (double)sums.starts, asks = 5 * starts + (10 * world.workers + 30) * world.partitions;
    bool is_flood = world.burst == 0 && world.jobs > 0;
    int wrong = 0;

    if (sums.before > 0)
        wrong += complain("starts before their slot", (double)sums.before, 0);
    for (int i = 0; i < served; i++)
        wrong += check_starts((double)sums.starts_of[i]);
    if ((is_flood || capacity() > 2 * world.rate) && sums.lost > 0)
        wrong += complain("jobs that have not started", (double)sums.lost, 0);
    if (world.jobs == 0 && world.burst == 0 && !world.faults && capacity() > 8 * world.rate &&
        usual_late_us() > 5 * (double)world.way_us + NEAR_US)
        wrong += complain("us from a push to its start", usual_late_us(), 5 * (double)world.way_us + NEAR_US);
    if ((double)sums.claims > asks)
        wrong += complain("claims", (double)sums.claims, asks);
    if (is_flood && starts > 50 * world.workers && sums.share > 2)
        wrong += complain("part of the busiest worker", sums.share, 2);
    if ((is_flood || world.flood > 0) && !world.faults && starts > 50 * world.workers * world.partitions)
        wrong += check_shares();
    return wrong;
}

/* Where something did not hold once. */
static const struct world found[] = {
    {.workers = 10,
     .executors = 1,
     .job_us = 30 * MS,
     .way_us = 500,
     .rate = 20,
     .burst = 1,
     .jobs = 120}, /* each called the next */
    {.workers = 2,
     .executors = 8,
     .job_us = 30 * MS,
     .way_us = 100,
     .rate = 1000,
     .burst = 1,
     .jobs = 5000}, /* and claimed again and again */
    {.workers = 1,
     .executors = 8,
     .job_us = 30 * MS,
     .way_us = 50,
     .rate = 1000,
     .burst = 100}, /* so did this one */
    {.workers = 10,
     .executors = 1,
     .job_us = 5 * MS,
     .way_us = 20 * MS,
     .rate = 20,
     .burst = 1,
     .jobs = 120}, /* and these called nobody */
    {.workers = 30,
     .executors = 1,
     .job_us = 1 * MS,
     .way_us = 500,
     .rate = 300,
     .burst = 1}, /* while a gate was about to open, each called others */
};

int worlds_run(uint64_t first, long count)
{
    int wrong = 0;

    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        world = found[i];
        world.partitions = 1;
        world.warm_us = 2 * SECOND;
        world.run_us = world.rest_us = 3 * SECOND;
        world_run();
        wrong += check() > 0;
    }
    for (uint64_t seed = first; seed < first + (uint64_t)count; seed++) {
        draw(seed);
        world_run();
        wrong += check() > 0;
    }
    return wrong;
}
