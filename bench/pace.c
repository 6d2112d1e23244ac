/* Rates: how exactly they are kept, and what that costs Redis. Workers run with traces; what they cost is
 * taken between two moments in steady state, after the queue has been looked at whole and all that waits is
 * parked. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"
#include "throttle/verify/verify.h"

#define TYPE "mail"
#define BARE_EVERY_US 10000
#define ASLEEP_US 10000

struct pace_plan {
    const char *rule;
    size_t backlog;
    double seconds;
    int workers, executors;
    const char *url; /* of the workers; NULL: Redis's own */
};

struct pace {
    struct verify_use kept; /* by slots */
    struct verify_lateness late;
    uint64_t starts_second, starts_tenth; /* most, by handlers' clocks */
    double commands, cpu_us;              /* per job, in steady state */
    double rate;                          /* starts a second, in steady state */
    double parked_us;                     /* Redis CPU per waiting job, until all were parked */
    double worker_us;                     /* CPU of the workers per job, over the whole run */
    double asleep_late_us;                /* p99.9 of sleeps meanwhile: how late this machine wakes anybody */
};

/* ---- The run */

/* A moment of it. */
struct moment {
    int64_t at_us;
    struct usage usage;
    double started;
};

static int look(struct bench *b, struct moment *m)
{
    long long pulled = 0, served = 0;
    int rc = server_ask(&b->server, &pulled, &b->error, "HGET", PREFIX "stats:" TYPE, "pulled", NULL);

    if (rc == 0)
        rc = server_ask(&b->server, &served, &b->error, "HGET", PREFIX "stats:" TYPE, "served", NULL);
    if (rc == 0)
        rc = server_usage(&b->server, &m->usage, &b->error);
    m->at_us = clock_mono_us();
    m->started = (double)(pulled + served);
    return rc;
}

static int wait_until_parked(struct bench *b, struct crew *crew)
{
    long long waiting = 1;
    int rc = 0;

    while (rc == 0 && waiting > 0) {
        rc = bench_rest(b, 0.02);
        if (rc == 0)
            rc = crew_check(crew, &b->error);
        if (rc == 0)
            rc = server_ask(&b->server, &waiting, &b->error, "LLEN", PREFIX "queue:default", NULL);
    }
    return rc;
}

/* Waits, in short sleeps. */
static int sleep_beside(struct bench *b, double seconds, double *late_us)
{
    size_t count = (size_t)(seconds * 1e6 / ASLEEP_US);
    int64_t *late = calloc(count + 1, sizeof *late);
    int rc = late ? 0 : error_set(&b->error, WEIR_EINTERNAL, "out of memory");

    for (size_t i = 0; rc == 0 && i < count; i++) {
        int64_t until_us = clock_mono_us() + ASLEEP_US;

        clock_sleep_until(until_us);
        late[i] = clock_mono_us() - until_us;
        rc = bench_check(b);
    }
    if (rc == 0) {
        qsort(late, count, sizeof *late, bench_compare_us);
        *late_us = (double)late[count * 999 / 1000];
    }
    free(late);
    return rc;
}

static int run(struct bench *b, const struct pace_plan *plan, const char *trace, struct pace *pace)
{
    struct crew_plan crew_plan = {.url = plan->url ? plan->url : b->server.url,
                                  .workers = plan->workers,
                                  .executors = plan->executors,
                                  .trace = trace,
                                  .types = {{.name = TYPE, .handler = noop_handler}}};
    struct moment begin, parked, first, last;
    struct crew crew = {0};
    struct error ignored;
    int rc = look(b, &begin);

    if (rc == 0)
        rc = crew_start(&crew, &crew_plan, &b->error);
    if (rc == 0)
        rc = wait_until_parked(b, &crew);
    if (rc == 0)
        rc = look(b, &parked);
    if (rc == 0)
        rc = bench_rest(b, 1);
    if (rc == 0)
        rc = look(b, &first);
    if (rc == 0)
        rc = sleep_beside(b, plan->seconds, &pace->asleep_late_us);
    if (rc == 0)
        rc = look(b, &last);
    if (crew_stop(&crew, rc == 0 ? &b->error : &ignored) != 0 && rc == 0)
        rc = b->error.status;
    if (rc != 0)
        return rc;
    pace->commands = (last.usage.commands - first.usage.commands) / (last.started - first.started);
    pace->cpu_us = (last.usage.cpu_us - first.usage.cpu_us) / (last.started - first.started);
    pace->rate = (last.started - first.started) / ((double)(last.at_us - first.at_us) / 1e6);
    pace->parked_us = (parked.usage.cpu_us - begin.usage.cpu_us) / (double)plan->backlog;
    pace->worker_us = crew.cpu_us / last.started;
    return 0;
}

