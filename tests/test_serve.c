/* weir serve from outside: its answers, what it asks of Redis, its end, and a real nginx in front of it. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/client/partition.h"
#include "core/clock.h"
#include "tests/client.h"
#include "tests/http.h"
#include "tests/program.h"
#include "tests/test.h"

#define LISTENING "serve: listening on "

static char folder[64];
static char socket_path[96]; /* of weir serve */

/* ---- Starting and stopping */

static pid_t serving, proxying; /* 0: not running */

/* What a test that failed has left running. */
static void end_leftover(pid_t *pid)
{
    if (*pid > 0) {
        kill(*pid, SIGKILL);
        waitpid(*pid, NULL, 0);
    }
    *pid = 0;
}

static pid_t start_serve(const char *name, const char *flag, const char *value)
{
    const char *where = textf("unix:%s", socket_path);
    const char *words[] = {built("weir"), "serve", "--redis", server.url, "--listen",
                           where,         flag,    value,     NULL};
    const char *file = textf("%s.err", name);

    serving = program_start(folder, name, words);
    await_text(folder, file, LISTENING);
    return serving;
}

static void await_status(const char *path, int status)
{
    struct http_reply r;
    int64_t limit_us = clock_mono_us() + 60000000;

    do {
        http_get(socket_path, path, &r);
        if (clock_mono_us() > limit_us)
            fail_msg("%s: %d, not %d: %s", path, r.status, status, r.body);
        clock_sleep_until(clock_mono_us() + 5000);
    } while (r.status != status);
}

/* Ready: with Redis at its side. */
static pid_t serve(const char *flag, const char *value)
{
    pid_t pid = start_serve("serve", flag, value);

    await_status("/healthz", 200);
    return pid;
}

static void end_serve(pid_t pid)
{
    int code;

    kill(pid, SIGTERM);
    code = program_end(pid);
    serving = 0;
    assert_int_equal(code, 0);
    assert_int_equal(access(socket_path, F_OK), -1);
}

static int setup(void **state)
{
    folder_make(folder);
    snprintf(socket_path, sizeof socket_path, "%s/serve.sock", folder);
    return client_start(state);
}

static int teardown(void **state)
{
    end_leftover(&serving);
    end_leftover(&proxying);
    client_stop(state);
    folder_remove(folder);
    return 0;
}

static int flush(void **state)
{
    end_leftover(&serving);
    end_leftover(&proxying);
    client_flush(state);
    server_do(&server, "CONFIG", "RESETSTAT");
    return 0;
}

static void set_limit(const char *name, const char *rule)
{
    if (weir_rate_set(w, name, rule) < 0)
        fail_msg("%s", weir_message(w));
}

/* ---- Answers */

TEST_WITH(test_allowed_and_denied, flush, NULL)
{
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);

    set_limit("mail", "2/1h");
    http_get(socket_path, "/take/mail", &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(http_header(&r, "RateLimit-Limit"), "2");
    assert_string_equal(http_header(&r, "RateLimit-Remaining"), "1");
    assert_string_equal(http_header(&r, "RateLimit-Reset"), "1800");
    assert_string_equal(http_header(&r, "Retry-After"), "");
    assert_string_equal(http_header(&r, "Cache-Control"), "no-store");
    assert_string_equal(r.body, "{\"allowed\":true,\"limit\":2,\"remaining\":1,\"retry_after\":-1,"
                                "\"reset_after\":1800.000000}\n");
    http_get(socket_path, "/take/mail?cost=2", &r);
    assert_int_equal(r.status, 429);
    assert_string_equal(http_header(&r, "RateLimit-Remaining"), "1");
    assert_string_equal(http_header(&r, "Retry-After"), "1800"); /* rounded up */
    assert_non_null(strstr(r.body, "{\"allowed\":false,\"limit\":2,\"remaining\":1,\"retry_after\":1799."));
    http_get(socket_path, "/take/mail", &r);
    assert_int_equal(r.status, 200);
    http_get(socket_path, "/take/mail?denied=403", &r);
    assert_int_equal(r.status, 403);
    assert_string_equal(http_header(&r, "Retry-After"), "1800");
    http_get(socket_path, "/take/mail?cost=3", &r);
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "\"never\":true"));
    assert_string_equal(http_header(&r, "Retry-After"), "");
    end_serve(pid);
}

