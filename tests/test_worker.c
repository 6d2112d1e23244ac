/* The worker, end to end: what handlers answer, limits, waking, queues, draining, stopping, and a Redis that
 * is late, locked or forgetful. Commands as handlers are in test_command.c, crashes in test_crash.c. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/slots.h"
#include "tests/stage.h"
#include "tests/witness.h"
#include "throttle/verify/verify.h"

#define MS 1000
#define SECOND 1000000

/* That of all code here: in a worker it fails FAILING_THREADS times before it works. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    static atomic_int tries;
    const char *failing = getenv("FAILING_THREADS");
    __typeof__(pthread_create) *create;

    if (failing && atomic_fetch_add(&tries, 1) < atoi(failing))
        return EAGAIN;
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    return create(thread, attr, run, arg);
}

static pid_t start_without_threads(struct stage *s, const char *failing)
{
    pid_t worker;

    setenv("FAILING_THREADS", failing, 1);
    worker = stage_actor(s, "worker", "executors=1", NULL);
    unsetenv("FAILING_THREADS");
    return worker;
}

static void log_has(struct stage *s, const char *file, const char *text)
{
    await_text(s->server.folder, file, text);
}

static void make_file(struct stage *s, const char *name)
{
    write_text(s->server.folder, name, "");
}

static const struct event *nth(const struct history *h, const char *what, int job, int n)
{
    for (int i = 0; i < h->count; i++)
        if (strcmp(h->events[i].what, what) == 0 && h->events[i].job == job && n-- == 0)
            return &h->events[i];
    fail_msg("job %d has too few events %s", job, what);
    return NULL;
}

/* ---- What handlers answer */

static void done_retry_dead_throttled(void **state)
{
    struct stage *s = *state;
    struct history h;
    char *dead;
    pid_t worker;

    stage_push(s, "mark", NULL, 0, 1);
    stage_push(s, "mark", "{\"fail\":2,\"after\":0.2}", 1, 1);
    stage_push(s, "mark", "{\"dead\":\"no such customer\"}", 2, 1);
    stage_push(s, "mark", "{\"throttled\":0.1}", 3, 1);
    stage_push_text(s,
                    "{\"id\":\"j4\",\"type\":\"mark\",\"max_attempts\":2,\"args\":{\"fail\":9,\"after\":0}}");
    worker = stage_actor(s, "worker", NULL);
    await(history_count(s, "begin", 3) > 2);
    make_file(s, "j3.open");
    await(stage_stat(s, "mark", "done") == 3 && stage_stat(s, "mark", "dead") == 2);
    assert_int_equal(stage_end(worker), 0);

    h = history_read(s);
    for (int i = 0; i < 3; i++)
        assert_int_equal(nth(&h, "begin", 1, i)->attempt, i + 1);
    for (int i = 1; i < 3; i++) {
        int64_t gap_us = nth(&h, "begin", 1, i)->at_us - nth(&h, "begin", 1, i - 1)->at_us;

        assert_in_range(gap_us, 200 * MS, 14 * SECOND); /* the usual is 15 s and more */
    }
    assert_int_equal(nth(&h, "effect", 3, 0)->attempt, 1);
    assert_int_equal(nth(&h, "begin", 4, 1)->attempt, 2);
    assert_int_equal(history_count(s, "begin", 4), 2);
    history_free(&h);
    dead = stage_dead(s);
    assert_non_null(strstr(dead, "default/mark/ no such customer\n@1,0,0;{\"id\":\"j2\""));
    assert_non_null(strstr(dead, "default/mark/ failed 2 times: attempt 2 failed\n@2,0,0,e"));
    free(dead);
}

static int compare_us(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* From the end of each job to the begin of the next one: a quarter of these times are no longer. */
static int64_t short_gap_us(const struct history *h)
{
    int64_t gaps[400];
    size_t n = 0;

    for (int i = 1; i < h->count && n < 400; i++)
        if (strcmp(h->events[i - 1].what, "effect") == 0 && strcmp(h->events[i].what, "begin") == 0)
            gaps[n++] = h->events[i].at_us - h->events[i - 1].at_us;
    assert_true(n > 50);
    qsort(gaps, n, sizeof *gaps, compare_us);
    return gaps[n / 4];
}

/* However many executors are idle: what waits for an end does not wait for a turn that is due anyway. */
/* Ends in the largest settle that was not simply one of done jobs. */
static const char most_ends[] =
    "local most = 0 "
    "for _, entry in ipairs(redis.call('SLOWLOG', 'GET', '-1')) do "
    "  local words = entry[4] "
    "  if words[1] == 'FCALL' and words[2]:find('_settle$') and words[7] == 'retry' then "
    "    local more = tonumber(words[#words]:match('^... %((%d+) more')) "
    "    most = math.max(most, ((more and #words - 1 + more or #words) - 6) / 4) "
    "  end "
    "end "
    "return most";

static void large_jobs_are_settled_a_few_at_a_time(void **state)
{
    enum { JOBS = 32, BYTES = 60000 };
    struct stage *s = *state;
    char *args = malloc(BYTES + 100);
    pid_t worker;
    int len = sprintf(args, "{\"wait\":\"go\",\"fail\":1,\"after\":600,\"pad\":\"");

    memset(args + len, 'x', (size_t)(BYTES - len));
    strcpy(args + BYTES, "\"}");
    free(server_ask(&s->server, "CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "4000",
                    NULL));
    worker = stage_actor(s, "large", "executors=32", NULL);
    stage_enqueue(s, "mark", args, 0, JOBS);
    await(history_count(s, "begin", -1) == JOBS);
    make_file(s, "go");
    await(stage_stat(s, "mark", "retried") == JOBS);
    assert_in_range(server_number(&s->server, "EVAL", most_ends, "0", NULL), 1, 8);
    stage_end(worker);
    free(args);
}

static void try_an_end_that_others_wait_for_is_settled_at_once(void **state)
{
    struct stage *s = *state;
    struct history h;
    pid_t worker;

    stage_rate(s, "mark", "concurrency=1");
    stage_enqueue(s, "mark", "{\"sleep\":0.001}", 0, 100);
    worker = stage_actor(s, "worker", "executors=10", NULL);
    await(stage_stat(s, "mark", "done") == 100);
    assert_int_equal(stage_end(worker), 0);
    h = history_read(s);
    print_message("from an end to the next start: %.2f ms\n", (double)short_gap_us(&h) / MS);
    stage_in_time(short_gap_us(&h), 5 * MS); /* a settle that is put off waits for 10 ms */
    history_free(&h);
}
STAGE_TRIALS(an_end_that_others_wait_for_is_settled_at_once)

/* Batches of one job each, one after the other. */
static void try_what_follows_a_batch_starts_at_once(void **state)
{
    struct stage *s = *state;
    struct history h;
    pid_t worker = stage_actor(s, "worker", "executors=10", NULL);
    int64_t least_us = SECOND;

    stage_await_workers(s, 1);
    for (int i = 0; i < 10; i++) {
        char batch[16], id[16];
        struct weir_job_spec job = {.type = "mark", .id = id, .args = "{\"sleep\":0.1}", .batch = batch};

        snprintf(batch, sizeof batch, "j%d", 1000 + i);
        snprintf(id, sizeof id, "j%d", i);
        assert_int_equal(weir_enqueue(s->client, &job, NULL), 0);
        assert_int_equal(weir_batch_seal(s->client, batch, "mark"), 0);
        await(history_count(s, "begin", 1000 + i) == 1);
    }
    assert_int_equal(stage_end(worker), 0);
    h = history_read(s);
    for (int i = 0; i < 10; i++) {
        int64_t gap_us = nth(&h, "begin", 1000 + i, 0)->at_us - nth(&h, "effect", i, 0)->at_us;

        least_us = gap_us < least_us ? gap_us : least_us;
    }
    print_message("from the end of a batch to what follows: %.2f ms\n", (double)least_us / MS);
    stage_in_time(least_us, 5 * MS);
    history_free(&h);
}
STAGE_TRIALS(what_follows_a_batch_starts_at_once)

/* The provider gave no time: its type rests for 1 s, then for 2. */
static void try_throttled_without_a_time(void **state)
{
    struct stage *s = *state;
    struct history h;
    pid_t worker;

    stage_rate(s, "mark", "1000/s");
    stage_push(s, "mark", "{\"throttled\":-1}", 0, 1);
    worker = stage_actor(s, "worker", NULL);
    await(history_count(s, "begin", 0) > 2);
    make_file(s, "j0.open");
    await(stage_stat(s, "mark", "done") == 1);
    assert_int_equal(stage_end(worker), 0);
    h = history_read(s);
    for (int i = 1; i < 3; i++) {
        int64_t gap_us = nth(&h, "begin", 0, i)->at_us - nth(&h, "begin", 0, i - 1)->at_us;

        assert_true(gap_us >= i * SECOND - 10 * MS);
        stage_in_time(gap_us, i * SECOND + SECOND);
        assert_int_equal(nth(&h, "begin", 0, i)->attempt, 1);
    }
    history_free(&h);
}
STAGE_TRIALS(throttled_without_a_time)

static int64_t slots_left(struct stage *s, const char *limit)
{
    struct weir_take take;

    assert_int_equal(weir_take(s->client, limit, NULL, 1, WEIR_TAKE_PEEK, &take), 0);
    return take.remaining;
}

/* What a handler says that its job cost is what its limit gives in the end. */
static void true_cost(void **state)
{
    struct stage *s = *state;
    pid_t worker;

    stage_rate(s, "mark", "100/1d");
    stage_push_text(s, "{\"id\":\"j0\",\"type\":\"mark\",\"cost\":10,\"args\":{\"spent\":3}}");
    worker = stage_actor(s, "worker", NULL);
    await(stage_stat(s, "mark", "done") == 1);
    await(slots_left(s, "mark") == 97);
    stage_push_text(s, "{\"id\":\"j1\",\"type\":\"mark\",\"cost\":10,\"args\":{\"spent\":30}}");
    await(stage_stat(s, "mark", "done") == 2);
    await(slots_left(s, "mark") == 67);
    stage_push_text(s,
                    "{\"id\":\"j2\",\"type\":\"mark\",\"cost\":10,\"args\":{\"spent\":0,\"dead\":\"no\"}}");
    await(stage_stat(s, "mark", "dead") == 1);
    await(slots_left(s, "mark") == 67);
    stage_push_text(s, "{\"id\":\"j3\",\"type\":\"mark\",\"cost\":10}");
    await(stage_stat(s, "mark", "done") == 3);
    assert_int_equal(slots_left(s, "mark"), 57);
    assert_int_equal(stage_end(worker), 0);
}

/* A handler that says neither when nor what: a retry, 15 to 25 s later. */
static void usual_backoff(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", NULL);
    char *later, *time;
    double due_s, now_s;

    stage_push(s, "mark", "{\"fail\":1}", 0, 1);
    stage_push(s, "mark", "{\"value\":42}", 1, 1);
    await(stage_stat(s, "mark", "retried") == 2);
    time = server_ask(&s->server, "TIME", NULL);
    now_s = atof(time);
    later = server_ask(&s->server, "ZRANGE", stage_key(s, "later"), "0", "-1", "WITHSCORES", NULL);
    for (char *at = later; (at = strstr(at, "\n@1,0,0;{")); at++) {
        due_s = atof(strchr(at + 1, '\n') + 1) / 1e6;
        assert_true(due_s - now_s > 10 && due_s - now_s < 26);
    }
    assert_int_equal(stage_stat(s, "mark", "scheduled"), 2);
    free(time);
    free(later);
    assert_int_equal(stage_end(worker), 0);
}

static void executors_run_side_by_side(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=7", NULL);

    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 0, 9);
    await(history_count(s, "begin", -1) == 7);
    make_file(s, "go");
    stage_await_done(s, 9);
    assert_int_equal(history_count(s, "begin", -1), 9);
    assert_int_equal(stage_end(worker), 0);
}

