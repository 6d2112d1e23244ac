/* Rates over links that are long, or stall: workers and Redis with a proxy between them that delays every
 * byte. */
#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage.h"
#include "worker/mind/distance.h"

/* ---- The distance */

TEST(the_quickest_answer_counts)
{
    struct distance d = {0};

    distance_hear(&d, 1000, 5000, 1400);
    assert_int_equal(distance_offset(&d), -3600);
    assert_int_equal(distance_trip(&d), 400);
    distance_hear(&d, 2000, 6050, 2100);
    assert_int_equal(distance_offset(&d), -3950);
    assert_int_equal(distance_trip(&d), 100);
    distance_hear(&d, 3000, 7100, 3000000 + 3100); /* 3 s late */
    assert_int_equal(distance_offset(&d), -3950);
    assert_int_equal(distance_trip(&d), 100);
}

TEST(what_is_usual_follows_slowly)
{
    struct distance d = {0};

    for (int i = 1; i <= 61; i++) { /* Redis is idle, busy, and idle again */
        int64_t trip_us = i > 20 && i <= 40 ? 5000 : 1000;

        distance_hear(&d, i * 10000, i * 10000 + trip_us / 2, i * 10000 + trip_us);
        assert_true(i != 1 || distance_at_present(&d) == 1000);
        assert_true(i != 21 || distance_at_present(&d) == 2000);
        assert_true(i != 40 || distance_at_present(&d) > 4900);
    }
    assert_in_range(distance_at_present(&d), 1000, 1020);
    assert_int_equal(distance_far(&d), 1000);
    distance_begin(&d); /* another connection */
    distance_hear(&d, 1000000, 1000000, 1003000);
    assert_int_equal(distance_at_present(&d), 3000);
}

TEST(a_clock_set_back_is_no_late_answer)
{
    struct distance d = {0};

    distance_hear(&d, 10000000, 90000000, 10000200);
    distance_hear(&d, 10001000, 90000000 - 30000, 10001200); /* by 31 ms */
    assert_int_equal(distance_offset(&d), 10001200 - 89970000);
    distance_hear(&d, 10002000, 99000000, 10002200); /* and forward */
    assert_int_equal(distance_offset(&d), 10002200 - 99000000);
}

TEST(old_answers_are_forgotten)
{
    struct distance d = {0};

    distance_hear(&d, 0, 100, 200);
    for (int i = 1; i <= 5; i++) /* the link has become longer */
        distance_hear(&d, i * 1000000, i * 1000000 + 5100, i * 1000000 + 10000);
    assert_int_equal(distance_trip(&d), 10000);
    assert_int_equal(distance_offset(&d), 4900);
}

/* ---- Long links */

struct far {
    struct stage stage;
    struct proxy *proxy[2];
    pid_t worker[2];
};

static struct proxy *link_of(struct stage *s, int64_t trip_us)
{
    struct proxy *proxy = proxy_start(&s->server);

    proxy_delay(proxy, PROXY_REQUESTS, trip_us / 2);
    proxy_delay(proxy, PROXY_REPLIES, trip_us / 2);
    return proxy;
}

static pid_t far_actor_of(struct stage *s, struct proxy *proxy, const char *name, const char *queues)
{
    const char *url = textf("url=%s", proxy_url(proxy));

    return stage_actor(s, name, url, "executors=10", queues, NULL);
}

static pid_t far_actor(struct stage *s, struct proxy *proxy, const char *name)
{
    return far_actor_of(s, proxy, name, "queues=default");
}

static void far_open_types(struct far *f, int64_t trip_us, const char *executors, const char *types)
{
    char count[32];

    stage_open(&f->stage, false);
    snprintf(count, sizeof count, "executors=%s", executors);
    for (int i = 0; i < 2; i++) {
        f->proxy[i] = link_of(&f->stage, trip_us);
        f->worker[i] = stage_actor(&f->stage, textf("far%d", i), textf("url=%s", proxy_url(f->proxy[i])),
                                   count, textf("trace=far%d.trace", i), types, NULL);
    }
    stage_await_workers(&f->stage, 2);
}

