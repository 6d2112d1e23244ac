/* What the commands say of the same thing is the same, and none says more than is known: forecasts, rates,
 * counts. */
#include "tests/scene_weir.h"

#include <jansson.h>
#include <math.h>

#include "core/clock.h"

static int64_t begun_us; /* when the test began */

static int begin(void **state)
{
    int rc = begin_now(state);

    begun_us = turns.now_us;
    return rc;
}

/* What it prints as JSON, freed by the caller. */
static json_t *json_of(const char *line)
{
    json_t *doc;

    must_run(textf("%s --json", line));
    doc = json_loads(said.out, 0, NULL);
    if (!doc)
        fail_msg("%s: no JSON: %s", line, said.out);
    return doc;
}

/* A member by a path such as "types.t.rate_now", as a number; NAN: null. */
static double number_of(const char *line, const char *path)
{
    json_t *doc = json_of(line), *at = doc;
    char text[200], *rest = text, *name;
    double number;

    snprintf(text, sizeof text, "%s", path);
    while ((name = strsep(&rest, ".")))
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(name)) : json_object_get(at, name);
    if (!json_is_number(at) && !json_is_null(at) && !json_is_boolean(at))
        fail_msg("%s: no number at %s: %s", line, path, said.out);
    number = json_is_number(at) ? json_number_value(at) : json_is_null(at) ? NAN : json_is_true(at);
    json_decref(doc);
    return number;
}

/* Of the same times, told one after the other: what starts from now on moves along as time goes on. */
static bool same(double one, double other)
{
    return fabs(one - other) < 1 + (double)(clock_wall_us() - begun_us) / 1e6;
}

/* ---- What is counted */

/* Jobs that a claim sets aside have not started, and are not lost from sight. */
TEST_WITH(test_jobs_set_aside_are_counted_as_that, begin, NULL)
{
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    write_text(turns.server.folder, "jobs", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    must_run("enqueue --from jobs slow --batch b");
    turns.now_us = clock_wall_us() - 3 * SECOND_US;
    ask.mark = true;
    assert_int_equal(claim("w", 9, 0), 1);
    must_run("batch pause b");
    must_run("rate remove slow --yes");
    turns.now_us = clock_wall_us();
    for (int i = 0; i < 9; i++)
        assert_int_equal(claim("w", 9, 0), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "aside:b"), 8);
    assert_int_equal((int)number_of("status", "types.slow.aside"), 8);
    assert_int_equal((int)number_of("status", "types.slow.parked"), 0);
    assert_int_equal((int)number_of("status", "types.slow.waiting"), 0);
    assert_true(number_of("status", "types.slow.rate_now") <= 1);
    must_say("status", "  aside  ");
    must_run("batch resume b");
    assert_int_equal((int)number_of("status", "types.slow.aside"), 0);
    assert_int_equal((int)number_of("status", "types.slow.waiting"), 8);
}

/* What only a person can start is told when all else is done. */
TEST_WITH(test_a_drained_worker_says_what_is_left, begin, NULL)
{
    static const struct {
        const char *pause, *resume, *said;
    } cases[] = {
        {"queue pause default", "queue resume default",
         "drained, but jobs are left: 3 in paused queues (weir queue list); resume them and run it again\n"},
        {"batch pause b", "batch resume b",
         "drained, but jobs are left: 3 aside, of paused batches (weir batch list); resume them"},
        {"queue pause other --create", "queue resume other", NULL},
    };

    write_text(turns.server.folder, "three", "1\n2\n3\n");
    for (size_t i = 0; i < COUNT(cases); i++) {
        must_run("enqueue --from three t --batch b");
        must_run(cases[i].pause);
        must_end("worker --exec t=true -q default,other --drain", cases[i].said ? 75 : 0, "");
        if (cases[i].said)
            expect_said(cases[i].said);
        must_run(cases[i].resume);
        must_run("worker --exec t=true --drain");
        redis_do("DEL", PREFIX "batch:b");
    }
}

