/* Workers that serve patterns, or more than 64 queues: worker/mind/wide.c by itself, the scripts that know of
 * patterns, and workers end to end. */
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage.h"
#include "worker/mind/wide.h"

/* ---- Which queues a claim names */

static struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

static void learn_many(struct wide *w, const char *prefix, int n)
{
    for (int i = 0; i < n; i++) {
        assert_true(wide_learn(w, span_of(textf("%s%04d", prefix, i))));
    }
}

static void hear(struct wide *w, struct claim *claim, int64_t now_us, int64_t next_us)
{
    wide_hear(w, &(struct wide_answer){claim, 10, true, next_us, 0, now_us});
}

/* Claims until nothing is due; how many. Nothing is there, until next_us. */
static int look_at_all(struct wide *w, int64_t now_us, int64_t next_us)
{
    struct claim nothing = {.more = false};
    int claims = 0;

    for (; wide_due(w) <= now_us; claims++) {
        assert_true(claims < 100);
        wide_pick(w, now_us, 0);
        hear(w, &nothing, now_us, next_us);
    }
    return claims;
}

TEST(words_stand_for_queues)
{
    static const char *const words[] = {"high", "mail.*", "low"};
    struct wide *w = wide_new(words, 3);
    struct names picked;

    assert_int_equal(wide_names(w), 2);
    assert_true(wide_learn(w, span_of("mail.a")));
    assert_true(wide_learn(w, span_of("mail."))); /* a pattern stands for its beginning, too */
    assert_true(wide_learn(w, span_of("mail")));  /* not for less */
    assert_true(wide_learn(w, span_of("news.a")));
    assert_int_equal(wide_count(w), 4);
    wide_forget_others(w);
    assert_int_equal(wide_count(w), 4);
    picked = wide_pick(w, SECOND, 0);
    assert_int_equal(picked.count, 4);
    assert_string_equal(picked.at[0], "high"); /* words in strict order */
    assert_string_equal(picked.at[3], "low");
    hear(w, &(struct claim){.more = false}, SECOND, 0);
    wide_pick(w, SECOND, 0);
    wide_forget_others(w); /* Redis knows none any more */
    assert_int_equal(wide_count(w), 2);
    wide_free(w);
}

TEST(a_claim_names_64_in_turn)
{
    static const char *const words[] = {"*"};
    struct wide *w = wide_new(words, 1);

    learn_many(w, "q", 300);
    assert_int_equal(look_at_all(w, SECOND, 0), 5);
    assert_true(wide_due(w) == INT64_MAX);
    assert_int_equal(wide_pick(w, SECOND, SECOND).count, 0);
    assert_int_equal(wide_pick(w, 2 * SECOND, 2 * SECOND).count, 64);
    wide_ring(w, span_of("q0123"));
    assert_int_equal(wide_pick(w, SECOND, 0).count, 1);
    wide_ring(w, span_of("q0124!")); /* its jobs that run alone */
    wide_ring(w, span_of("new"));
    assert_int_equal(wide_pick(w, SECOND, 0).count, 3);
    assert_int_equal(wide_count(w), 301);
    wide_free(w);
}

/* More queues are due than a claim names: what comes after them waits, however long no claim has named it. */
TEST(no_queue_passes_one_that_is_due)
{
    enum { NAMES = 100 };
    static char names[NAMES][24];
    const char *words[NAMES];
    char token[64];
    struct lease lease;
    struct claim taken = {.leases = &lease, .lease_count = 1, .more = true};
    struct wide *w;

    for (int i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof names[i], "q%d", i);
        words[i] = names[i];
    }
    w = wide_new(words, NAMES);
    for (int last = 0; last < WIDE_CLAIM; last++) { /* a job of that is taken, and there are more */
        assert_int_equal(wide_pick(w, SECOND, SECOND).count, WIDE_CLAIM);
        for (int i = 0; i < WIDE_CLAIM; i++)
            assert_string_equal(wide_picked(w).at[i], words[i]);
        snprintf(token, sizeof token, "1.00/%s/mark/", words[last]);
        lease.token = span_of(token);
        hear(w, &taken, SECOND, 0);
    }
    wide_free(w);
}