/* ---- The traces */

struct starts {
    int64_t *us;
    size_t count, capacity;
};

/* A worker may have had none: slots are for the one on duty. */
static int read_starts(struct bench *b, const char *path, struct starts *starts)
{
    FILE *f = fopen(path, "r");
    char line[512];
    long long us;

    if (!f)
        return error_set(&b->error, WEIR_EINTERNAL, "%s: no trace", path);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "{\"slot\":%*d,\"start\":%lld", &us) != 1)
            continue;
        if (starts->count == starts->capacity) {
            starts->capacity = starts->capacity ? starts->capacity * 2 : 4096;
            starts->us = reallocarray(starts->us, starts->capacity, sizeof *starts->us);
            if (!starts->us)
                break;
        }
        starts->us[starts->count++] = us;
    }
    fclose(f);
    return starts->us || starts->capacity == 0
               ? 0
               : error_set(&b->error, WEIR_EINTERNAL, "%s: out of memory", path);
}

/* The most starts in any window of that length. */
static uint64_t most_in(const struct starts *starts, int64_t window_us)
{
    uint64_t most = 0;

    for (size_t first = 0, i = 0; i < starts->count; i++) {
        while (starts->us[i] - starts->us[first] >= window_us)
            first++;
        if (i - first + 1 > most)
            most = i - first + 1;
    }
    return most;
}

static int read_traces(struct bench *b, const struct pace_plan *plan, const char *trace, struct verify *v,
                       struct starts *starts)
{
    char path[CREW_MOST][128];
    size_t torn_line;
    int rc = verify_init(v, &b->error);

    for (int i = 0; rc == 0 && i < plan->workers; i++) {
        snprintf(path[i], sizeof path[i], "%s.%d", trace, i);
        rc = verify_read(v, path[i], &torn_line, &b->error);
        if (rc == 0)
            rc = read_starts(b, path[i], starts);
    }
    if (rc == 0)
        rc = verify_replay(v, &b->error);
    for (int i = 0; i < plan->workers; i++) {
        snprintf(path[i], sizeof path[i], "%s.%d", trace, i);
        unlink(path[i]);
    }
    return rc;
}

static int judge(struct bench *b, const struct pace_plan *plan, const char *trace, struct pace *pace)
{
    struct starts starts = {0};
    struct verify v;
    int rc = read_traces(b, plan, trace, &v, &starts);

    if (rc == 0 && (v.type_count != 1 || v.rule_count != 1))
        rc = error_set(&b->error, WEIR_EINTERNAL, "the traces hold %zu types and %zu rules", v.type_count,
                       v.rule_count);
    if (rc == 0) {
        pace->kept = v.rules[0].worst;
        pace->late = v.types[0].lateness;
        qsort(starts.us, starts.count, sizeof *starts.us, bench_compare_us);
        pace->starts_second = most_in(&starts, 1000000);
        pace->starts_tenth = most_in(&starts, 100000);
    }
    free(starts.us);
    verify_free(&v);
    return rc;
}

/* ---- The figures */

static int measure(struct bench *b, const struct pace_plan *plan, struct pace *pace)
{
    char trace[112];
    int rc;

    snprintf(trace, sizeof trace, "%s/trace", b->server.folder);
    rc = prepare(b, &b->server, TYPE, plan->rule, plan->backlog);
    if (rc == 0)
        rc = run(b, plan, trace, pace);
    return rc == 0 ? judge(b, plan, trace, pace) : rc;
}