/* Many short jobs: prefetched, each run once. */
static void thousands_once_each(void **state)
{
    struct stage *s = *state;
    pid_t one = stage_actor(s, "one", "executors=4", NULL), two = stage_actor(s, "two", "executors=4", NULL);

    stage_enqueue(s, "mark", NULL, 0, 5000);
    assert_int_equal(stage_await_done(s, 5000).twice, 0);
    assert_int_equal(history_count(s, "begin", -1), 5000);
    assert_int_equal(stage_end(one), 0);
    assert_int_equal(stage_end(two), 0);
}

static int never_called(struct weir_job *job, void *arg)
{
    (void)job, (void)arg;
    return WEIR_DONE;
}

static void wrong_set_up(void **state)
{
    static const struct {
        struct weir_worker_options options;
        const char *part;
    } cases[] = {
        {{.executors = -1}, "executors"},
        {{.executors = 2000}, "executors"},
        {{.queues = "a,b,a"}, "named twice"},
        {{.queues = "a,,b"}, "not a valid queue"},
        {{.queues = "a=0"}, "weight"},
        {{.queues = "a=1x"}, "weight"},
        {{.queues = ""}, "not a valid queue"},
        {{.lease_s = 0.1}, "lease"},
        {{.ns = "a:b"}, "namespace"},
        {{.redis_url = "http://x"}, "begins with none"},
        {{.trace_file = "/nowhere/x"}, "trace /nowhere/x"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weir_worker *w = weir_worker_new(&cases[i].options);
        int rc;

        assert_int_equal(weir_worker_handle(w, "mark", never_called, NULL), 0);
        rc = weir_worker_run(w);
        if (rc >= 0 || !strstr(weir_worker_message(w), cases[i].part))
            fail_msg("case %zu: %d %s", i, rc, weir_worker_message(w));
        assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* it closes only what it has opened */
        weir_worker_free(w);
    }
}

static void wrong_handlers(void **state)
{
    struct weir_worker *w = weir_worker_new(NULL);

    (void)state;
    assert_int_equal(weir_worker_run(w), WEIR_EUSAGE);
    assert_int_equal(weir_worker_handle(w, "mark", never_called, NULL), 0);
    assert_int_equal(weir_worker_handle(w, "mark", never_called, NULL), WEIR_EUSAGE);
    assert_int_equal(weir_worker_handle(w, "two words", never_called, NULL), WEIR_EUSAGE);
    assert_int_equal(weir_worker_handle(w, "other", NULL, NULL), WEIR_EUSAGE);
    assert_int_equal(weir_worker_exec(w, "other", "  "), WEIR_EUSAGE);
    assert_int_equal(weir_worker_exec(w, "other", "./no-such-program x"), WEIR_ECONFIG);
    assert_int_equal(weir_worker_load(w, "./nothing.so"), WEIR_ECONFIG);
    weir_worker_free(w);
}

/* ---- Limits */

/* Replays the trace; how much of the rate was kept. No start may be too early. */
static double rate_kept(struct stage *s, const char *trace, uint64_t starts)
{
    char path[128];
    struct verify v;
    struct error e;
    size_t torn;
    double kept;

    snprintf(path, sizeof path, "%s/%s", s->server.folder, trace);
    assert_int_equal(verify_init(&v, &e), 0);
    if (verify_read(&v, path, &torn, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(verify_replay(&v, &e), 0);
    assert_int_equal(v.violations, 0);
    assert_int_equal(v.type_count, 1);
    assert_int_equal(v.types[0].starts, starts);
    assert_int_equal(v.rule_count, 1);
    kept = v.rules[0].worst.kept;
    verify_free(&v);
    return kept;
}

static void try_two_workers_keep_one_rate(void **state)
{
    enum { JOBS = 150, BURST = 5, T_US = 20 * MS };
    struct stage *s = *state;
    struct witness *witness;
    struct slots slots;
    struct history h;
    int64_t taken_us;
    pid_t one, two;

    stage_rate(s, "mark", "50/s,burst=5");
    stage_enqueue(s, "mark", NULL, 0, JOBS);
    witness = witness_start(&s->server, T_US);
    one = stage_actor(s, "one", "executors=3", "trace=trace", NULL);
    two = stage_actor(s, "two", "executors=3", "trace=trace", NULL);
    assert_int_equal(stage_await_done(s, JOBS).twice, 0);
    taken_us = witness_end(witness);
    assert_int_equal(stage_end(one), 0);
    assert_int_equal(stage_end(two), 0);
    witness_expect_kept(rate_kept(s, "trace", JOBS), 0.99, (JOBS - BURST) * T_US, taken_us);
    slots = slots_read(s, "trace");
    assert_in_range(slots_overtaken(&slots), 0, stage_stat(s, "mark", "back")); /* in order, but for those */
    slots_free(&slots);

    h = history_read(s); /* by the handlers' own clock, if the first one began late */
    assert_true(h.events[h.count - 1].at_us - h.events[0].at_us > (JOBS - BURST) * T_US - SECOND);
    history_free(&h);
}
STAGE_TRIALS(two_workers_keep_one_rate)

static int begun_by(struct stage *s, pid_t worker, int first_job)
{
    struct history h = history_read(s);
    int n = 0;

    for (int i = 0; i < h.count; i++)
        n += h.events[i].pid == worker && h.events[i].job >= first_job &&
             strcmp(h.events[i].what, "begin") == 0;
    history_free(&h);
    return n;
}

/* Many short jobs have a worker lease many ahead, and then come those that take long, 5 s for it alone: another one
 * gets most of them, though all the time some begin here. */
static void try_what_was_leased_ahead_waits_for_nobody(void **state)
{
    enum { SHORT = 3000, LONG = 100 };
    struct stage *s = *state;
    pid_t one, two;

    stage_enqueue(s, "mark", NULL, 0, SHORT);
    stage_enqueue(s, "mark", "{\"sleep\":0.1}", SHORT, LONG);
    one = stage_actor(s, "one", "executors=2", NULL);
    await(stage_stat(s, "mark", "done") > SHORT);
    two = stage_actor(s, "two", "executors=50", NULL);
    assert_int_equal(stage_await_done(s, SHORT + LONG).twice, 0);
    if (begun_by(s, two, SHORT) < LONG / 2)
        stage_late("%d of them", begun_by(s, two, SHORT));
    assert_int_equal(stage_end(one), 0);
    assert_int_equal(stage_end(two), 0);
}
STAGE_TRIALS(what_was_leased_ahead_waits_for_nobody)

/* Each look fills all executors of the worker that looks: it is always another's turn. */
static void try_few_executors_keep_a_high_rate(void **state)
{
    enum { JOBS = 2000, BURST = 20 };
    struct stage *s = *state;
    struct witness *witness;
    int64_t taken_us;
    pid_t one, two;

    stage_rate(s, "mark", "1000/s,burst=20");
    stage_enqueue(s, "mark", NULL, 0, JOBS);
    witness = witness_start(&s->server, 2 * MS); /* a claim fills four executors: 4 ms */
    one = stage_actor(s, "one", "executors=4", "trace=trace", NULL);
    two = stage_actor(s, "two", "executors=4", "trace=trace", NULL);
    assert_int_equal(stage_await_done(s, JOBS).twice, 0);
    taken_us = witness_end(witness);
    assert_int_equal(stage_end(one), 0);
    assert_int_equal(stage_end(two), 0);
    witness_expect_kept(rate_kept(s, "trace", JOBS), 0.8, (JOBS - BURST) * MS,
                        taken_us); /* a second without a look: 0.67 */
}
STAGE_TRIALS(few_executors_keep_a_high_rate)

static void try_parked_jobs_delay_nobody(void **state)
{
    struct stage *s = *state;
    int64_t start_us;
    pid_t worker;

    stage_rate(s, "slow", "1/1d");
    stage_enqueue(s, "slow", NULL, 0, 20000);
    stage_enqueue(s, "mark", NULL, 20000, 200);
    worker = stage_actor(s, "worker", "types=slow,mark", "executors=4", NULL);
    stage_await_workers(s, 1);
    start_us = clock_mono_us();
    await(history_count(s, "effect", -1) == 201);
    stage_in_time(clock_mono_us() - start_us, 5 * SECOND);
    assert_int_equal(server_number(&s->server, "LLEN", stage_key(s, "lane:default/slow/"), NULL), 19999);
    await(stage_stat(s, "mark", "done") == 200);
    assert_int_equal(stage_end(worker), 0);
}
STAGE_TRIALS(parked_jobs_delay_nobody)

/* Jobs without a limit are prefetched and wait for each executor: some are kept from them all the same. */
static void try_a_flood_leaves_executors_to_limits(void **state)
{
    static const char *const executors[] = {"executors=4", "executors=1"};
    struct stage *s = *state;

    stage_rate(s, "mark", "100/s,burst=1");
    stage_enqueue(s, "mark", NULL, 0, 60);
    stage_enqueue(s, "flood", "{\"sleep\":0.001}", 60, 20000);
    for (int i = 0; i < 2; i++) {
        pid_t worker = stage_actor(s, "worker", "types=mark,flood", executors[i], NULL);
        long long flooded = stage_stat(s, "flood", "done");

        await(stage_stat(s, "mark", "done") >= 30 * (i + 1)); /* several are settled at once */
        flooded = stage_stat(s, "flood", "done") - flooded;
        assert_true(flooded >= 10);
        if (flooded > 7000) /* of 0.3 s */
            stage_late("%lld jobs of the flood", flooded);
        stage_end(worker);
    }
}
STAGE_TRIALS(a_flood_leaves_executors_to_limits)

/* Parked for an hour, and then the rate is set faster, or the limit removed. */
static void try_changed_rate_applies_at_once(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=2", NULL);
    int64_t start_us;

    for (int round = 0; round < 2; round++) {
        int first = round * 5;

        stage_rate(s, "mark", "1/1h,burst=1");
        stage_enqueue(s, "mark", NULL, first, 5);
        await(server_number(&s->server, "LLEN", stage_key(s, "lane:default/mark/"), NULL) >= 4);
        stage_await_blocked(s, 2);
        start_us = clock_mono_us();
        if (round == 0)
            stage_rate(s, "mark", "1000/s");
        else
            assert_int_equal(weir_rate_remove(s->client, "mark"), 0);
        stage_await_done(s, first + 5);
        stage_in_time(clock_mono_us() - start_us, SECOND);
    }
    assert_int_equal(stage_end(worker), 0);
}
STAGE_TRIALS(changed_rate_applies_at_once)

/* ---- Types that no worker can run */

static void try_unknown_type_waits(void **state)
{
    struct stage *s = *state;
    pid_t one = stage_actor(s, "one", "executors=2", NULL), two;
    int64_t start_us;

    stage_push(s, "rare", NULL, 0, 3);
    log_has(s, "one.err", "jobs of type rare wait for a worker");
    stage_push(s, "mark", NULL, 3, 1);
    await(history_count(s, "effect", 3) == 1);
    assert_int_equal(server_number(&s->server, "LLEN", stage_key(s, "lane:default/rare/"), NULL), 3);

    two = stage_actor(s, "two", "types=rare", NULL);
    await(history_count(s, "effect", -1) == 4);
    /* Whoever sees it first, who can run it is called. */
    stage_await_blocked(s, 4);
    start_us = clock_mono_us();
    for (int job = 4; job < 24; job++) {
        stage_push(s, "rare", NULL, job, 1);
        await(history_count(s, "effect", job) == 1);
    }
    stage_in_time(clock_mono_us() - start_us, 5 * SECOND);
    assert_int_equal(stage_end(one), 0);
    assert_int_equal(stage_end(two), 0);
}
STAGE_TRIALS(unknown_type_waits)

static void unknown_type_dies_if_told_so(void **state)
{
    struct stage *s = *state;
    char *dead, before[24];
    pid_t worker;

    snprintf(before, sizeof before, "%" PRId64,
             clock_wall_us() - 120 * SECOND); /* no worker has run it since */
    free(server_ask(&s->server, "ZADD", stage_key(s, "runs"), before, "rare", NULL));
    worker = stage_weir(s, "worker", "--exec", "mark=/bin/true", "--unknown", "dead", NULL);
    stage_push(s, "rare", NULL, 0, 1);
    await(stage_stat(s, "rare", "dead") == 1);
    dead = stage_dead(s);
    assert_non_null(
        strstr(dead, "no handler for its type: no worker has run it for a minute\n{\"id\":\"j0\""));
    free(dead);
    assert_int_equal(stage_end(worker), 0);
}

/* ---- Waking */

static void expect_most_in_time(int64_t *late_us, int n)
{
    qsort(late_us, (size_t)n, sizeof *late_us, compare_us);
    stage_in_time(late_us[n / 2], 100 * MS);
}

/* Pushes jobs from number first on one by one, when the one before is done, by a plain RPUSH as of any
 * client. */
static void expect_woken_at_once(struct stage *s, int first)
{
    enum { ROUNDS = 15 };
    int64_t late_us[ROUNDS];
    struct history h;

    for (int i = 0; i < ROUNDS; i++) {
        late_us[i] = clock_mono_us();
        stage_push(s, "mark", NULL, first + i, 1);
        await(history_count(s, "effect", first + i) == 1);
    }
    h = history_read(s);
    for (int i = 0; i < ROUNDS; i++)
        late_us[i] = nth(&h, "begin", first + i, 0)->at_us - late_us[i];
    history_free(&h);
    expect_most_in_time(late_us, ROUNDS);
}

static void try_idle_worker_wakes_at_once(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=2", NULL);

    stage_await_blocked(s, 2);
    expect_woken_at_once(s, 0);
    assert_int_equal(stage_end(worker), 0);
}
STAGE_TRIALS(idle_worker_wakes_at_once)

/* With one executor it gives the duty up for each job, and must have it back at once. */
static void try_single_executor_wakes_at_once(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=1", NULL);

    stage_await_blocked(s, 2);
    expect_woken_at_once(s, 0);
    assert_int_equal(stage_end(worker), 0);
}
STAGE_TRIALS(single_executor_wakes_at_once)

/* Enqueues a job for delay_s from now; returns when that is. */
static int64_t enqueue_delayed(struct stage *s, int job, double delay_s)
{
    int64_t due_us = clock_mono_us() + (int64_t)(delay_s * 1e6);
    char id[16];

    snprintf(id, sizeof id, "j%d", job);
    assert_int_equal(
        weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark", .id = id, .delay_s = delay_s}, NULL),
        0);
    return due_us;
}

/* How late a job began, which was due then; it has begun. Never early. */
static int64_t lateness_us(struct stage *s, int job, int64_t due_us)
{
    struct history h = history_read(s);
    int64_t late_us = nth(&h, "begin", job, 0)->at_us - due_us;

    history_free(&h);
    assert_true(late_us >= 0);
    return late_us;
}

/* While others are busy for long, who has room watches the queue, whoever was called first. */
static void try_idle_worker_among_busy_ones(void **state)
{
    enum { BUSY = 4 };
    struct stage *s = *state;
    pid_t workers[BUSY + 1];
    int64_t us[BUSY];

    for (int i = 0; i <= BUSY; i++) {
        char name[24];

        snprintf(name, sizeof name, "worker%d", i);
        workers[i] = stage_actor(s, name, "executors=1", NULL);
    }
    stage_await_workers(s, BUSY + 1);
    stage_await_blocked(s, 2 + BUSY);
    for (int i = 0; i < BUSY; i++) {
        stage_push(s, "mark", "{\"wait\":\"go\"}", i, 1);
        await(history_count(s, "begin", i) == 1);
    }
    for (int i = 0; i < BUSY; i++) { /* all have waited for the bell, the idle one last */
        us[i] = enqueue_delayed(s, BUSY + i, 0.2);
        await(history_count(s, "effect", BUSY + i) == 1);
        us[i] = lateness_us(s, BUSY + i, us[i]);
    }
    expect_most_in_time(us, BUSY);
    expect_woken_at_once(s, 2 * BUSY);
    make_file(s, "go");
    for (int i = 0; i < BUSY; i++)
        await(history_count(s, "effect", i) == 1);
    for (int i = 0; i <= BUSY; i++)
        assert_int_equal(stage_end(workers[i]), 0);
}
STAGE_TRIALS(idle_worker_among_busy_ones)

static void try_delayed_jobs_start_on_time(void **state)
{
    enum { ROUNDS = 5 };
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=2", NULL);
    int64_t us[ROUNDS];

    stage_await_blocked(s, 2);
    for (int job = 0; job < ROUNDS; job++)
        us[job] =
            enqueue_delayed(s, job, 0.5 - 0.05 * job); /* each before the one that the worker knows of */
    await(history_count(s, "begin", -1) == ROUNDS);
    for (int job = 0; job < ROUNDS; job++)
        us[job] = lateness_us(s, job, us[job]);
    expect_most_in_time(us, ROUNDS);
    assert_int_equal(stage_end(worker), 0);
}
STAGE_TRIALS(delayed_jobs_start_on_time)

/* The process that holds the pacing duty; second: that looks after it. */
static pid_t on_duty(struct stage *s, bool second)
{
    char *duty = server_ask(&s->server, "EVAL",
                            "local h = redis.call('HGETALL', KEYS[1]) for i = 1, #h, 2 do "
                            "if not h[i]:find('/') == (ARGV[1] == '0') then return h[i + 1] end end",
                            "1", stage_key(s, "duty"), second ? "1" : "0", NULL),
         *info;
    const char *pid;
    pid_t result;

    duty[strcspn(duty, " ")] = '\0';
    info = server_ask(&s->server, "HGET", stage_key(s, "active:%s", duty), "@", NULL);
    pid = strstr(info, "\"pid\":");
    result = pid ? atoi(pid + 6) : 0;
    free(duty);
    free(info);
    return result;
}

/* Of the jobs below most. */
static int64_t longest_gap_us(struct stage *s, const char *event, int most)
{
    struct history h = history_read(s);
    int64_t longest_us = 0, before_us = 0;

    for (int i = 0; i < h.count; i++) {
        if (strcmp(h.events[i].what, event) != 0 || h.events[i].job >= most)
            continue;
        if (before_us && h.events[i].at_us - before_us > longest_us)
            longest_us = h.events[i].at_us - before_us;
        before_us = h.events[i].at_us;
    }
    history_free(&h);
    return longest_us;
}

/* Of two workers, the one on duty is killed, or stands still. */
static void lose_duty(struct stage *s, int signal)
{
    pid_t workers[2], gone, heir;

    stage_rate(s, "mark", "50/s,burst=1");
    for (int i = 0; i < 2; i++)
        workers[i] = stage_actor(s, i ? "two" : "one", "executors=3", "lease=1", NULL);
    await((on_duty(s, false) == workers[0] && on_duty(s, true) == workers[1]) ||
          (on_duty(s, false) == workers[1] && on_duty(s, true) == workers[0]));
    gone = on_duty(s, false);
    heir = workers[gone == workers[0]];
    stage_enqueue(s, "mark", NULL, 0, 120);
    await(history_count(s, "effect", -1) > 10);
    kill(gone, signal);
    stage_await_done(s, 120);
    stage_in_time(longest_gap_us(s, "begin", 120), 1500 * MS); /* 0.8 s of duty */
    assert_int_equal(on_duty(s, false), heir);
    assert_int_equal(stage_end(heir), 0);
    if (signal == SIGSTOP) {
        kill(gone, SIGCONT);
        assert_int_equal(stage_end(gone), 0);
    } else {
        assert_int_equal(program_end(gone), 1000 + signal);
    }
}

static void try_duty_of_a_dead_worker(void **state)
{
    lose_duty(*state, SIGKILL);
}
STAGE_TRIALS(duty_of_a_dead_worker)

static void try_duty_of_one_that_stands_still(void **state)
{
    lose_duty(*state, SIGSTOP);
}
STAGE_TRIALS(duty_of_one_that_stands_still)

/* Redis's clock goes back in the middle of paced starts, and they go on. Side by side. */
static void try_clock_of_redis_goes_back(void **state)
{
    static const struct {
        const char *executors;
        bool flood; /* no executor is idle */
        int64_t back_us;
        int jobs, at; /* so many of them have begun then */
    } cases[] = {{"executors=3", false, INT64_C(3600) * SECOND, 30, 5},
                 {"executors=1", true, INT64_C(3600) * SECOND, 30, 5},
                 {"executors=3", false, 1450 * MS, 80, 62}}; /* less than what passed since a heartbeat */
    enum { CASES = sizeof cases / sizeof *cases };
    struct stage all[CASES];
    pid_t workers[CASES];

    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct stage *s = &all[i];

        stage_open_shifted(s);
        stage_rate(s, "mark", "40/s,burst=1");
        stage_enqueue(s, "mark", NULL, 0, cases[i].jobs);
        if (cases[i].flood)
            stage_enqueue(s, "flood", "{\"sleep\":0.01}", 1000, 1000);
        workers[i] = stage_actor(s, "worker", "types=mark,flood", cases[i].executors, NULL);
    }
    for (int i = 0; i < CASES; i++) {
        await(history_count(&all[i], "begin", cases[i].at) == 1);
        server_shift_clock(&all[i].server, -cases[i].back_us);
    }
    for (int i = 0; i < CASES; i++) {
        await(history_count(&all[i], "begin", cases[i].jobs - 1) == 1);
        stage_in_time(longest_gap_us(&all[i], "begin", cases[i].jobs), 1200 * MS);
        assert_int_equal(stage_end(workers[i]), 0);
        stage_close(&all[i]);
    }
}
STAGE_TRIALS(clock_of_redis_goes_back)

/* ---- Queues */

static void push_to(struct stage *s, const char *queue, int first, int n, const char *args)
{
    char text[256];

    for (int i = first; i < first + n; i++) {
        snprintf(text, sizeof text, "{\"id\":\"j%d\",\"type\":\"mark\",\"args\":%s}", i, args);
        server_number(&s->server, "RPUSH", stage_key(s, "queue:%s", queue), text, NULL);
    }
}

static void strict_queues(void **state)
{
    struct stage *s = *state;
    struct history h;
    pid_t worker;

    push_to(s, "low", 0, 30, "null");
    push_to(s, "high", 30, 30, "null");
    worker = stage_actor(s, "worker", "queues=high,low", "executors=1", NULL);
    stage_await_done(s, 60);
    h = history_read(s);
    for (int i = 0; i < 60; i++) /* begin and effect of each */
        assert_true(h.events[i].job >= 30);
    history_free(&h);
    assert_int_equal(stage_end(worker), 0);
}

static void weighted_queues(void **state)
{
    enum { JOBS = 200 };
    struct stage *s = *state;
    struct history h;
    int seldom = 0;
    pid_t worker;

    push_to(s, "often", 0, JOBS, "{\"sleep\":0.002}");
    push_to(s, "seldom", JOBS, JOBS, "{\"sleep\":0.002}");
    worker = stage_actor(s, "worker", "queues=often=3,seldom", "executors=1", NULL);
    stage_await_done(s, 2 * JOBS);
    h = history_read(s);
    for (int i = 0; i < 2 * JOBS; i++) /* the first half of the jobs, begin and effect of each */
        seldom += h.events[i].job >= JOBS;
    history_free(&h);
    seldom /= 2;
    if (seldom < 1 ||
        seldom > JOBS * 6 / 10) /* 50 on average; each of 30 turns or more takes a few of one queue */
        fail_msg("%d of the first %d jobs came from the queue with a quarter of the weight", seldom, JOBS);
    assert_int_equal(stage_end(worker), 0);
}

/* ---- No threads */

static void a_thread_is_tried_again(void **state)
{
    struct stage *s = *state;
    pid_t worker = start_without_threads(s, "4");

    stage_rate(s, "mark", "100/s");
    stage_push(s, "mark", NULL, 0, 1);
    await(stage_stat(s, "mark", "done") == 1);
    assert_int_equal(stage_end(worker), 0);
}

/* Another worker may have one. */
static void a_job_without_a_thread_is_given_back(void **state)
{
    struct stage *s = *state;
    pid_t worker = start_without_threads(s, "1000000");

    stage_rate(s, "mark", "100/s");
    stage_push(s, "mark", NULL, 0, 1);
    await(stage_stat(s, "mark", "back") == 1);
    log_has(s, "worker.err", "worker: cannot start a thread: Resource temporarily unavailable; raise");
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_judge(s, 1).present, 1);
}

/* ---- Draining */

static void drain_ends(void **state)
{
    struct stage *s = *state;
    char id[WEIR_ID_SIZE];

    assert_int_equal(program_end(stage_actor(s, "empty", "drain=1", NULL)), 0);
    stage_enqueue(s, "mark", NULL, 0, 100);
    stage_enqueue(s, "mark", "{\"fail\":1,\"after\":0}", 100, 10);
    stage_enqueue(s, "other", NULL, 110, 5); /* not this worker's */
    assert_int_equal(
        weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark", .args = "null", .delay_s = 3600}, id),
        0);
    stage_rate(s, "mark", "200/s,burst=10");
    assert_int_equal(program_end(stage_actor(s, "worker", "drain=1", NULL)), 0);
    assert_int_equal(stage_stat(s, "mark", "done"), 110);
    assert_int_equal(stage_stat(s, "mark", "scheduled"), 1);
    assert_int_equal(server_number(&s->server, "ZCARD", stage_key(s, "workers"), NULL), 0);
}

static void drain_waits_for_others(void **state)
{
    struct stage *s = *state;
    pid_t other = stage_actor(s, "other", "executors=1", NULL), drains;

    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    drains = stage_actor(s, "drains", "drain=1", NULL);
    log_has(s, "drains.err", "draining: 0 waiting, 0 parked, 1 running");
    assert_int_equal(kill(drains, 0), 0);
    make_file(s, "go");
    assert_int_equal(program_end(drains), 0);
    assert_int_equal(history_count(s, "effect", 0), 1);
    assert_int_equal(stage_end(other), 0);
}

static void drain_gives_up(void **state)
{
    struct stage *s = *state;

    stage_rate(s, "mark", "1/1h,burst=1");
    stage_enqueue(s, "mark", NULL, 0, 3);
    assert_int_equal(program_end(stage_weir(s, "worker", "--exec", "mark=/bin/true", "--drain", "--drain-max",
                                            "2s", NULL)),
                     75);
    assert_int_equal(stage_stat(s, "mark", "done"), 1);
    assert_int_equal(server_number(&s->server, "LLEN", stage_key(s, "lane:default/mark/"), NULL), 2);
    log_has(s, "worker.err", "weir: worker: not drained in 2.0 s; run it again");
}

/* ---- Stopping */

/* Jobs that wait in the worker go back in order, with no attempt used; the one that runs is finished. */
static void term_finishes_and_gives_back(void **state)
{
    struct stage *s = *state;
    struct history h;
    int last = -1;
    pid_t worker;

    stage_enqueue(s, "mark", NULL, 0, 3000); /* fast: so that many are prefetched */
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 3000, 1);
    stage_enqueue(s, "mark", NULL, 3001, 500);
    worker = stage_actor(s, "worker", "executors=1", NULL);
    await(history_count(s, "begin", 3000) == 1);
    kill(worker, SIGTERM);
    log_has(s, "worker.err", "stopping: 1 jobs run to their end");
    make_file(s, "go");
    assert_int_equal(program_end(worker), 0);
    assert_int_equal(stage_judge(s, 3501).lost, 0);
    assert_int_equal(history_count(s, "effect", 3000), 1);
    assert_int_equal(history_count(s, "begin", -1), 3001);

    assert_int_equal(program_end(stage_actor(s, "next", "executors=1", "drain=1", NULL)), 0);
    assert_int_equal(stage_await_done(s, 3501).twice, 0);
    h = history_read(s);
    for (int i = 0; i < h.count; i++) {
        if (strcmp(h.events[i].what, "begin") != 0)
            continue;
        assert_int_equal(h.events[i].attempt, 1);
        assert_int_equal(h.events[i].job, last + 1);
        last = h.events[i].job;
    }
    history_free(&h);
}

