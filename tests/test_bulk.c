/* Bulks: in order and exactly once whatever is lost or killed, resumed batches, and weir enqueue --from. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "producer/stream.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/test.h"
#include "weir.h"

#define P "weir:{0}:"

static int set_up_group(void **state)
{
    static const char *const options[] = {"--appendfsync", "always",
                                          NULL}; /* what is acknowledged survives a kill */

    server_start_with(&server, true, options);
    w = weir_new(server.url, NULL);
    return w ? 0 : -1;
}

static long long length(const char *key)
{
    return server_number(&server, "LLEN", key, NULL);
}

#define QUEUE P "queue:default"
#define check(call) check_status(call, #call)

static void check_status(int status, const char *what)
{
    fail_if(status, "%s: %d: %s", what, status, weir_message(w));
}

/* The queue holds the jobs 0 to n - 1, each once, in this order. */
static void assert_all(const char *queue, long long n)
{
    long long next = 0;

    assert_int_equal(length(queue), n);
    while (next < n) {
        char *jobs, *at;

        jobs = server_ask(&server, "LRANGE", queue, textf("%lld", next), textf("%lld", next + 9999), NULL);
        for (at = jobs; *at; at++) {
            if (*at != '"' || strncmp(at, "\"args\":", 7) != 0)
                continue;
            fail_if(atoll(at + 7) != next, "job %lld stands where %lld should", atoll(at + 7), next);
            next++;
        }
        free(jobs);
    }
    assert_int_equal(next, n);
}

static int add(struct weir_bulk *b, int i)
{
    char args[24];

    sprintf(args, "%d", i);
    return weir_bulk_add(b, &(struct weir_job_spec){.type = "t", .args = args});
}

/* Asks twice whether the cost fits. */
static int add_with_cost(struct weir_bulk *b, int i)
{
    char args[24];

    sprintf(args, "%d", i);
    return weir_bulk_add(b, &(struct weir_job_spec){.type = "t",
                                                    .args = args,
                                                    .cost = i < 1500         ? 0
                                                            : i % 1500 < 750 ? 2
                                                                             : 3});
}

static int add_line(struct weir_bulk *b, int i)
{
    char line[64];

    return weir_bulk_add_line(b, NULL, NULL, line, (size_t)sprintf(line, "{\"type\":\"t\",\"args\":%d}", i));
}

/* ---- Without faults */

TEST_WITH(test_order, client_flush, NULL)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b;
    char *key;
    long long ttl_ms;

    check(weir_bulk_open(w, NULL, &b));
    for (int i = 0; i < 12345; i++)
        check(i % 2 ? add(b, i) : add_line(b, i));
    weir_bulk_count(b, &counts);
    assert_int_equal(counts.lines, 12345);
    assert_in_range(counts.accepted, 8000, 12345);
    check(weir_bulk_close(b, &counts));
    assert_int_equal(counts.accepted, 12345);
    assert_int_equal(counts.resumed, 0);
    assert_all(QUEUE, 12345);
    assert_int_equal(server_number(&server, "HGET", P "stats:t", "enqueued", NULL), 12345);
    assert_int_equal(server_number(&server, "SISMEMBER", P "queues", "default", NULL), 1);
    assert_int_equal(server_number(&server, "HEXISTS", P "types", "t", NULL), 1);
    key = server_ask(&server, "KEYS", P "batch:run.*", NULL);
    ttl_ms = server_number(&server, "PTTL", key, NULL);
    assert_in_range(ttl_ms, 3500000, 3600000);
    free(key);
}

TEST_WITH(test_nothing, client_flush, NULL)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b;

    check(weir_bulk_open(w, "empty", &b));
    check(weir_bulk_close(b, &counts));
    assert_int_equal(counts.lines, 0);
    assert_int_equal(server_number(&server, "HGET", P "batch:empty", "total", NULL), 0);
    assert_int_equal(server_number(&server, "HEXISTS", P "batch:empty", "ended", NULL), 1);
    client_flush(NULL);
    check(weir_bulk_open(w, "empty", &b));
    weir_bulk_abandon(b);
    check(weir_bulk_open(w, NULL, &b));
    check(weir_bulk_close(b, NULL));
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

