/* Rates: how exactly they are kept, and what that costs Redis. Workers run with traces; what they cost is
 * taken between two moments in steady state, after the queue has been looked at whole and all that waits is
 * parked. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/crew.h"
#include "core/clock.h"
#include "throttle/verify/verify.h"

#define TYPE "mail"
#define BARE_EVERY_US 10000
#define ASLEEP_US 10000

#define QUEUES_MOST 64 /* that have words of their own */
enum words { PATTERN, NAMES, WEIGHTS };

struct pace_plan {
    const char *rule;
    size_t backlog;
    double seconds;
    int workers, executors;
    const char *url;  /* of the workers; NULL: Redis's own */
    int queues;       /* that have the backlog in turn, q0, q1 ...; 0: the default one */
    enum words words; /* by which the workers serve them */
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

static struct moment look(void)
{
    struct moment m = {.usage = server_usage(&bench.server)};

    m.started = (double)(server_ask(&bench.server, "HGET", PREFIX "stats:" TYPE, "pulled", NULL) +
                         server_ask(&bench.server, "HGET", PREFIX "stats:" TYPE, "served", NULL));
    m.at_us = clock_mono_us();
    return m;
}

static void wait_until_parked(struct crew *crew, size_t backlog)
{
    do {
        bench_rest(0.02);
        crew_check(crew);
    } while (server_ask(&bench.server, "HGET", PREFIX "stats:" TYPE, "parked", NULL) +
                 server_ask(&bench.server, "HGET", PREFIX "stats:" TYPE, "pulled", NULL) <
             (long long)backlog);
}

/* Waits, in short sleeps. Returns how late the p99.9 of them ended. */
static double sleep_beside(double seconds)
{
    size_t count = (size_t)(seconds * 1e6 / ASLEEP_US);
    int64_t *late = calloc(count + 1, sizeof *late);
    double late_us;

    if (!late)
        fail("out of memory");
    for (size_t i = 0; i < count; i++) {
        int64_t until_us = clock_mono_us() + ASLEEP_US;

        clock_sleep_until(until_us);
        late[i] = clock_mono_us() - until_us;
        bench_check();
    }
    qsort(late, count, sizeof *late, bench_compare_us);
    late_us = (double)late[count * 999 / 1000];
    free(late);
    return late_us;
}

/* The queues as a worker is told them. */
static const char *words_of(const struct pace_plan *plan, char words[QUEUES_MOST * 8])
{
    size_t len = 0;

    if (plan->words == PATTERN || plan->queues == 0)
        return plan->queues > 0 ? "q*" : "default";
    for (int i = 0; i < plan->queues; i++) {
        len += (size_t)snprintf(words + len, 8, "%sq%d", i ? "," : "", i);
        if (plan->words == WEIGHTS)
            len += (size_t)snprintf(words + len, 8, "=%d", 1 + i % 3);
    }
    return words;
}

static void run(const struct pace_plan *plan, const char *trace, struct pace *pace)
{
    char words[QUEUES_MOST * 8];
    struct crew_plan crew_plan = {.url = plan->url ? plan->url : bench.server.url,
                                  .queues = words_of(plan, words),
                                  .workers = plan->workers,
                                  .executors = plan->executors,
                                  .trace = trace,
                                  .types = {{.name = TYPE, .handler = noop_handler}}};
    struct moment begin = look(), parked, first, last;
    struct crew crew;
    double started;

    crew_start(&crew, &crew_plan);
    wait_until_parked(&crew, plan->backlog);
    parked = look();
    bench_rest(1);
    first = look();
    pace->asleep_late_us = sleep_beside(plan->seconds);
    last = look();
    crew_stop(&crew);
    started = last.started - first.started;
    pace->commands = (last.usage.commands - first.usage.commands) / started;
    pace->cpu_us = (last.usage.cpu_us - first.usage.cpu_us) / started;
    pace->rate = started / ((double)(last.at_us - first.at_us) / 1e6);
    pace->parked_us = (parked.usage.cpu_us - begin.usage.cpu_us) / (double)plan->backlog;
    pace->worker_us = crew.cpu_us / last.started;
}

/* ---- The traces */

struct starts {
    int64_t *us;
    size_t count, capacity;
};

/* A worker may have had none: slots are for the one on duty. */
static void read_starts(const char *path, struct starts *starts)
{
    FILE *f = fopen(path, "r");
    char line[512];
    long long us;

    if (!f)
        fail("%s: no trace", path);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "{\"slot\":%*d,\"start\":%lld", &us) != 1)
            continue;
        if (starts->count == starts->capacity) {
            starts->capacity = starts->capacity ? starts->capacity * 2 : 4096;
            starts->us = reallocarray(starts->us, starts->capacity, sizeof *starts->us);
            if (!starts->us)
                fail("%s: out of memory", path);
        }
        starts->us[starts->count++] = us;
    }
    fclose(f);
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