/* The same under load, again and again: nothing is lost, nothing runs twice. */
static void term_at_any_time(void **state)
{
    struct stage *s = *state;
    int end = 0;

    stage_enqueue(s, "mark", "{\"sleep\":0.001}", 0, 3000);
    for (int i = 0; i < 12; i++) {
        pid_t worker = stage_actor(s, "worker", "executors=3", NULL);

        await(history_count(s, "effect", -1) > end + 20 * (i % 5));
        assert_int_equal(stage_end(worker), 0);
        end = history_count(s, "effect", -1);
        assert_int_equal(history_count(s, "begin", -1), end);
        assert_int_equal(stage_judge(s, 3000).lost, 0);
    }
    assert_int_equal(program_end(stage_actor(s, "last", "drain=1", NULL)), 0);
    assert_int_equal(stage_await_done(s, 3000).twice, 0);
}

/* A C function cannot be ended; the program can. */
static void second_term_leaves_functions(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=2", NULL);

    stage_push(s, "mark", "{\"wait\":\"never\"}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    kill(worker, SIGTERM);
    log_has(s, "worker.err", "stopping: 1 jobs run to their end");
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_judge(s, 1).present, 1);
    assert_int_equal(stage_stat(s, "mark", "back"), 1);
}

/* What has ended while an answer was on its way is settled before the rest is given back. */
static void second_term_settles_first(void **state)
{
    struct stage *s = *state;
    struct proxy *p = proxy_start(&s->server);
    char url[200];
    pid_t worker;

    snprintf(url, sizeof url, "url=%s", proxy_url(p));
    stage_enqueue(s, "mark", "{\"wait\":\"first\"}", 0, 1);
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 1, 20);
    worker = stage_actor(s, "worker", url, "executors=21", NULL);
    await(history_count(s, "begin", -1) == 21);
    proxy_delay(p, PROXY_REPLIES, 400 * MS);
    make_file(s, "first"); /* its end is being settled while the others end */
    await(stage_stat(s, "mark", "done") == 1);
    make_file(s, "go");
    await(history_count(s, "effect", -1) == 21);
    kill(worker, SIGTERM);
    log_has(s, "worker.err", "stopping: ");
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(p);
    assert_int_equal(stage_stat(s, "mark", "done"), 21);
    assert_int_equal(stage_stat(s, "mark", "back"), 0);
}

