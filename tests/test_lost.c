/* A Redis that comes back without what it had, or with less: workers as processes, a real Redis. The judges
 * are the history that the handlers wrote, and the lines of the workers. */
#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/slots.h"
#include "tests/stage.h"

/* Three workers under load; all is gone at once; what comes then keeps the old rate, by the slots that Redis granted. */
STAGE_TEST(rates_outlive_their_redis)
{
    enum { BEFORE = 40, AFTER = 500, WORKERS = 3 };
    static const char *const names[WORKERS] = {"one", "two", "three"};
    pid_t workers[WORKERS];
    struct slots slots;
    char *log;

    stage_rate(s, "timed", "20/s,burst=1");
    stage_rate(s, "mark", "7/s");
    for (int i = 0; i < WORKERS; i++)
        workers[i] = stage_actor(s, names[i], i < 2 ? "types=timed" : "types=timed,mark", "executors=5",
                                 "lease=2", "trace=trace", NULL);
    stage_await_workers(s, WORKERS);
    stage_enqueue(s, "timed", NULL, 0, BEFORE);
    await(history_count(s, "effect", -1) >= 10);
    stage_do(s, "FLUSHALL");
    stage_enqueue(s, "timed", NULL, BEFORE, AFTER);
    await(history_count(s, "effect", BEFORE + 25) == 1);
    for (int i = 0; i < WORKERS; i++) {
        await(stage_says(s, names[i], "lost all of Weir's data") == 1);
        assert_int_equal(stage_end(workers[i]), 0);
    }
    slots = slots_read(s, "trace");
    assert_in_range(slots_most_in_a_second(&slots, "t", 0), 10, 22); /* of each life 20 */
    slots_free(&slots);
    assert_int_equal(stage_says(s, "three", "had lost are written again: ") +
                         stage_says(s, "one", "had lost are written again: ") +
                         stage_says(s, "two", "had lost are written again: "),
                     stage_number(s, "LLEN", stage_key(s, "changes")));
    log = server_ask(&s->server, "LRANGE", stage_key(s, "changes"), "0", "-1", NULL);
    assert_non_null(strstr(log, "written again, after Redis lost them: "));
    assert_non_null(strstr(log, "limit timed"));
    assert_non_null(strstr(log, "limit mark"));
    assert_true(stage_number(s, "LLEN", stage_key(s, "changes")) <= 2);
    free(log);
}

/* The worker has learned a limit that is set now. */
static void set_rate(struct stage *s, const char *rule, int lease_quarters)
{
    stage_rate(s, "timed", rule);
    for (int i = 0; i < lease_quarters; i++) { /* heartbeats */
        long long last = stage_number(s, "HGET", stage_key(s, "about"), "mark");

        await(stage_number(s, "HGET", stage_key(s, "about"), "mark") > last);
    }
}

static void expect_went_back(struct stage *s, const char *name)
{
    await_text(s->server.folder, textf("%s.err", name), "Redis went back: what it wrote from 20");
    assert_int_equal(stage_says(s, name, "Redis went back"), 1);
    assert_int_equal(stage_says(s, name, "lost all of"), 0);
}

