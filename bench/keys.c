/* Many keys. Jobs are parked before their time: by the clock of a past day, so that their
 * gates are closed while they are looked at and all open when the measurement begins.
 *
 * What 100/s costs is measured for all rivals at once, each in a Redis of its own, turn by turn: whatever the
 * machine does meanwhile is the same for all. A figure is the median over the turns that started one job; the
 * CPU is all that Redis used from one turn to the next. */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/turns.h"
#include "core/clock.h"

#define TYPE "mail"
#define JOB_BYTES (ARGS_BYTES + 63) /* of a body: args, an id of 16, the type, a key of 7 */
#define MORE_JOBS 20000             /* behind the first ones of the keys, so that no key runs out of jobs */
#define TURN 100                    /* jobs in one claim */
#define CHUNK 500
#define DAY_US INT64_C(86400000000)
#define EVERY_US 10000 /* 100 turns a second */
#define WARM_UP 50     /* turns */
#define SAMPLES 1000
#define EMPTY_MOST 1000 /* claims in a row that start nothing */

/* What waits, and at which gates. */
struct crowd {
    const char *rules; /* of the type */
    size_t keys, jobs;
};

/* ---- Parking */

/* Has the whole crowd wait in lanes, but for what its gates let start at one moment of yesterday. Returns the bytes that they take. */
static double park(struct server *s, const struct crowd *crowd, struct turns *t)
{
    double before;

    prepare(s, TYPE, crowd->rules, 0);
    *t = (struct turns){.server = s, .type = TYPE, .free = TURN, .chunk = CHUNK};
    t->now_us = clock_wall_us() - DAY_US;
    turns_begin(t);
    before = server_usage(s).memory_bytes;
    fill_keys(s->url, TYPE, crowd->jobs, JOB_BYTES, crowd->keys);
    do
        turns_next(t);
    while (t->claim.lease_count > 0 || server_ask(s, "LLEN", PREFIX "queue:default", NULL) > 0);
    t->now_us = -1;
    return server_usage(s).memory_bytes - before;
}

/* ---- At 100/s */

struct rival {
    enum figure figure;
    struct crowd crowd;
    struct server server;
    struct turns turns;
    struct usage before;
    int64_t cpu_ns; /* when its last turn began */
    size_t turn_count, started;
    int64_t ns[SAMPLES]; /* from turn to turn, of those that started one job */
    size_t count;
    double median_us, scripts_us; /* per job run */
};

static void run_turn(struct rival *r)
{
    int64_t cpu_ns = server_cpu(&r->server);

    if (r->turn_count > WARM_UP && r->turns.claim.lease_count == 1 && r->count < SAMPLES)
        r->ns[r->count++] = cpu_ns - r->cpu_ns;
    if (r->turn_count == WARM_UP) {
        r->started = r->turns.started;
        r->before = server_usage(&r->server);
        cpu_ns = server_cpu(&r->server);
    }
    r->cpu_ns = cpu_ns;
    r->turn_count++;
    turns_next(&r->turns);
}

static void race(struct rival *rivals, int count)
{
    int turns = WARM_UP + 1 + (bench.quick ? 200 : SAMPLES);
    int64_t at_us = clock_mono_us();

    for (int i = 0; i < turns * count; i++) {
        clock_sleep_until(at_us += EVERY_US / count);
        run_turn(&rivals[i % count]);
    }
}

static void judge(struct rival *r)
{
    if (r->count == 0)
        fail("100/s: no turn started one job");
    qsort(r->ns, r->count, sizeof *r->ns, bench_compare_us);
    r->median_us = (double)r->ns[r->count / 2] / 1e3;
    r->scripts_us = (server_usage(&r->server).scripts_us - r->before.scripts_us) /
                    (double)(r->turns.started - r->started);
}

static void report_rivals(const struct rival *rivals, int count)
{
    for (int i = 0; i < count; i++) {
        const struct rival *r = &rivals[i];
        double value = i == 0 ? r->median_us : r->median_us / rivals[0].median_us;

        report(r->figure, value, 0, "%.1f us a job, median of %zu; claim and settle alone %.1f us; %zu jobs",
               r->median_us, r->count, r->scripts_us, r->crowd.jobs);
    }
}

/* The first is what the others are compared with. */
static void compare_rivals(struct rival *rivals, int count)
{
    for (int i = 0; i < count; i++) {
        server_start(&rivals[i].server, false);
        park(&rivals[i].server, &rivals[i].crowd, &rivals[i].turns);
        rivals[i].turns.free = 10;
    }
    race(rivals, count);
    for (int i = 0; i < count; i++)
        judge(&rivals[i]);
    report_rivals(rivals, count);
    for (int i = 0; i < count; i++) {
        turns_free(&rivals[i].turns);
        server_stop(&rivals[i].server);
    }
}

/* ---- As fast as it goes */