TEST_WITH(test_each_key_has_its_gate, flush, NULL)
{
    static const struct {
        const char *path;
        int status;
    } asks[] = {
        {"/take/api/alice", 200},
        {"/take/api/alice", 429},
        {"/take/api?key=alice", 429},
        {"/take/api/bob?cost=1", 200},
        {"/take/api?cost=1&key=bob", 429},
        {"/take/api/2001:db8::1", 200},
        {"/take/api/2001:db8::2", 200},
        {"/take/api?key=2001:db8::1", 429},
        {"/take/api/a/b", 200},
        {"/take/api?key=a%2Fb", 429},
        {"/take/api/a%2fb", 429},
        {"/take/api/a%00b", 200},
        {"/take/api/%61%6c%69%63e", 429},
        {"/take/api/a%zz", 200},
        {"/take/api/a%", 200},
    };
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);

    set_limit("api", "1/1h,by=key");
    for (size_t i = 0; i < COUNT(asks); i++) {
        http_get(socket_path, asks[i].path, &r);
        if (r.status != asks[i].status)
            fail_msg("%s: %d, not %d: %s", asks[i].path, r.status, asks[i].status, r.body);
    }
    end_serve(pid);
}

/* A request goes where its limit lives; the first ones learn where that is. */
TEST_WITH(test_partitions, flush, NULL)
{
    struct http_reply r;
    char path[48];
    long before;
    pid_t pid;

    for (int p = 0; p < 4; p++) {
        server_do(&server, "HSET", textf("weir:{%d}:about", p), "partitions", "4");
    }
    server_do(&server, "FUNCTION", "FLUSH"); /* it keeps the number of the test before */
    pid = serve(NULL, NULL);
    for (int i = 0; i < 12; i++) {
        set_limit(textf("l%d", i), "1/1h");
    }
    for (int i = 0; i < 24; i++) {
        snprintf(path, sizeof path, "/take/l%d?cost=%d", i % 12, 1);
        http_get(socket_path, path, &r);
        if (r.status != (i < 12 ? 200 : 429))
            fail_msg("%s: %d, %s", path, r.status, r.body);
    }
    http_get(socket_path, "/take/nobody", &r);
    assert_int_equal(r.status, 404);
    set_limit("l9", "3/1h");
    before = server_calls(&server, "fcall");
    http_get(socket_path, "/take/l9?cost=2", &r);
    assert_int_equal(r.status, 200);
    assert_int_equal(server_calls(&server, "fcall"), before + 1);
    await_status("/healthz", 200);
    end_serve(pid);
}

/* Each partition must answer; it learns by itself how many there are. */
TEST_WITH(test_health_of_all_partitions, flush, NULL)
{
    pid_t pid;

    for (int n = 2; n <= PARTITIONS_MOST; n++)
        assert_int_not_equal(partition_crc16("healthz10", strlen("healthz10")) % (unsigned)n, 0);
    for (int p = 0; p < 3; p++) {
        server_do(&server, "HSET", textf("weir:{%d}:about", p), "partitions", "3");
    }
    server_do(&server, "FUNCTION", "FLUSH");
    pid = serve(NULL, NULL);
    await_status("/healthz", 200);
    server_do(&server, "ACL", "SETUSER", "default", "resetkeys", "~weir:{0}:*", "~weir:{1}:*");
    await_status("/healthz", 503);
    server_do(&server, "ACL", "SETUSER", "default", "allkeys");
    await_status("/healthz", 200);
    end_serve(pid);
}

