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
#define RIVALS_MOST 4
#define EMPTY_MOST 1000 /* claims in a row that start nothing */

#define PEAK "100/s,burst=10"

/* What waits, and at which gates. */
struct crowd {
    const char *rules; /* of the type */
    size_t keys, jobs;
};

/* ---- Parking */

static int set_limits(struct bench *b, struct server *s, const struct crowd *crowd)
{
    struct weir *w = weir_new(s->url, NULL);
    int rc = w ? weir_rate_set(w, TYPE, crowd->rules) : WEIR_EINTERNAL;

    if (rc != 0)
        error_set(&b->error, rc, "%.400s", w ? weir_message(w) : "out of memory");
    weir_free(w);
    return rc;
}

static int park_all(struct bench *b, struct turns *t)
{
    long long waiting = 1;
    int rc = 0;

    while (rc == 0 && (waiting > 0 || t->claim.lease_count > 0)) {
        rc = turns_next(b, t);
        if (rc == 0)
            rc = server_ask(t->server, &waiting, &b->error, "LLEN", PREFIX "queue:default", NULL);
    }
    return rc;
}

/* Has the whole crowd wait in lanes, but for what its gates let start at one moment of yesterday. */
static int park(struct bench *b, struct server *s, const struct crowd *crowd, struct turns *t, double *bytes)
{
    struct usage before, after;
    int rc = server_ask(s, NULL, &b->error, "FLUSHALL", NULL);

    *t = (struct turns){.server = s, .type = TYPE, .free = TURN, .chunk = CHUNK};
    t->now_us = clock_wall_us() - DAY_US;
    if (rc == 0)
        rc = set_limits(b, s, crowd);
    if (rc == 0)
        rc = turns_begin(b, t);
    if (rc == 0)
        rc = server_usage(s, &before, &b->error);
    if (rc == 0)
        rc = fill_keys(b, s->url, TYPE, crowd->jobs, JOB_BYTES, crowd->keys);
    if (rc == 0)
        rc = park_all(b, t);
    if (rc == 0)
        rc = server_usage(s, &after, &b->error);
    t->now_us = -1;
    if (rc == 0)
        *bytes = after.memory_bytes - before.memory_bytes;
    return rc;
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

static int begin_rival(struct bench *b, struct rival *r)
{
    double bytes;
    int rc = server_start(&r->server, false, &b->error);

    if (rc == 0)
        rc = park(b, &r->server, &r->crowd, &r->turns, &bytes);
    r->turns.free = 10;
    return rc;
}

static void end_rival(struct rival *r)
{
    turns_free(&r->turns);
    server_stop(&r->server);
}

static int run_turn(struct bench *b, struct rival *r)
{
    size_t before = r->turns.started;
    int64_t cpu_ns = 0;
    int rc = server_cpu(&r->server, &cpu_ns, &b->error);

    if (rc == 0 && r->turn_count > WARM_UP && r->turns.claim.lease_count == 1 && r->count < SAMPLES)
        r->ns[r->count++] = cpu_ns - r->cpu_ns;
    if (rc == 0 && r->turn_count == WARM_UP) {
        r->started = before;
        rc = server_usage(&r->server, &r->before, &b->error);
        if (rc == 0)
            rc = server_cpu(&r->server, &cpu_ns, &b->error);
    }
    r->cpu_ns = cpu_ns;
    r->turn_count++;
    return rc == 0 ? turns_next(b, &r->turns) : rc;
}

static int race(struct bench *b, struct rival *rivals, int count)
{
    int turns = WARM_UP + 1 + (b->quick ? 200 : SAMPLES), rc = 0;
    int64_t at_us = clock_mono_us();

    for (int i = 0; rc == 0 && i < turns * count; i++) {
        clock_sleep_until(at_us += EVERY_US / count);
        rc = run_turn(b, &rivals[i % count]);
    }
    return rc;
}

static int judge(struct bench *b, struct rival *r)
{
    struct usage after;
    int rc = server_usage(&r->server, &after, &b->error);

    if (rc == 0 && r->count == 0)
        rc = error_set(&b->error, WEIR_EINTERNAL, "100/s: no turn started one job");
    if (rc != 0)
        return rc;
    qsort(r->ns, r->count, sizeof *r->ns, bench_compare_us);
    r->median_us = (double)r->ns[r->count / 2] / 1e3;
    r->scripts_us = (after.scripts_us - r->before.scripts_us) / (double)(r->turns.started - r->started);
    return 0;
}

static void report_rivals(struct bench *b, const struct rival *rivals, int count)
{
    for (int i = 0; i < count; i++) {
        const struct rival *r = &rivals[i];
        double value = i == 0 ? r->median_us : r->median_us / rivals[0].median_us;

        report(b, r->figure, value, 0,
               "%.1f us a job, median of %zu; claim and settle alone %.1f us; %zu jobs", r->median_us,
               r->count, r->scripts_us, r->crowd.jobs);
    }
}

/* The first is what the others are compared with. */
static int compare_rivals(struct bench *b, struct rival *rivals, int count)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < count; i++)
        rc = begin_rival(b, &rivals[i]);
    if (rc == 0)
        rc = race(b, rivals, count);
    for (int i = 0; rc == 0 && i < count; i++)
        rc = judge(b, &rivals[i]);
    if (rc == 0)
        report_rivals(b, rivals, count);
    for (int i = 0; i < count; i++)
        end_rival(&rivals[i]);
    return rc;
}

