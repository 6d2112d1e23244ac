/* Chaos: ten workers with handlers of all kinds, jobs of all types, and faults one after the other, chosen by
 * a seed; in the end a checker holds what happened against what Weir promises. tests/chaos/ has its parts:
 *
 *     plan      what is to happen, by the seed
 *     deed      what a handler does with a job; handlers (in C), child (the programs)
 *     actors    producers, the operator, workers of our own
 *     run       starts all, keeps it going, and lets it finish; faults does the damage
 *     checker   the judge; history reads what was written, limits holds it against the rules
 *
 * make chaos SEED=n TIME=s runs one plan, of 100,000 jobs a minute; without a seed this is the short run of
 * make test, always the same plan. */
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "queue/inspect/cancel.h"
#include "tests/chaos/actors.h"
#include "tests/chaos/checker.h"
#include "tests/chaos/run.h"
#include "tests/program.h"
#include "tests/test.h"

#define SHORT_SEED 1207 /* ten kinds of faults in three seconds */
#define SHORT_TIME 3

static void print_faults(const struct run *run)
{
    int counts[FAULT_ALL] = {0};
    const char *between = "";

    for (int i = 0; i < run->incident_count; i++)
        counts[run->incidents[i].kind]++;
    printf("  faults: ");
    for (int i = 0; i < FAULT_ALL; i++) {
        if (counts[i])
            printf("%s%d %s", between, counts[i], fault_names[i]);
        between = counts[i] ? ", " : between;
    }
    printf("\n");
}

static void print_limits(const struct verdict *v)
{
    printf("  most of a limit:");
    for (int i = 0; i < PLAN_LIMITS; i++) {
        const struct limit_plan *limit = &limit_plans[i];
        int64_t most = limit->count + (limit->burst ? limit->burst - 1 : 0);

        if (!limit->count && !limit->most)
            continue;
        printf("%s %s", i ? "," : "", limit->name);
        if (limit->count)
            printf(" %d in 0.95 s of %" PRId64, v->in_period[i], most);
        if (limit->most)
            printf(" %d at once of %d", v->at_once[i], limit->most);
    }
    printf("\n");
}

static void print_verdict(const struct run *run, const struct verdict *v)
{
    printf(
        "seed %" PRIu64
        ": %d wrong, lost %d; %d jobs accepted, %d perhaps, %d held back; %d starts; done %d, cancelled %d\n",
        run->plan.seed, v->wrong, v->lost, v->accepted, v->maybe, v->held, v->starts, v->done, v->cancelled);
    print_faults(run);
    printf("  again:");
    for (int i = 0; i < CAUSES; i++)
        printf(" %d %s%s", v->again[i], cause_names[i], i + 1 < CAUSES ? "," : "\n");
    printf("  %d jobs of schedules, %d after batches, %d starts without a trace\n", v->schedule_jobs,
           v->batches, v->untraced);
    printf("  %d starts under rates; later than 50 ms: %d by the worker, the latest %.3f s; %d by the "
           "handler, %.3f s\n",
           v->slots, v->called_late, (double)v->called_latest_us / 1e6, v->late, (double)v->latest_us / 1e6);
    print_limits(v);
    printf("  finished %.1f s after the last fault; this process waited up to %d ms\n",
           (double)run->drained_us / 1e6, run->starved_ms);
}

static void run_plan(uint64_t seed, int seconds)
{
    struct run run;
    struct verdict v = {0};
    char *stuck = NULL;

    run_open(&run, seed, seconds);
    run_load(&run);
    if (!run_finish(&run, &stuck)) {
        printf("WRONG: does not finish: %s\n", stuck);
        v.wrong++;
    }
    free(stuck);
    check_redis(&run, &v);
    if (run_end_workers(&run) > 0)
        v.wrong++;
    check_history(&run, &v);
    print_verdict(&run, &v);
    run_close(&run, v.wrong > 0 || getenv("KEEP"));
    assert_int_equal(v.wrong, 0);
}

TEST(chaos)
{
    const char *seed = getenv("SEED"), *seconds = getenv("TIME");

    run_plan(seed ? strtoull(seed, NULL, 10) : SHORT_SEED, seconds ? atoi(seconds) : SHORT_TIME);
}

/* ---- The checker itself: histories that are made up */

enum { FORGED_JOBS = 24 };

struct forged {
    struct run run;
    FILE *history, *answers, *trace, *log;
    int64_t wall_us; /* as the traces have it */
};

static FILE *open_in(const struct run *run, const char *name)
{
    FILE *f;

    f = fopen(textf("%s/%s", run->server.folder, name), "w");
    assert_non_null(f);
    return f;
}

