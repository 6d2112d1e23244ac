/* Jobs as POSTs to a URL (--http): what is sent, what each answer means, and what becomes of those that do
 * not come. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage.h"

/* A server that answers a job as its args say: "status", "headers" {}, "body", "times" (of the body,
 * chunked), "last" (behind these), "sleep" before, "stall" before the body, "drop" (closes without an
 * answer), "half" (closes in the middle of one), "raw" (says that and closes). It notes each request in the
 * file requests, each connection in connections; as a proxy each one asked for in connects. Of a request that is signed it
 * notes in signed whether it is so by each line of the file secrets, at a time since the server began. */
static const char server_text[] =
    "import hmac, json, sys, time\n"
    "from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer\n"
    "class Handler(BaseHTTPRequestHandler):\n"
    "    protocol_version = 'HTTP/1.1'\n"
    "    def setup(self):\n"
    "        super().setup()\n"
    "        open('connections', 'a').write('1\\n')\n"
    "    def do_POST(self):\n"
    "        body = self.rfile.read(int(self.headers['Content-Length']))\n"
    "        names = ['Content-Type', 'User-Agent', 'Weir-Job-Id', 'Weir-Job-Type', 'Weir-Attempt', "
    "'Weir-Enqueued-At', 'Expect',\n"
    "                 'traceparent']\n"
    "        lines = [self.command + ' ' + self.path] + [n + ': ' + str(self.headers[n]) for n in names]\n"
    "        open('requests', 'ab').write('\\n'.join(lines).encode() + b'\\n' + body + b'\\n')\n"
    "        if 'Weir-Signature' in self.headers:\n"
    "            t, *macs = self.headers['Weir-Signature'].split(',')\n"
    "            text = t[2:].encode() + b'.' + body\n"
    "            mine = ['v1=' + hmac.new(s.encode(), text, 'sha256').hexdigest() for s in "
    "open('secrets').read().split()]\n"
    "            line = [mine == macs, t[:2] == 't=' and began <= int(t[2:]) <= time.time(), len(macs), "
    "self.headers['Authorization'], self.headers['X-Team']]\n"
    "            open('signed', 'a').write(' '.join(map(str, line)) + '\\n')\n"
    "        args = json.loads(body).get('args') or {}\n"
    "        time.sleep(args.get('sleep', 0))\n"
    "        if 'drop' in args:\n"
    "            self.close_connection = True\n"
    "            return\n"
    "        if 'raw' in args:\n"
    "            self.wfile.write(args['raw'].encode())\n"
    "            self.close_connection = True\n"
    "            return\n"
    "        self.send_response_only(args.get('status', 200))\n"
    "        for name, value in args.get('headers', {}).items():\n"
    "            self.send_header(name, value)\n"
    "        text = args.get('body', '').encode()\n"
    "        if 'times' in args:\n"
    "            self.send_header('Transfer-Encoding', 'chunked')\n"
    "            self.end_headers()\n"
    "            for i in range(args['times']):\n"
    "                self.wfile.write(b'%x\\r\\n%s\\r\\n' % (len(text), text))\n"
    "            last = args.get('last', '').encode()\n"
    "            self.wfile.write(b'%x\\r\\n%s\\r\\n' % (len(last), last) if last else b'')\n"
    "            self.wfile.write(b'0\\r\\n\\r\\n')\n"
    "            return\n"
    "        self.send_header('Content-Length', str(len(text) + ('half' in args)))\n"
    "        self.end_headers()\n"
    "        time.sleep(args.get('stall', 0))\n"
    "        self.wfile.write(text)\n"
    "        self.close_connection |= 'half' in args\n"
    "    def do_CONNECT(self):\n"
    "        open('connects', 'a').write('1\\n')\n"
    "        self.send_response_only(200)\n"
    "        self.end_headers()\n"
    "        self.close_connection = True\n"
    "    def log_message(self, *args):\n"
    "        pass\n"
    "class Server(ThreadingHTTPServer):\n"
    "    request_queue_size = 500\n"
    "    daemon_threads = True\n"
    "began = int(time.time())\n"
    "server = Server(('127.0.0.1', 0), Handler)\n"
    "print(server.server_port, flush=True)\n"
    "server.serve_forever()\n";

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
    write_text(s->server.folder, "server.py", server_text);
    server.pid = program_start(s->server.folder, "server",
                               (const char *[]){"/usr/bin/env", "python3", "server.py", NULL});
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

static pid_t start_worker_for(struct stage *s, const char *scheme, int port, const char *executors)
{
    const char *handler = textf("run=%s://127.0.0.1:%d/jobs?x=1", scheme, port);

    return stage_weir(s, "worker", "--http", handler, "-c", executors, "--grace", "1s", NULL);
}