/* ---- As fast as it goes */

/* Until so many jobs have started since they were parked. */
static int run_all(struct bench *b, struct turns *t, size_t jobs)
{
    size_t last = t->started + jobs;
    int empty = 0, rc = 0;

    while (rc == 0 && t->started < last) {
        rc = turns_next(b, t);
        empty = t->claim.lease_count == 0 ? empty + 1 : 0;
        if (rc == 0 && empty > EMPTY_MOST)
            rc = error_set(&b->error, WEIR_EINTERNAL, "claim: %zu jobs never came", last - t->started);
    }
    return rc;
}

static int time_all(struct bench *b, struct turns *t, size_t jobs, struct speed *speed)
{
    struct stopwatch watch;
    int rc = stopwatch_start(b, t->server, &watch);

    if (rc == 0)
        rc = run_all(b, t, jobs);
    return rc == 0 ? stopwatch_stop(b, t->server, &watch, jobs, speed) : rc;
}

/* All keys wait in one ring, behind the gate of all of them. */
static int measure_flood(struct bench *b)
{
    size_t keys = bench_size(b, 100000);
    struct crowd crowd = {NEVER_REACHED ",burst=1 1000/s,by=key", keys, 2 * keys};
    struct turns turns = {0};
    struct speed speed;
    double bytes;
    int rc = park(b, &b->server, &crowd, &turns, &bytes);
    size_t parked = crowd.jobs - turns.started;

    if (rc == 0)
        rc = time_all(b, &turns, parked, &speed);
    if (rc == 0)
        report(b, KEYS_FLOOD_CPU, speed.redis_us, 0, "claim and settle; %zu keys, %zu jobs, %.0f/s", keys,
               parked, speed.a_second);
    turns_free(&turns);
    return rc;
}

/* ---- The slowest */

struct times {
    int64_t *us;
    size_t count;
};

/* Begins to time calls inside of Redis: those that take some time, not the commands inside of scripts, which
 * would push them out of the log. */
static int watch_calls(struct bench *b, struct server *s)
{
    int rc = server_ask(s, NULL, &b->error, "CONFIG", "SET", "slowlog-max-len", "100000",
                        "slowlog-log-slower-than", "500", NULL);

    return rc == 0 ? server_ask(s, NULL, &b->error, "SLOWLOG", "RESET", NULL) : rc;
}

static bool is_claim(const struct redisReply *entry)
{
    static const char end[] = "_claim";
    const struct redisReply *words = entry->element[3];

    return words->elements > 1 && words->element[1]->len > strlen(end) &&
           strcmp(words->element[1]->str + words->element[1]->len - strlen(end), end) == 0;
}