/* Some places are for those that no claim named for a while, though others are due. */
TEST(what_is_due_leaves_room_for_others)
{
    static const char *const words[] = {"*"};
    struct wide *w = wide_new(words, 1);
    int stale = 0;

    learn_many(w, "q", 10);
    look_at_all(w, SECOND, 0);
    learn_many(w, "r", 100);
    look_at_all(w, 2 * SECOND, 0);
    for (int i = 0; i < 100; i++) {
        wide_ring(w, span_of(textf("r%04d", i)));
    }
    wide_pick(w, 2 * SECOND, 2 * SECOND);
    for (int i = 0; i < wide_picked(w).count; i++)
        stale += wide_picked(w).at[i][0] == 'q';
    assert_int_equal(wide_picked(w).count, 64);
    assert_int_equal(stale, 8);
    wide_free(w);
}

TEST(who_got_executors_goes_behind)
{
    static const char *const words[] = {"*"};
    struct lease leases[2] = {{.token = span_of("1.00/q0000/mark/")}, {.token = span_of("1.01/q0001/mark/")}};
    struct claim taken = {.leases = leases, .lease_count = 2, .more = true};
    struct wide *w = wide_new(words, 1);
    const char *first[3];

    learn_many(w, "q", 3);
    look_at_all(w, SECOND, 0);
    wide_ring(w, span_of("*"));
    memcpy(first, wide_pick(w, SECOND, 0).at, sizeof first);
    leases[0].token = leases[1].token = (struct span){0};
    for (int i = 0; i < 2; i++) {
        static char token[2][64];

        snprintf(token[i], sizeof token[i], "1.0%d/%s/mark/", i, first[i]);
        leases[i].token = span_of(token[i]);
    }
    hear(w, &taken, SECOND, 0);
    assert_int_equal(wide_pick(w, SECOND, 0).count, 3); /* all of them are due still */
    assert_string_equal(wide_picked(w).at[0], first[2]);
    wide_free(w);
}

/* It may have been looked at before the job came. */
TEST(a_bell_counts_during_a_claim)
{
    static const char *const words[] = {"*"};
    struct wide *w = wide_new(words, 1);

    learn_many(w, "q", 3);
    wide_pick(w, SECOND, 0);
    wide_ring(w, span_of("q0001"));
    hear(w, &(struct claim){.more = false}, SECOND, 0);
    assert_true(wide_due(w) <= SECOND);
    assert_int_equal(wide_pick(w, SECOND, 0).count, 1);
    assert_string_equal(wide_picked(w).at[0], "q0001");
    wide_free(w);
}

/* Of the queues that wait for an hour at the same two gates one is asked now and then, whether that is so still. */
TEST(one_of_those_that_wait_is_asked)
{
    enum { QUEUES = 50 };
    static const char *const words[] = {"*"};
    struct wide *w = wide_new(words, 1);
    struct span dues[QUEUES];
    char texts[QUEUES][80];

    learn_many(w, "q", QUEUES);
    wide_ring(w, span_of("*"));
    assert_int_equal(wide_pick(w, SECOND, 0).count, QUEUES);
    for (int i = 0; i < QUEUES; i++) {
        snprintf(texts[i], sizeof texts[i], "q%04d -1 g a#0 3600000000 3600000000 b#0 3600000000 3600000000",
                 i);
        dues[i] = span_of(texts[i]);
    }
    hear(w, &(struct claim){.told = true, .dues = dues, .due_count = QUEUES}, SECOND, 0);
    wide_take_held(w);
    assert_int_equal(wide_pick(w, SECOND + 350000, SECOND).count, 0);
    assert_int_equal(wide_pick(w, SECOND + 350001, SECOND + 1).count, 1);
    wide_free(w);
}