static pid_t start_worker(struct stage *s, const char *executors)
{
    return start_worker_for(s, "http", server.port, executors);
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

/* ---- What is sent */

STAGE_TEST_WITH(a_job_is_a_post, open_stage, close_stage)
{
    char requests[4096], expected[4096];
    static const char trace[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    static const char bodies[2][256] = {
        "{\"id\":\"j0\",\"type\":\"run\",\"args\":{\"n\": 1.50,\n\"e\":[]},\"traceparent\":"
        "\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}",
        "{\"id\":\"j1\",\"type\":\"run\",\"traceparent\":\"x: \xc3\xa4\"}",
    };

    start_worker(s, "1");
    stage_push_text(s, bodies[0]);
    await(stage_stat(s, "run", "done") == 1);
    stage_push_stamped(s, INT64_C(1763900000050000), bodies[1]);
    await(stage_stat(s, "run", "done") == 2);
    assert_true(read_text(s->server.folder, "requests", requests, sizeof requests));
    expected[0] = '\0';
    for (int i = 0; i < 2; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
                 "POST /jobs?x=1\nContent-Type: application/json\nUser-Agent: weir/" WEIR_VERSION
                 "\nWeir-Job-Id: j%d\nWeir-Job-Type: run\nWeir-Attempt: 1\nWeir-Enqueued-At: %s\nExpect: "
                 "None\ntraceparent: %s\n%s\n",
                 i, i == 0 ? "None" : "1763900000.05", i == 0 ? trace : "None", bodies[i]);
    assert_string_equal(requests, expected);
}

/* Writes a file that only its owner can read. */
static const char *write_private(struct stage *s, const char *name, const char *text)
{
    const char *path = textf("%s/%s", s->server.folder, name);

    write_text(s->server.folder, name, text);
    assert_int_equal(chmod(path, 0600), 0);
    return path;
}

static pid_t start_signing(struct stage *s, const char *secrets)
{
    return stage_weir(
        s, "worker", "--http", textf("run=http://127.0.0.1:%d/jobs", server.port), "--http-secret",
        write_private(s, "secrets", secrets), "--http-header",
        write_private(s, "headers", "# of us\nAuthorization: Bearer abc\r\n\n  X-Team: a: b \n"),
        "--log-level", "debug", NULL);
}

#define OLD_SECRET "0123456789abcdef"
#define NEW_SECRET "a-new-secret/of+more=bytes"

/* By the exact bytes of the body, and by both secrets while there are two. */
STAGE_TEST_WITH(requests_are_signed, open_stage, close_stage)
{
    char text[512];
    pid_t worker = start_signing(s, OLD_SECRET);

    stage_push_text(s, "{\"id\":\"j0\",\"type\":\"run\",\"args\":{\"n\": 1.50,\n\"e\":\"\xc3\xa4\"}}");
    await(stage_stat(s, "run", "done") == 1);
    assert_int_equal(stage_end(worker), 0);
    worker = start_signing(s, NEW_SECRET "\n" OLD_SECRET "\n");
    stage_run(s, 1, "{}", 0, 0);
    await(stage_stat(s, "run", "done") == 2);
    assert_int_equal(stage_end(worker), 0);
    assert_true(read_text(s->server.folder, "signed", text, sizeof text));
    assert_string_equal(text, "True True 1 Bearer abc a: b\nTrue True 2 Bearer abc a: b\n");
    assert_int_equal(stage_says(s, "worker", OLD_SECRET) + stage_says(s, "worker", "Bearer"), 0);
}

/* At the start, in one line that shows nothing of the file. */
STAGE_TEST_WITH(wrong_files_of_headers_and_secrets, open_stage, close_stage)
{
    static const struct {
        const char *flag, *text, *says;
    } wrong[] = {
        {"--http-header", "X-A: 1\nhidden\n", ":2: not a header"},
        {"--http-header", "X A: hidden\n", ":1: not a header"},
        {"--http-header", ": hidden\n", ":1: not a header"},
        {"--http-header", "X-A: \n", ":1: not a header"},
        {"--http-header", "X-A: hidden\rX-B: 1\n", ":1: a byte that is no printable ASCII"},
        {"--http-header", "X-A: hidden\x7f\n", ":1: a byte that is no printable ASCII"},
        {"--http-header", "hOST: hidden\n", ":1: a header that the job or its connection has"},
        {"--http-header", "Content-Length: 1\n", ":1: a header that the job or its connection has"},
        {"--http-header", "weir-signature: hidden\n", ":1: a header that the job or its connection has"},
        {"--http-secret", "\n# 0123456789abcdef\n", "no secret in it; write one in a line"},
        {"--http-secret", "0123456789hidden\n0123456789hidde\n", ":2: not a secret"},
        {"--http-secret", "0123456789 hidden\n", ":1: not a secret"},
        {"--http-secret", "0123456789hidden1\n0123456789hidden2\n0123456789hidden3\n", ":3: too many lines"},
    };
    char text[2049];
    struct outcome o;

    for (size_t i = 0; i < COUNT(wrong); i++) {
        run_in(&o, s->server.folder, built("weir"), "worker", "--redis", s->server.url, "--drain", "--http",
               "a=http://127.0.0.1", wrong[i].flag, write_private(s, "file", wrong[i].text), NULL);
        assert_int_equal(o.code, 78);
        assert_non_null(strstr(o.err, wrong[i].says));
        assert_null(strstr(o.err, "hidde"));
    }
    memset(text, 'a', 2048);
    text[2048] = '\0';
    for (int i = 0; i < 2; i++) {
        const char *path = write_private(s, "file", i ? OLD_SECRET : text);

        assert_int_equal(chmod(path, i ? 0644 : 0600), 0);
        run_in(&o, s->server.folder, built("weir"), "worker", "--redis", s->server.url, "--drain", "--http",
               "a=http://127.0.0.1", "--http-secret", path, NULL);
        assert_int_equal(o.code, 78);
        assert_non_null(strstr(o.err, i ? "everybody can read it; chmod o-r it" : "longer than 2,046 bytes"));
    }
    run_in(&o, s->server.folder, built("weir"), "worker", "--redis", s->server.url, "--exec", "a=true",
           "--http-secret", "file", NULL);
    assert_int_equal(o.code, 64);
    assert_non_null(strstr(o.err, "--http-secret: only --http has it"));
}

/* A connection may break on a busy machine; one worker of eight needs no other. */
STAGE_TEST_WITH(connections_are_kept, open_stage, close_stage)
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
STAGE_TEST_WITH(a_worker_that_stood_still_keeps_its_connection, open_stage, close_stage)
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

STAGE_TEST_WITH(many_at_a_time, open_stage, close_stage)
{
    int64_t start_us = clock_mono_us();

    start_worker(s, "200");
    for (int i = 0; i < 200; i++)
        stage_run(s, i, "{\"sleep\":1}", 0, 0);
    await(stage_stat(s, "run", "done") == 200);
    assert_in_range(clock_mono_us() - start_us, SECOND, 20 * SECOND);
}

STAGE_TEST_WITH(a_large_job, open_stage, close_stage)
{
    char *args = malloc(900001);

    start_worker(s, "1");
    memset(args, '7', 900000);
    memcpy(args, "{\"x\":\"", 6);
    memcpy(args + 899998, "\"}", 3);
    stage_run(s, 0, args, 0, 0);
    free(args);
    await(stage_stat(s, "run", "done") == 1);
}

/* A proxy is not asked for this machine. */
STAGE_TEST_WITH(no_proxy_for_this_machine, open_stage, close_stage)
{
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    start_worker(s, "1");
    unsetenv("http_proxy");
    stage_run(s, 0, "{}", 1, 0);
    await(stage_stat(s, "run", "done") == 1);
}

/* ---- What an answer means */

STAGE_TEST_WITH(statuses, open_stage, close_stage)
{
    static const struct {
        const char *args, *death; /* NULL: done */
    } cases[] = {
        {"{\"status\":200}", NULL},
        {"{\"status\":201,\"body\":\"made\"}", NULL},
        {"{\"status\":204}", NULL},
        {"{\"status\":200,\"body\":\"0123456789\",\"times\":20000}", NULL},
        {"{\"status\":400,\"body\":\"no\\nsuch customer\"}", "HTTP 400: no such customer"},
        {"{\"status\":401}", "HTTP 401"},
        {"{\"status\":404,\"body\":\"0123456789\",\"times\":20000}", "HTTP 404: 01234567890123"},
        {"{\"status\":400,\"body\":\"0123456789\",\"times\":1000,\"last\":\"KeyError: id\"}",
         "90123456789KeyError: id"},
        {"{\"status\":400,\"body\":\"0123456789\",\"times\":1000,\"last\":\"KeyError: id\"}",
         "HTTP 400: 01234567890123"},
        {"{\"status\":422}", "HTTP 422"},
        {"{\"status\":408}", "failed once: HTTP 408"},
        {"{\"status\":425}", "failed once: HTTP 425"},
        {"{\"status\":500,\"body\":\"a\\u0007b\"}", "failed once: HTTP 500: a b"},
        {"{\"status\":502}", "failed once: HTTP 502"},
        {"{\"status\":300}", "failed once: HTTP 300"},
        {"{\"status\":307,\"headers\":{\"Location\":\"/there\"}}",
         "failed once: HTTP 307: a redirect to http://127.0.0.1:"},
        {"{\"drop\":1}", "failed once: no answer: the connection was closed after the job was sent"},
        {"{\"half\":1,\"body\":\"half of it\"}", NULL},
        {"{\"half\":1,\"status\":404,\"body\":\"half of it\"}", "HTTP 404: half of it"},
        {"{\"half\":1,\"status\":500,\"body\":\"half of it\"}", "failed once: HTTP 500: half of it"},
        {"{\"raw\":\"HTTP/1.1 200 OK\\r\\nContent-\"}", NULL},
        {"{\"raw\":\"HTTP/1.1 103 Early Hints\\r\\n\\r\\n\"}", "failed once: no answer: "},
    };
    enum { CASES = COUNT(cases) };
    int done = 0;

    start_worker(s, "4");
    for (int i = 0; i < CASES; i++) {
        stage_run(s, i, cases[i].args, 1, 0);
        done += cases[i].death == NULL;
    }
    await(stage_stat(s, "run", "done") + stage_stat(s, "run", "dead") == CASES);
    assert_int_equal(stage_stat(s, "run", "done"), done);
    for (int i = 0; i < CASES; i++)
        if (cases[i].death)
            stage_died(s, i, cases[i].death);
}

STAGE_TEST_WITH(failures_are_tried_again, open_stage, close_stage)
{
    start_worker(s, "1");
    stage_run(s, 0, "{\"status\":500,\"body\":\"ill\"}", 3, 0);
    await(stage_stat(s, "run", "retried") == 1);
    await_text(s->server.folder, "worker.err", "HTTP 500: ill");
    server_do(&s->server, "EVAL",
              "local r = redis.call('ZRANGE', KEYS[1], 0, 0) return redis.call('ZADD', KEYS[1], 1, r[1])",
              "1", stage_key(s, "later"));
    await(stage_stat(s, "run", "retried") == 2);
    await_text(s->server.folder, "requests", "Weir-Attempt: 2");
}

/* Retry-After: seconds, a date by the server's clock, one that is over, nonsense, nothing. */
STAGE_TEST_WITH(throttled_as_long_as_it_says, open_stage, close_stage)
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

/* ---- What does not answer */

/* "At once" is no hot loop, and each pause is one line. */
STAGE_TEST_WITH(throttled_until_at_once, open_stage, close_stage)
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
STAGE_TEST_WITH(one_attempt_is_one_post, open_stage, close_stage)
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
STAGE_TEST_WITH(a_slow_body, open_stage, close_stage)
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

/* The way to the endpoint is open, no more. */
STAGE_TEST_WITH(a_proxy_that_says_200, open_stage, close_stage)
{
    setenv("https_proxy", textf("http://127.0.0.1:%d", server.port), 1);
    stage_weir(s, "worker", "--http", "run=https://weir.invalid/", NULL);
    unsetenv("https_proxy");
    stage_run(s, 0, "{}", 1, 0);
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "failed once: no answer: ");
    assert_int_equal(stage_lines(s, "connects"), 1);
}

STAGE_TEST_WITH(no_answer_in_time, open_stage, close_stage)
{
    start_worker(s, "2");
    stage_run(s, 0, "{\"sleep\":1000}", 1, 0.3);
    stage_run(s, 1, "{}", 1, 60);
    await(stage_stat(s, "run", "dead") == 1 && stage_stat(s, "run", "done") == 1);
    stage_died(s, 0, "over its time of 0.3 s: no answer");
}

STAGE_TEST_WITH(nobody_there, open_stage, close_stage)
{
    stage_run(s, 0, "{}", 1, 0);
    kill(server.pid, SIGKILL);
    start_worker(s, "2");
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "failed once: no answer: ");
}

STAGE_TEST_WITH(no_tls_there, open_stage, close_stage)
{
    start_worker_for(s, "https", server.port, "2");
    stage_run(s, 0, "{}", 1, 0);
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "failed once: no answer: ");
}

/* Answers that come within the grace count; the other jobs are given back as they were. */
STAGE_TEST_WITH(stopping, open_stage, close_stage)
{
    pid_t worker;
    int64_t start_us;

    worker = stage_weir(s, "worker", "--http", textf("run=http://127.0.0.1:%d/jobs", server.port), "-c", "2",
                        "--grace", "3s", NULL);

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