static void judge(const struct pace_plan *plan, const char *trace, struct pace *pace)
{
    struct starts starts = {0};
    struct verify v;
    char path[128];
    size_t torn_line;

    must(verify_init(&v, &failure));
    for (int i = 0; i < plan->workers; i++) {
        snprintf(path, sizeof path, "%s.%d", trace, i);
        must(verify_read(&v, path, &torn_line, &failure));
        read_starts(path, &starts);
        unlink(path);
    }
    must(verify_replay(&v, &failure));
    if (v.type_count != 1 || v.rule_count != 1)
        fail("the traces hold %zu types and %zu rules", v.type_count, v.rule_count);
    pace->kept = v.rules[0].worst;
    pace->late = v.types[0].lateness;
    qsort(starts.us, starts.count, sizeof *starts.us, bench_compare_us);
    pace->starts_second = most_in(&starts, 1000000);
    pace->starts_tenth = most_in(&starts, 100000);
    free(starts.us);
    verify_free(&v);
}

/* ---- The figures */

static void fill_queues(const struct pace_plan *plan)
{
    struct weir *w = client_open(bench.server.url);
    struct weir_bulk *bulk = NULL;
    char queue[16];

    client_must(w, weir_bulk_open(w, NULL, &bulk));
    for (size_t i = 0; i < plan->backlog; i++) {
        snprintf(queue, sizeof queue, "q%d", (int)(i % (size_t)plan->queues));
        client_must(w,
                    weir_bulk_add(bulk, &(struct weir_job_spec){.type = TYPE, .queue = queue, .args = "{}"}));
    }
    client_must(w, weir_bulk_close(bulk, NULL));
    weir_free(w);
}

static struct pace measure(const struct pace_plan *plan)
{
    struct pace pace = {0};
    char trace[112];

    snprintf(trace, sizeof trace, "%s/trace", bench.server.folder);
    prepare(&bench.server, TYPE, plan->rule, plan->queues > 0 ? 0 : plan->backlog);
    if (plan->queues > 0)
        fill_queues(plan);
    run(plan, trace, &pace);
    judge(plan, trace, &pace);
    return pace;
}

/* What Redis uses for one EVALSHA that does nothing, asked for at 100/s by an idle connection. */
static double measure_bare(void)
{
    const int calls = bench.quick ? 200 : 500;
    char sha[SHA_SIZE];
    double before_us;
    int64_t at_us;

    server_load(&bench.server, "return 1", sha);
    before_us = server_usage(&bench.server).cpu_us;
    at_us = clock_mono_us();
    for (int i = 0; i < calls; i++) {
        clock_sleep_until(at_us += BARE_EVERY_US);
        server_ask(&bench.server, "EVALSHA", sha, "0", NULL);
        bench_check();
    }
    return (server_usage(&bench.server).cpu_us - before_us) / calls;
}