/* Nobody but a person starts the jobs of a paused key again; a pause for a time ends by itself. */
TEST_WITH(test_a_drained_worker_leaves_paused_keys, begin, NULL)
{
    must_run("rate set t 100/1s,burst=100,by=key");
    write_text(
        turns.server.folder, "three",
        "{\"type\":\"t\",\"key\":\"a\"}\n{\"type\":\"t\",\"key\":\"b\"}\n{\"type\":\"t\",\"key\":\"a\"}\n");
    must_run("enqueue --from three");
    must_run("rate pause t/a");
    must_end("worker --exec t=true --drain", 75, "");
    expect_said("drained, but jobs are left: 2 of paused types and keys (weir status); resume them and run "
                "it again\n");
    must_run("queue pause default");
    must_end("worker --exec t=true --drain", 75, "");
    expect_said("drained, but jobs are left: 2 in paused queues (weir queue list); resume them");
    must_run("queue resume default");
    must_run("rate pause t/a --for 1h");
    must_end("worker --exec t=true --drain --drain-max 0.3s", 75, "");
    expect_said("not drained in 0.3 s");
    must_run("rate resume t/a");
    must_run("worker --exec t=true --drain");
    expect_text("3", "HGET", PREFIX "stats:t", "done");
}

static int succeed(struct weir_job *job, void *arg)
{
    (void)job, (void)arg;
    return WEIR_DONE;
}

/* Runs a worker of t0 to t<n-1> until it has drained. */
static void drain_many(int n, int rc, const char *message)
{
    const struct weir_worker_options options = {
        .redis_url = turns.server.url, .executors = 2, .drain = 1, .drain_max_s = 20};
    struct weir_worker *w = weir_worker_new(&options);

    for (int i = 0; i < n; i++)
        assert_int_equal(weir_worker_handle(w, textf("t%d", i), succeed, NULL), 0);
    assert_int_equal(weir_worker_run(w), rc);
    if (!strstr(weir_worker_message(w), message))
        fail_msg("%s: not in %s", message, weir_worker_message(w));
    weir_worker_free(w);
}

/* It asks for a part of many types at a time: each counts once. */
TEST_WITH(test_a_worker_of_many_types_drains, begin, NULL)
{
    write_text(turns.server.folder, "three", "1\n2\n3\n");
    must_run("enqueue --from three t890");
    must_run("queue pause default");
    drain_many(900, WEIR_ENOTNOW, "drained, but jobs are left: 3 in paused queues");
    must_run("queue resume default");
    drain_many(900, 0, "");
    assert_int_equal((int)number_of("status", "types.t890.done"), 3);
}

static char heard[200]; /* the types that a handler of patterns heard, in their order */

static int tell(struct weir_job *job, void *arg)
{
    snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s %s; ", (const char *)arg,
             weir_job_type(job));
    return WEIR_DONE;
}

/* Functions take patterns, too: one is called for each type that no name and no longer pattern takes, and hears which it is. */
TEST_WITH(test_functions_of_patterns, begin, NULL)
{
    const struct weir_worker_options options = {.redis_url = turns.server.url, .executors = 1, .drain = 1};
    const struct weir_type_options kept = {.keep_s = 60};
    struct weir_worker *w = weir_worker_new(&options);

    for (const char *const *type = (const char *const[]){"mail.a", "sms", "mail.b", "sms", NULL}; *type;
         type++)
        must_run(textf("enqueue %s", *type));
    heard[0] = '\0';
    assert_int_equal(weir_worker_handle(w, "*", tell, "all"), 0);
    assert_int_equal(weir_worker_handle(w, "*", tell, "all"), WEIR_EUSAGE);
    assert_int_equal(weir_worker_handle(w, "mail.*,fax", tell, "mail"), 0);
    assert_int_equal(weir_worker_handle(w, "mail.a", tell, "a"), 0);
    assert_int_equal(weir_worker_type(w, "sm*", &kept), 0);
    assert_int_equal(weir_worker_run(w), 0);
    weir_worker_free(w);
    assert_string_equal(heard, "a mail.a; all sms; mail mail.b; all sms; ");
    expect_text("2", "ZCARD", PREFIX "kept:sms");
}

/* ---- When it starts */

/* Worker w is alive, takes t and slow from the default queue, and has so many executors. */
static void begin_worker(int executors)
{
    char info[200], until[32];

    start("w");
    snprintf(info, sizeof info,
             "{\"host\":\"h\",\"pid\":1,\"executors\":%d,\"lease\":30,\"queues\":[\"default\"],\"types\":["
             "\"t\",\"slow\"]}",
             executors);
    snprintf(until, sizeof until, "%lld", (long long)clock_wall_us() + 600 * SECOND_US);
    redis_do("HSET", ACTIVE "w", "@", info);
    redis_do("ZADD", PREFIX "workers", until, "w");
}