TEST_WITH(test_wrong_requests, flush, NULL)
{
    static const struct {
        const char *method, *path;
        int status;
        const char *says;
    } asks[] = {
        {"GET", "/take/nobody", 404, "no such limit"},
        {"GET", "/nowhere", 404, "nothing here"},
        {"GET", "/take", 404, "nothing here"},
        {"GET", "/take/", 400, "not a valid name of a limit"},
        {"GET", "/take/a%20b", 400, "not a valid name of a limit"},
        {"GET", "/take/mail/", 400, "the key is empty"},
        {"GET", "/take/mail?key=", 400, "the key is empty"},
        {"GET", "/take/mail?key", 400, "the key is empty"},
        {"GET", "/take/mail/a?key=b", 400, "two keys"},
        {"GET", "/take/mail?key=a&key=b", 400, "given twice"},
        {"GET", "/take/mail?costs=1", 400, "unknown argument"},
        {"GET", "/take/mail?cost=0", 400, "wrong cost"},
        {"GET", "/take/mail?cost=-1", 400, "wrong cost"},
        {"GET", "/take/mail?cost=+1", 400, "wrong cost"},
        {"GET", "/take/mail?cost=1x", 400, "wrong cost"},
        {"GET", "/take/mail?cost=", 400, "wrong cost"},
        {"GET", "/take/mail?cost=99999999999999999999", 400, "wrong cost"},
        {"GET", "/take/mail?denied=500", 400, "give 403 or 429"},
        {"GET", "/take/mail/alice", 400, "no keys"},
        {"POST", "/take/mail", 405, "only GET and HEAD"},
        {"DELETE", "/healthz", 405, "only GET and HEAD"},
    };
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);

    set_limit("mail", "1/1h");
    for (size_t i = 0; i < COUNT(asks); i++) {
        int fd = http_open(socket_path);

        http_ask(fd, asks[i].method, asks[i].path);
        assert_true(http_receive(fd, false, &r));
        if (r.status != asks[i].status || !strstr(r.body, asks[i].says))
            fail_msg("%s: %d: %s", asks[i].path, r.status, r.body);
        if (r.status == 405)
            assert_string_equal(http_header(&r, "Allow"), "GET, HEAD");
        close(fd);
    }
    http_get(socket_path, "/take/mail", &r);
    assert_int_equal(r.status, 200); /* none of them took the slot */
    end_serve(pid);
}

/* As a client asks that takes it for a proxy (RFC 9112, 3.2.2). */
TEST_WITH(test_whole_addresses, flush, NULL)
{
    static const struct {
        const char *address;
        int status;
    } asks[] = {
        {"http://h/take/api/alice", 200},
        {"/take/api/alice", 429},
        {"http://h/take/api/alice?denied=403", 403},
        {"HTTP://127.0.0.1:8379/take/api?key=bob", 200},
        {"hTTp://[::1]:8379/take/api/bob", 429},
        {"http://h/take/api/http://h/take", 200},
        {"http://h/healthz", 200},
        {"http://h", 404},
        {"http://h/nowhere", 404},
        {"http://h?cost=1", 404},
        {"http:///take/api/carol", 404},
        {"http://", 404},
        {"ftp://h/take/api/carol", 404},
        {"/take/api/carol", 200},
    };
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);

    set_limit("api", "1/1h,by=key");
    for (size_t i = 0; i < COUNT(asks); i++) {
        http_get(socket_path, asks[i].address, &r);
        if (r.status != asks[i].status)
            fail_msg("%s: %d, not %d: %s", asks[i].address, r.status, asks[i].status, r.body);
    }
    end_serve(pid);
}

TEST_WITH(test_head, flush, NULL)
{
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);
    int fd = http_open(socket_path);

    set_limit("mail", "1/1h");
    for (int i = 0; i < 3; i++) {
        http_ask(fd, "HEAD", "/take/mail");
        assert_true(http_receive(fd, true, &r));
        assert_int_equal(r.status, i == 0 ? 200 : 429);
        assert_string_equal(http_header(&r, "RateLimit-Limit"), "1");
    }
    http_ask(fd, "HEAD", "/healthz");
    assert_true(http_receive(fd, true, &r));
    assert_int_equal(r.status, 200);
    close(fd);
    end_serve(pid);
}