static void report_pace(const struct pace_plan *plan, const struct pace *p, double bare_us)
{
    const struct verify_use *kept = &p->kept;

    report(PACE_KEPT, kept->kept, 0, "%d workers, %d executors each, %zu starts, %zu violations",
           plan->workers, plan->executors, (size_t)kept->starts, (size_t)kept->violations);
    report(PACE_SECOND, (double)kept->windows[0].most, 0, "%s", "");
    report(PACE_TENTH, (double)kept->windows[1].most, 0, "%s", "");
    report(PACE_SECOND_CLOCK, (double)p->starts_second, 0, "%s", "");
    report(PACE_TENTH_CLOCK, (double)p->starts_tenth, 0, "%s", "");
    report(CEILING_ASLEEP, p->asleep_late_us / 1e3, 0, "%s", "");
    report(PACE_LATE, (double)p->late.p999_us / 1e3, p->asleep_late_us / 1e3,
           "p50 %.3f, p99 %.3f, most %.3f ms", (double)p->late.p50_us / 1e3, (double)p->late.p99_us / 1e3,
           (double)p->late.max_us / 1e3);
    report(PACE_COMMANDS, p->commands, 0, "those inside of scripts counted, %.1f s", plan->seconds);
    report(PACE_CPU, p->cpu_us / bare_us, 0, "%.1f us a job; workers %.1f us", p->cpu_us, p->worker_us);
}

static struct pace_plan slow_plan(size_t backlog)
{
    return (struct pace_plan){.rule = "100/s,burst=10",
                              .backlog = backlog,
                              .seconds = bench.quick ? 5 : 20,
                              .workers = 2,
                              .executors = 10};
}

void bench_pace(void)
{
    struct pace_plan plan = slow_plan(20000);
    struct pace pace;
    double bare_us;

    if (bench.results[PACE_CPU].known)
        return;
    bare_us = measure_bare();
    report(CEILING_EVALSHA, bare_us, 0, "%s", "");
    pace = measure(&plan);
    report_pace(&plan, &pace, bare_us);
}

/* The small backlog is measured before and after the large one: the machine's speed drifts by more than what
 * is asked. */
void bench_million(void)
{
    struct pace_plan small = slow_plan(20000), large = slow_plan(bench_size(1000000));
    const struct result *r = bench.results;
    struct pace pace, again;
    double before_us;

    bench_pace();
    before_us = r[PACE_CPU].value * r[CEILING_EVALSHA].value;
    pace = measure(&large);
    again = measure(&small);
    report(MILLION_COMMANDS, 2 * pace.commands / (r[PACE_COMMANDS].value + again.commands), 0,
           "%.2f a job; backlog %zu, rate kept %.4f", pace.commands, large.backlog, pace.kept.kept);
    report(MILLION_CPU, 2 * pace.cpu_us / (before_us + again.cpu_us), 0,
           "%.1f us a job; with 20,000 before %.1f and after %.1f; to park it %.2f", pace.cpu_us, before_us,
           again.cpu_us, pace.parked_us);
}

/* The rate must be kept by a backlog that lasts. */
static struct pace_plan fast_plan(const char *rule, double a_second, int executors, const char *url)
{
    double seconds = bench.quick ? 3 : 10;

    return (struct pace_plan){.rule = rule,
                              .backlog = (size_t)(a_second * (seconds + 4)),
                              .seconds = seconds,
                              .workers = 2,
                              .executors = executors,
                              .url = url};
}

static void measure_fast(const char *rule, double a_second, enum figure kept, enum figure gap)
{
    struct pace_plan plan = fast_plan(rule, a_second, 64, NULL);
    struct pace pace = measure(&plan);

    report(kept, pace.kept.kept, 0,
           "%d workers, %d executors each, %zu violations; Redis CPU %.1f us a job, workers %.1f us",
           plan.workers, plan.executors, (size_t)pace.kept.violations, pace.cpu_us, pace.worker_us);
    report(gap, pace.kept.gap, 0, "late p50 %.3f, p99 %.3f, p99.9 %.3f ms", (double)pace.late.p50_us / 1e3,
           (double)pace.late.p99_us / 1e3, (double)pace.late.p999_us / 1e3);
}