static void far_open(struct far *f, int64_t trip_us, const char *executors)
{
    far_open_types(f, trip_us, executors, "types=mark");
}

static void far_close(struct far *f)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stage_end(f->worker[i]), 0);
        proxy_stop(f->proxy[i]);
    }
    stage_close(&f->stage);
}

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

/* The starts, by time, in h->events; how many. */
static int starts(struct stage *s, struct history *h)
{
    int n = 0;

    *h = history_read(s);
    for (int i = 0; i < h->count; i++)
        if (strcmp(h->events[i].what, "begin") == 0)
            h->events[n++] = h->events[i];
    qsort(h->events, (size_t)n, sizeof *h->events, by_time);
    return n;
}

/* The most starts within any window of that length. */
static int most_within(struct stage *s, int64_t window_us)
{
    struct history h;
    int n = starts(s, &h), most = 0;

    for (int i = 0, first = 0; i < n; i++) {
        while (h.events[i].at_us - h.events[first].at_us >= window_us)
            first++;
        if (i - first + 1 > most)
            most = i - first + 1;
    }
    history_free(&h);
    return most;
}

/* ---- Jobs without a limit: claims go beside the turn */

enum { NO_OPS = 10000 };
#define FAR_TRIP_US (40 * MS)

/* A claim brings 500 jobs without a limit at most, and those for its executors: so many would start in each round trip
 * if one claim waited for the other. More of them come with each round trip, as far as the machine keeps up. */
TRIAL_WITH(jobs_come_as_fast_as_they_end, NULL, NULL)
{
    enum { JOBS = 8000, ONE_BY_ONE = 510 };
    const int64_t trip_us = 150 * MS;
    struct stage s;
    struct proxy *proxy;
    pid_t worker;
    int most;

    stage_open(&s, false);
    proxy = link_of(&s, trip_us);
    stage_enqueue(&s, "mark", NULL, 0, JOBS);
    worker = far_actor(&s, proxy, "far");
    assert_int_equal(stage_await_done(&s, JOBS).twice, 0);
    most = most_within(&s, trip_us * 9 / 10);
    if (most < ONE_BY_ONE * 3 / 2)
        stage_late("%d starts in a round trip", most);
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(proxy);
    stage_close(&s);
}

/* A claim that names no queue is refused, and the worker rests. */
TEST(claims_beside_a_turn_name_all_queues)
{
    struct stage s;
    struct proxy *proxy;
    pid_t worker;
    char *text = malloc(1 << 20);

    stage_open(&s, false);
    proxy = link_of(&s, FAR_TRIP_US);
    stage_enqueue(&s, "mark", NULL, 0, NO_OPS);
    worker = far_actor_of(&s, proxy, "far", "queues=default,other");
    assert_int_equal(stage_await_done(&s, NO_OPS).twice, 0);
    assert_int_equal(stage_end(worker), 0);
    read_text(s.server.folder, "far.err", text, 1 << 20);
    assert_null(strstr(text, "trying again every second"));
    free(text);
    proxy_stop(proxy);
    stage_close(&s);
}

/* What several claims were granted whose answers are lost is handed back as the worker joins again. */
TEST(answers_of_several_claims_are_lost)
{
    enum { CUTS = 6 };
    struct stage s;
    struct proxy *proxy;
    pid_t worker;

    stage_open(&s, false);
    proxy = link_of(&s, FAR_TRIP_US);
    stage_enqueue(&s, "mark", NULL, 0, NO_OPS);
    worker = far_actor(&s, proxy, "far");
    for (int i = 1; i <= CUTS; i++) {
        await(stage_stat(&s, "mark", "done") >= i * NO_OPS / (CUTS + 1));
        proxy_cut_all(proxy);
    }
    assert_int_equal(stage_await_done(&s, NO_OPS).twice, 0);
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(proxy);
    stage_close(&s);
}