static void enqueue_ten_of_slow(void)
{
    write_text(turns.server.folder, "ten", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    must_run("enqueue --from ten slow");
}

/* A burst for ten, and three a day: all commands see the day that decides. */
TEST_WITH(test_several_rules_are_forecast_together, begin, NULL)
{
    const double day_s = 86400;
    double shown, status;

    begin_worker(100);
    must_run("rate set slow 10/s 3/1d,algorithm=fixed-window");
    enqueue_ten_of_slow();
    expect_said("slow: 10 jobs at 3/d: the first starts now");
    status = number_of("status", "types.slow.finish_at");
    shown = number_of("rate show slow", "finish_at");
    assert_true(status > (double)clock_wall_us() / 1e6 + 2 * day_s);
    assert_true(same(shown, status));
    assert_true(
        same(number_of("rate set slow 10/s 3/1d,algorithm=fixed-window --dry-run", "types.slow.finish_at"),
             status));
    assert_true(
        same(number_of("rate show slow", "next_start"), number_of("status", "types.slow.next_start")));
    must_say("status", "  3/1d  ");
    must_run("queue purge default --yes");
    must_say("status", "  3/1d  "); /* not the rule of the moment */
    assert_true(fabs(number_of("status", "types.slow.rate") - 3 / day_s) < 1e-9);
}

/* One job a line, with ids slow0 ... and t0 ... */
static void write_jobs(int slow, int t)
{
    char text[4000] = "";
    size_t len = 0;

    for (int i = 0; i < slow + t; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "{\"id\":\"%s%d\",\"type\":\"%s\"}\n",
                                i < slow ? "slow" : "t", i < slow ? i : i - slow, i < slow ? "slow" : "t");
    write_text(turns.server.folder, "jobs", text);
}

static void expect_time(const char *line, const char *path, double time)
{
    double told = number_of(line, path);

    if (!same(told, time))
        fail_msg("%s: %s: %f, not %f", line, path, told, time);
}

/* The same jobs, asked for by the batch, the type, the limit and the last job. */
TEST_WITH(test_a_batch_ends_when_its_types_do, begin, NULL)
{
    double status, told;

    begin_worker(100);
    must_run("rate set slow 10/s 3/1d,algorithm=fixed-window");
    write_jobs(10, 0);
    told = number_of("enqueue --from jobs --batch b", "types.slow.finish_at");
    status = number_of("status", "types.slow.finish_at");
    assert_true(same(told, status));
    assert_true(status > (double)clock_wall_us() / 1e6 + 2 * 86400);
    expect_time("batch show b", "finish_at", status);
    expect_time("rate show slow", "finish_at", status);
    expect_time("why slow9", "start", status);
    assert_int_equal((int)number_of("batch show b", "at_the_earliest"), 0);
    turns.now_us = clock_wall_us();
    assert_int_equal(claim("w", 3, 0), 3);
    assert_int_equal(claim("w", 1, 0), 0);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    settle("w", SETTLE_FINISH, tokens[1], 0, NULL);
    status = number_of("status", "types.slow.finish_at");
    expect_time("batch show b", "finish_at", status);
    expect_time("why slow9", "start", status);
    assert_int_equal((int)number_of("batch show b", "left"), 8);
    enqueue_ten_of_slow();
    expect_time("batch show b", "finish_at", status);
    must_say("batch show b", " at the earliest (others may come first)\n");
    must_run("batch pause b");
    assert_true(isnan(number_of("batch show b", "finish_at")));
}

/* Of a batch of several types it is known how many have ended, but not of which type. */
TEST_WITH(test_a_batch_of_several_types, begin, NULL)
{
    double status;

    begin_worker(100);
    must_run("rate set slow 1/1m,burst=1");
    write_jobs(10, 4);
    must_run("enqueue --from jobs --batch b");
    status = number_of("status", "types.slow.finish_at");
    expect_time("batch show b", "finish_at", status);
    assert_int_equal((int)number_of("batch show b", "at_the_earliest"), 0);
    redis_do("HINCRBY", PREFIX "batch:b", "done", "4");
    expect_time("batch show b", "finish_at", status - 4 * 60);
    must_say("batch show b", " at the earliest (how many of which type are left is not counted)\n");
    redis_do("HDEL", PREFIX "batch:b", "types"); /* of a version that did not count them */
    assert_true(isnan(number_of("batch show b", "finish_at")));
    assert_int_equal((int)number_of("batch show b", "at_the_earliest"), 1);
}

/* A batch counts eight types apart. */
TEST_WITH(test_a_batch_of_many_types, begin, NULL)
{
    char text[2000] = "";

    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "{\"type\":\"type%d\"}\n", i % 10);
    write_text(turns.server.folder, "jobs", text);
    must_run("enqueue --batch b type9");
    must_run("enqueue --batch b type9");
    must_run("enqueue --from jobs --batch b");
    expect_text("type9 5 type0 3 type1 3 type2 3 type3 3 type4 3 type5 3 type6 3 * 6", "HGET",
                PREFIX "batch:b", "types");
    assert_int_equal((int)number_of("batch show b", "at_the_earliest"), 1);
}

