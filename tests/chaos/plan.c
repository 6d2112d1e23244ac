#include "tests/chaos/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random.h"
#include "weir.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define JOBS_PER_S 1667 /* 100,000 in a minute */

const struct type_plan type_plans[TYPE_COUNT] = {
    [TYPE_FREE] = {"free", NULL, 314, 0, 1000},      [TYPE_SLOW] = {"slow", NULL, 6, 200000, 2500000},
    [TYPE_PACED] = {"paced", "paced", 90, 0, 2000},  [TYPE_KEYED] = {"keyed", "keyed", 200, 0, 2000},
    [TYPE_BUSY] = {"busy", "busy", 80, 2000, 15000}, [TYPE_PERKEY] = {"perkey", "perkey", 60, 5000, 30000},
    [TYPE_BOTH] = {"both", "both", 65, 5000, 25000}, [TYPE_STRICT] = {"strict", "strict", 45, 0, 2000},
    [TYPE_LEFT] = {"left", "pool", 45, 0, 2000},     [TYPE_RIGHT] = {"right", "pool", 45, 0, 2000},
    [TYPE_MOVED] = {"moved", "moved", 50, 0, 20000}, [TYPE_TICK] = {"tick", NULL, 0, 0, 0},
    [TYPE_REPORT] = {"report", NULL, 0, 0, 0},
};

const struct limit_plan limit_plans[PLAN_LIMITS] = {
    {"paced", "200/s,burst=20", false, 200, SECOND, 20, 0},
    {"keyed", "30/s,burst=3,by=key", true, 30, SECOND, 3, 0},
    {"busy", "concurrency=4", false, 0, 0, 0, 4},
    {"perkey", "concurrency=2,by=key", true, 0, 0, 0, 2},
    {"both", "150/s,burst=10 concurrency=6", false, 150, SECOND, 10, 6},
    {"strict", "100/s,algorithm=sliding-log", false, 100, SECOND, 0, 0},
    {"pool", "300/s,burst=6", false, 300, SECOND, 6, 0},
    {"moved", "100/s,burst=10", false, 0, 0, 0, 0},
};

const char *const moved_rules[PLAN_RULES] = {
    "100/s,burst=10",
    "60/s,burst=1",
    "200/s,algorithm=sliding-window",
    "120/s,algorithm=fixed-window concurrency=3",
};

const struct schedule_plan schedule_plans[PLAN_SCHEDULES] = {
    {"once", "every 1s", 1, WEIR_MISSED_ONCE},
    {"skip", "every 2s", 2, WEIR_MISSED_SKIP},
    {"all", "every 10s", 10, WEIR_MISSED_ALL},
};

const char *const queue_names[PLAN_QUEUES] = {"default", "second"};

const struct worker_plan worker_plans[PLAN_WORKERS] = {
    {.queues = "default,second", .executors = 8, .lease_s = 2, .types[WAY_THREADS] = "*"},
    {.queues = "default,second", .executors = 50, .lease_s = 2, .types[WAY_LOOP] = "*", .proxied = true},
    {.queues = "default,second", .executors = 4, .lease_s = 2, .types[WAY_EXEC] = "*"},
    {.queues = "default,second", .executors = 12, .lease_s = 1, .types[WAY_PIPE] = "*", .proxied = true},
    {.queues = "default,second", .executors = 8, .lease_s = 2, .types[WAY_HTTP] = "*"},
    {.own = true,
     .queues = "default,second",
     .executors = 6,
     .lease_s = 1,
     .types[WAY_THREADS] = "*",
     .proxied = true},
    {.own = true, .queues = "default=3,second=1", .executors = 40, .lease_s = 2, .types[WAY_LOOP] = "*"},
    {.own = true,
     .queues = "second,default",
     .executors = 10,
     .lease_s = 2,
     .types[WAY_THREADS] = "*",
     .types[WAY_EXEC] = "slow",
     .types[WAY_PIPE] = "paced,busy",
     .types[WAY_HTTP] = "both,left",
     .proxied = true},
    {.queues = "second", .executors = 2, .lease_s = 1, .types[WAY_THREADS] = "*", .proxied = true},
    {.queues = "default",
     .executors = 16,
     .lease_s = 2,
     .types[WAY_THREADS] = "*",
     .types[WAY_LOOP] = "slow,keyed,perkey",
     .types[WAY_EXEC] = "report,tick",
     .types[WAY_HTTP] = "strict"},
};