/* A worker that stops gives back what its claims bring from then on. */
TEST(a_stop_waits_for_claims_under_way)
{
    struct stage s;
    struct proxy *proxy;
    pid_t worker;
    struct verdict verdict;

    stage_open(&s, false);
    proxy = link_of(&s, FAR_TRIP_US);
    stage_enqueue(&s, "mark", NULL, 0, NO_OPS);
    worker = far_actor(&s, proxy, "far");
    await(stage_stat(&s, "mark", "done") >= NO_OPS / 3);
    assert_int_equal(stage_end(worker), 0);
    verdict = stage_judge(&s, NO_OPS);
    assert_int_equal(verdict.lost + verdict.twice + verdict.dead, 0);
    assert_int_equal(verdict.done, stage_stat(&s, "mark", "done"));
    assert_int_equal(verdict.done + verdict.present, NO_OPS);
    proxy_stop(proxy);
    stage_close(&s);
}

/* ---- Stalls */

static int64_t first_begin_us(struct stage *s)
{
    struct history h = history_read(s);
    int64_t first_us = INT64_MAX;

    for (int i = 0; i < h.count; i++)
        if (h.events[i].at_us < first_us)
            first_us = h.events[i].at_us;
    history_free(&h);
    return first_us;
}

/* No more than 50 may start in any second, and a slot is good for 50 ms. The answer with the second 50 comes
 * 0.7 s late: those are given back, as the third 50 may follow 0.3 s later. */
TRIAL_WITH(a_late_answer_exceeds_nothing, NULL, NULL)
{
    enum { JOBS = 120 };
    struct far f;
    int most;

    far_open(&f, 0, "50");
    stage_rate(&f.stage, "mark", "50/1s,algorithm=sliding-log");
    stage_enqueue(&f.stage, "mark", NULL, 0, JOBS);
    await(stage_stat(&f.stage, "mark", "done") >= 50);
    clock_sleep_until(first_begin_us(&f.stage) + 970 * MS); /* so that no answer before that one is held */
    for (int i = 0; i < 2; i++)
        proxy_stall(f.proxy[i], PROXY_REPLIES, 680 * MS);
    assert_int_equal(stage_await_done(&f.stage, JOBS).twice, 0);
    most = most_within(&f.stage, 950 * MS);
    if (most > 50)
        stage_late("%d starts within 0.95 s", most);
    if (stage_stat(&f.stage, "mark", "back") == 0)
        stage_late("no answer was held");
    far_close(&f);
}

/* What was granted and could not start in time gives its slots back: a quota of the day is used whole. */
TRIAL_WITH(a_quota_is_used_whole, NULL, NULL)
{
    static const char *const rules[] = {"5/1d", "5/1d,algorithm=fixed-window", "5/1d,algorithm=sliding-log",
                                        "5/1d,algorithm=sliding-window"};
    static const char *const types[] = {"gcra", "fixed", "log", "window"};
    enum { TYPES = 4, JOBS = 20 };
    struct far f;
    long long back = 0;

    far_open_types(&f, 0, "10", "types=gcra,fixed,log,window");
    for (int i = 0; i < 2; i++)
        proxy_delay(f.proxy[i], PROXY_REPLIES, 20 * MS);
    for (int t = 0; t < TYPES; t++) {
        stage_rate(&f.stage, types[t], rules[t]);
        stage_await_blocked(&f.stage, 3);
        stage_enqueue(&f.stage, types[t], NULL, t * JOBS, JOBS);
        clock_sleep_until(clock_mono_us() + 25 * MS); /* a worker has been woken and has claimed */
        for (int i = 0; i < 2; i++)
            proxy_stall(f.proxy[i], PROXY_REPLIES, 150 * MS);
        await(stage_stat(&f.stage, types[t], "done") == 5);
        back += stage_stat(&f.stage, types[t], "back");
    }
    if (back == 0)
        stage_late("no answer was held");
    assert_int_equal(history_count(&f.stage, "begin", -1), 5 * TYPES);
    far_close(&f);
}

STAGE_TESTS(NULL, NULL)