/* A limit that types share ends with the last of them, and so do limits that one type has. */
TEST_WITH(test_limits_that_are_shared, begin, NULL)
{
    begin_worker(100);
    must_run("rate set account 1/s,burst=1");
    must_run("rate set slow 1/1m,burst=1");
    must_run("rate use slow account");
    must_run("rate use t account");
    enqueue_ten_of_slow();
    enqueue("default", "t", "a b");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "2");
    redis_do("HSETNX", PREFIX "types", "t", "");
    assert_true(
        same(number_of("rate show account", "finish_at"), number_of("status", "types.slow.finish_at")));
    assert_int_equal((int)number_of("rate show account", "at_the_earliest"), 0);
}

static void expect_forecast(const char *reason)
{
    must_run("rate set slow 10/s,burst=1 --dry-run");
    if (*reason)
        expect_said(reason);
    else
        assert_null(strstr(said.out, "at the earliest"));
    assert_int_equal((int)number_of("status", "types.slow.at_the_earliest"), *reason != '\0');
    assert_int_equal((int)number_of("rate show slow", "at_the_earliest"), *reason != '\0');
}

/* Nobody knows when these start: the time is the earliest, and the reason stands behind it. */
TEST_WITH(test_what_workers_do_is_not_promised, begin, NULL)
{
    must_run("rate set slow 10/s,burst=1");
    enqueue_ten_of_slow();
    expect_said(", at the earliest (no worker takes them)\n");
    expect_forecast(" at the earliest (no worker takes them)");
    begin_worker(1);
    expect_forecast(" at the earliest (executors may be too few)");
    begin_worker(10);
    expect_forecast("");
    begin_worker(2);
    turns.now_us = clock_wall_us();
    assert_int_equal(claim("w", 1, 0), 1);
    expect_forecast(" at the earliest (executors may be too few)");
    assert_int_equal(claim("w", 1, 0), 0);
    expect_forecast(""); /* one is free, and jobs are parked: the limit holds them */
    begin_worker(1);
    expect_forecast(" at the earliest (executors may be too few)");
    begin_worker(2);
    must_run("queue pause default");
    expect_forecast("not known (their queue is paused)");
    must_run("queue resume default");
    must_run("queue pause other --create"); /* none of these */
    expect_forecast("");
    enqueue("other", "slow", "x");
    expect_forecast(" at the earliest (their queue is paused)");
    redis_do("DEL", PREFIX "queue:other");
    redis_do("ZADD", PREFIX "workers", "1", "w");
    expect_forecast(" at the earliest (no worker takes them)");
}

/* A worker that takes the type from another queue takes none of these. */
TEST_WITH(test_a_queue_that_nobody_serves, begin, NULL)
{
    begin_worker(100);
    must_run("rate set slow 10/s,burst=1");
    write_text(turns.server.folder, "ten", "0\n1\n2\n");
    must_run("enqueue --from ten slow --queue other");
    expect_said(", at the earliest (no worker takes them)\n");
    expect_forecast(" at the earliest (no worker takes them)");
}

TESTS(turns_start, turns_stop)