TEST_WITH(test_types_and_queues, client_flush, NULL)
{
    struct weir_bulk *b;
    char line[100], type[16];
    int n = 9000, len;

    check(weir_bulk_open(w, NULL, &b));
    for (int i = 0; i < n; i++) {
        len = sprintf(line, "{\"queue\":\"q%d\",\"args\":%d,\"type\":\"t%d\"}", i % 7, i / 7, i % 300);
        check(weir_bulk_add_line(b, NULL, NULL, line, (size_t)len));
    }
    len = sprintf(line, "[7]");
    check(weir_bulk_add_line(b, "wrapped", "other", line, (size_t)len));
    check(weir_bulk_close(b, NULL));
    for (int q = 0; q < 7; q++)
        assert_all(textf(P "queue:q%d", q), (n - q + 6) / 7);
    for (int t = 0; t < 300; t++) {
        sprintf(type, "t%d", t);
        assert_int_equal(server_number(&server, "HGET", textf(P "stats:%s", type), "enqueued", NULL),
                         n / 300);
        assert_int_equal(server_number(&server, "HEXISTS", P "types", type, NULL), 1);
    }
    assert_int_equal(server_number(&server, "SCARD", P "queues", NULL), 8);
    assert_int_equal(length(P "queue:other"), 1);
}

TEST_WITH(test_refuses, client_flush, NULL)
{
    static const char *const lines[] = {"",
                                        "{",
                                        "7",
                                        "{}",
                                        "{\"type\":\"a b\"}",
                                        "{\"type\":\"t\",\"queue\":\"\"}",
                                        "{\"type\":\"t\",\"batch\":\"c\"}",
                                        "{\"type\":\"t\",\"batch\":7}",
                                        "{\"batch\":\"bb\",\"type\":\"t\"}"};
    static const struct weir_job_spec specs[] = {
        {.type = NULL}, {.type = "t", .args = "{"}, {.type = "t", .queue = "a:b"}, {.type = "t", .id = ""}};
    struct weir_bulk_counts counts;
    struct weir_bulk *b;

    assert_int_equal(weir_bulk_open(w, "a b", &b), WEIR_EINPUT);
    assert_null(b);
    check(weir_bulk_open(w, "b", &b));
    check(add(b, 0));
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(weir_bulk_add_line(b, NULL, NULL, lines[i], strlen(lines[i])), WEIR_EINPUT);
    for (size_t i = 0; i < COUNT(specs); i++)
        assert_int_equal(weir_bulk_add(b, &specs[i]), WEIR_EINPUT);
    assert_int_equal(weir_bulk_add_line(b, "t", NULL, "1 2", 3), WEIR_EINPUT);
    assert_int_equal(weir_bulk_add_line(b, "t", NULL, "1\0", 2), WEIR_EINPUT);
    assert_int_equal(weir_bulk_add_line(b, "t t", NULL, "1", 1), WEIR_EINPUT);
    assert_int_equal(weir_bulk_add_line(b, "t", "q q", "1", 1), WEIR_EINPUT);
    assert_int_equal(weir_bulk_add(b, &(struct weir_job_spec){.type = "t", .delay_s = 1}), WEIR_EUSAGE);
    assert_int_equal(weir_bulk_add(b, &(struct weir_job_spec){.type = "t", .at_s = 1}), WEIR_EUSAGE);
    assert_int_equal(weir_bulk_add(b, &(struct weir_job_spec){.type = "t", .unique = "k"}), WEIR_EUSAGE);
    assert_int_equal(weir_bulk_add(b, &(struct weir_job_spec){.type = "t", .batch = "b"}), WEIR_EUSAGE);
    check(weir_bulk_add_line(b, NULL, NULL, "{\"batch\":\"b\",\"type\":\"t\",\"args\":1}", 33));
    check(weir_bulk_skip_line(b, "no job", 6));
    check(weir_bulk_close(b, &counts));
    assert_int_equal(counts.lines, 3);
    assert_int_equal(counts.accepted, 2);
    assert_all(QUEUE, 2);
    assert_int_equal(server_number(&server, "HGET", P "batch:b", "next", NULL), 3);
}

/* A job that can never fit is the fault of its line only, wherever it stands; Redis is asked once for each
 * higher cost. */
TEST_WITH(test_cost, client_flush, NULL)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b;

    check(weir_rate_set(w, "t", "100/1m,burst=5"));
    check(weir_bulk_open(w, NULL, &b));
    for (int i = 0; i < 3000; i++) {
        char args[24];
        struct weir_job_spec job = {.type = "t", .args = args, .cost = i % 1000 == 999 ? 6 : i % 6};

        sprintf(args, "%d", i - i / 1000);
        if (job.cost == 6)
            assert_int_equal(weir_bulk_add(b, &job), WEIR_EINPUT);
        else
            check(weir_bulk_add(b, &job));
    }
    assert_int_equal(weir_bulk_add_line(b, NULL, NULL, "{\"type\":\"t\",\"cost\":7}", 21), WEIR_EINPUT);
    assert_non_null(strstr(weir_message(w), "limit t"));
    check(weir_bulk_close(b, &counts));
    assert_int_equal(counts.accepted, 2997);
    assert_all(QUEUE, 2997);
}