/* Jobs of that type, each of which comes in by a step of its own; worker 0 has one life, and ends well. */
static void begin_forged(struct forged *f, enum chaos_type type)
{
    struct plan *p = &f->run.plan;

    *f = (struct forged){.wall_us = run_wall_ahead()};
    folder_make(f->run.server.folder);
    p->jobs = calloc(FORGED_JOBS, sizeof *p->jobs);
    p->steps = calloc(FORGED_JOBS, sizeof *p->steps);
    f->run.lives = calloc(1, sizeof *f->run.lives);
    f->run.incidents = calloc(1, sizeof *f->run.incidents);
    assert_true(p->jobs && p->steps && f->run.lives && f->run.incidents);
    p->job_count = p->step_count = FORGED_JOBS;
    for (int i = 0; i < FORGED_JOBS; i++) {
        p->jobs[i].type = (uint8_t)type;
        p->steps[i] = (struct step){.first = i, .count = 1, .batch = -1};
    }
    f->run.begun_us = clock_mono_us();
    f->run.life_count = 1;
    f->run.lives[0] = (struct life){.n = 1, .ended_us = f->run.begun_us + 3600000000, .asked = true};
    f->history = open_in(&f->run, "history");
    f->answers = open_in(&f->run, "answers");
    f->trace = open_in(&f->run, "trace0");
    f->log = open_in(&f->run, "worker0.1.err");
}

static void accept(struct forged *f, int job)
{
    fprintf(f->answers, "in %d 0\n", job);
}

/* Times are ms since the run began. slot_ms 0: it needed none. The line is written before its handler begins: by more than two readings of
   the wall clock differ. */
static void trace_call(struct forged *f, int job, int at_ms, int slot_ms)
{
    long long at_us = f->run.begun_us + at_ms * 1000LL,
              slot_us = f->run.begun_us + f->wall_us + slot_ms * 1000LL;

    fprintf(f->trace, "{\"slot\":%lld,\"start\":%lld,\"id\":\"j%d\"}\n", slot_ms ? slot_us : 0,
            at_us + (long long)f->wall_us - 100, job);
}

static void begin_job(struct forged *f, int job, int at_ms, int slot_ms)
{
    trace_call(f, job, at_ms, slot_ms);
    fprintf(f->history, "S j%d 0.1 1 %lld\n", job, (long long)f->run.begun_us + at_ms * 1000LL);
}

static void end_job(struct forged *f, int job, int at_ms, char ending)
{
    fprintf(f->history, "E j%d 0.1 1 %lld %c\n", job, (long long)f->run.begun_us + at_ms * 1000LL, ending);
}

/* A job that is as it should be. */
static void do_job(struct forged *f, int job, int from_ms, int to_ms, int slot_ms)
{
    accept(f, job);
    begin_job(f, job, from_ms, slot_ms);
    end_job(f, job, to_ms, '.');
}

static void strike(struct forged *f, enum fault_kind kind, int from_ms, int to_ms)
{
    f->run.incidents[f->run.incident_count++] =
        (struct incident){.kind = kind,
                          .n = 1,
                          .from_us = f->run.begun_us + from_ms * 1000LL,
                          .sure_us = f->run.begun_us + from_ms * 1000LL,
                          .to_us = f->run.begun_us + to_ms * 1000LL};
}

static int end_forged(struct forged *f)
{
    struct verdict v = {.quiet = true};

    fclose(f->history);
    fclose(f->answers);
    fclose(f->trace);
    fclose(f->log);
    check_history(&f->run, &v);
    folder_remove(f->run.server.folder);
    plan_free(&f->run.plan);
    free(f->run.lives);
    free(f->run.incidents);
    return v.wrong;
}

TEST(the_checker_sees_what_is_lost_or_doubled)
{
    struct forged f;

    begin_forged(&f, TYPE_FREE);
    do_job(&f, 0, 1, 2, 0);
    fprintf(f.answers, "held j1 j0\n"); /* and does not run */
    fprintf(f.answers, "maybe 2\n");
    accept(&f, 3);
    fprintf(f.answers, "cancel j3 asked 0 0\n");
    do_job(&f, 4, 10, 11, 0);
    begin_job(&f, 5, 12, 0); /* failed, and again */
    end_job(&f, 5, 13, 'r');
    do_job(&f, 5, 14, 15, 0);
    assert_int_equal(end_forged(&f), 0);

    begin_forged(&f, TYPE_FREE);
    accept(&f, 0); /* never done */
    accept(&f, 1);
    begin_job(&f, 1, 1, 0); /* begun, no more */
    assert_int_equal(end_forged(&f), 2);

    begin_forged(&f, TYPE_FREE);
    begin_job(&f, 0, 1, 0); /* nobody enqueued it */
    end_job(&f, 0, 2, '.');
    fprintf(f.answers, "held j1 j0\n");
    begin_job(&f, 1, 3, 0); /* its key was held */
    accept(&f, 2);
    fprintf(f.answers, "cancel j2 marked 1 %lld\n", (long long)f.run.begun_us + 4000);
    begin_job(&f, 2, 5, 0); /* after its cancel was answered */
    assert_int_equal(end_forged(&f), 3);

    begin_forged(&f, TYPE_FREE);
    do_job(&f, 0, 1, 2, 0);
    do_job(&f, 0, 5000, 5001, 0); /* twice, without a cause */
    end_job(&f, 1, 5002, '.');    /* an end without a beginning */
    assert_int_equal(end_forged(&f), 2);
}