/* Requests that wait behind one another on a connection, and bodies that nobody reads. */
TEST_WITH(test_connections_are_kept, flush, NULL)
{
    static const char three[] = "GET /take/mail HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
                                "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
                                "GET /take/mail HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    static const int statuses[] = {200, 404, 429};
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);
    int fd = http_open(socket_path);

    set_limit("mail", "1/1h");
    assert_true(http_send(fd, three, strlen(three)));
    for (size_t i = 0; i < COUNT(statuses); i++) {
        assert_true(http_receive(fd, false, &r));
        assert_int_equal(r.status, statuses[i]);
    }
    assert_false(http_receive(fd, false, &r)); /* closed */
    close(fd);
    end_serve(pid);
}

static void send_garbage(const char *bytes, size_t len, bool answered)
{
    int fd = http_open(socket_path);
    struct http_reply r;

    if (http_send(fd, bytes, len) && http_send(fd, "\r\n\r\n", 4) && answered &&
        (!http_receive(fd, false, &r) || r.status < 400))
        fail_msg("%.60s: %d", bytes, r.status);
    close(fd);
}

TEST_WITH(test_garbage, flush, NULL)
{
    static const struct {
        const char *bytes;
        bool answered;
    } cases[] = {
        {"", false},
        {"x", false},
        {"GET", false},
        {"GET /take/mail", true},
        {"GET /take/mail HTTP/9.9", true},
        {"GET take/mail HTTP/1.1\r\nHost: x", true},
        {"\x16\x03\x01\x02\x01\x01", false}, /* TLS */
        {"GET /take/%ff%fe%80 HTTP/1.1\r\nHost: x", true},
        {"GET /take/mail?%00=%00&&&=&=1 HTTP/1.1\r\nHost: x", true},
        {"GET /take/nobody HTTP/1.1\r\nHost: x\r\n:\r\n :\r\nx", true},
        {"POST /take/mail HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999", true},
        {"POST /take/mail HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz", true},
        {"GET /take/mail\r\nHost: x\r\nContent-Length: -1", true},
    };
    static char large[200000];
    struct http_reply r;
    uint32_t random = 12345;
    pid_t pid = serve(NULL, NULL);

    set_limit("mail", "1/1h");
    for (size_t i = 0; i < COUNT(cases); i++)
        send_garbage(cases[i].bytes, strlen(cases[i].bytes), cases[i].answered);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < 300; i++)
            large[i] = (char)((random = random * 1103515245 + 12345) >> 16);
        send_garbage(large, 300, false);
    }
    memset(large, 'a', sizeof large);
    memcpy(large, "GET /take/", 10);
    send_garbage(large, sizeof large, false);
    http_get(socket_path, "/healthz", &r);
    assert_int_equal(r.status, 200);
    end_serve(pid);
}

/* ---- What it asks of Redis */

/* n requests over many connections, each with one under way; returns how many were allowed, the others
 * denied. */
static int storm(const char *where, const char *path, int n)
{
    enum { CONNECTIONS = 50 };
    int fds[CONNECTIONS], allowed = 0;
    struct http_reply r;

    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = http_open(where);
    for (int sent = 0; sent < n; sent += CONNECTIONS) {
        for (int i = 0; i < CONNECTIONS; i++)
            http_ask(fds[i], "GET", path);
        for (int i = 0; i < CONNECTIONS; i++) {
            assert_true(http_receive(fds[i], false, &r));
            if (r.status != 200 && r.status != 429)
                fail_msg("%s: %d: %s", path, r.status, r.body);
            allowed += r.status == 200;
        }
    }
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    return allowed;
}

TEST_WITH(test_exactly_as_many_as_the_limit_grants, flush, NULL)
{
    pid_t pid = serve(NULL, NULL);

    set_limit("mail", "100/10h");
    set_limit("large", "1000/10h");
    assert_int_equal(storm(socket_path, "/take/mail", 1000), 100);
    assert_int_equal(storm(socket_path, "/take/large", 1000), 1000);
    assert_int_equal(storm(socket_path, "/take/large", 50), 0);
    end_serve(pid);
}