TEST(at_most_ten_thousand)
{
    static const char *const words[] = {"*"};
    struct wide *w = wide_new(words, 1);

    learn_many(w, "q", WIDE_QUEUES);
    assert_false(wide_learn(w, span_of("r")));
    wide_forget_others(w);
    assert_false(wide_learn(w, span_of("r")));
    learn_many(w, "q", 9000);
    wide_forget_others(w);
    assert_true(wide_learn(w, span_of("r")));
    assert_int_equal(wide_count(w), 9001);
    wide_free(w);
}

/* ---- Workers */

static void enqueue(struct stage *s, const char *queue, int job, const char *args)
{
    const char *id = textf("j%d", job);

    if (weir_enqueue(s->client,
                     &(struct weir_job_spec){.type = "mark", .args = args, .id = id, .queue = queue},
                     NULL) != 0)
        fail_msg("%s", weir_message(s->client));
}

/* Each of these queues gets n jobs, in a bulk: first the first job of each. */
static void fill(struct stage *s, int queues, int n, const char *args)
{
    struct weir_bulk *bulk;
    char id[24], queue[24];

    assert_int_equal(weir_bulk_open(s->client, NULL, &bulk), 0);
    for (int i = 0; i < queues * n; i++) {
        snprintf(id, sizeof id, "j%d", i);
        snprintf(queue, sizeof queue, "mail.q%d", i % queues);
        assert_int_equal(
            weir_bulk_add(bulk,
                          &(struct weir_job_spec){.type = "mark", .args = args, .id = id, .queue = queue}),
            0);
    }
    assert_int_equal(weir_bulk_close(bulk, NULL), 0);
}

static void await_idle(struct stage *s)
{
    stage_await_workers(s, 1);
    stage_await_blocked(s, 1); /* the bell alone */
}

static int64_t begin_of(struct stage *s, int job)
{
    struct history h = history_read(s);
    int64_t at_us = 0;

    for (int i = 0; i < h.count; i++)
        if (h.events[i].job == job)
            at_us = at_us ? at_us : h.events[i].at_us;
    history_free(&h);
    return at_us;
}

static int64_t await_begin(struct stage *s, int job)
{
    await(history_count(s, "begin", job) > 0);
    return begin_of(s, job);
}

/* 300 queues, and one of them has very many jobs. */
STAGE_TEST(each_queue_has_its_turn)
{
    enum { QUEUES = 300, JOBS = 3 * QUEUES, FLOOD = 2000 };
    int of_flood = 0, of_others = 0;
    struct history h;

    fill(s, QUEUES, 3, "{\"sleep\":0.0005}");
    for (int i = 0; i < FLOOD; i++) {
        stage_number(s, "RPUSH", stage_key(s, "queue:mail.q7"),
                     textf("{\"id\":\"j%d\",\"type\":\"mark\",\"args\":{\"sleep\":0.0005}}", JOBS + i));
    }
    stage_actor(s, "worker", "queues=mail.*", "executors=4", NULL);
    assert_int_equal(stage_await_done(s, JOBS + FLOOD).twice, 0);
    h = history_read(s);
    for (int i = 0; i < h.count && of_others < JOBS - 3; i++)
        if (strcmp(h.events[i].what, "begin") == 0 &&
            (h.events[i].job >= JOBS || h.events[i].job % QUEUES == 7))
            of_flood++;
        else if (strcmp(h.events[i].what, "begin") == 0)
            of_others++;
    history_free(&h);
    if (of_flood > FLOOD / 2)
        fail_msg("%d jobs of one queue before all of the others had three", of_flood);
}

