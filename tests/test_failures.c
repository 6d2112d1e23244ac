/* Failure cases of Redis, disk, clocks and processes that no other test has; tests/CASES.md lists them
 * all. Each ends with the same question: did every job run, and how often? */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/clock_shift.h"
#include "tests/proxy.h"
#include "tests/stage.h"

#define S INT64_C(1000000)
#define HOUR_US (3600 * S)

/* ---- A9: reapers that are killed */

/* Whoever takes leases back does that in one script: a job is with the dead worker or in its lane. */
STAGE_TEST(reapers_killed)
{
    enum { JOBS = 60, REAPERS = 6 };
    pid_t victim = stage_actor(s, "victim", "executors=60", "lease=1", NULL), reapers[REAPERS];

    stage_push(s, "mark", "{\"wait\":\"go\"}", 0, JOBS);
    await(history_count(s, "begin", -1) == JOBS);
    for (int i = 0; i < REAPERS; i++)
        reapers[i] = stage_actor(s, textf("reaper%d", i), "types=other", "lease=1", NULL);
    stage_await_workers(s, REAPERS + 1);
    kill(victim, SIGKILL);
    program_end(victim);
    write_text(s->server.folder, "go", "");
    for (int i = 0; i < REAPERS; i++) {
        clock_sleep_until(clock_mono_us() + 230000 + i * 40000); /* around the end of the lease */
        kill(reapers[i], SIGKILL);
        program_end(reapers[i]);
    }
    stage_actor(s, "heir", "executors=10", "lease=1", NULL);
    stage_await_done(s, JOBS);
    assert_int_equal(history_count(s, "begin", -1), 2 * JOBS);
}

/* ---- A11, B5: an AOF that ends anywhere */

static void newest_aof(struct stage *s, char path[256])
{
    struct dirent *entry;
    DIR *dir;
    const char *folder = textf("%s/appendonlydir", s->server.folder);

    assert_non_null(dir = opendir(folder));
    *path = '\0';
    while ((entry = readdir(dir)))
        if (strstr(entry->d_name, ".incr.aof"))
            snprintf(path, 256, "%s/%.100s", folder, entry->d_name);
    closedir(dir);
    assert_true(*path);
}

static off_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static long long list_length(struct stage *s, const char *key)
{
    return stage_number(s, "LLEN", stage_key(s, "%s", key));
}

/* Where jobs are, by what Redis holds. */
static long long jobs_held(struct stage *s)
{
    static const char leases[] = "local n = 0\n"
                                 "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do\n"
                                 "    n = n + redis.call('HLEN', key) - redis.call('HEXISTS', key, '@')\n"
                                 "end\n"
                                 "return n";

    return list_length(s, "queue:default") + list_length(s, "lane:default/mark/") +
           stage_number(s, "EVAL", leases, "0", stage_key(s, "active:*")) + stage_stat(s, "mark", "done");
}

/* Power is cut while scripts are written down: Redis starts with all of the last one or with nothing of it.
 * So at each place where the file can end every job is in one place. */
STAGE_TEST_WITH(an_aof_cut_anywhere, stage_setup_durable, stage_teardown)
{
    enum { JOBS = 6 };
    char path[256], copy[300], command[700];
    off_t begin, end;
    pid_t worker;

    /* Else what has been answered may not be in the file for two seconds, while it is synced. */
    stage_do(s, "CONFIG", "SET", "appendfsync", "always");
    stage_rate(s, "mark", "50/s,burst=2");
    stage_push(s, "mark", NULL, 0, JOBS);
    newest_aof(s, path);
    begin = size_of(path);
    worker = stage_actor(s, "worker", "executors=2", NULL);
    stage_await_done(s, JOBS);
    kill(worker, SIGKILL);
    program_end(worker);
    server_kill(&s->server);
    end = size_of(path);
    snprintf(copy, sizeof copy, "%s.whole", path);
    snprintf(command, sizeof command, "cp %s %s", path, copy);
    assert_int_equal(system(command), 0);
    assert_true(end - begin > 1000);
    for (off_t at = begin; at <= end; at += (end - begin) / 40) {
        snprintf(command, sizeof command, "cp %s %s", copy, path);
        assert_int_equal(system(command), 0);
        assert_int_equal(truncate(path, at), 0);
        server_restart(&s->server);
        if (jobs_held(s) != JOBS)
            fail_msg("%lld jobs where the file ends at %ld of %ld..%ld", jobs_held(s), (long)at, (long)begin,
                     (long)end);
        server_kill(&s->server);
    }
    snprintf(command, sizeof command, "mv %s %s", copy, path);
    assert_int_equal(system(command), 0);
    server_restart(&s->server);
}