TEST_WITH(test_a_hot_denied_key_costs_no_round_trip, flush, NULL)
{
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);
    int64_t begun_us;
    long before, after;
    int fd = http_open(socket_path), rounds = 0;

    set_limit("mail", "1/1h");
    do { /* within the second for which a denial is remembered, however busy the machine is */
        before = server_calls(&server, "fcall");
        begun_us = clock_mono_us();
        for (int i = 0; i < 200; i++) {
            http_ask(fd, "GET", "/take/mail");
            assert_true(http_receive(fd, false, &r));
        }
        after = server_calls(&server, "fcall");
        assert_true(++rounds < 20);
    } while (clock_mono_us() - begun_us > 900000);
    assert_in_range(after - before, 1, 3);
    set_limit("mail", "1000/1s");
    await_status("/take/mail", 200); /* a changed rule shows */
    assert_true(clock_mono_us() - begun_us < 20000000);
    close(fd);
    end_serve(pid);
}

/* While Redis does not answer, all that is asked waits for the next call. */
TEST_WITH(test_what_comes_together_is_asked_together, flush, NULL)
{
    enum { REQUESTS = 60 };
    int fds[REQUESTS];
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);
    long before;

    set_limit("mail", "1000/1h");
    for (int i = 0; i < REQUESTS; i++)
        fds[i] = http_open(socket_path);
    before = server_calls(&server, "fcall");
    kill(server.pid, SIGSTOP);
    for (int i = 0; i < REQUESTS; i++)
        http_ask(fds[i], "GET", "/take/mail");
    for (int i = 0; i < REQUESTS; i++) /* in less than the answer's time-out */
        http_await_read(fds[i]);
    kill(server.pid, SIGCONT);
    for (int i = 0; i < REQUESTS; i++) {
        assert_true(http_receive(fds[i], false, &r));
        assert_int_equal(r.status, 200);
        close(fds[i]);
    }
    assert_in_range(server_calls(&server, "fcall") - before, 1, REQUESTS / 3);
    end_serve(pid);
}

/* ---- Redis away */

TEST_WITH(test_redis_away, flush, NULL)
{
    static const struct {
        const char *flag, *value;
        int status;
    } policies[] = {{NULL, NULL, 503},
                    {"--on-error", "allow", 200},
                    {"--on-error", "deny", 429},
                    {"--on-error", "error", 503}};
    struct http_reply r;

    for (size_t i = 0; i < COUNT(policies); i++) {
        pid_t pid = serve(policies[i].flag, policies[i].value);

        set_limit("mail", "1000/1h");
        server_kill(&server);
        await_status("/healthz", 503);
        http_get(socket_path, "/take/mail", &r);
        assert_int_equal(r.status, policies[i].status);
        assert_string_equal(http_header(&r, "RateLimit-Limit"), "");
        assert_string_equal(http_header(&r, "Retry-After"), r.status == 200 ? "" : "1");
        if (r.status == 503)
            assert_string_equal(r.body, "{\"error\":\"Redis is away; try again\"}\n");
        else
            assert_non_null(strstr(r.body, "\"assumed\":true"));
        server_restart(&server);
        set_limit("mail", "1000/1h");
        await_status("/healthz", 200);
        http_get(socket_path, "/take/mail", &r);
        assert_int_equal(r.status, 200);
        assert_string_equal(http_header(&r, "RateLimit-Remaining"), "999");
        end_serve(pid);
        await_text(folder, "serve.err", "requests are answered without it until it is back");
        await_text(folder, "serve.err", "Redis answers again");
    }
}

/* Nobody waits long for a Redis that hangs. */
TEST_WITH(test_redis_hangs, flush, NULL)
{
    struct http_reply r;
    pid_t pid = serve("--on-error", "allow");
    int64_t begun_us;

    set_limit("mail", "1000/1h");
    kill(server.pid, SIGSTOP);
    begun_us = clock_mono_us();
    http_get(socket_path, "/take/mail", &r);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.body, "\"assumed\":true"));
    assert_true(clock_mono_us() - begun_us < 15000000);
    kill(server.pid, SIGCONT);
    await_status("/healthz", 200);
    end_serve(pid);
}

TEST_WITH(test_a_library_that_is_gone_is_loaded_again, flush, NULL)
{
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);

    set_limit("mail", "1000/1h");
    server_do(&server, "FUNCTION", "FLUSH");
    http_get(socket_path, "/take/mail", &r);
    assert_int_equal(r.status, 200);
    end_serve(pid);
}