static void await_heartbeats(struct stage *s, int n)
{
    char *before = NULL, *now;

    while (n >= 0) {
        now = server_ask(&s->server, "ZRANGE", stage_key(s, "workers"), "0", "0", "WITHSCORES", NULL);
        n -= !before || strcmp(before, now) != 0;
        free(before);
        before = now;
        clock_sleep_until(clock_mono_us() + 10 * MS);
    }
    free(before);
}

static void quiet_takes_no_more(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=2", "lease=1", NULL);

    stage_push(s, "mark", "{\"wait\":\"go\"}", 0, 1);
    await(history_count(s, "begin", 0) == 1);
    kill(worker, SIGTSTP);
    stage_push(s, "mark", NULL, 1, 1);
    await_heartbeats(s, 3); /* it lives on */
    assert_int_equal(history_count(s, "begin", 1), 0);
    make_file(s, "go");
    await(stage_stat(s, "mark", "done") == 1);
    assert_int_equal(history_count(s, "begin", 1), 0);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_judge(s, 2).present, 1);
}

/* ---- A Redis that is late, locked or forgetful */

static void wrong_password(void **state)
{
    static const char *const options[] = {"--requirepass", "secret", NULL};
    struct stage s = {.ns = "weir"};
    struct outcome o;

    (void)state;
    server_start_with(&s.server, false, options);
    assert_int_equal(program_end(stage_weir(&s, "worker", "--exec", "mark=/bin/true", NULL)), 77);
    read_text(s.server.folder, "worker.err", o.err, sizeof o.err);
    assert_non_null(strstr(o.err, "password"));
    assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
    server_stop(&s.server);
}