/* The bell names the queue: no need to look at the 300 others, nor to wait for the next match. */
STAGE_TEST(a_new_queue_is_served_at_once)
{
    enum { TRIES = 20 };
    int64_t best_us = INT64_MAX;

    fill(s, 300, 1, NULL);
    stage_actor(s, "worker", "queues=*", NULL);
    stage_await_done(s, 300);
    await_idle(s);
    for (int i = 0; i < TRIES; i++) {
        int64_t at_us = clock_mono_us(), late_us;

        enqueue(s, textf("new%d", i), 300 + i, NULL);
        late_us = await_begin(s, 300 + i) - at_us;
        best_us = late_us < best_us ? late_us : best_us;
    }
    assert_in_range(best_us, 0, 100 * MS);
}

/* What any Redis client pushes into a queue that Weir knows is found by looking; so is a queue that becomes
 * known. */
STAGE_TEST(foreign_jobs_are_found)
{
    fill(s, 100, 1, NULL);
    stage_actor(s, "worker", "queues=*", NULL);
    stage_await_done(s, 100);
    await_idle(s);
    stage_number(s, "RPUSH", stage_key(s, "queue:mail.q55"), "{\"id\":\"j100\",\"type\":\"mark\"}");
    await_begin(s, 100);
    stage_number(s, "RPUSH", stage_key(s, "queue:other"), "{\"id\":\"j101\",\"type\":\"mark\"}");
    stage_number(s, "SADD", stage_key(s, "queues"), "other");
    await_begin(s, 101);
}

STAGE_TEST(a_pattern_that_stands_for_nothing_yet)
{
    enqueue(s, "news", 0, NULL);
    stage_actor(s, "worker", "queues=mail.*", NULL);
    await_idle(s);
    enqueue(s, "mail.a", 1, NULL);
    enqueue(s, "mail", 2, NULL);
    enqueue(s, "mail.b", 3, NULL);
    await(history_count(s, "effect", 1) == 1 && history_count(s, "effect", 3) == 1);
    await_idle(s);
    assert_int_equal(history_count(s, "begin", -1), 2);
}

static void weir(struct stage *s, const char *const *words)
{
    const char *all[WORDS_MAX] = {built("weir")};
    struct outcome o;
    int n = 1;

    while (*words)
        all[n++] = *words++;
    all[n++] = "--redis";
    all[n] = s->server.url;
    program_run(&o, NULL, all);
    if (o.code != 0)
        fail_msg("%s%s", o.out, o.err);
}
#define WEIR(s, ...) weir(s, (const char *const[]){__VA_ARGS__, NULL})

/* Scheduled, of a schedule, of a batch that has ended, set aside, dead: each into another queue. */
STAGE_TEST(jobs_come_by_all_ways)
{
    enqueue(s, "a", 0, "{\"dead\":\"for a test\"}");
    stage_actor(s, "worker", "queues=*", "types=mark,after", NULL);
    await(stage_stat(s, "mark", "dead") == 1);
    await_idle(s);
    WEIR(s, "enqueue", "mark", "--in", "0.2s", "-q", "b");
    await(stage_stat(s, "mark", "done") == 1);
    WEIR(s, "schedule", "add", "often", "every 1s", "mark", "-q", "c");
    await(stage_stat(s, "mark", "done") == 2);
    WEIR(s, "schedule", "remove", "often");
    WEIR(s, "enqueue", "mark", "--batch", "some", "-q", "d");
    WEIR(s, "batch", "seal", "some", "--then", "after");
    await(stage_stat(s, "after", "done") == 1);
    WEIR(s, "dead", "retry", "--all", "--into", "e");
    await(stage_stat(s, "mark", "dead") == 2);
}