void bench_fast(void)
{
    measure_fast("1000/s,burst=1", 1000, FAST_KEPT_1000, FAST_GAP_1000);
    measure_fast("5000/s,burst=1", 5000, FAST_KEPT_5000, FAST_GAP_5000);
}

void measure_far(const char *url, const char *rule, double a_second)
{
    struct pace_plan plan = fast_plan(rule, a_second, 100, url);
    struct pace pace = measure(&plan);

    report(FAR_KEPT, pace.kept.kept, 0, "%d workers, %d executors each, %zu violations; late p99.9 %.3f ms",
           plan.workers, plan.executors, (size_t)pace.kept.violations, (double)pace.late.p999_us / 1e3);
}

static void measure_flood(const char *rule, enum figure kept, enum figure cpu)
{
    struct pace_plan plan = {.rule = rule,
                             .backlog = bench.quick ? 250000 : 1000000,
                             .seconds = bench.quick ? 4 : 10,
                             .workers = 1,
                             .executors = 256};
    struct pace pace = measure(&plan);

    report(kept, pace.kept.kept, 0,
           "%d worker, %d executors, backlog %zu, %zu violations; %.0f/s in steady state", plan.workers,
           plan.executors, plan.backlog, (size_t)pace.kept.violations, pace.rate);
    report(cpu, pace.cpu_us, 0, "%.2f commands a job; worker %.1f us; late p99.9 %.3f ms", pace.commands,
           pace.worker_us, (double)pace.late.p999_us / 1e3);
}

void bench_flood(void)
{
    measure_flood("20000/s", FLOOD_KEPT, FLOOD_CPU);
    measure_flood("20000/s,burst=1", FLOOD_KEPT_BURST_1, FLOOD_CPU_BURST_1);
}

/* ---- Many queues under one limit: a start costs what it costs with one */

static double measure_queues(const char *rule, double a_second, int queues, enum words words,
                             enum figure kept)
{
    struct pace_plan plan = fast_plan(rule, a_second, a_second > 1000 ? 256 : 20, NULL);
    struct pace pace;

    plan.backlog += 20000; /* with a thousand queues each has enough */
    plan.queues = queues;
    plan.words = words;
    pace = measure(&plan);
    if (kept != FIGURES)
        report(kept, pace.kept.kept, 0, "%zu violations; %.2f commands, Redis CPU %.1f us a start",
               (size_t)pace.kept.violations, pace.commands, pace.cpu_us);
    return pace.cpu_us;
}

/* One queue is measured before and after the others, as the machine's speed drifts. */
void bench_queues(void)
{
    static const char rule[] = "100/s,burst=10";
    double one_us = measure_queues(rule, 100, 1, NAMES, QUEUES_KEPT_1);
    double names_us = measure_queues(rule, 100, 64, NAMES, QUEUES_KEPT_NAMES);
    double weights_us = measure_queues(rule, 100, 64, WEIGHTS, QUEUES_KEPT_WEIGHTS);
    double many_us = measure_queues(rule, 100, 1000, PATTERN, QUEUES_KEPT_MANY);

    one_us = (one_us + measure_queues(rule, 100, 1, NAMES, FIGURES)) / 2;
    report(QUEUES_CPU_NAMES, names_us / one_us, 0, "%.1f us; one queue %.1f us", names_us, one_us);
    report(QUEUES_CPU_WEIGHTS, weights_us / one_us, 0, "%.1f us", weights_us);
    report(QUEUES_CPU_MANY, many_us / one_us, 0, "%.1f us", many_us);
    measure_queues("400/s,burst=1", 400, 1000, PATTERN, QUEUES_KEPT_400);
    measure_queues("20000/s", 20000, 1000, PATTERN, QUEUES_KEPT_20000);
}