/* Who may log in but not run functions, or load them where they are missing, is told so at the start. */
static void missing_permission(void **state)
{
    struct stage *s = *state;
    char url[200];

    free(server_ask(&s->server, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", "-fcall", NULL));
    snprintf(url, sizeof url, "unix://poor:pw@%s", s->server.socket);
    assert_int_equal(program_end(stage_weir(s, "worker", "--redis", url, "--exec", "mark=/bin/true", NULL)),
                     77);
    log_has(s, "worker.err", "fcall");
    free(server_ask(&s->server, "ACL", "SETUSER", "poor", "+fcall", "-function", NULL));
    free(server_ask(&s->server, "FUNCTION", "FLUSH", NULL));
    assert_int_equal(program_end(stage_weir(s, "loader", "--redis", url, "--exec", "mark=/bin/true", NULL)),
                     77);
    log_has(s, "loader.err", "+function|load");
}

/* A script that is refused one command halfway would leave jobs at two places: nothing is moved. */
static void missing_right_of_scripts(void **state)
{
    static const char *const commands[] = {"ltrim", "set", "rpush", "pexpire", "hdel", "hincrby"};
    struct stage *s = *state;
    char url[200], right[32], told[200];

    stage_push(s, "mark", NULL, 0, 3);
    snprintf(url, sizeof url, "unix://poor:pw@%s", s->server.socket);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        snprintf(right, sizeof right, "-%s", commands[i]);
        free(server_ask(&s->server, "ACL", "SETUSER", "poor", "reset", "on", ">pw", "~*", "&*", "+@all",
                        right, NULL));
        assert_int_equal(
            program_end(stage_weir(s, commands[i], "--redis", url, "--exec", "mark=/bin/true", NULL)), 77);
        snprintf(right, sizeof right, "%s.err", commands[i]);
        snprintf(told, sizeof told, "weir: Redis: user poor lacks rights; redis-cli ACL SETUSER poor +%s\n",
                 commands[i]);
        log_has(s, right, told);
    }
    assert_int_equal(server_number(&s->server, "LLEN", stage_key(s, "queue:default"), NULL), 3);
    assert_int_equal(server_number(&s->server, "EXISTS", stage_key(s, "workers"), NULL), 0);
}

static void waits_for_redis(void **state)
{
    struct stage *s = *state;
    pid_t worker, idle;

    server_kill(&s->server);
    worker = stage_weir(s, "worker", "--exec", "mark=/bin/true", NULL);
    idle = stage_weir(s, "idle", "--exec", "mark=/bin/true", NULL);
    log_has(s, "worker.err", "connecting again until it answers");
    log_has(s, "idle.err", "connecting again until it answers");
    assert_int_equal(stage_end(idle), 0); /* it has nothing to give back */
    server_restart(&s->server);
    stage_push(s, "mark", NULL, 0, 1);
    await(stage_stat(s, "mark", "done") == 1);
    log_has(s, "worker.err", "Redis is back after");
    assert_int_equal(stage_end(worker), 0);
}

/* How often the process has waited, on its first thread. */
static long long waits_of(pid_t pid)
{
    static const char name[] = "\nvoluntary_ctxt_switches:";
    char path[48], text[4096];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    assert_non_null(f = fopen(path, "r"));
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_non_null(strstr(text, name));
    return atoll(strstr(text, name) + strlen(name));
}

/* Claims, 2.5 a second, and heartbeats: a timer and an answer each. With a tick each 0.1 s it would wait five times a call. */
static void an_idle_worker_sleeps(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=2", NULL);
    long long calls, waits;

    stage_enqueue(s, "mark", NULL, 0, 1);
    stage_await_done(s, 1);
    calls = server_calls(&s->server, "fcall");
    await(server_calls(&s->server, "fcall") >=
          calls + 4); /* the last tick of a busy worker was before these */
    calls = server_calls(&s->server, "fcall");
    waits = waits_of(worker);
    await(server_calls(&s->server, "fcall") >= calls + 8);
    waits = waits_of(worker) - waits;
    calls = server_calls(&s->server, "fcall") - calls;
    print_message("%lld waits, %lld calls\n", waits, calls);
    assert_in_range(waits, 1, 7 * (calls + 1) / 2);
    assert_int_equal(stage_end(worker), 0);
}

/* While claims are refused, nobody looks at the queue again and again. */
static void nobody_peeks_while_claims_are_refused(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=2", "lease=1", NULL);

    await(stage_peeks(s) > 0);
    free(server_ask(&s->server, "DEL", stage_key(s, "types"), NULL));
    free(server_ask(&s->server, "SET", stage_key(s, "types"), "mine", NULL));
    stage_push(s, "mark", NULL, 0, 3);
    log_has(s, "worker.err", "weir:{0}:types is a string, not a hash");
    await_heartbeats(s, 4);
    assert_in_range(stage_peeks(s), 1, 50);
    free(server_ask(&s->server, "DEL", stage_key(s, "types"), NULL));
    stage_await_done(s, 3);
    assert_int_equal(stage_end(worker), 0);
}

/* A key that a type needs: it is named once, and the other types go on. */
static void a_fault_is_named(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "types=mark,odd", "lease=1", NULL);

    stage_rate(s, "odd", "10/s");
    free(server_ask(&s->server, "RPUSH", stage_key(s, "gate:odd#0"), "mine", NULL));
    stage_enqueue(s, "odd", NULL, 0, 1);
    log_has(s, "worker.err", "weir:{0}:gate:odd#0 is a list, not a string: what needs it stands still");
    stage_enqueue(s, "mark", NULL, 1, 3);
    await(stage_stat(s, "mark", "done") == 3);
    assert_int_equal(stage_stat(s, "odd", "done"), 0);
    free(server_ask(&s->server, "DEL", stage_key(s, "gate:odd#0"), NULL));
    await(stage_stat(s, "odd", "done") == 1);
    assert_int_equal(stage_end(worker), 0);
}