const char *const fault_names[FAULT_ALL] = {
    "kill -9 worker", "stop worker",  "end worker",      "force worker", "kill child",   "kill endpoint",
    "kill producer",  "cut producer", "partition",       "slow link",    "late answers", "cut connections",
    "kill -9 redis",  "stop redis",   "flush functions", "full memory",  "step clock",   "starve",
};

static bool names(const char *list, const char *type)
{
    char in_commas[256], wanted[64];

    snprintf(in_commas, sizeof in_commas, ",%s,", list ? list : "");
    snprintf(wanted, sizeof wanted, ",%s,", type);
    return strstr(in_commas, wanted) != NULL;
}

enum way plan_way(const struct worker_plan *worker, int type)
{
    enum way way = WAY_THREADS;

    for (int i = 0; i < WAYS; i++)
        if (names(worker->types[i], type_plans[type].name))
            return (enum way)i;
    while (way < WAY_HTTP && !names(worker->types[way], "*"))
        way++;
    return way;
}

/* ---- Choosing */

/* An array that grows: the room for one more, zeroed. */
static void *more(void **array, int *count, size_t size)
{
    if ((*count & (*count - 1)) == 0) {
        *array = realloc(*array, (*count ? 2 * (size_t)*count : 1) * size);
        if (!*array)
            abort();
    }
    return memset((char *)*array + (size_t)(*count)++ * size, 0, size);
}

static bool one_in(uint64_t *r, int n)
{
    return random_in(r, 1, n) == 1;
}

static int choose_type(uint64_t *r)
{
    int64_t at = random_in(r, 0, 999);
    int type = 0;

    while ((at -= type_plans[type].part) >= 0)
        type++;
    return type;
}

static void add_job(struct plan *p, uint64_t *r, enum way_in way)
{
    struct planned_job *job = more((void **)&p->jobs, &p->job_count, sizeof *job);
    const struct type_plan *type;
    int endings = one_in(r, 20) ? (int)random_in(r, 1, 3) : 0;

    job->type = (uint8_t)choose_type(r);
    type = &type_plans[job->type];
    if (job->type == TYPE_SLOW)
        endings = 0; /* to be waited for once is enough */
    job->key = (uint8_t)random_in(r, 0, PLAN_KEYS - 1);
    job->queue = one_in(r, 4);
    job->unique = way == IN_SINGLE && one_in(r, 8) ? (int8_t)random_in(r, 0, PLAN_UNIQUES - 1) : -1;
    job->take_us = (int32_t)random_in(r, type->least_us, type->most_us);
    for (int i = 0; i < endings; i++)
        job->endings[i] = one_in(r, 12) ? 'd' : one_in(r, 8) ? 't' : 'r';
}

static void add_step(struct plan *p, uint64_t *r, enum way_in way, int64_t at_us, int count)
{
    struct step *step = more((void **)&p->steps, &p->step_count, sizeof *step);

    *step = (struct step){.at_us = at_us, .way = way, .first = p->job_count, .count = count, .batch = -1};
    if (way == IN_LATER)
        step->delay_ms = (int)random_in(r, 100, 2000);
    if (way == IN_BATCH)
        step->batch = p->batch_count++;
    for (int i = 0; i < count; i++)
        add_job(p, r, way);
}

/* Steps at random times, in order, until all jobs of the time are in. */
static void add_steps(struct plan *p, uint64_t *r)
{
    int64_t wanted = p->time_us * JOBS_PER_S / SECOND;

    while (p->job_count < wanted) {
        int64_t at_us = p->job_count * p->time_us / wanted;
        int64_t dice = random_in(r, 0, 99);

        if (dice < 70)
            add_step(p, r, IN_SINGLE, at_us, 1);
        else if (dice < 80)
            add_step(p, r, IN_LATER, at_us, 1);
        else if (dice < 88)
            add_step(p, r, IN_PUSH, at_us, (int)random_in(r, 1, 3));
        else if (dice < 94)
            add_step(p, r, IN_BULK, at_us, (int)random_in(r, 10, 200));
        else
            add_step(p, r, IN_BATCH, at_us, (int)random_in(r, 20, 300));
    }
}