TEST(the_checker_knows_the_causes)
{
    static const struct {
        enum fault_kind kind;
        int from_ms, to_ms, wrong;
    } cases[] = {
        {FAULT_STOP_WORKER, 1, 2500, 0},     {FAULT_STOP_WORKER, 1, 100, 1},
        {FAULT_STOP_WORKER, 6000, 9000, 1},  {FAULT_PARTITION, 1, 1500, 0},
        {FAULT_TERM_WORKER, 3000, 0, 0},     {FAULT_FORCE_WORKER, 3000, 0, 0},
        {FAULT_FLUSH_FUNCTIONS, 1, 2500, 1}, {FAULT_STEP_CLOCK, 1, 1, 1},
        {FAULT_FULL_MEMORY, 1, 2500, 1},     {FAULT_STARVED, 1, 1700, 0},
        {FAULT_STARVED, 1, 100, 1},
    };
    struct forged f;

    for (size_t i = 0; i < COUNT(cases); i++) {
        begin_forged(&f, TYPE_FREE);
        strike(&f, cases[i].kind, cases[i].from_ms, cases[i].to_ms);
        fputs("silent for longer than its lease\n", f.log);
        do_job(&f, 0, 2, 3, 0);
        do_job(&f, 0, 5000, 5001, 0);
        if (end_forged(&f) != cases[i].wrong)
            fail_msg("%s from %d to %d ms: not %d wrong", fault_names[cases[i].kind], cases[i].from_ms,
                     cases[i].to_ms, cases[i].wrong);
    }
    begin_forged(&f, TYPE_FREE);
    strike(&f, FAULT_STOP_WORKER, 1, 2500); /* and its log says nothing */
    do_job(&f, 0, 2, 3, 0);
    do_job(&f, 0, 5000, 5001, 0);
    assert_int_equal(end_forged(&f), 1);
    begin_forged(&f, TYPE_FREE);
    f.run.lives[0].code = 1000 + SIGKILL;
    f.run.lives[0].ended_us = f.run.begun_us + 4000;
    do_job(&f, 0, 2, 3, 0);
    do_job(&f, 0, 5000, 5001, 0);
    assert_int_equal(end_forged(&f), 0);
}

/* It was called in a worker that is stopped then, and is done elsewhere before its handler begins. */
TEST(the_checker_knows_what_began_late)
{
    struct forged f;

    for (int to_ms = 3500; to_ms >= 100; to_ms -= 3400) {
        FILE *trace, *log;

        begin_forged(&f, TYPE_FREE);
        f.run.lives = run_more(f.run.lives, 1, sizeof *f.run.lives);
        f.run.lives[f.run.life_count++] = (struct life){
            .worker = 1, .n = 1, .ended_us = f.run.begun_us + 3600000000, .code = 0, .asked = true};
        strike(&f, FAULT_STOP_WORKER, 1, to_ms);
        f.run.incidents[0].worker = 1;
        trace = open_in(&f.run, "trace1");
        log = open_in(&f.run, "worker1.1.err");
        fputs("silent for longer than its lease\n", log);
        fprintf(trace, "{\"slot\":0,\"start\":%lld,\"id\":\"j0\"}\n",
                (long long)(f.run.begun_us + f.wall_us + 2000));
        fclose(trace);
        fclose(log);
        do_job(&f, 0, 3000, 3001, 0);
        fprintf(f.history, "S j0 1.1 1 %lld\n", (long long)f.run.begun_us + 3501000);
        assert_int_equal(end_forged(&f), to_ms == 100);
    }
}