/* Somebody else's key where a retried job must go: the worker keeps the job and its lease, and says which
 * key. */
static void foreign_key(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=2", "lease=1", NULL);

    free(server_ask(&s->server, "SET", stage_key(s, "later"), "mine", NULL));
    stage_push(s, "mark", "{\"fail\":1,\"after\":0}", 0, 1);
    log_has(s, "worker.err", "weir:{0}:later is a string, not a zset");
    await_heartbeats(s, 8);
    free(server_ask(&s->server, "DEL", stage_key(s, "later"), NULL));
    stage_await_done(s, 1);
    assert_int_equal(history_count(s, "begin", 0), 2);
    assert_int_equal(stage_stat(s, "mark", "back"), 0);
    assert_int_equal(stage_end(worker), 0);
}

static void try_functions_flushed_under_load(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=3", NULL);
    int flushes = 0;

    stage_rate(s, "mark", "1000/s,burst=10");
    stage_enqueue(s, "mark", NULL, 0, 1000);
    stage_enqueue(s, "mark", "{\"fail\":1,\"after\":0}", 1000, 200);
    while (history_count(s, "effect", -1) < 1200 && flushes < 1000) {
        free(server_ask(&s->server, "FUNCTION", "FLUSH", NULL));
        flushes++;
        clock_sleep_until(clock_mono_us() + 20 * MS);
    }
    if (flushes <= 20)
        stage_late("%d flushes", flushes);
    assert_int_equal(stage_await_done(s, 1200).twice, 0);
    assert_int_equal(stage_end(worker), 0);
}
STAGE_TRIALS(functions_flushed_under_load)