/* What Redis uses for one EVALSHA, asked for at 100/s by an idle connection. */
static int measure_script(struct bench *b, const char *script, double *cpu_us)
{
    const int calls = b->quick ? 200 : 500;
    char sha[SHA_SIZE];
    struct usage before, after;
    int64_t at_us;
    int rc = server_load(&b->server, script, sha, &b->error);

    if (rc == 0)
        rc = server_usage(&b->server, &before, &b->error);
    at_us = clock_mono_us();
    for (int i = 0; rc == 0 && i < calls; i++) {
        clock_sleep_until(at_us += BARE_EVERY_US);
        rc = server_ask(&b->server, NULL, &b->error, "EVALSHA", sha, "0", NULL);
        if (rc == 0)
            rc = bench_check(b);
    }
    if (rc == 0)
        rc = server_usage(&b->server, &after, &b->error);
    if (rc == 0)
        *cpu_us = (after.cpu_us - before.cpu_us) / calls;
    return rc;
}

static void report_pace(struct bench *b, const struct pace_plan *plan, const struct pace *p, double bare_us)
{
    const struct verify_use *kept = &p->kept;

    report(b, PACE_KEPT, kept->kept, 0, "%d workers, %d executors each, %zu starts, %zu violations",
           plan->workers, plan->executors, (size_t)kept->starts, (size_t)kept->violations);
    report(b, PACE_SECOND, (double)kept->windows[0].most, 0, "%s", "");
    report(b, PACE_TENTH, (double)kept->windows[1].most, 0, "%s", "");
    report(b, PACE_SECOND_CLOCK, (double)p->starts_second, 0, "%s", "");
    report(b, PACE_TENTH_CLOCK, (double)p->starts_tenth, 0, "%s", "");
    report(b, CEILING_ASLEEP, p->asleep_late_us / 1e3, 0, "%s", "");
    report(b, PACE_LATE, (double)p->late.p999_us / 1e3, p->asleep_late_us / 1e3,
           "p50 %.3f, p99 %.3f, most %.3f ms", (double)p->late.p50_us / 1e3, (double)p->late.p99_us / 1e3,
           (double)p->late.max_us / 1e3);
    report(b, PACE_COMMANDS, p->commands, 0, "those inside of scripts counted, %.1f s", plan->seconds);
    report(b, PACE_CPU, p->cpu_us / bare_us, 0, "%.1f us a job; workers %.1f us", p->cpu_us, p->worker_us);
}

/* As many as a job takes, on keys that are not there, and no more Lua than that. */
static const char twenty_commands[] = "for i = 1, 20 do redis.call('HGET', 'nothing', 'here') end return 1";

int bench_pace(struct bench *b)
{
    struct pace_plan plan = {"100/s,burst=10", 20000, b->quick ? 5 : 20, 2, 10, NULL};
    struct pace pace = {0};
    double bare_us = 1, commands_us;
    int rc;

    if (b->pace.known)
        return 0;
    rc = measure_script(b, "return 1", &bare_us);
    if (rc == 0)
        rc = measure_script(b, twenty_commands, &commands_us);
    if (rc != 0)
        return rc;
    report(b, CEILING_EVALSHA, bare_us, 0, "%s", "");
    report(b, CEILING_COMMANDS, commands_us / bare_us, 0, "%.1f us", commands_us);
    rc = measure(b, &plan, &pace);
    if (rc != 0)
        return rc;
    report_pace(b, &plan, &pace, bare_us);
    b->pace = (struct pace_cost){true, pace.commands, pace.cpu_us};
    return 0;
}

/* The small backlog is measured before and after the large one: the machine's speed drifts by more than what
 * is asked. */