/* What must be said when both workers have come back, and that work goes on. */
static void expect_all_said(struct stage *s, pid_t workers[2])
{
    char *limit;

    expect_went_back(s, "busy");
    expect_went_back(s, "idle");
    await(stage_number(s, "HEXISTS", stage_key(s, "about"), "back") == 1);
    await(stage_says(s, "busy", "had lost are written again: limit timed") +
              stage_says(s, "idle", "had lost are written again: limit timed") ==
          1);
    limit = server_ask(&s->server, "HGET", stage_key(s, "limits"), "timed", NULL);
    assert_string_equal(limit, "gcra:500/1000000/1");
    free(limit);
    stage_enqueue(s, "mark", NULL, 900, 1);
    await(history_count(s, "effect", 900) == 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(stage_end(workers[i]), 0);
}

static void start_two(struct stage *s, pid_t workers[2])
{
    workers[0] = stage_actor(s, "busy", "types=mark,timed", "executors=2", "lease=1", NULL);
    workers[1] = stage_actor(s, "idle", "types=timed,other", "executors=2", "lease=1", NULL);
    stage_await_workers(s, 2);
    stage_rate(s, "timed", "100/s");
    stage_enqueue(s, "mark", NULL, 0, 20);
    await(history_count(s, "effect", -1) == 20);
}

#define FLUSHALL "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n*1\r\n$8\r\nFLUSHALL\r\n"

static bool are_limits_back(struct stage *s, const char *birth_before)
{
    char *birth = server_ask(&s->server, "HGET", stage_key(s, "about"), "birth", NULL);
    char *limits = server_ask(&s->server, "HMGET", stage_key(s, "limits"), "timed", "mark", NULL);
    bool are_back = *birth && strcmp(birth, birth_before) != 0 &&
                    strcmp(limits, "gcra:200/1000000/1\ngcra:7/1000000/7") == 0 &&
                    stage_number(s, "ZCARD", stage_key(s, "workers")) == 2;

    free(birth);
    free(limits);
    return are_back;
}

/* All is lost just before any request of two workers, such as a claim, a heartbeat or the question for limits;
 * and once more while they recover from that. */
STAGE_TEST(lost_between_any_two_requests)
{
    enum { REQUESTS = 3, OF_RECOVERY = 8 };
    struct proxy *link = proxy_start(&s->server);
    pid_t workers[2];
    int jobs = 0;
    const char *url = textf("url=%s", proxy_url(link));

    workers[0] = stage_actor(s, "one", "types=timed", "executors=2", "lease=1", url, NULL);
    workers[1] = stage_actor(s, "two", "types=timed,mark", "executors=2", "lease=1", url, NULL);
    stage_await_workers(s, 2);
    stage_rate(s, "mark", "7/s");
    set_rate(s, "200/s,burst=1", 10);
    for (unsigned n = 1; n <= REQUESTS; n++)
        for (unsigned m = 0; m <= OF_RECOVERY; m++) {
            char *birth = server_ask(&s->server, "HGET", stage_key(s, "about"), "birth", NULL);

            proxy_insert_before(link, n, m, FLUSHALL);
            while (!proxy_has_cut(link)) {
                stage_push(s, "timed", NULL, jobs++, 1);
                clock_sleep_until(clock_mono_us() + 5000);
            }
            await(are_limits_back(s, birth));
            free(birth);
        }
    for (int i = 0; i < 2; i++)
        assert_int_equal(stage_end(workers[i]), 0);
    proxy_stop(link);
}

/* Redis starts with a file of some time ago: jobs that ended since run again, jobs that came are gone. */
STAGE_TEST(an_old_file)
{
    pid_t workers[2];

    start_two(s, workers);
    stage_enqueue(s, "mark", "{\"sleep\":0.01}", 20, 10);
    stage_do(s, "SAVE");
    await(history_count(s, "effect", -1) == 30);
    stage_enqueue(s, "mark", NULL, 30, 10);
    await(history_count(s, "effect", -1) == 40);
    set_rate(s, "500/s,burst=1", 4);
    server_restart(&s->server);
    expect_all_said(s, workers);
    for (int job = 30; job < 40; job++)
        assert_int_equal(history_count(s, "effect", job), 1);
}

/* A replica that lagged takes the place of its master. */
STAGE_TEST(a_replica_that_lagged)
{
    struct server replica;
    struct proxy *link = proxy_start(&s->server);
    pid_t workers[2];

    server_start(&replica, false);
    server_do(&replica, "REPLICAOF", "127.0.0.1", textf("%d", proxy_tcp_port(link)));
    start_two(s, workers);
    await(server_number(&replica, "HSTRLEN", stage_key(s, "stats:mark"), "done", NULL) == 2);
    proxy_blackhole(link, true);
    stage_enqueue(s, "mark", NULL, 20, 20);
    await(history_count(s, "effect", -1) == 40);
    set_rate(s, "500/s,burst=1", 4);
    server_kill(&s->server);
    proxy_stop(link);
    server_do(&replica, "REPLICAOF", "NO", "ONE");
    assert_int_equal(rename(replica.socket, s->server.socket), 0);
    expect_all_said(s, workers);
    server_stop(&replica);
}

/* They are learned page by page, and all come back. */
STAGE_TEST(limits_of_very_many_types)
{
    enum { TYPES = 800 };
    static const char limit[] =
        "for i = 0, 799 do redis.call('HSET', KEYS[1], 'n' .. i, 'gcra:5/1000000/5') end\n"
        "return redis.call('HSET', KEYS[2], '*', 7)";
    static char types[10 * TYPES] = "types=mark";
    char limits[100], revisions[100];

    for (int i = 0; i < TYPES; i++)
        snprintf(types + strlen(types), sizeof types - strlen(types), ",n%d", i);
    stage_actor(s, "one", types, "executors=2", "lease=1", NULL);
    stage_await_workers(s, 1);
    snprintf(limits, sizeof limits, "%s", stage_key(s, "limits"));
    snprintf(revisions, sizeof revisions, "%s", stage_key(s, "revisions"));
    stage_do(s, "EVAL", limit, "2", limits, revisions);
    set_rate(s, "5/s", 6);
    stage_do(s, "FLUSHALL");
    await(stage_number(s, "HLEN", limits) == TYPES);
    stage_enqueue(s, "mark", NULL, 0, 1);
    await(history_count(s, "effect", 0) == 1);
}

/* Who waits for the end of a job is not sent away by a restart: it hears the end that comes behind it. */
TEST(test_a_wait_for_a_job)
{
    struct server s;
    struct outcome o;
    long long before;
    pid_t waits;

    server_start(&s, true);
    program_weir(&o, NULL, s.url, NULL, "enqueue t --id j --in 1h");
    before = server_calls(&s, "fcall_ro");
    waits = program_start(
        s.folder, "wait",
        (const char *[]){built("weir"), "job", "wait", "j", "--timeout", "1m", "--redis", s.url, NULL});
    await(server_calls(&s, "fcall_ro") >= before + 6); /* it was seen: the others are looks at its end */
    server_kill(&s);
    server_restart(&s);
    assert_int_equal(program_weir(&o, NULL, s.url, NULL, "job cancel j --yes"), 0);
    assert_int_equal(program_end(waits), 66);
    await_text(s.folder, "wait.err", "job j: it is done or cancelled, and was not kept");
    server_stop(&s);
}

STAGE_TESTS(NULL, NULL)