TEST_WITH(test_large_jobs, client_flush, NULL)
{
    size_t len = 1024 * 1024 - 100;
    char *line = malloc(len);
    struct weir_bulk *b;

    memset(line, 'x', len);
    line[0] = line[len - 1] = '"';
    check(weir_bulk_open(w, NULL, &b));
    for (int i = 0; i < 10; i++)
        check(weir_bulk_add_line(b, "t", NULL, line, len));
    check(weir_bulk_close(b, NULL));
    assert_int_equal(length(QUEUE), 10);
    free(line);
}

/* Redis forgets an unnamed bulk after an hour; one that rested does not count on it. */
TEST_WITH(test_rest, client_flush, NULL)
{
    struct weir_bulk *b;
    char *key;

    check(weir_bulk_open(w, NULL, &b));
    for (int i = 0; i < 1300; i++)
        check(add(b, i));
    while (length(QUEUE) < 1000)
        clock_sleep_until(clock_mono_us() + 1000);
    clock_sleep_until(clock_mono_us() + 2100000); /* what it takes for a rest */
    key = server_ask(&server, "KEYS", P "batch:run.*", NULL);
    assert_int_equal(server_number(&server, "DEL", key, NULL), 1);
    free(key);
    for (int i = 1300; i < 3000; i++)
        check(add(b, i));
    check(weir_bulk_close(b, NULL));
    assert_all(QUEUE, 3000);
}

/* ---- Batches */

typedef int adder(struct weir_bulk *b, int i);

/* Broken off again and again at some line, each run adds from the beginning. */
static void resume_until_done(const char *batch, adder *add_one, int n)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b;
    uint64_t before = 0;

    for (int until = n / 4; until <= n; until += n / 4) {
        check(weir_bulk_open(w, batch, &b));
        for (int i = 0; i < until; i++)
            check(add_one(b, i));
        if (until < n) {
            weir_bulk_abandon(b);
            continue;
        }
        check(weir_bulk_close(b, &counts));
        assert_true(counts.resumed > before);
        assert_int_equal(counts.resumed + counts.accepted, n);
        assert_int_equal(counts.lines, n);
    }
    assert_all(QUEUE, n);
}

TEST_WITH(test_resume, client_flush, NULL)
{
    resume_until_done("lines", add_line, 20000);
    client_flush(NULL);
    resume_until_done("specs", add, 20000);
    assert_in_range(server_number(&server, "TTL", P "batch:specs", NULL), 29 * 86400, 30 * 86400);
}

static void begin_batch(int n)
{
    struct weir_bulk *b;

    check(weir_bulk_open(w, "b", &b));
    for (int i = 0; i < n; i++)
        check(add_line(b, i));
    check(weir_bulk_close(b, NULL));
}

TEST_WITH(test_another_input, client_flush, NULL)
{
    struct weir_bulk *b;

    begin_batch(1000);
    check(weir_bulk_open(w, "b", &b));
    for (int i = 0; i < 999; i++)
        check(add_line(b, i == 500 ? 0 : i));
    assert_int_equal(add_line(b, 999), WEIR_EINPUT);
    assert_non_null(strstr(weir_message(w), "batch b was begun with another input"));
    assert_int_equal(add_line(b, 1000), WEIR_EINPUT);
    assert_int_equal(weir_bulk_close(b, NULL), WEIR_EINPUT);
    assert_all(QUEUE, 1000);

    check(weir_bulk_open(w, "b", &b)); /* shorter */
    for (int i = 0; i < 999; i++)
        check(add_line(b, i));
    assert_int_equal(weir_bulk_close(b, NULL), WEIR_EINPUT);

    check(weir_bulk_open(w, "b", &b)); /* grown: it is sealed */
    for (int i = 0; i < 1500; i++)
        if (add_line(b, i))
            break;
    assert_int_equal(weir_bulk_close(b, NULL), WEIR_EINPUT);
    assert_non_null(strstr(weir_message(w), "batch b is sealed: it takes no more jobs; use another name"));
    assert_all(QUEUE, 1000);
    begin_batch(1000); /* the very same */
    assert_all(QUEUE, 1000);
}

