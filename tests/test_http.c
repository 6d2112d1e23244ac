/* Jobs as POSTs to a URL (--http): their connections and pauses, and answers that come late or not at all. What is sent, and what each answer
 * means: sessions/http.txt. */
#include <signal.h>

#include "core/clock.h"
#include "tests/stage.h"

/* tests/handlers/endpoint.py */
static struct {
    pid_t pid;
    int port;
} server;

static int open_stage(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    char port[32];

    *state = s;
    stage_open(s, false);
    server.pid =
        program_start(s->server.folder, "server", (const char *[]){sourced("handlers/endpoint.py"), NULL});
    await_text(s->server.folder, "server.out", "\n");
    assert_true(read_text(s->server.folder, "server.out", port, sizeof port));
    server.port = atoi(port);
    return 0;
}

static int close_stage(void **state)
{
    kill(server.pid, SIGKILL);
    program_end(server.pid);
    stage_close(*state);
    free(*state);
    return 0;
}

#define HTTP_TEST(name) STAGE_TEST_WITH(name, open_stage, close_stage)

static pid_t start_worker(struct stage *s, const char *executors)
{
    return stage_weir(s, "worker", "--http", textf("run=http://127.0.0.1:%d/jobs", server.port), "-c",
                      executors, "--grace", "3s", NULL);
}

static int count_posts(struct stage *s)
{
    char text[16384];
    int count = 0;

    read_text(s->server.folder, "requests", text, sizeof text);
    for (const char *at = text; (at = strstr(at, "POST ")); at++)
        count++;
    return count;
}

/* In how many seconds the job that waits comes again. */
static double due_in_s(struct stage *s)
{
    char *text = server_ask(&s->server, "ZRANGE", stage_key(s, "later"), "0", "0", "WITHSCORES", NULL);
    double due_us = atof(strrchr(text, '\n') + 1);

    free(text);
    return (due_us - (double)clock_wall_us()) / 1e6;
}

/* A connection may break on a busy machine; one worker of eight needs no other. */
HTTP_TEST(connections_are_kept)
{
    int opened = 0;

    for (int n = 0, before = 0; n < 8 && opened != 1; n++, before += opened) {
        pid_t worker = start_worker(s, "1");

        for (int i = 0; i < 50; i++)
            stage_run(s, 50 * n + i, "{\"status\":200,\"body\":\"fine\"}", 0, 0);
        await(stage_stat(s, "run", "done") == 50 * (n + 1));
        assert_int_equal(stage_end(worker), 0);
        opened = stage_lines(s, "connections") - before;
    }
    assert_int_equal(opened, 1);
}

/* The body of an answer comes while the worker stands still, for longer than it waits for one: it is read, and the connection kept. */
HTTP_TEST(a_worker_that_stood_still_keeps_its_connection)
{
    pid_t worker = start_worker(s, "1");

    stage_run(s, 0, "{\"status\":200,\"body\":\"fine\",\"stall\":1}", 0, 0);
    await(count_posts(s) == 1);
    clock_sleep_until(clock_mono_us() + SECOND / 2); /* the worker has read the status */
    kill(worker, SIGSTOP);
    clock_sleep_until(clock_mono_us() + 2 * SECOND);
    kill(worker, SIGCONT);
    stage_run(s, 1, "{\"status\":200,\"body\":\"fine\"}", 0, 0);
    await(stage_stat(s, "run", "done") == 2);
    assert_int_equal(stage_lines(s, "connections"), 1);
    assert_int_equal(stage_end(worker), 0);
}

/* The body of an answer is the result where the answer says so, and has come whole. */
HTTP_TEST(a_body_is_the_result)
{
#define LEAVES "\"headers\":{\"Weir-Result\":\"true\"}"
    static const char *const cases[][2] = {
        {"{" LEAVES ",\"body\":\"{\\\"sent\\\":3,\\n\\\"to\\\":1.10}\"}", "{\"sent\":3, \"to\":1.10}"},
        {"{\"body\":\"7\"}", "-"},
        {"{" LEAVES ",\"body\":\"no\"}", "-"},
        {"{" LEAVES ",\"body\":\"7\",\"half\":1}", "-"},
        {"{" LEAVES ",\"body\":\"1111111111\",\"times\":6554}", "-"},
        {"{" LEAVES ",\"body\":\"          \",\"times\":6553,\"last\":\"123456\"}", "123456"},
        {"{" LEAVES ",\"body\":\"7\",\"status\":404}", "-"},
        {"{\"headers\":{\"Weir-Result\":\"yes\"},\"body\":\"7\"}", "-"},
        {"{" LEAVES ",\"status\":204}", "-"}};
#undef LEAVES

    stage_weir(s, "worker", "--http", textf("run=http://127.0.0.1:%d/", server.port), "--keep", "run=1h",
               NULL);
    for (int i = 0; i < (int)COUNT(cases); i++)
        stage_run(s, i, cases[i][0], 1, 0);
    await(stage_stat(s, "run", "done") == COUNT(cases) - 1 && stage_stat(s, "run", "dead") == 1);
    for (int i = 0; i < (int)COUNT(cases); i++)
        if (!strstr(stage_result(s, i), cases[i][1]))
            fail_msg("%s: %s", cases[i][0], stage_result(s, i));
    await_log(s->server.folder, "wrong result: not JSON");
    await_log(s->server.folder, "wrong result: the body did not come whole");
    await_log(s->server.folder, "wrong result: more than 65536 bytes");
    await_log(s->server.folder, "wrong result: Weir-Result must be true, and a body there");
}