/* ---- B6: Redis refuses writes, as its disk fails */

TEST(a_disk_that_fails)
{
    enum { JOBS = 40 };
    static const char *const options[] = {"--enable-protected-configs", "yes", NULL};
    struct stage stage, *s = &stage;
    char id[WEIR_ID_SIZE], folder[96];
    pid_t worker;

    stage_open_with(s, false, options);
    stage_do(s, "CONFIG", "SET", "save", "3600 1");
    stage_enqueue(s, "mark", "{\"sleep\":0.02}", 0, JOBS);
    worker = stage_actor(s, "worker", "executors=2", NULL);
    await(history_count(s, "effect", -1) >= 5);
    snprintf(folder, sizeof folder, "%.60s/gone", s->server.folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    stage_do(s, "CONFIG", "SET", "dir", folder);
    assert_int_equal(rmdir(folder), 0);
    stage_do(s, "BGSAVE");
    await_text(s->server.folder, "worker.err", "MISCONF");
    assert_int_not_equal(weir_enqueue(s->client, &(struct weir_job_spec){.type = "mark", .args = "null"}, id),
                         0);
    assert_non_null(strstr(weir_message(s->client), "disk"));
    stage_do(s, "CONFIG", "SET", "dir", s->server.folder);
    stage_do(s, "BGSAVE");
    assert_int_equal(stage_await_done(s, JOBS).twice, 0);
    assert_int_equal(stage_stat(s, "mark", "done"), JOBS);
    assert_int_equal(stage_end(worker), 0);
    stage_close(s);
}

/* ---- B8: a policy that evicts, while workers run */

STAGE_TEST(eviction_is_noticed)
{
    stage_actor(s, "worker", "lease=1", NULL);
    stage_await_workers(s, 1);
    stage_do(s, "CONFIG", "SET", "maxmemory", "1gb");
    stage_do(s, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    await_text(s->server.folder, "worker.err", "its maxmemory-policy is allkeys-lru");
    stage_push(s, "mark", NULL, 0, 1);
    stage_await_done(s, 1);
}

/* ---- B10: somebody else's script keeps Redis busy */

STAGE_TEST(a_busy_redis)
{
    enum { JOBS = 100 };
    char *answer;

    stage_do(s, "CONFIG", "SET", "busy-reply-threshold", "100");
    stage_push(s, "mark", "{\"sleep\":0.01}", 0, JOBS);
    stage_actor(s, "worker", "executors=2", "lease=5", NULL);
    await(history_count(s, "effect", -1) >= 5);
    answer = server_ask(&s->server, "EVAL",
                        textf("local t = redis.call('TIME') local e = t[1] * 1e6 + t[2] + 1500000 "
                              "repeat t = redis.call('TIME') until t[1] * 1e6 + t[2] > e return 'ended'"),
                        "0", NULL);
    assert_string_equal(answer, "ended"); /* nobody killed it */
    free(answer);
    assert_int_equal(stage_await_done(s, JOBS).twice, 0);
}

/* ---- D8: wake-ups that get lost */

STAGE_TEST(lost_wakeups_cost_time_only)
{
    static const char steal[] =
        "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end";
    int64_t at = clock_mono_us();

    stage_actor(s, "worker", "executors=1", NULL);
    stage_actor(s, "other", "executors=1", NULL);
    stage_await_workers(s, 2);
    stage_push(s, "mark", "{\"sleep\":1.2}", 0, 2); /* both are busy, nobody peeks */
    await(history_count(s, "begin", -1) == 2);
    stage_enqueue(s, "mark", NULL, 2, 1);
    stage_do(s, "EVAL", steal, "0", stage_key(s, "bell:*"));
    stage_do(s, "EVAL", steal, "0", stage_key(s, "spare:*"));
    assert_int_equal(stage_await_done(s, 3).twice, 0);
    assert_true(clock_mono_us() - at < 30 * S);
}

/* ---- D9: many come back at once */

STAGE_TEST_WITH(many_come_back, stage_setup_durable, stage_teardown)
{
    enum { WORKERS = 30, JOBS = 300 };

    for (int i = 0; i < WORKERS; i++)
        stage_actor(s, textf("worker%d", i), "executors=2", "lease=10", NULL);
    stage_await_workers(s, WORKERS);
    stage_enqueue(s, "mark", "{\"sleep\":0.05}", 0, JOBS);
    await(history_count(s, "effect", -1) > 10);
    server_restart(&s->server);
    stage_await_workers(s, WORKERS);
    stage_await_ended(s, JOBS);
}

/* ---- E: clocks */

struct clocked {
    struct stage stage;
    pid_t workers[2];
};

static void open_clocked(struct clocked *c)
{
    stage_open_shifted(&c->stage);
    for (int i = 0; i < 2; i++)
        c->workers[i] = stage_actor(&c->stage, i ? "two" : "one", "executors=4", "lease=2", NULL);
    stage_await_workers(&c->stage, 2);
}

static void close_clocked(struct clocked *c)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(stage_end(c->workers[i]), 0);
    stage_close(&c->stage);
}

/* E1, E2, E6: Redis's clock jumps back and forth by an hour under load; nobody who lives loses a job, and
 * work goes on. */
TEST(clock_steps_under_load)
{
    enum { JOBS = 600 };
    static const int64_t shifts[] = {-HOUR_US, 0, HOUR_US, HOUR_US - S};
    struct clocked c;

    open_clocked(&c);
    stage_rate(&c.stage, "mark", "200/s,burst=5");
    stage_enqueue(&c.stage, "mark", "{\"sleep\":0.01}", 0, JOBS);
    for (int i = 0; i < 4; i++) {
        int before = history_count(&c.stage, "effect", -1);

        await(history_count(&c.stage, "effect", -1) >= before + 40);
        server_shift_clock(&c.stage.server, shifts[i]);
    }
    assert_int_equal(stage_await_done(&c.stage, JOBS).twice, 0);
    assert_int_equal(history_count(&c.stage, "begin", -1), JOBS);
    close_clocked(&c);
}

/* E4: what a worker's own clock says decides nothing. */
STAGE_TEST(wrong_clocks_of_workers)
{
    enum { JOBS = 150 };
    static const int64_t shifts[] = {-24 * HOUR_US, 24 * HOUR_US};
    int64_t begun, took;

    for (int i = 0; i < 2; i++) {
        const char *file = textf("%s/clock%d", s->server.folder, i);

        clock_shift_set(file, shifts[i]);
        clock_shift_enter(file);
        stage_actor(s, i ? "ahead" : "behind", "executors=4", "lease=2", NULL);
        clock_shift_leave();
    }
    stage_await_workers(s, 2);
    stage_rate(s, "mark", "100/s,burst=5");
    begun = clock_mono_us();
    stage_enqueue(s, "mark", NULL, 0, JOBS);
    assert_int_equal(stage_await_done(s, JOBS).twice, 0);
    took = clock_mono_us() - begun;
    assert_true(took >= (JOBS - 5) * S / 100 - S / 20);
}

/* ---- F8: a job that is slow to read */

STAGE_TEST(a_job_of_many_members)
{
    char *text = malloc(1 << 20), *at = text;

    stage_actor(s, "worker", "executors=2", NULL);
    at += sprintf(at, "{\"type\":\"mark\",\"id\":\"j0\",\"args\":{");
    for (int i = 0; at < text + (1 << 20) - 100; i++)
        at += sprintf(at, "%s\"k%d\":%d", i ? "," : "", i, i % 10);
    strcpy(at, "}}");
    stage_push_text(s, text);
    stage_push(s, "mark", NULL, 1, 20);
    assert_int_equal(stage_await_done(s, 21).twice, 0);
    free(text);
}

/* ---- G: processes */

/* H: numbers of Lua are whole up to 2^53, which as microseconds is June of 2255. Until then all of it works
 * but what lies in the future: nothing is to be later than 2100. */
TEST(the_last_day_of_whole_numbers)
{
    enum { JOBS = 40 };
    const int64_t day_us = 24 * HOUR_US, last_us = INT64_C(1) << 53;
    struct stage s;
    struct outcome o;
    pid_t worker;

    stage_open_shifted(&s);
    server_shift_clock(&s.server, last_us - day_us - clock_wall_us());
    stage_rate(&s, "mark", "100/s,burst=5");
    worker = stage_actor(&s, "worker", "executors=4", "lease=2", NULL);
    stage_enqueue(&s, "mark", NULL, 0, JOBS);
    assert_int_equal(stage_await_done(&s, JOBS).twice, 0);
    setenv("REDIS_URL", s.server.url, 1);
    run_in(&o, NULL, built("weir"), "enqueue", "mark", "--in", "1h", NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.err, "its time must lie before the year 2100"));
    run_in(&o, NULL, built("weir"), "enqueue", "mark", "--at", "2300-01-01T00:00:00Z", NULL);
    assert_int_equal(o.code, 64);
    assert_non_null(strstr(o.err, "not between 1970 and 2100"));
    run_in(&o, NULL, built("weir"), "schedule", "add", "late", "@daily", "mark", NULL);
    assert_int_equal(o.code, 65);
    assert_non_null(strstr(o.err, "never occurs before the year 2100"));

    server_shift_clock(&s.server, last_us - clock_wall_us());
    await_text(s.server.folder, "worker.err",
               "Redis's clock says 2255 or later, which is beyond what Weir counts");
    run_in(&o, NULL, built("weir"), "status", NULL);
    assert_true(o.code > 0 && strstr(o.err, "Redis's clock says 2255 or later"));
    server_shift_clock(&s.server, 0);
    stage_enqueue(&s, "mark", NULL, JOBS, JOBS);
    assert_int_equal(stage_await_done(&s, 2 * JOBS).twice, 0);
    assert_int_equal(stage_end(worker), 0);
    stage_close(&s);
}

/* G11: a machine without time for anybody: heartbeats come all the same. */
STAGE_TEST(no_processor)
{
    enum { HOGS = 8, JOBS = 200 };
    pid_t hogs[HOGS];

    for (int i = 0; i < HOGS; i++)
        if ((hogs[i] = fork()) == 0)
            for (int64_t end = clock_mono_us() + 20 * S; clock_mono_us() < end;)
                ;
    stage_actor(s, "one", "executors=4", "lease=2", NULL);
    stage_actor(s, "two", "executors=4", "lease=2", NULL);
    stage_enqueue(s, "mark", "{\"sleep\":0.05}", 0, JOBS);
    assert_int_equal(stage_await_done(s, JOBS).twice, 0);
    for (int i = 0; i < HOGS; i++) {
        kill(hogs[i], SIGKILL);
        program_end(hogs[i]);
    }
}

STAGE_TESTS(NULL, NULL)