/* ---- What people do */

static void add_act(struct plan *p, uint64_t *r, const struct step *step)
{
    struct act act = {.at_us = step->at_us + random_in(r, 1, 600) * MS,
                      .for_us = random_in(r, 100, 700) * MS};

    if ((step->way == IN_SINGLE || step->way == IN_LATER) && p->jobs[step->first].unique < 0) {
        act.kind = ACT_CANCEL_JOB;
        act.what = step->first;
    } else if (step->way == IN_BATCH) {
        act.kind = one_in(r, 2) ? ACT_PAUSE_BATCH : ACT_CANCEL_BATCH;
        act.what = step->batch;
    } else if (step->way == IN_BULK) {
        act.kind = one_in(r, 3) ? ACT_PAUSE_QUEUE : one_in(r, 2) ? ACT_PAUSE_LIMIT : ACT_MOVE_LIMIT;
        act.what = (int)random_in(r, 0,
                                  act.kind == ACT_PAUSE_QUEUE   ? PLAN_QUEUES - 1
                                  : act.kind == ACT_PAUSE_LIMIT ? PLAN_LIMITS - 1
                                                                : PLAN_RULES - 1);
    } else {
        return;
    }
    *(struct act *)more((void **)&p->acts, &p->act_count, sizeof act) = act;
}

static int by_time(const void *a, const void *b)
{
    const struct act *one = a, *other = b;

    return (one->at_us > other->at_us) - (one->at_us < other->at_us);
}

static void add_acts(struct plan *p, uint64_t *r)
{
    for (int i = 0; i < p->step_count; i++)
        if (one_in(r, p->steps[i].way == IN_SINGLE || p->steps[i].way == IN_LATER ? 40 : 8))
            add_act(p, r, &p->steps[i]);
    qsort(p->acts, (size_t)p->act_count, sizeof *p->acts, by_time);
}

/* ---- Faults */

static int choose_worker(uint64_t *r, bool proxied)
{
    int worker;

    do
        worker = (int)random_in(r, 0, PLAN_WORKERS - 1);
    while (proxied && !worker_plans[worker].proxied);
    return worker;
}

/* Back or forward, from what is hardly seen to what expires all; none so small that slots of before and after
 * it could be mistaken for each other. */
static int64_t choose_clock_step(uint64_t *r)
{
    static const int64_t steps_us[] = {2 * SECOND, 10 * SECOND, 90 * SECOND, 3600 * SECOND};
    int64_t step_us = steps_us[random_in(r, 0, 3)];

    return one_in(r, 2) ? step_us : -step_us;
}

static void add_fault(struct plan *p, uint64_t *r, int64_t at_us)
{
    struct fault *f = more((void **)&p->faults, &p->fault_count, sizeof *f);
    int64_t lease_us;

    f->at_us = at_us;
    f->kind = (enum fault_kind)(one_in(r, 4) ? FAULT_KILL_WORKER : random_in(r, 0, FAULT_KINDS - 1));
    f->worker = choose_worker(r, f->kind >= FAULT_PARTITION && f->kind <= FAULT_CUT);
    lease_us = worker_plans[f->worker].lease_s * SECOND;
    switch (f->kind) {
    case FAULT_STOP_WORKER:
        f->for_us = lease_us + random_in(r, 200, 1500) * MS;
        break;
    case FAULT_PARTITION:
        f->for_us =
            one_in(r, 2) ? random_in(r, 200, lease_us / MS) * MS : lease_us + random_in(r, 500, 2500) * MS;
        break;
    case FAULT_SLOW_LINK:
        f->for_us = random_in(r, 500, 2000) * MS;
        f->number_us = random_in(r, 1, 50) * MS;
        break;
    case FAULT_STALL:
        f->for_us = random_in(r, 100, 1500) * MS;
        break;
    case FAULT_STOP_REDIS:
        f->for_us = random_in(r, 100, 1200) * MS;
        break;
    case FAULT_FULL_MEMORY:
        f->for_us = random_in(r, 200, 1000) * MS;
        break;
    case FAULT_STEP_CLOCK:
        f->number_us = choose_clock_step(r);
        break;
    case FAULT_CUT:
        f->number_us = random_in(r, 0, 2);
        break;
    case FAULT_KILL_PRODUCER:
    case FAULT_CUT_PRODUCER:
        f->worker = (int)random_in(r, 0, PLAN_PRODUCERS - 1);
        break;
    default:
        break;
    }
}