/* Retry-After: seconds, a date by the server's clock, one that is over, nonsense, nothing. */
HTTP_TEST(throttled_as_long_as_it_says)
{
    static const struct {
        const char *args;
        double least_s, most_s;
    } cases[] = {
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"300\"}}", 270, 300},
        {"{\"status\":503,\"headers\":{\"retry-after\":\"  200  \"}}", 170, 200},
        {"{\"status\":503,\"headers\":{\"Date\":\"Sun, 06 Nov 1994 08:49:37 GMT\","
         "\"Retry-After\":\"Sun, 06 Nov 1994 08:51:37 GMT\"}}",
         90, 120},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"Fri, 31 Dec 2060 00:00:00 GMT\"}}", 86370, 86400},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"1795000000\"}}", 86370, 86400},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"Sun, 06 Nov 1994 08:49:37 GMT\"}}", -30, 0.1},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"soon\"}}", -30, 1},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"1e400\"}}", -30, 1},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"0x100\"}}", -30, 1},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"299.003\"}}", 299 - 30, 300},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"299.5.5\"}}", -30, 1},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"299,5\"}}", -30, 1},
        {"{\"status\":429,\"headers\":{\"Retry-After\":\"+300\"}}", -30, 1},
        {"{\"status\":429}", -30, 1},
        {"{\"status\":503}", -30, 1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        pid_t worker = start_worker(s, "1");
        double in_s;

        stage_run(s, (int)i, cases[i].args, 0, 0);
        await(stage_stat(s, "run", "back") > 0);
        kill(worker, SIGSTOP); /* it does not take the job again before we have looked */
        in_s = stage_number(s, "ZCARD", stage_key(s, "later")) > 0 ? due_in_s(s) : 0;
        if (in_s < cases[i].least_s || in_s > cases[i].most_s)
            fail_msg("%s: comes again in %g s", cases[i].args, in_s);
        kill(worker, SIGKILL);
        assert_int_equal(program_end(worker), 1000 + SIGKILL);
        stage_do(s, "FLUSHALL");
    }
}

/* "At once" is no hot loop, and each pause is one line. */
HTTP_TEST(throttled_until_at_once)
{
    char log[16384];
    int lines = 0;

    stage_rate(s, "run", "1000/s");
    start_worker(s, "4");
    for (int i = 0; i < 10; i++)
        stage_run(s, i, "{\"status\":429,\"headers\":{\"Retry-After\":\"0\"},\"body\":\"slow down\"}", 0, 0);
    await_log(s->server.folder, ": throttled, 4 in a row: a pause of 800ms: HTTP 429: slow down");
    assert_in_range(count_posts(s), 4, 4 * 4);
    read_log(s->server.folder, log, sizeof log);
    for (const char *at = log; (at = strstr(at, " in a row: ")); at++)
        lines++;
    assert_int_equal(lines, 4);
}

/* An endpoint reads a job on a kept connection and goes away: the job is not sent on the next one. */
HTTP_TEST(one_attempt_is_one_post)
{
    start_worker(s, "4");
    for (int i = 0; i < 4; i++)
        stage_run(s, i, "{\"sleep\":0.3}", 0, 0);
    await(stage_stat(s, "run", "done") == 4);
    assert_int_equal(stage_lines(s, "connections"), 4);
    stage_run(s, 4, "{\"drop\":true}", 1, 0);
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 4, "failed once: no answer: the connection was closed after the job was sent");
    assert_int_equal(count_posts(s), 5);
    stage_run(s, 5, NULL, 1, 0); /* on one of the others */
    await(stage_stat(s, "run", "done") == 5);
    assert_int_equal(stage_lines(s, "connections"), 4);
}

/* The status has come in time; its body is not waited for. */
HTTP_TEST(a_slow_body)
{
    int64_t start_us = clock_mono_us();

    start_worker(s, "3");
    stage_run(s, 0, "{\"stall\":60,\"body\":\"late\"}", 1, 0.3);
    stage_run(s, 1, "{\"stall\":60,\"body\":\"late\"}", 1, 0);
    stage_run(s, 2, "{\"stall\":60,\"status\":404,\"body\":\"late\"}", 0, 0);
    await(stage_stat(s, "run", "done") == 2 && stage_stat(s, "run", "dead") == 1);
    assert_in_range(clock_mono_us() - start_us, SECOND / 2, 20 * SECOND);
    stage_died(s, 2, "HTTP 404");
    assert_int_equal(count_posts(s), 3);
}

/* Answers that come within the grace count; the other jobs are given back as they were. */
HTTP_TEST(stopping)
{
    pid_t worker = start_worker(s, "2");
    int64_t start_us;

    stage_run(s, 0, "{\"sleep\":0.3}", 0, 0);
    stage_run(s, 1, "{\"sleep\":1000}", 0, 0);
    await(stage_lines(s, "requests") == 20);
    start_us = clock_mono_us();
    assert_int_equal(stage_end(worker), 0);
    assert_in_range(clock_mono_us() - start_us, 2900 * MS, 20 * SECOND);
    assert_int_equal(stage_stat(s, "run", "done"), 1);
    assert_int_equal(stage_judge(s, 2).present, 1);
    assert_int_equal(stage_stat(s, "run", "retried") + stage_stat(s, "run", "dead"), 0);
}

TESTS(NULL, NULL)