/* Lines that name a batch are of that one. */
TEST_WITH(test_a_line_of_another_batch, client_flush, NULL)
{
    static const char line[] = "{\"type\":\"t\",\"batch\":\"b\"}";
    struct weir_bulk *b;

    check(weir_bulk_open(w, NULL, &b));
    assert_int_equal(weir_bulk_add_line(b, NULL, NULL, line, sizeof line - 1), WEIR_EINPUT);
    assert_non_null(strstr(weir_message(w),
                           "its \"batch\" is \"b\", but no batch counts it; leave the member out, "
                           "or give the bulk that name"));
    weir_bulk_abandon(b);
    check(weir_bulk_open(w, "c", &b));
    assert_int_equal(weir_bulk_add_line(b, NULL, NULL, line, sizeof line - 1), WEIR_EINPUT);
    assert_non_null(
        strstr(weir_message(w), "its \"batch\" is \"b\", but batch c counts it; leave the member out"));
    check(add(b, 0));
    check(weir_bulk_close(b, NULL));
    assert_all(QUEUE, 1);
}

/* The answer to sealing is lost: it is asked again, and nothing happens twice. */
TEST_WITH(test_seal_through_cuts, client_flush, NULL)
{
    struct proxy *proxy = proxy_start(&server);
    struct weir *through = weir_new(proxy_url(proxy), NULL);

    for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++)
        for (unsigned n = 2; n <= 4; n++) { /* a look, a chunk, the seal */
            struct weir_bulk *b;
            int partitions;

            if (weir_enqueue(through, &(struct weir_job_spec){.type = "warm", .queue = "other"}, NULL) ||
                client_learn(through, &partitions))
                fail_msg("%s", weir_message(through));
            proxy_cut_before(proxy, side, n);
            if (weir_bulk_open(through, "b", &b) || weir_bulk_then(b, "next") || add(b, 0) ||
                weir_bulk_close(b, NULL))
                fail_msg("%s", weir_message(through));
            assert_true(proxy_has_cut(proxy) || n == 4);
            proxy_cut_before(proxy, side, 0);
            assert_all(QUEUE, 1);
            assert_int_equal(server_number(&server, "HGET", P "batch:b", "total", NULL), 1);
            assert_int_equal(server_number(&server, "HEXISTS", P "batch:b", "sealed", NULL), 1);
            client_flush(NULL);
        }
    weir_free(through);
    proxy_stop(proxy);
}

/* ---- Faults */

static void bulk_through(struct weir *through, int n)
{
    struct weir_bulk_counts counts;
    struct weir_bulk *b;

    fail_if(weir_bulk_open(through, NULL, &b), "%s", weir_message(through));
    for (int i = 0; i < n; i++)
        fail_if(add_with_cost(b, i), "%s", weir_message(through));
    fail_if(weir_bulk_close(b, &counts), "%s", weir_message(through));
    assert_int_equal(counts.accepted, n);
    assert_all(QUEUE, n);
    client_flush(NULL);
}

/* One step further each time. */
TEST_WITH(test_cut_at_each_message, client_flush, NULL)
{
    struct proxy *proxy = proxy_start(&server);
    struct weir *through = weir_new(proxy_url(proxy), NULL);

    for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++)
        for (unsigned n = 1; n <= 10; n++) { /* the first is the look; then come 6 chunks and 2 costs */
            if (weir_enqueue(through, &(struct weir_job_spec){.type = "warm", .queue = "other"}, NULL))
                fail_msg("%s", weir_message(through));
            proxy_cut_before(proxy, side, n);
            bulk_through(through, 6 * CHUNK_JOBS);
            assert_true(proxy_has_cut(proxy) || n == 10);
            proxy_cut_before(proxy, side, 0);
        }
    weir_free(through);
    proxy_stop(proxy);
}

TEST_WITH(test_cut_at_any_byte, client_flush, NULL)
{
    struct proxy *proxy = proxy_start(&server);
    struct weir *through = weir_new(proxy_url(proxy), NULL);
    unsigned seed = (unsigned)time(NULL);

    printf("seed %u\n", seed);
    for (int round = 0; round < 20; round++) {
        if (weir_enqueue(through, &(struct weir_job_spec){.type = "warm", .queue = "other"}, NULL))
            fail_msg("%s", weir_message(through));
        if (round % 2)
            proxy_cut_after_bytes(proxy, PROXY_REQUESTS, 200 + (size_t)rand_r(&seed) % 150000);
        else
            proxy_cut_after_bytes(proxy, PROXY_REPLIES, 30 + (size_t)rand_r(&seed) % 100);
        bulk_through(through, 3000);
    }
    weir_free(through);
    proxy_stop(proxy);
}