static int read_times(struct bench *b, struct server *s, struct times *times)
{
    struct redisReply *log;
    struct args a;
    int rc;

    args_init(&a);
    for (const char *const *word = (const char *const[]){"SLOWLOG", "GET", "-1", NULL}; *word; word++)
        args_add(&a, *word);
    rc = redis_call(s->redis, &a, &log, NULL, &b->error);
    args_free(&a);
    if (rc != 0)
        return rc;
    times->us = calloc(log->elements + 1, sizeof *times->us);
    for (size_t i = 0; times->us && i < log->elements; i++)
        if (is_claim(log->element[i]))
            times->us[times->count++] = log->element[i]->element[2]->integer;
    freeReplyObject(log);
    if (times->count == 0)
        return error_set(&b->error, WEIR_EINTERNAL, "SLOWLOG: no claims, or out of memory");
    qsort(times->us, times->count, sizeof *times->us, bench_compare_us);
    return 0;
}

/* Each key has started its first job, and its second waits for the same moment as all others. */
static int measure_opening(struct bench *b)
{
    size_t keys = bench_size(b, 100000);
    struct crowd crowd = {"1/1m,by=key", keys, 2 * keys};
    struct server server = {0};
    struct turns turns = {0};
    struct times opened = {0};
    struct speed speed;
    double bytes;
    int rc = server_start(&server, false, &b->error);

    if (rc == 0)
        rc = park(b, &server, &crowd, &turns, &bytes);
    if (rc == 0)
        rc = watch_calls(b, &server);
    if (rc == 0)
        rc = time_all(b, &turns, keys, &speed);
    if (rc == 0)
        rc = read_times(b, &server, &opened);
    if (rc == 0) {
        report(b, KEYS_OPEN_WORST, (double)opened.us[opened.count - 1] / 1e3, 0,
               "p50 %.2f, p99 %.2f ms of %zu claims of 0.5 ms or more; %zu keys",
               (double)opened.us[opened.count / 2] / 1e3, (double)opened.us[opened.count * 99 / 100] / 1e3,
               opened.count, keys);
        report(b, KEYS_OPEN_CPU, speed.redis_us, 0, "claim and settle; %.0f/s", speed.a_second);
    }
    free(opened.us);
    turns_free(&turns);
    server_stop(&server);
    return rc;
}

static int measure_memory(struct bench *b, enum figure figure, const struct crowd *crowd)
{
    struct turns turns = {0};
    double bytes;
    int rc = park(b, &b->server, crowd, &turns, &bytes);
    size_t parked = crowd->jobs - turns.started;

    if (rc == 0)
        report(b, figure, bytes / (double)parked - JOB_BYTES, 0,
               "%zu jobs, each with a key of its own, bodies of %d bytes", parked, JOB_BYTES);
    turns_free(&turns);
    return rc;
}

/* ---- The groups */

int bench_keys(struct bench *b)
{
    static const struct crowd alone = {"1/1d 1/1d,by=key", 100000, 100000};
    static const struct crowd asleep = {"1/1d,by=key", 50000, 100000};
    static const struct rival all[] = {
        {.figure = KEYS_CPU_10, .crowd = {.keys = 10}},
        {.figure = KEYS_CPU_1000, .crowd = {.keys = 1000}},
        {.figure = KEYS_CPU_100000, .crowd = {.keys = 100000}},
        {.figure = KEYS_CPU_1000000, .crowd = {.keys = 1000000}},
    };
    static struct rival rivals[RIVALS_MOST];
    int count = b->quick ? 3 : 4, rc;

    memcpy(rivals, all, sizeof all);
    for (int i = 0; i < count; i++) {
        rivals[i].crowd.rules = PEAK " 1000/s,by=key";
        rivals[i].crowd.jobs = rivals[i].crowd.keys + MORE_JOBS;
    }
    rc = compare_rivals(b, rivals, count);
    if (rc == 0)
        rc = measure_flood(b);
    if (rc == 0)
        rc = measure_opening(b);
    if (rc == 0)
        rc = measure_memory(b, KEYS_MEMORY, &alone);
    return rc == 0 ? measure_memory(b, KEYS_MEMORY_ASLEEP, &asleep) : rc;
}