static void emptied_under_load(void **state)
{
    struct stage *s = *state;
    pid_t one = stage_actor(s, "one", "executors=3", NULL), two = stage_actor(s, "two", "executors=3", NULL);

    for (int round = 0; round < 5; round++) {
        stage_enqueue(s, "mark", "{\"sleep\":0.001}", round * 1000, 1000);
        await(history_count(s, "effect", -1) > 0);
        free(server_ask(&s->server, round % 2 ? "FLUSHDB" : "FLUSHALL", NULL));
    }
    stage_push(s, "mark", NULL, 5000, 100);
    await(stage_stat(s, "mark", "done") >= 100);
    for (int job = 5000; job < 5100; job++)
        await(history_count(s, "effect", job) == 1);
    assert_int_equal(stage_end(one), 0);
    assert_int_equal(stage_end(two), 0);
}

static void set_maxmemory(struct stage *s, const char *value)
{
    free(server_ask(&s->server, "CONFIG", "SET", "maxmemory", value, NULL));
}

/* A full Redis takes no more jobs, and can still be emptied: parked, leased, retried, settled. */
static void full_redis_is_worked_off(void **state)
{
    struct stage *s = *state;
    pid_t worker;

    stage_rate(s, "mark", "1000/s,burst=10");
    stage_enqueue(s, "mark", "{\"fail\":1,\"after\":0}", 0, 300);
    set_maxmemory(s, "100kb");
    assert_int_equal(weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark"}, NULL), WEIR_ENOTNOW);
    worker = stage_actor(s, "worker", "executors=3", NULL);
    assert_int_equal(stage_await_done(s, 300).twice, 0);
    assert_int_equal(stage_end(worker), 0);
    set_maxmemory(s, "0");
}

/* A failover, as seen from the old master: it takes no writes for a while. */
static void replica_for_a_while(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=3", NULL);

    stage_enqueue(s, "mark", "{\"sleep\":0.002}", 0, 1000);
    await(history_count(s, "effect", -1) > 100);
    free(server_ask(&s->server, "REPLICAOF", "127.0.0.1", "1", NULL));
    log_has(s, "worker.err", "takes no writes");
    free(server_ask(&s->server, "REPLICAOF", "NO", "ONE", NULL));
    assert_int_equal(stage_await_done(s, 1000).twice, 0);
    assert_int_equal(stage_end(worker), 0);
}

/* The same, of one whose replicas take writes: what it took then would be lost. Within 100 ms it is found. */
static void try_writable_replica_for_a_while(void **state)
{
    struct stage *s = *state;
    pid_t worker = stage_actor(s, "worker", "executors=3", NULL);

    free(server_ask(&s->server, "CONFIG", "SET", "replica-read-only", "no", NULL));
    stage_enqueue(s, "mark", "{\"sleep\":0.002}", 0, 1000);
    await(history_count(s, "effect", -1) > 100);
    free(server_ask(&s->server, "REPLICAOF", "127.0.0.1", "1", NULL));
    log_has(s, "worker.err", "takes no writes: READONLY a replica, which loses what is written there");
    assert_int_equal(weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark", .id = "lost"}, NULL),
                     WEIR_EUNREACHABLE);
    assert_non_null(strstr(weir_message(s->client), "takes no writes: READONLY a replica"));
    if (history_count(s, "begin", -1) > 999)
        stage_late("all jobs were taken");
    free(server_ask(&s->server, "REPLICAOF", "NO", "ONE", NULL));
    assert_int_equal(stage_await_done(s, 1000).twice, 0);
    assert_int_equal(stage_end(worker), 0);
}
STAGE_TRIALS(writable_replica_for_a_while)

/* Redis stood still for longer than all leases: that is no worker's fault. What ended meanwhile is settled
 * afterwards, and no job runs twice. */
static void redis_stands_still(void **state)
{
    struct stage *s = *state;
    pid_t one = stage_actor(s, "one", "executors=2", "lease=1", NULL),
          two = stage_actor(s, "two", "executors=2", "lease=1", NULL);

    stage_push(s, "mark", "{\"wait\":\"go\"}", 0, 4);
    await(history_count(s, "begin", -1) == 4);
    kill(s->server.pid, SIGSTOP);
    make_file(s, "go");
    clock_sleep_until(clock_mono_us() + 2500 * MS); /* the time that passes is the test */
    kill(s->server.pid, SIGCONT);
    await_heartbeats(s, 8);
    assert_int_equal(stage_await_done(s, 4).twice, 0);
    assert_int_equal(history_count(s, "begin", -1), 4);
    assert_int_equal(stage_end(one), 0);
    assert_int_equal(stage_end(two), 0);
}

/* A dead worker whose jobs a foreign key keeps: others say so and live. */
static void dead_worker_that_cannot_be_reaped(void **state)
{
    struct stage *s = *state;
    pid_t worker;

    free(server_ask(&s->server, "SET", stage_key(s, "lane:default!/mark/"), "foreign", NULL));
    free(server_ask(&s->server, "HSET", stage_key(s, "active:gone"), "@", "{}", "1.--/default/mark/",
                    "{\"id\":\"j0\",\"type\":\"mark\"}", NULL));
    free(server_ask(&s->server, "ZADD", stage_key(s, "workers"), "1", "gone", NULL));
    worker = stage_actor(s, "worker", "lease=1", NULL);
    log_has(s, "worker.err", "cannot be taken back: weir:{0}:lane:default!/mark/ is a string, not a list");
    await_heartbeats(s, 5); /* more than a lease */
    free(server_ask(&s->server, "DEL", stage_key(s, "lane:default!/mark/"), NULL));
    assert_int_equal(stage_await_done(s, 1).twice, 0);
    assert_int_equal(stage_end(worker), 0);
}

/* Permissions that were there at the start and are taken away: the worker says so and waits. */
static void permission_lost_and_found(void **state)
{
    struct stage *s = *state;
    char url[200];
    pid_t worker;

    free(server_ask(&s->server, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", NULL));
    snprintf(url, sizeof url, "url=unix://poor:pw@%s", s->server.socket);
    worker = stage_actor(s, "worker", url, "executors=2", NULL);
    stage_push(s, "mark", "{\"sleep\":0.05}", 0, 20);
    await(history_count(s, "begin", -1) > 4);
    free(server_ask(&s->server, "ACL", "SETUSER", "poor", "-fcall", NULL));
    log_has(s, "worker.err", "the user lacks a right");
    free(server_ask(&s->server, "ACL", "SETUSER", "poor", "+fcall", NULL));
    assert_int_equal(stage_await_done(s, 20).twice, 0);
    assert_int_equal(stage_end(worker), 0);
}

/* One claim that is refused halfway may run its jobs twice; there is no second one. */
static void right_of_scripts_lost_and_found(void **state)
{
    struct stage *s = *state;
    struct verdict verdict;
    char url[200];
    pid_t worker;

    free(server_ask(&s->server, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", NULL));
    snprintf(url, sizeof url, "url=unix://poor:pw@%s", s->server.socket);
    worker = stage_actor(s, "worker", url, "executors=2", NULL);
    stage_await_workers(s, 1);
    free(server_ask(&s->server, "ACL", "SETUSER", "poor", "-ltrim", NULL));
    stage_push(s, "mark", NULL, 0, 20);
    log_has(s, "worker.err", "user poor lacks rights; redis-cli ACL SETUSER poor +ltrim");
    clock_sleep_until(clock_mono_us() + 2500 * MS); /* the time that passes is the test */
    assert_int_equal(server_number(&s->server, "LLEN", stage_key(s, "queue:default"), NULL), 20);
    assert_int_equal(history_count(s, "begin", -1), 0);
    free(server_ask(&s->server, "ACL", "SETUSER", "poor", "+ltrim", NULL));
    verdict = stage_await_done(s, 20);
    assert_in_range(verdict.twice, 1, 20);
    assert_int_equal(stage_end(worker), 0);
}

/* ---- The program */

static void handlers_from_a_shared_object(void **state)
{
    struct stage *s = *state;
    char receipts[512];
    pid_t worker;

    setenv("WEEKLY_SUMMARY_DIR", s->server.folder, 1);
    worker = stage_weir(s, "worker", "--load", built("examples/weekly_summary_handler.so"), "-c", "3", NULL);
    unsetenv("WEEKLY_SUMMARY_DIR");
    stage_push(s, "receipt", "{\"business_id\":\"b7\",\"amount_cents\":1250}", 0, 1);
    stage_push(s, "receipt", "{\"business_id\":7}", 1, 1);
    await(stage_stat(s, "receipt", "done") == 1 && stage_stat(s, "receipt", "dead") == 1);
    read_text(s->server.folder, "receipts.ndjson", receipts, sizeof receipts);
    assert_string_equal(receipts, "{\"id\":\"j0\",\"business_id\":\"b7\",\"amount_cents\":1250}\n");
    assert_int_equal(stage_end(worker), 0);
}

static json_t *status_of(struct stage *s)
{
    struct outcome o;
    json_t *status;

    run_in(&o, NULL, built("weir"), "status", "--json", "--redis", s->server.url, NULL);
    assert_int_equal(o.code, 0);
    status = json_loads(o.out, 0, NULL);
    assert_non_null(status);
    return status;
}

/* What was wrong before the library is loaded is still told. */
static void wrong_options_with_a_shared_object(void **state)
{
    struct outcome o;

    (void)state;
    run_in(&o, NULL, built("weir"), "worker", "--load", built("examples/weekly_summary_handler.so"), "-q",
           "a,b,a", NULL);
    assert_int_equal(o.code, 64);
    assert_string_equal(o.err, "weir: worker: queue a is named twice; leave one out\n");
}

static void status_of_a_running_worker(void **state)
{
    struct stage *s = *state;
    int running, waiting, parked, done, pid, count;
    pid_t worker;
    json_t *status, *type, *first;

    stage_rate(s, "mark", "1/1h,burst=2");
    stage_enqueue(s, "mark", NULL, 0, 1);
    stage_enqueue(s, "mark", "{\"wait\":\"go\"}", 1, 1);
    stage_enqueue(s, "mark", NULL, 2, 5);
    worker = stage_actor(s, "worker", "executors=3", NULL);
    await(stage_stat(s, "mark", "done") == 1 && stage_stat(s, "mark", "parked") == 5 &&
          history_count(s, "begin", 1) == 1);
    status = status_of(s);
    type = json_object_get(json_object_get(status, "types"), "mark");
    assert_int_equal(json_unpack(type, "{s:i, s:i, s:i, s:i}", "running", &running, "waiting", &waiting,
                                 "parked", &parked, "done", &done),
                     0);
    assert_int_equal(running, 1);
    assert_int_equal(waiting, 0);
    assert_int_equal(parked, 5);
    assert_int_equal(done, 1);
    first = json_array_get(json_object_get(status, "workers"), 0);
    assert_int_equal(json_unpack(first, "{s:i, s:i}", "pid", &pid, "running", &count), 0);
    assert_int_equal(pid, worker);
    assert_int_equal(count, 1);
    json_decref(status);

    make_file(s, "go");
    await(stage_stat(s, "mark", "done") == 2);
    assert_int_equal(stage_end(worker), 0);
    status = status_of(s);
    assert_int_equal(json_array_size(json_object_get(status, "workers")), 0);
    json_decref(status);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, stage_setup, stage_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(done_retry_dead_throttled),
        ON_STAGE(an_end_that_others_wait_for_is_settled_at_once),
        ON_STAGE(large_jobs_are_settled_a_few_at_a_time),
        ON_STAGE(what_follows_a_batch_starts_at_once),
        ON_STAGE(throttled_without_a_time),
        ON_STAGE(true_cost),
        ON_STAGE(usual_backoff),
        ON_STAGE(executors_run_side_by_side),
        ON_STAGE(thousands_once_each),
        cmocka_unit_test(wrong_set_up),
        cmocka_unit_test(wrong_handlers),
        ON_STAGE(two_workers_keep_one_rate),
        ON_STAGE(what_was_leased_ahead_waits_for_nobody),
        ON_STAGE(few_executors_keep_a_high_rate),
        ON_STAGE(parked_jobs_delay_nobody),
        ON_STAGE(a_flood_leaves_executors_to_limits),
        ON_STAGE(changed_rate_applies_at_once),
        ON_STAGE(unknown_type_waits),
        ON_STAGE(unknown_type_dies_if_told_so),
        ON_STAGE(idle_worker_wakes_at_once),
        ON_STAGE(single_executor_wakes_at_once),
        ON_STAGE(idle_worker_among_busy_ones),
        ON_STAGE(delayed_jobs_start_on_time),
        ON_STAGE(duty_of_a_dead_worker),
        ON_STAGE(duty_of_one_that_stands_still),
        cmocka_unit_test(clock_of_redis_goes_back),
        ON_STAGE(strict_queues),
        ON_STAGE(weighted_queues),
        ON_STAGE(a_thread_is_tried_again),
        ON_STAGE(a_job_without_a_thread_is_given_back),
        ON_STAGE(drain_ends),
        ON_STAGE(drain_waits_for_others),
        ON_STAGE(drain_gives_up),
        ON_STAGE(term_finishes_and_gives_back),
        ON_STAGE(term_at_any_time),
        ON_STAGE(second_term_leaves_functions),
        ON_STAGE(second_term_settles_first),
        ON_STAGE(quiet_takes_no_more),
        cmocka_unit_test(wrong_password),
        ON_STAGE(missing_permission),
        ON_STAGE(missing_right_of_scripts),
        ON_STAGE(waits_for_redis),
        ON_STAGE(foreign_key),
        cmocka_unit_test_setup_teardown(an_idle_worker_sleeps, stage_setup, stage_teardown),
        ON_STAGE(nobody_peeks_while_claims_are_refused),
        ON_STAGE(a_fault_is_named),
        ON_STAGE(functions_flushed_under_load),
        ON_STAGE(emptied_under_load),
        ON_STAGE(full_redis_is_worked_off),
        ON_STAGE(replica_for_a_while),
        ON_STAGE(writable_replica_for_a_while),
        ON_STAGE(redis_stands_still),
        ON_STAGE(dead_worker_that_cannot_be_reaped),
        ON_STAGE(permission_lost_and_found),
        ON_STAGE(right_of_scripts_lost_and_found),
        ON_STAGE(handlers_from_a_shared_object),
        cmocka_unit_test(wrong_options_with_a_shared_object),
        ON_STAGE(status_of_a_running_worker),
    };
    int rc = stage_actor_main(argc, argv);

    return rc >= 0 ? rc : cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