TEST_WITH(test_functions_flushed, client_flush, NULL)
{
    struct weir_bulk *b;

    check(weir_bulk_open(w, NULL, &b));
    for (int i = 0; i < 20000; i++) {
        if (i % 3777 == 0)
            server_do(&server, "FUNCTION", "FLUSH");
        check(add(b, i));
    }
    check(weir_bulk_close(b, NULL));
    assert_all(QUEUE, 20000);
}

TEST_WITH(test_redis_killed, client_flush, NULL)
{
    struct weir_bulk *b;

    check(weir_bulk_open(w, NULL, &b));
    for (int i = 0; i < 30000; i++) {
        if (i % 9999 == 5000) {
            server_kill(&server);
            server_restart(&server);
        }
        check(add(b, i));
    }
    check(weir_bulk_close(b, NULL));
    assert_all(QUEUE, 30000);
}

TEST_WITH(test_redis_full, client_flush, NULL)
{
    struct weir_bulk *b;
    int status = 0;

    check(weir_bulk_open(w, "full", &b));
    for (int i = 0; i < 30000 && !status; i++) {
        if (i == 10000)
            server_do(&server, "CONFIG", "SET", "maxmemory", "1");
        status = add(b, i);
    }
    assert_int_equal(status, WEIR_ENOTNOW);
    assert_int_equal(add(b, 0), WEIR_ENOTNOW);
    assert_int_equal(weir_bulk_close(b, NULL), WEIR_ENOTNOW);
    assert_non_null(strstr(weir_message(w), "maxmemory"));
    server_do(&server, "CONFIG", "SET", "maxmemory", "0");
    check(weir_bulk_open(w, "full", &b));
    for (int i = 0; i < 30000; i++)
        check(add(b, i));
    check(weir_bulk_close(b, NULL));
    assert_all(QUEUE, 30000);
}

/* What Redis had confirmed is gone: said, not papered over. */
TEST_WITH(test_redis_forgets, client_flush, NULL)
{
    struct weir_bulk *b;
    int status = 0;

    check(weir_bulk_open(w, NULL, &b));
    for (int i = 0; i < 30000 && !status; i++) {
        if (i == 10000)
            client_flush(NULL);
        status = add(b, i);
    }
    assert_int_equal(status, WEIR_ENOTNOW);
    assert_non_null(strstr(weir_message(w), "has lost"));
    weir_bulk_abandon(b);
    assert_int_equal(length(QUEUE), 0);
}

TEST_WITH(test_unreachable, client_flush, NULL)
{
    struct weir *nowhere = weir_new("unix:///nonexistent/redis.sock", NULL),
                *wrong = weir_new("http://x", NULL);
    struct weir_bulk *b;

    assert_int_equal(weir_bulk_open(nowhere, NULL, &b), WEIR_EUNREACHABLE);
    assert_int_equal(weir_bulk_open(wrong, NULL, &b), WEIR_ECONFIG);
    weir_free(nowhere);
    weir_free(wrong);
}

/* ---- The command, killed. What it says of its lines: transcripts/bulk_lines.txt. */

static struct outcome o;

#define weir_ends(with_code, ...)                                                                            \
    do {                                                                                                     \
        run_in(&o, server.folder, built("weir"), "enqueue", "--redis", server.url, "--from", __VA_ARGS__,    \
               NULL);                                                                                        \
        fail_if(o.code != (with_code), "ended with %d: %s", o.code, o.err);                                  \
    } while (0)

static void write_jobs(const char *name, int n)
{
    FILE *f;

    f = fopen(textf("%s/%s", server.folder, name), "w");
    for (int i = 0; i < n; i++)
        fprintf(
            f, "{\"type\":\"weekly_summary\",\"args\":%d,\"week\":\"2026-W47\",\"account\":\"0123456789\"}\n",
            i);
    fclose(f);
}

#define assert_says(text, part)                                                                              \
    do {                                                                                                     \
        if (!strstr(text, part))                                                                             \
            fail_msg("'%s' should say '%s'", text, part);                                                    \
    } while (0)