/* One a second; in a short run more. */
static void add_faults(struct plan *p, uint64_t *r)
{
    int64_t every_us = p->time_us >= 10 * SECOND ? SECOND : p->time_us / 10;

    for (int64_t at_us = every_us / 2; at_us < p->time_us; at_us += every_us)
        add_fault(p, r, at_us + random_in(r, 0, every_us / 4));
}

/* ---- The plan */

void plan_make(struct plan *p, uint64_t seed, int seconds)
{
    uint64_t r = seed;

    *p = (struct plan){.seed = seed, .time_us = seconds * SECOND};
    add_steps(p, &r);
    add_acts(p, &r);
    add_faults(p, &r);
}

void plan_free(struct plan *p)
{
    free(p->jobs);
    free(p->steps);
    free(p->acts);
    free(p->faults);
}

void plan_print(const struct plan *p, const char *file)
{
    static const char *const ways[] = {"single", "later", "bulk", "batch", "push"};
    static const char *const acts[] = {"cancel job",  "cancel batch", "pause batch",
                                       "pause queue", "pause limit",  "move limit"};
    FILE *f = fopen(file, "w");

    if (!f)
        abort();
    fprintf(f, "seed %" PRIu64 ", %" PRId64 " s, %d jobs\n", p->seed, p->time_us / SECOND, p->job_count);
    for (int i = 0; i < p->fault_count; i++)
        fprintf(f, "fault %" PRId64 " ms: %s, worker %d, for %" PRId64 " ms, number %" PRId64 " ms\n",
                p->faults[i].at_us / MS, fault_names[p->faults[i].kind], p->faults[i].worker,
                p->faults[i].for_us / MS, p->faults[i].number_us / MS);
    for (int i = 0; i < p->act_count; i++)
        fprintf(f, "act %" PRId64 " ms: %s %d for %" PRId64 " ms\n", p->acts[i].at_us / MS,
                acts[p->acts[i].kind], p->acts[i].what, p->acts[i].for_us / MS);
    for (int i = 0; i < p->step_count; i++)
        fprintf(f, "step %d %" PRId64 " ms: %s j%d + %d\n", i, p->steps[i].at_us / MS, ways[p->steps[i].way],
                p->steps[i].first, p->steps[i].count);
    for (int i = 0; i < p->job_count; i++)
        fprintf(f, "job j%d: %s key %d queue %d takes %d us %s\n", i, type_plans[p->jobs[i].type].name,
                p->jobs[i].key, p->jobs[i].queue, p->jobs[i].take_us, p->jobs[i].endings);
    fclose(f);
}

const struct step *plan_step_of(const struct plan *p, int job)
{
    int low = 0, high = p->step_count - 1;

    while (low < high) {
        int middle = (low + high + 1) / 2;

        if (p->steps[middle].first <= job)
            low = middle;
        else
            high = middle - 1;
    }
    return &p->steps[low];
}

void plan_id(int job, char id[16])
{
    snprintf(id, 16, "j%d", job);
}

int plan_number(const struct plan *p, const char *id)
{
    char *end;
    long job = *id == 'j' ? strtol(id + 1, &end, 10) : -1;

    return job >= 0 && job < p->job_count && *end == '\0' ? (int)job : -1;
}

void plan_batch_name(int batch, char name[PLAN_BATCH_SIZE])
{
    snprintf(name, PLAN_BATCH_SIZE, "batch%d", batch);
}

void plan_args(const struct planned_job *job, char args[40])
{
    snprintf(args, 40, "\"c:%d:%s\"", job->take_us, job->endings);
}