/* One shared rate, over 200 queues whose jobs are parked. */
static void a_rate_over_many_queues(struct stage *s, const char *url)
{
    enum { QUEUES = 200, JOBS = 2 * QUEUES, RATE = 300, BURST = 30 };
    const char *traces[] = {"w.trace"};
    struct outcome o;
    struct history h;
    int64_t first_us = INT64_MAX, last_us = 0;
    double kept;
    pid_t worker;

    stage_rate(s, "mark", "300/s,burst=30"); /* what a busy machine starts late is made up for */
    fill(s, QUEUES, 2, NULL);
    worker = stage_actor(s, "worker", "queues=*", "executors=20", "trace=w.trace", url, NULL);
    assert_int_equal(stage_await_done(s, JOBS).twice, 0);
    assert_int_equal(stage_end(worker), 0);
    h = history_read(s);
    for (int i = 0; i < h.count; i++) {
        first_us = h.events[i].at_us < first_us ? h.events[i].at_us : first_us;
        last_us = h.events[i].at_us > last_us ? h.events[i].at_us : last_us;
    }
    history_free(&h);
    run_in(&o, s->server.folder, built("weir"), "verify", traces[0], NULL);
    if (o.code != 0)
        fail_msg("%s%s", o.out, o.err);
    kept = (double)(JOBS - BURST) / RATE / ((double)(last_us - first_us) / 1e6);
    if (kept < 0.7) /* a worker that looked at queues as it polls would keep 0.02 */
        stage_late("%.2f of the rate kept", kept);
}

TRIAL_WITH(parked_jobs_of_many_queues_start_on_time, stage_setup, stage_teardown)
{
    a_rate_over_many_queues(*state, NULL);
}

TRIAL_WITH(the_same_over_a_long_link, stage_setup, stage_teardown)
{
    struct stage *s = *state;
    struct proxy *proxy = proxy_start(&s->server);
    char url[200];

    proxy_delay(proxy, PROXY_REQUESTS, 10 * MS);
    proxy_delay(proxy, PROXY_REPLIES, 10 * MS);
    snprintf(url, sizeof url, "url=%s", proxy_url(proxy));
    a_rate_over_many_queues(s, url);
    proxy_stop(proxy);
}

/* What holds the jobs of a queue opens when one of another queue ends. By polls that would take more than a minute. */
STAGE_TEST(a_gate_of_concurrency_over_many_queues)
{
    enum { QUEUES = 200 };

    stage_rate(s, "mark", "concurrency=2");
    fill(s, QUEUES, 2, "{\"sleep\":0.002}");
    stage_actor(s, "worker", "queues=mail.*", NULL);
    assert_int_equal(stage_await_done(s, 2 * QUEUES).twice, 0);
}

STAGE_TEST(patterns_that_overlap)
{
    enum { QUEUES = 100 };

    stage_actor(s, "one", "queues=mail.*", "executors=2", NULL);
    stage_actor(s, "two", "queues=*", "executors=2", NULL);
    stage_await_workers(s, 2);
    fill(s, QUEUES, 5, "{\"sleep\":0.001}");
    assert_int_equal(stage_await_done(s, 5 * QUEUES).twice, 0);
}

/* A worker with one executor and 100 names: they have n jobs each, and start in strict order. */
static void await_strict_order(struct stage *s, int n)
{
    enum { QUEUES = 100 };
    char words[2000] = "queues=";
    struct history h;
    pid_t worker;

    for (int i = 0; i < QUEUES; i++)
        snprintf(words + strlen(words), sizeof words - strlen(words), "%smail.q%d", i ? "," : "", i);
    worker = stage_actor(s, "worker", words, "executors=1", NULL);
    stage_await_done(s, n * QUEUES);
    h = history_read(s);
    for (int i = 0; i < 2 * n * QUEUES; i++) /* begin and effect of each job */
        assert_int_equal(h.events[i].job % QUEUES, i / (2 * n));
    history_free(&h);
    assert_int_equal(stage_end(worker), 0);
}

STAGE_TEST(a_hundred_names_in_strict_order)
{
    fill(s, 100, 2, "{\"sleep\":0.002}");
    await_strict_order(s, 2);
}