/* Lines of calls that no handler saw: of a life before, when Redis's clock was another, and of this one. */
TEST(the_checker_knows_which_line_a_start_has)
{
    struct forged f;

    for (int second = 0; second <= 1; second++) {
        begin_forged(&f, TYPE_PACED);
        f.run.lives[0].begun_us = f.run.begun_us + 1500000;
        if (second)
            f.run.lives[0].begun_us = f.run.begun_us;
        for (int i = 0; i < 20; i++)
            do_job(&f, i, 11500, 11501, 11500); /* the burst */
        trace_call(&f, 20, 1000, 11500);
        do_job(&f, 20, 20000, 20001, 20000);
        assert_int_equal(end_forged(&f), 0);
    }
}

TEST(the_checker_sees_who_begins_without_a_lease)
{
    struct forged f;

    begin_forged(&f, TYPE_FREE);
    strike(&f, FAULT_PARTITION, 100, 4000);
    do_job(&f, 0, 2000, 2001, 0);
    do_job(&f, 1, 2200, 2201, 0); /* a lease is 2 s */
    do_job(&f, 2, 4100, 4101, 0);
    assert_int_equal(end_forged(&f), 1);
}

TEST(the_checker_sees_limits_that_do_not_hold)
{
    struct forged f;

    for (int most = 4; most <= 5; most++) {
        begin_forged(&f, TYPE_BUSY);
        for (int i = 0; i < most; i++)
            do_job(&f, i, 10 + i, 20, 0);
        do_job(&f, 5, 20, 30, 0); /* when others have ended */
        assert_int_equal(end_forged(&f), most - 4);
    }
    begin_forged(&f, TYPE_BUSY);
    for (int i = 0; i < 4; i++)
        do_job(&f, i, 10 + i, 20, 0);
    accept(&f, 4);
    begin_job(&f, 4, 9, 0); /* a command that is ended by its cancel */
    fprintf(f.answers, "cancel j4 told %lld %lld\n", (long long)f.run.begun_us + 9500,
            (long long)f.run.begun_us + 10500);
    assert_int_equal(end_forged(&f), 0);
    for (int slot_ms = 16; slot_ms <= 17; slot_ms++) {
        begin_forged(&f,
                     TYPE_RIGHT); /* 300/s,burst=6, two slots each: three at once, then one every 6.7 ms */
        for (int i = 0; i < 3; i++)
            do_job(&f, i, 10, 11, 10);
        do_job(&f, 3, 17, 18, slot_ms);
        assert_int_equal(end_forged(&f), 17 - slot_ms);
    }
    begin_forged(&f, TYPE_PACED);
    do_job(&f, 0, 10, 11, 20); /* before its slot */
    assert_int_equal(end_forged(&f), 1);
    begin_forged(&f, TYPE_FREE);
    accept(&f, 0);
    fprintf(f.history, "S j0 0.1 1 %lld\n", (long long)f.run.begun_us); /* not in the trace */
    end_job(&f, 0, 1, '.');
    assert_int_equal(end_forged(&f), 1);
    begin_forged(&f, TYPE_FREE);
    f.run.lives[0].code = 70; /* and its log does not say why */
    assert_int_equal(end_forged(&f), 1);
}

/* ---- The faults themselves */

static bool is_stopped(pid_t pid)
{
    char folder[32], text[512];

    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    assert_true(read_text(folder, "stat", text, sizeof text));
    return strrchr(text, ')')[2] == 'T';
}

static void await_stopped(pid_t pid, bool stopped)
{
    int64_t end_us = clock_mono_us() + 60000000;

    for (; is_stopped(pid) != stopped; clock_sleep_until(clock_mono_us() + 1000))
        assert_true(clock_mono_us() < end_us);
}

/* Two that overlap: what they do lasts as long as the longer one, whichever began first. */
TEST(faults_that_overlap_last_until_the_last_one_ends)
{
    for (int longer = 0; longer <= 1; longer++) {
        struct fault faults[2] = {{.kind = FAULT_STOP_WORKER, .worker = 3, .for_us = 1000000000},
                                  {.kind = FAULT_STOP_WORKER, .worker = 3, .for_us = 1000000000}};
        struct run run = {.plan = {.faults = faults, .fault_count = 2}, .begun_us = clock_mono_us()};
        int status;
        pid_t pid = fork();

        if (pid == 0)
            for (;;)
                pause();
        assert_true(pid > 0);
        run.workers[3].pid = pid;
        faults[longer].for_us *= 3;
        faults_go_on(&run, run.begun_us);
        await_stopped(pid, true);
        faults_go_on(&run, run.begun_us + 2000000000);
        assert_true(faults_last(&run));
        assert_true(is_stopped(pid));
        faults_go_on(&run, run.begun_us + 4000000000);
        assert_false(faults_last(&run));
        await_stopped(pid, false);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        free(run.incidents);
    }
}

int main(int argc, char **argv)
{
    int code = actor_main(argc, argv);

    return code >= 0 ? code : tests_run(NULL, NULL);
}