/* Until so many jobs have started since they were parked. */
static struct speed time_all(struct turns *t, size_t jobs)
{
    struct stopwatch watch = stopwatch_start(t->server);
    size_t last = t->started + jobs;

    for (int none = 0; t->started < last;) {
        turns_next(t);
        none = t->claim.lease_count == 0 ? none + 1 : 0;
        if (none > EMPTY_MOST)
            fail("claim: %zu jobs never came", last - t->started);
    }
    return stopwatch_stop(t->server, &watch, jobs);
}

/* All keys wait in one ring, behind the gate of all of them. */
static void measure_flood(void)
{
    size_t keys = bench_size(100000), parked;
    struct crowd crowd = {NEVER_REACHED ",burst=1 1000/s,by=key", keys, 2 * keys};
    struct turns turns;
    struct speed speed;

    park(&bench.server, &crowd, &turns);
    parked = crowd.jobs - turns.started;
    speed = time_all(&turns, parked);
    report(KEYS_FLOOD_CPU, speed.redis_us, 0, "claim and settle; %zu keys, %zu jobs, %.0f/s", keys, parked,
           speed.a_second);
    turns_free(&turns);
}

/* ---- The slowest */

struct times {
    int64_t *us;
    size_t count;
};

static bool is_claim(const struct redisReply *entry)
{
    static const char end[] = "_claim";
    const struct redisReply *words = entry->element[3];

    return words->elements > 1 && words->element[1]->len > strlen(end) &&
           strcmp(words->element[1]->str + words->element[1]->len - strlen(end), end) == 0;
}

static struct times read_times(struct server *s)
{
    struct redisReply *log = server_reply(s, "SLOWLOG", "GET", "-1", NULL);
    struct times times = {calloc(log->elements + 1, sizeof *times.us), 0};

    for (size_t i = 0; times.us && i < log->elements; i++)
        if (is_claim(log->element[i]))
            times.us[times.count++] = log->element[i]->element[2]->integer;
    freeReplyObject(log);
    if (times.count == 0)
        fail("SLOWLOG: no claims, or out of memory");
    qsort(times.us, times.count, sizeof *times.us, bench_compare_us);
    return times;
}

/* Each key has started its first job, and its second waits for the same moment as all others. Calls that take some time are timed inside of
 * Redis, not the commands inside of scripts, which would push them out of the log. */
static void measure_opening(void)
{
    size_t keys = bench_size(100000);
    struct crowd crowd = {"1/1m,by=key", keys, 2 * keys};
    struct server server;
    struct turns turns;
    struct times opened;
    struct speed speed;

    server_start(&server, false);
    park(&server, &crowd, &turns);
    server_ask(&server, "CONFIG", "SET", "slowlog-max-len", "100000", "slowlog-log-slower-than", "500", NULL);
    server_ask(&server, "SLOWLOG", "RESET", NULL);
    speed = time_all(&turns, keys);
    opened = read_times(&server);
    report(KEYS_OPEN_WORST, (double)opened.us[opened.count - 1] / 1e3, 0,
           "p50 %.2f, p99 %.2f ms of %zu claims of 0.5 ms or more; %zu keys",
           (double)opened.us[opened.count / 2] / 1e3, (double)opened.us[opened.count * 99 / 100] / 1e3,
           opened.count, keys);
    report(KEYS_OPEN_CPU, speed.redis_us, 0, "claim and settle; %.0f/s", speed.a_second);
    free(opened.us);
    turns_free(&turns);
    server_stop(&server);
}

static void measure_memory(enum figure figure, const struct crowd *crowd)
{
    struct turns turns;
    double bytes = park(&bench.server, crowd, &turns);
    size_t parked = crowd->jobs - turns.started;

    report(figure, bytes / (double)parked - JOB_BYTES, 0,
           "%zu jobs, each with a key of its own, bodies of %d bytes", parked, JOB_BYTES);
    turns_free(&turns);
}

/* ---- The groups */

void bench_keys(void)
{
    static const struct crowd alone = {"1/1d 1/1d,by=key", 100000, 100000};
    static const struct crowd asleep = {"1/1d,by=key", 50000, 100000};
    static struct rival rivals[] = {
        {.figure = KEYS_CPU_10, .crowd = {.keys = 10}},
        {.figure = KEYS_CPU_1000, .crowd = {.keys = 1000}},
        {.figure = KEYS_CPU_100000, .crowd = {.keys = 100000}},
        {.figure = KEYS_CPU_1000000, .crowd = {.keys = 1000000}},
    };
    int count = bench.quick ? 3 : 4;

    for (int i = 0; i < count; i++) {
        rivals[i].crowd.rules = "100/s,burst=10 1000/s,by=key";
        rivals[i].crowd.jobs = rivals[i].crowd.keys + MORE_JOBS;
    }
    compare_rivals(rivals, count);
    measure_flood();
    measure_opening();
    measure_memory(KEYS_MEMORY, &alone);
    measure_memory(KEYS_MEMORY_ASLEEP, &asleep);
}