static void await_length(long long n)
{
    int64_t limit_us = clock_mono_us() + 60000000;

    while (length(QUEUE) < n) {
        fail_if(clock_mono_us() > limit_us, "%lld jobs do not come", n);
        clock_sleep_until(clock_mono_us() + 1000);
    }
}

static pid_t start_weir(const char *file, const char *batch)
{
    const char *const words[] = {
        built("weir"), "enqueue", "--redis", server.url, "--from", file, batch ? "--batch" : NULL,
        batch,         NULL};

    return program_start(server.folder, "run", words);
}

/* The most memory that a process ever had. */
static long long peak_kib(pid_t pid)
{
    char text[4096];

    assert_true(read_text(textf("/proc/%d", (int)pid), "status", text, sizeof text));
    return atoll(strstr(text, "VmHWM:") + 6);
}

/* Killed at any moment, however often: at the end each job is there once, in order. */
TEST_WITH(test_command_killed, client_flush, NULL)
{
    static const long long at[] = {1, 250000, 700000};

    free(
        server_ask(&server, "CONFIG", "SET", "appendfsync", "no", NULL)); /* here it is not Redis that dies */
    write_jobs("million", 1000000);
    for (size_t i = 0; i < COUNT(at); i++) {
        pid_t pid = start_weir("million", "b");

        await_length(at[i]);
        assert_in_range(peak_kib(pid), 1, 64 * 1024); /* of a file of 80 MiB */
        kill(pid, SIGKILL);
        assert_int_equal(program_end(pid), 1000 + SIGKILL);
    }
    assert_in_range(length(QUEUE), 700000, 999999);
    weir_ends(0, "million", "--batch", "b");
    assert_says(o.out, " lines sent by an earlier run");
    assert_all(QUEUE, 1000000);
    weir_ends(0, "million", "--batch", "b");
    assert_says(o.out, "0 jobs in ");
    assert_says(o.out, "; 1,000,000 lines sent by an earlier run, so all was there\n");

    write_jobs("other", 1000);
    weir_ends(65, "other", "--batch", "b");
    assert_says(o.err, "batch b was begun with another input");
    assert_all(QUEUE, 1000000);
    server_do(&server, "CONFIG", "SET", "appendfsync", "always");
}

TEST_WITH(test_command_redis_killed, client_flush, NULL)
{
    pid_t pid;

    write_jobs("jobs", 200000);
    pid = start_weir("jobs", NULL);
    for (int kills = 1; kills <= 3; kills++) {
        await_length(kills * 40000);
        server_kill(&server);
        server_restart(&server);
    }
    assert_int_equal(program_end(pid), 0);
    assert_all(QUEUE, 200000);
}

TEST_WITH(test_command_twice_at_once, client_flush, NULL)
{
    pid_t one, other;
    int codes[2];

    write_jobs("jobs", 200000);
    one = start_weir("jobs", "b");
    other = start_weir("jobs", "b");
    codes[0] = program_end(one);
    codes[1] = program_end(other);
    for (int i = 0; i < 2; i++)
        assert_true(codes[i] == 0 || codes[i] == 75);
    weir_ends(0, "jobs", "--batch", "b");
    assert_all(QUEUE, 200000);
}

/* Lines from a slow source are sent when no more come; a signal ends the waiting. */
TEST_WITH(test_command_slow_input, client_flush, NULL)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    char text[2000];
    FILE *pipe;
    const char *path = textf("%s/pipe", server.folder);

    assert_int_equal(mkfifo(path, 0600), 0);
    pipe = fopen(path, "r+");
    for (size_t i = 0; i < COUNT(signals); i++) {
        pid_t pid = start_weir("pipe", i == 1 ? "b" : NULL);

        fputs("{\"type\":\"t\",\"args\":0}\n{\"type\":\"t\",\"args\":1}\n", pipe);
        fflush(pipe);
        await_length(2);
        fputs("{\"type\":\"t\",\"args\":2}\n", pipe);
        fflush(pipe);
        await_length(3);
        kill(pid, signals[i]);
        assert_int_equal(program_end(pid), 75);
        read_text(server.folder, "run.out", text, sizeof text);
        assert_says(text, "3 jobs in ");
        read_text(server.folder, "run.err", text, sizeof text);
        assert_says(text, "weir: pipe: interrupted; the 3 lines up to here are sent; ");
        assert_says(text, i == 1 ? "run it again: batch b continues where it stopped" : "with --batch");
        assert_all(QUEUE, 3);
        client_flush(NULL);
    }
    fclose(pipe);
}

TESTS(set_up_group, client_stop)