int bench_million(struct bench *b)
{
    struct pace_plan small = {"100/s,burst=10", 20000, b->quick ? 5 : 20, 2, 10, NULL}, large = small;
    struct pace again = {0}, pace = {0};
    double commands, cpu_us;
    int rc = bench_pace(b);

    large.backlog = bench_size(b, 1000000);
    if (rc == 0)
        rc = measure(b, &large, &pace);
    if (rc == 0)
        rc = measure(b, &small, &again);
    if (rc != 0)
        return rc;
    commands = (b->pace.commands + again.commands) / 2;
    cpu_us = (b->pace.cpu_us + again.cpu_us) / 2;
    report(b, MILLION_COMMANDS, pace.commands / commands, 0, "%.2f a job; backlog %zu, rate kept %.4f",
           pace.commands, large.backlog, pace.kept.kept);
    report(b, MILLION_CPU, pace.cpu_us / cpu_us, 0,
           "%.1f us a job; with 20,000 before %.1f and after %.1f; to park it %.2f", pace.cpu_us,
           b->pace.cpu_us, again.cpu_us, pace.parked_us);
    return 0;
}

static int measure_fast(struct bench *b, const char *rule, double a_second, enum figure kept, enum figure gap)
{
    double seconds = b->quick ? 3 : 10;
    struct pace_plan plan = {rule, (size_t)(a_second * (seconds + 4)), seconds, 2, 64, NULL};
    struct pace pace = {0};
    int rc = measure(b, &plan, &pace);

    if (rc != 0)
        return rc;
    report(b, kept, pace.kept.kept, 0,
           "%d workers, %d executors each, %zu violations; Redis CPU %.1f us a job, workers %.1f us",
           plan.workers, plan.executors, (size_t)pace.kept.violations, pace.cpu_us, pace.worker_us);
    report(b, gap, pace.kept.gap, 0, "late p50 %.3f, p99 %.3f, p99.9 %.3f ms", (double)pace.late.p50_us / 1e3,
           (double)pace.late.p99_us / 1e3, (double)pace.late.p999_us / 1e3);
    return 0;
}

int measure_far(struct bench *b, const char *url, const char *rule, double a_second)
{
    double seconds = b->quick ? 3 : 10;
    struct pace_plan plan = {rule, (size_t)(a_second * (seconds + 4)), seconds, 2, 100, url};
    struct pace pace = {0};
    int rc = measure(b, &plan, &pace);

    if (rc == 0)
        report(b, FAR_KEPT, pace.kept.kept, 0,
               "%d workers, %d executors each, %zu violations; late p99.9 %.3f ms", plan.workers,
               plan.executors, (size_t)pace.kept.violations, (double)pace.late.p999_us / 1e3);
    return rc;
}

int bench_fast(struct bench *b)
{
    int rc = measure_fast(b, "1000/s,burst=1", 1000, FAST_KEPT_1000, FAST_GAP_1000);

    return rc == 0 ? measure_fast(b, "5000/s,burst=1", 5000, FAST_KEPT_5000, FAST_GAP_5000) : rc;
}

static int measure_flood(struct bench *b, const char *rule, enum figure kept, enum figure cpu)
{
    struct pace_plan plan = {rule, b->quick ? 250000 : 1000000, b->quick ? 4 : 10, 1, 256, NULL};
    struct pace pace = {0};
    int rc = measure(b, &plan, &pace);

    if (rc != 0)
        return rc;
    report(b, kept, pace.kept.kept, 0,
           "%d worker, %d executors, backlog %zu, %zu violations; %.0f/s in steady state", plan.workers,
           plan.executors, plan.backlog, (size_t)pace.kept.violations, pace.rate);
    report(b, cpu, pace.cpu_us, 0, "%.2f commands a job; worker %.1f us; late p99.9 %.3f ms", pace.commands,
           pace.worker_us, (double)pace.late.p999_us / 1e3);
    return 0;
}

int bench_flood(struct bench *b)
{
    int rc = measure_flood(b, "20000/s", FLOOD_KEPT, FLOOD_CPU);

    return rc == 0 ? measure_flood(b, "20000/s,burst=1", FLOOD_KEPT_BURST_1, FLOOD_CPU_BURST_1) : rc;
}