/* ---- Beginning and end */

TEST_WITH(test_the_end, flush, NULL)
{
    struct http_reply r;
    pid_t pid = serve(NULL, NULL);
    int idle = http_open(socket_path), waiting = http_open(socket_path);

    set_limit("mail", "1000/1h");
    kill(server.pid, SIGSTOP);
    http_ask(waiting, "GET", "/take/mail");
    http_await_read(waiting);
    clock_sleep_until(clock_mono_us() + 100000); /* it is under way */
    kill(pid, SIGTERM);
    for (int i = 0; i < 1000 && access(socket_path, F_OK) == 0; i++)
        clock_sleep_until(clock_mono_us() + 2000);
    kill(server.pid, SIGCONT);
    assert_true(http_receive(waiting, false, &r)); /* who has asked is answered */
    assert_int_equal(r.status, 200);
    assert_false(http_receive(idle, false, &r));
    assert_int_equal(program_end(pid), 0);
    serving = 0;
    assert_int_equal(access(socket_path, F_OK), -1);
    close(idle);
    close(waiting);
}

TEST_WITH(test_a_socket_that_was_left_behind, flush, NULL)
{
    struct outcome o;

    serve(NULL, NULL);
    run_in(&o, folder, built("weir"), "serve", "--redis", server.url, "--listen",
           textf("unix:%s", socket_path), NULL);
    assert_int_equal(o.code, 78); /* it is somebody's */
    assert_non_null(strstr(o.err, "Address already in use; is another weir serve running?"));
    assert_int_equal(access(socket_path, F_OK), 0);
    end_leftover(&serving);
    assert_int_equal(access(socket_path, F_OK), 0);
    end_serve(serve(NULL, NULL));
}

TEST_WITH(test_a_file_is_not_replaced, flush, NULL)
{
    struct outcome o;
    char text[16];

    write_text(folder, "precious", "data");
    run_in(&o, folder, built("weir"), "serve", "--redis", server.url, "--listen", "./precious", NULL);
    assert_int_equal(o.code, 78);
    assert_true(read_text(folder, "precious", text, sizeof text));
    assert_string_equal(text, "data");
}