/* Those that were leased ahead wait too long behind a slow one, and go back to queues that have nothing else. */
STAGE_TEST(jobs_given_back_keep_the_order)
{
    for (int i = 0; i < 100; i++) {
        enqueue(s, textf("mail.q%d", i), i, i == 50 ? "{\"sleep\":0.4}" : NULL);
    }
    await_strict_order(s, 1);
}

STAGE_TEST(a_job_that_runs_alone_is_found)
{
    pid_t first;

    fill(s, 200, 1, NULL);
    enqueue(s, "mail.kill", 200, "{\"kill\":\"before\"}");
    first = stage_actor(s, "first", "queues=*", "lease=1", "fragile=1", NULL);
    assert_int_equal(program_end(first), 1009);
    stage_actor(s, "second", "queues=*", "lease=1", NULL);
    assert_int_equal(stage_await_done(s, 201).lost, 0);
}

STAGE_TEST(drains_all_queues)
{
    fill(s, 150, 2, NULL);
    assert_int_equal(program_end(stage_actor(s, "worker", "queues=*", "drain=1", NULL)), 0);
    assert_int_equal(stage_judge(s, 300).done, 300);
}

/* ---- Commands */

STAGE_TEST(commands_know_patterns)
{
    struct outcome o;

    stage_rate(s, "mark", "1/1h,burst=1");
    enqueue(s, "mail.a", 0, NULL);
    stage_actor(s, "worker", "queues=mail.*,high", NULL);
    await(stage_stat(s, "mark", "done") == 1);
    enqueue(s, "mail.b", 3, NULL);
    run_in(&o, NULL, built("weir"), "status", "--redis", s->server.url, NULL);
    if (!strstr(o.out, "mail.b") || strstr(o.out, "at the earliest")) /* it is where no worker takes them */
        fail_msg("%s", o.out);
    enqueue(s, "news", 1, NULL);
    run_in(&o, NULL, built("weir"), "queue", "list", "--redis", s->server.url, NULL);
    assert_non_null(strstr(o.out, "mail.a"));
    run_in(&o, NULL, built("weir"), "queue", "list", "--json", "--redis", s->server.url, NULL);
    assert_null(strstr(o.out, "*"));
    enqueue(s, "mail.a", 2, NULL);
    run_in(&o, NULL, built("weir"), "why", "j2", "--redis", s->server.url, NULL);
    if (strstr(o.out, "no worker  "))
        fail_msg("%s", o.out);
    run_in(&o, NULL, built("weir"), "why", "j1", "--redis", s->server.url, NULL);
    assert_non_null(strstr(o.out, "a worker that takes mark from queue news: none does; start one\n"));
    run_in(&o, NULL, built("weir"), "doctor", "--redis", s->server.url, NULL);
    if (strstr(o.out, "wrong:"))
        fail_msg("%s", o.out);
}

/* ---- What it costs */

/* Three claims a second, four queues each: nothing of what patterns need. */
STAGE_TEST(named_queues_cost_as_before)
{
    long long claims, queues;
    int64_t begin_us;

    stage_actor(s, "worker", "queues=a,b,c,d", NULL);
    stage_await_workers(s, 1);
    stage_await_blocked(s, 5);
    begin_us = clock_mono_us();
    stage_do(s, "CONFIG", "RESETSTAT");
    clock_sleep_until(clock_mono_us() + SECOND);
    claims = server_calls(&s->server, "fcall");
    queues = server_calls(&s->server, "llen");
    assert_in_range(claims, 1, 6 * (clock_mono_us() - begin_us) / SECOND);
    assert_in_range(queues, 0, 24 * (clock_mono_us() - begin_us) / SECOND);
    assert_int_equal(server_calls(&s->server, "sscan"), 0);
    for (int i = 0; i < 10; i++)
        enqueue(s, "a", i, NULL);
    stage_await_done(s, 10);
}

STAGE_TESTS(NULL, NULL)