TEST_WITH(test_the_sockets_permissions, flush, NULL)
{
    struct stat s;
    pid_t pid = serve("--socket-mode", "620");

    assert_int_equal(stat(socket_path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0620);
    end_serve(pid);
}

TEST_WITH(test_on_the_loopback, flush, NULL)
{
    const char *words[] = {built("weir"), "serve", "--redis", server.url, "--listen", "127.0.0.1:0", NULL};
    char log[4096], port[8] = "";
    struct http_reply r;
    pid_t pid = program_start(folder, "tcp", words);

    await_text(folder, "tcp.err", LISTENING "http://127.0.0.1:");
    assert_true(read_text(folder, "tcp.err", log, sizeof log));
    assert_int_equal(sscanf(strstr(log, "127.0.0.1:"), "127.0.0.1:%7[0-9]", port), 1);
    http_request(port, "GET", "/take/nobody?cost=1", "", NULL, &r);
    assert_true(r.status == 404 || r.status == 503); /* Redis may not be there yet */
    kill(pid, SIGINT);
    assert_int_equal(program_end(pid), 0);
}

/* A connection from an address of this machine to a port of it. */
static int open_from(const char *address, const char *port)
{
    struct sockaddr_in from = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    const struct timeval patience = {.tv_sec = 30};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

/* Whoever takes all connections that one address may have leaves some to others. */
TEST_WITH(test_one_address_may_have_half_of_the_connections, flush, NULL)
{
    const char *words[] = {"/bin/sh",     "-c",          "ulimit -n 200; exec \"$@\"",
                           "sh",          built("weir"), "serve",
                           "--redis",     server.url,    "--listen",
                           "127.0.0.1:0", NULL};
    char log[4096], port[8] = "";
    int fds[68], more; /* of 200 descriptors 64 are for all else */
    struct http_reply r;
    pid_t pid = serving = program_start(folder, "few", words);

    await_text(folder, "few.err", LISTENING "http://127.0.0.1:");
    assert_true(read_text(folder, "few.err", log, sizeof log));
    assert_int_equal(sscanf(strstr(log, "127.0.0.1:"), "127.0.0.1:%7[0-9]", port), 1);
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = open_from("127.0.0.1", port);
        http_ask(fds[i], "GET", "/take/a%20b");
        assert_true(http_receive(fds[i], false, &r));
    }
    more = open_from("127.0.0.1", port);
    assert_false(http_receive(more, false, &r));
    close(more);
    more = open_from("127.0.0.2", port);
    http_ask(more, "GET", "/take/a%20b");
    assert_true(http_receive(more, false, &r));
    assert_int_equal(r.status, 400);
    close(more);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
    kill(pid, SIGTERM);
    assert_int_equal(program_end(pid), 0);
    serving = 0;
}

TEST_WITH(test_a_wrong_password_ends_it, flush, NULL)
{
    struct outcome o;
    const char *where = textf("unix:%s", socket_path);

    server_do(&server, "CONFIG", "SET", "requirepass", "secret");
    run_in(&o, folder, built("weir"), "serve", "--redis", server.url, "--listen", where, NULL);
    server_do(&server, "CONFIG", "SET", "requirepass", "");
    assert_int_equal(o.code, 77);
    assert_int_equal(access(socket_path, F_OK), -1);
}

/* ---- Behind nginx: the configuration of examples/nginx.conf, with paths of our own */

static const char nginx_config[] =
    "daemon off;\nmaster_process off;\npid %1$s/nginx.pid;\nerror_log %1$s/nginx.log;\n"
    "events { worker_connections 512; }\n"
    "http {\n"
    "    access_log off;\n"
    "    client_body_temp_path %1$s/t1;\n    proxy_temp_path %1$s/t2;\n    fastcgi_temp_path %1$s/t3;\n"
    "    uwsgi_temp_path %1$s/t4;\n    scgi_temp_path %1$s/t5;\n"
    "    upstream weir { server unix:%1$s/serve.sock; keepalive 16; }\n"
    "    server { listen unix:%1$s/backend.sock; location / { return 200 \"through\"; } }\n"
    "    server {\n"
    "        listen unix:%1$s/nginx.sock;\n"
    "        location = /_limit {\n"
    "            internal;\n"
    "            proxy_pass http://weir/take/$limit_name?denied=403;\n"
    "            proxy_http_version 1.1;\n"
    "            proxy_set_header Connection \"\";\n"
    "            proxy_pass_request_body off;\n"
    "            proxy_set_header Content-Length \"\";\n"
    "        }\n"
    "        location ~ ^/(?<limit_name>.*)$ {\n"
    "            auth_request /_limit;\n"
    "            auth_request_set $limit_limit $upstream_http_ratelimit_limit;\n"
    "            auth_request_set $limit_remaining $upstream_http_ratelimit_remaining;\n"
    "            auth_request_set $limit_reset $upstream_http_ratelimit_reset;\n"
    "            auth_request_set $limit_retry $upstream_http_retry_after;\n"
    "            add_header RateLimit-Limit $limit_limit always;\n"
    "            add_header RateLimit-Remaining $limit_remaining always;\n"
    "            add_header RateLimit-Reset $limit_reset always;\n"
    "            error_page 403 = @limited;\n"
    "            proxy_pass http://unix:%1$s/backend.sock;\n"
    "        }\n"
    "        location @limited {\n"
    "            add_header RateLimit-Limit $limit_limit always;\n"
    "            add_header RateLimit-Remaining $limit_remaining always;\n"
    "            add_header RateLimit-Reset $limit_reset always;\n"
    "            add_header Retry-After $limit_retry always;\n"
    "            return 429 \"slowly\";\n"
    "        }\n"
    "    }\n"
    "}\n";

static char nginx_socket[96];

/* Debian keeps it where only root's PATH looks. */
static const char *nginx_program(void)
{
    return access("/usr/sbin/nginx", X_OK) == 0 ? "/usr/sbin/nginx" : "/usr/bin/nginx";
}

static pid_t start_nginx(void)
{
    char text[8192];
    const char *log = textf("%s/nginx.log", folder);
    const char *path = textf("%s/nginx.conf", folder);
    const char *words[] = {nginx_program(), "-p", folder, "-c", path, "-e", log, NULL};
    int64_t limit_us = clock_mono_us() + 60000000;

    snprintf(nginx_socket, sizeof nginx_socket, "%s/nginx.sock", folder);
    snprintf(text, sizeof text, nginx_config, folder);
    write_text(folder, "nginx.conf", text);
    unlink(nginx_socket);
    snprintf(text, sizeof text, "%s/backend.sock", folder);
    unlink(text);
    proxying = program_start(folder, "nginx", words);
    while (!http_listens(nginx_socket)) { /* the socket is there before it listens */
        if (clock_mono_us() > limit_us)
            fail_msg("nginx does not start; is nginx-light installed? see %s", log);
        clock_sleep_until(clock_mono_us() + 5000);
    }
    return proxying;
}

static void end_nginx(pid_t pid)
{
    kill(pid, SIGTERM);
    assert_int_equal(program_end(pid), 0);
    proxying = 0;
}

TEST_WITH(test_behind_nginx, flush, NULL)
{
    pid_t pid = serve(NULL, NULL), nginx = start_nginx();
    struct http_reply r;

    set_limit("mail", "1/1h");
    http_get(nginx_socket, "/mail", &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(r.body, "through");
    assert_string_equal(http_header(&r, "RateLimit-Limit"), "1");
    assert_string_equal(http_header(&r, "RateLimit-Remaining"), "0");
    assert_string_equal(http_header(&r, "RateLimit-Reset"), "3600");
    http_get(nginx_socket, "/mail", &r);
    assert_int_equal(r.status, 429);
    assert_string_equal(r.body, "slowly");
    assert_string_equal(http_header(&r, "RateLimit-Remaining"), "0");
    assert_string_equal(http_header(&r, "Retry-After"), "3600");
    http_get(nginx_socket, "/nobody", &r);
    assert_int_equal(r.status, 500); /* nothing passes unlimited by mistake */
    end_nginx(nginx);
    end_serve(pid);
}

TEST_WITH(test_exactly_as_many_behind_nginx, flush, NULL)
{
    pid_t pid = serve(NULL, NULL), nginx = start_nginx();

    set_limit("mail", "123/10h");
    assert_int_equal(storm(nginx_socket, "/mail", 1000), 123);
    end_nginx(nginx);
    end_serve(pid);
}

TEST_WITH(test_redis_away_behind_nginx, flush, NULL)
{
    static const struct {
        const char *policy;
        int status;
    } cases[] = {{"allow", 200}, {"deny", 429}, {"error", 500}};
    struct http_reply r;

    for (size_t i = 0; i < COUNT(cases); i++) {
        pid_t pid = serve("--on-error", cases[i].policy), nginx = start_nginx();

        server_kill(&server);
        await_status("/healthz", 503);
        http_get(nginx_socket, "/mail", &r);
        assert_int_equal(r.status, cases[i].status);
        end_serve(pid);
        http_get(nginx_socket, "/mail", &r);
        assert_int_equal(r.status, 500); /* weir serve itself is away */
        end_nginx(nginx);
        server_restart(&server);
    }
}

/* libmicrohttpd has no room for so many arguments, nor for an answer: the connection ends, and not with
 * somebody else's request. */
TEST_WITH(test_more_arguments_than_there_is_room_for, flush, NULL)
{
    static const int counts[] = {300, 600, 5000};
    pid_t pid = serve(NULL, NULL);

    for (size_t i = 0; i < COUNT(counts); i++) {
        char *text = malloc(32000), *end = text + sprintf(text, "GET /take/mail?");
        int fd = http_open(socket_path);
        struct http_reply r;

        for (int n = 0; n < counts[i]; n++)
            end += sprintf(end, "a=1&");
        end += sprintf(end, " HTTP/1.1\r\nHost: x\r\n\r\n");
        (void)http_send(fd, text, (size_t)(end - text));
        if (http_receive(fd, false, &r))
            assert_in_range(r.status, 400, 431);
        close(fd);
        free(text);
    }
    end_serve(pid);
}

TESTS(setup, teardown)
