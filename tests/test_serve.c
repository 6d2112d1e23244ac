/* weir serve from outside: its answers, what it asks of Redis, its end, and a real nginx in front of it. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/client/partition.h"
#include "core/clock.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/serving.h"
#include "tests/stage.h"

#define LISTENING "serve: listening on "

static pid_t proxying; /* nginx; 0: not running */

static int flush(void **state)
{
    if (proxying > 0) { /* a test that failed has left it running */
        kill(proxying, SIGKILL);
        waitpid(proxying, NULL, 0);
        proxying = 0;
    }
    serving_flush(state);
    server_do(&server, "CONFIG", "RESETSTAT");
    return 0;
}

static int teardown(void **state)
{
    flush(state);
    return serving_teardown(state);
}

static void await_status(const char *path, int status)
{
    await(serving_status_of("GET", path, "", NULL) == (unsigned)status);
}

/* Ready: with Redis at its side. */
static void serve(const char *flag, const char *value)
{
    serving_start_at(NULL, NULL, (const char *const[]){flag, value, NULL});
    await_status("/healthz", 200);
}

/* A test beside a server. */
#define SERVE_TEST(name)                                                                                     \
    static void name##_served(void);                                                                         \
    TEST_WITH(name, flush, NULL)                                                                             \
    {                                                                                                        \
        serve(NULL, NULL);                                                                                   \
        name##_served();                                                                                     \
        serving_end();                                                                                       \
    }                                                                                                        \
    static void name##_served(void)

/* The answer stays in serving.reply. */
static void get_from(const char *where, const char *path, int status)
{
    http_get(where, path, &serving.reply);
    if (serving.reply.status != status)
        fail_msg("%s: %d, not %d: %s", path, serving.reply.status, status, serving.reply.body);
}

static void get(const char *path, int status)
{
    get_from(serving.where, path, status);
}

static void next_answer(int fd, int status)
{
    assert_true(http_receive(fd, false, &serving.reply));
    assert_int_equal(serving.reply.status, status);
}

static void expect_header(const char *name, const char *value)
{
    assert_string_equal(http_header(&serving.reply, name), value);
}

static void set_limit(const char *name, const char *rule)
{
    if (weir_rate_set(w, name, rule) < 0)
        fail_msg("%s", weir_message(w));
}

/* ---- Answers */

static void serve_partitions(int count)
{
    for (int p = 0; p < count; p++)
        server_do(&server, "HSET", textf("weir:{%d}:about", p), "partitions", textf("%d", count));
    server_do(&server, "FUNCTION", "FLUSH"); /* it keeps the number of the test before */
    serve(NULL, NULL);
}

/* A request goes where its limit lives; the first ones learn where that is. */
TEST_WITH(test_partitions, flush, NULL)
{
    long before;

    serve_partitions(4);
    for (int i = 0; i < 12; i++)
        set_limit(textf("l%d", i), "1/1h");
    for (int i = 0; i < 24; i++)
        get(textf("/take/l%d?cost=1", i % 12), i < 12 ? 200 : 429);
    get("/take/nobody", 404);
    set_limit("l9", "3/1h");
    before = server_calls(&server, "fcall");
    get("/take/l9?cost=2", 200);
    assert_int_equal(server_calls(&server, "fcall"), before + 1);
    await_status("/healthz", 200);
    serving_end();
}

/* Each partition must answer; it learns by itself how many there are. */
TEST_WITH(test_health_of_all_partitions, flush, NULL)
{
    for (int n = 2; n <= PARTITIONS_MOST; n++)
        assert_int_not_equal(partition_crc16("healthz10", strlen("healthz10")) % (unsigned)n, 0);
    serve_partitions(3);
    await_status("/healthz", 200);
    server_do(&server, "ACL", "SETUSER", "default", "resetkeys", "~weir:{0}:*", "~weir:{1}:*");
    await_status("/healthz", 503);
    server_do(&server, "ACL", "SETUSER", "default", "allkeys");
    await_status("/healthz", 200);
    serving_end();
}

SERVE_TEST(test_head)
{
    int fd = http_open(serving.where);

    set_limit("mail", "1/1h");
    for (int i = 0; i < 3; i++) {
        http_ask(fd, "HEAD", "/take/mail");
        assert_true(http_receive(fd, true, &serving.reply));
        assert_int_equal(serving.reply.status, i == 0 ? 200 : 429);
        expect_header("RateLimit-Limit", "1");
    }
    http_ask(fd, "HEAD", "/healthz");
    assert_true(http_receive(fd, true, &serving.reply));
    assert_int_equal(serving.reply.status, 200);
    close(fd);
}

/* Requests that wait behind one another on a connection, and bodies that nobody reads. */
SERVE_TEST(test_connections_are_kept)
{
    static const char three[] = "GET /take/mail HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
                                "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
                                "GET /take/mail HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    static const int statuses[] = {200, 404, 429};
    int fd = http_open(serving.where);

    set_limit("mail", "1/1h");
    assert_true(http_send(fd, three, strlen(three)));
    for (size_t i = 0; i < COUNT(statuses); i++)
        next_answer(fd, statuses[i]);
    assert_false(http_receive(fd, false, &serving.reply)); /* closed */
    close(fd);
}

static void send_garbage(const char *bytes, size_t len, bool answered)
{
    int fd = http_open(serving.where);

    if (http_send(fd, bytes, len) && http_send(fd, "\r\n\r\n", 4) && answered &&
        (!http_receive(fd, false, &serving.reply) || serving.reply.status < 400))
        fail_msg("%.60s: %d", bytes, serving.reply.status);
    close(fd);
}

SERVE_TEST(test_garbage)
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
    uint32_t random = 12345;

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
    get("/healthz", 200);
}

/* ---- What it asks of Redis */

/* n requests over many connections, each with one under way. Returns how many were allowed, the others denied; -1: some had no answer in
 * their second, as a machine that stands still may have it. */
static int storm(const char *where, const char *path, int n)
{
    enum { CONNECTIONS = 50 };
    int fds[CONNECTIONS], allowed = 0, unanswered = 0;

    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = http_open(where);
    for (int sent = 0; sent < n; sent += CONNECTIONS) {
        for (int i = 0; i < CONNECTIONS; i++)
            http_ask(fds[i], "GET", path);
        for (int i = 0; i < CONNECTIONS; i++) {
            assert_true(http_receive(fds[i], false, &serving.reply));
            allowed += serving.reply.status == 200;
            unanswered += serving.reply.status != 200 && serving.reply.status != 429;
        }
    }
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    return unanswered > 0 ? -1 : allowed;
}

/* Of so many requests a limit allows as many as it may, and no more; again under another one where one had no answer. */
static void expect_granted(const char *where, const char *prefix, int n, int most)
{
    int allowed = -1;

    for (int round = 0; allowed < 0; round++) {
        char *name = textf("most%d_%d", most, round);

        fail_if(round == 20, "no answer in each of %d rounds", round);
        set_limit(name, textf("%d/10h", most));
        allowed = storm(where, textf("%s%s", prefix, name), n);
    }
    assert_int_equal(allowed, most);
}

SERVE_TEST(test_exactly_as_many_as_the_limit_grants)
{
    expect_granted(serving.where, "/take/", 1000, 100);
    expect_granted(serving.where, "/take/", 1050, 1000);
}

SERVE_TEST(test_a_hot_denied_key_costs_no_round_trip)
{
    int64_t begun_us;
    long before, after;
    int fd = http_open(serving.where), rounds = 0;

    set_limit("mail", "1/1h");
    do { /* within the second for which a denial is remembered, however busy the machine is */
        before = server_calls(&server, "fcall");
        begun_us = clock_mono_us();
        for (int i = 0; i < 200; i++) {
            http_ask(fd, "GET", "/take/mail");
            assert_true(http_receive(fd, false, &serving.reply));
        }
        after = server_calls(&server, "fcall");
        assert_true(++rounds < 20);
    } while (clock_mono_us() - begun_us > 900000);
    assert_in_range(after - before, 1, 3);
    set_limit("mail", "1000/1s");
    await_status("/take/mail", 200); /* a changed rule shows */
    assert_true(clock_mono_us() - begun_us < 20000000);
    close(fd);
}

/* While Redis does not answer, all that is asked waits for the next call. */
SERVE_TEST(test_what_comes_together_is_asked_together)
{
    enum { REQUESTS = 60 };
    int fds[REQUESTS];
    long before;

    set_limit("mail", "1000/1h");
    for (int i = 0; i < REQUESTS; i++)
        fds[i] = http_open(serving.where);
    before = server_calls(&server, "fcall");
    kill(server.pid, SIGSTOP);
    for (int i = 0; i < REQUESTS; i++)
        http_ask(fds[i], "GET", "/take/mail");
    for (int i = 0; i < REQUESTS; i++) /* in less than the answer's time-out */
        http_await_read(fds[i]);
    kill(server.pid, SIGCONT);
    for (int i = 0; i < REQUESTS; i++) {
        next_answer(fds[i], 200);
        close(fds[i]);
    }
    assert_in_range(server_calls(&server, "fcall") - before, 1, REQUESTS / 3);
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

    for (size_t i = 0; i < COUNT(policies); i++) {
        serve(policies[i].flag, policies[i].value);
        set_limit("mail", "1000/1h");
        server_kill(&server);
        await_status("/healthz", 503);
        get("/take/mail", policies[i].status);
        expect_header("RateLimit-Limit", "");
        expect_header("Retry-After", serving.reply.status == 200 ? "" : "1");
        if (serving.reply.status == 503)
            assert_string_equal(serving.reply.body, "{\"error\":\"Redis is away; try again\"}\n");
        else
            assert_non_null(strstr(serving.reply.body, "\"assumed\":true"));
        server_restart(&server);
        set_limit("mail", "1000/1h");
        await_status("/healthz", 200);
        get("/take/mail", 200);
        expect_header("RateLimit-Remaining", "999");
        serving_end();
        await_text(serving.folder, "serve.err", "requests are answered without it until it is back");
        await_text(serving.folder, "serve.err", "Redis answers again");
    }
}

/* Nobody waits long for a Redis that hangs. */
TEST_WITH(test_redis_hangs, flush, NULL)
{
    int64_t begun_us;

    serve("--on-error", "allow");
    set_limit("mail", "1000/1h");
    kill(server.pid, SIGSTOP);
    begun_us = clock_mono_us();
    get("/take/mail", 200);
    assert_non_null(strstr(serving.reply.body, "\"assumed\":true"));
    assert_true(clock_mono_us() - begun_us < 15000000);
    kill(server.pid, SIGCONT);
    await_status("/healthz", 200);
    serving_end();
}

SERVE_TEST(test_a_library_that_is_gone_is_loaded_again)
{
    set_limit("mail", "1000/1h");
    server_do(&server, "FUNCTION", "FLUSH");
    get("/take/mail", 200);
}

/* ---- Beginning and end */

TEST_WITH(test_the_end, flush, NULL)
{
    int idle, waiting;

    serve(NULL, NULL);
    idle = http_open(serving.where);
    waiting = http_open(serving.where);
    set_limit("mail", "1000/1h");
    kill(server.pid, SIGSTOP);
    http_ask(waiting, "GET", "/take/mail");
    http_await_read(waiting);
    clock_sleep_until(clock_mono_us() + 100000); /* it is under way */
    kill(serving.pid, SIGTERM);
    for (int i = 0; i < 1000 && access(serving.where, F_OK) == 0; i++)
        clock_sleep_until(clock_mono_us() + 2000);
    kill(server.pid, SIGCONT);
    next_answer(waiting, 200); /* who has asked is answered */
    assert_false(http_receive(idle, false, &serving.reply));
    serving_ended();
    close(idle);
    close(waiting);
}

/* Another one that listens there ends with that code, and says why. */
static void refused_at(const char *where, int code, const char *why)
{
    struct outcome o;

    run_in(&o, serving.folder, built("weir"), "serve", "--redis", server.url, "--listen", where, NULL);
    if (o.code != code || !strstr(o.err, why))
        fail_msg("%s: %d, %s", where, o.code, o.err);
}

TEST_WITH(test_a_socket_that_was_left_behind, flush, NULL)
{
    serve(NULL, NULL);
    refused_at(textf("unix:%s", serving.where), 78, "Address already in use; is another weir serve running?");
    assert_int_equal(access(serving.where, F_OK), 0);
    kill(serving.pid, SIGKILL);
    program_end(serving.pid);
    assert_int_equal(access(serving.where, F_OK), 0);
    serve(NULL, NULL);
    serving_end();
}

/* Starts it as systemd does, with `count` sockets that listen already; its log is serve.err. */
static pid_t start_given(int listener, const char *count, const char *flag)
{
    const char *const words[] = {"/bin/bash",
                                 "-c",
                                 "exec 3<&$0; LISTEN_PID=$$ LISTEN_FDS=$3 exec $1 serve --redis $2 $4",
                                 textf("%d", listener),
                                 built("weir"),
                                 server.url,
                                 count,
                                 flag,
                                 NULL};

    return program_start(serving.folder, "serve", words);
}

/* Who comes between two servers waits for the second one, and that one for Redis. */
TEST_WITH(test_a_socket_of_systemd, flush, NULL)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd;

    snprintf(serving.where, sizeof serving.where, "%s/serve.sock", serving.folder);
    strcpy(address.sun_path, serving.where);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    set_limit("mail", "1000/1h");
    for (int i = 0; i < 3; i++) {
        fd = http_open(serving.where);
        http_ask(fd, "GET", "/take/mail");
        serving.pid = start_given(listener, "1", "--log=json");
        next_answer(fd, 200);
        close(fd);
        kill(serving.pid, SIGTERM);
        assert_int_equal(program_end(serving.pid), 0);
    }
    await_text(serving.folder, "serve.err", textf("serve: listening on unix:%s", serving.where));
    assert_int_equal(access(serving.where, F_OK), 0);
    for (int i = 0; i < 2; i++) {
        serving.pid = start_given(listener, "1", i ? "--socket-mode=660" : "--listen=127.0.0.1:0");
        assert_int_equal(program_end(serving.pid), 78);
        await_text(serving.folder, "serve.err", "systemd has opened a socket already");
    }
    serving.pid = start_given(listener, "2", "--log=json");
    assert_int_equal(program_end(serving.pid), 78);
    await_text(serving.folder, "serve.err", "systemd has opened 2 sockets, and it takes one");
    serving.pid = 0;
    close(listener);
    unlink(serving.where);
}

TEST_WITH(test_a_file_is_not_replaced, flush, NULL)
{
    char text[16];

    write_text(serving.folder, "precious", "data");
    refused_at("./precious", 78, "");
    assert_true(read_text(serving.folder, "precious", text, sizeof text));
    assert_string_equal(text, "data");
}

TEST_WITH(test_the_sockets_permissions, flush, NULL)
{
    struct stat s;

    serve("--socket-mode", "620");
    assert_int_equal(stat(serving.where, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0620);
    serving_end();
}

TEST_WITH(test_on_the_loopback, flush, NULL)
{
    serving_start_at(NULL, "127.0.0.1:0", (const char *const[]){NULL});
    http_request(serving.where, "GET", "/take/nobody?cost=1", "", NULL, &serving.reply);
    assert_true(serving.reply.status == 404 || serving.reply.status == 503); /* Redis may not be there yet */
    kill(serving.pid, SIGINT);
    serving_ended();
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

    serving.pid = program_start(serving.folder, "few", words);
    await_text(serving.folder, "few.err", LISTENING "http://127.0.0.1:");
    assert_true(read_text(serving.folder, "few.err", log, sizeof log));
    assert_int_equal(sscanf(strstr(log, "127.0.0.1:"), "127.0.0.1:%7[0-9]", port), 1);
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = open_from("127.0.0.1", port);
        http_ask(fds[i], "GET", "/take/a%20b");
        next_answer(fds[i], 400);
    }
    more = open_from("127.0.0.1", port);
    assert_false(http_receive(more, false, &serving.reply));
    close(more);
    more = open_from("127.0.0.2", port);
    http_ask(more, "GET", "/take/a%20b");
    next_answer(more, 400);
    close(more);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
    serving_end();
}

TEST_WITH(test_a_wrong_password_ends_it, flush, NULL)
{
    server_do(&server, "CONFIG", "SET", "requirepass", "secret");
    refused_at("unix:secret.sock", 77, "");
    server_do(&server, "CONFIG", "SET", "requirepass", "");
    assert_int_equal(access(textf("%s/secret.sock", serving.folder), F_OK), -1);
}

/* ---- Behind nginx: examples/nginx.conf, with paths of our own, and the limit that the path names */

static char nginx_socket[96];

static void start_nginx(void)
{
    static const char head[] =
        "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log nginx.log;\n"
        "events { worker_connections 512; }\n"
        "http {\n"
        "    access_log off;\n"
        "    client_body_temp_path t1;\n    proxy_temp_path t2;\n    fastcgi_temp_path t3;\n"
        "    uwsgi_temp_path t4;\n    scgi_temp_path t5;\n"
        "    server { listen unix:%s/backend.sock; location / { return 200 \"through\"; } }\n"
        "%s}\n";
    static const char changes[] =
        "s,/run/weir,%1$s,; s,^server {,& listen unix:%1$s/nginx.sock;,; "
        "s,location / {,location ~ ^/(?<limit_name>.*)$ {,; s,api/.remote_addr,$limit_name,; "
        "s,//backend,//unix:%1$s/backend.sock,; s,return 429,& slowly,";
    /* Debian keeps it where only root's PATH looks. */
    const char *nginx = access("/usr/sbin/nginx", X_OK) == 0 ? "/usr/sbin/nginx" : "/usr/bin/nginx";
    const char *words[] = {nginx, "-p", serving.folder, "-c", "nginx.conf", "-e", "nginx.log", NULL};
    struct outcome o;

    run_in(&o, NULL, "/bin/sed", textf(changes, serving.folder), "examples/nginx.conf", NULL);
    write_text(serving.folder, "nginx.conf", textf(head, serving.folder, o.out));
    snprintf(nginx_socket, sizeof nginx_socket, "%s/nginx.sock", serving.folder);
    unlink(nginx_socket);
    unlink(textf("%s/backend.sock", serving.folder));
    proxying = program_start(serving.folder, "nginx", words);
    await(http_listens(nginx_socket)); /* if it does not start: is nginx-light installed? */
}

static void end_nginx(void)
{
    pid_t pid = proxying;

    proxying = 0;
    assert_int_equal(stage_end(pid), 0);
}

TEST_WITH(test_behind_nginx, flush, NULL)
{
    serve(NULL, NULL);
    start_nginx();
    set_limit("mail", "1/1h");
    get_from(nginx_socket, "/mail", 200);
    assert_string_equal(serving.reply.body, "through");
    expect_header("RateLimit-Limit", "1");
    expect_header("RateLimit-Remaining", "0");
    expect_header("RateLimit-Reset", "3600");
    get_from(nginx_socket, "/mail", 429);
    assert_string_equal(serving.reply.body, "slowly");
    expect_header("RateLimit-Remaining", "0");
    expect_header("Retry-After", "3600");
    get_from(nginx_socket, "/nobody", 500); /* nothing passes unlimited by mistake */
    end_nginx();
    serving_end();
}

TEST_WITH(test_exactly_as_many_behind_nginx, flush, NULL)
{
    serve(NULL, NULL);
    start_nginx();
    expect_granted(nginx_socket, "/", 1000, 123);
    end_nginx();
    serving_end();
}

TEST_WITH(test_redis_away_behind_nginx, flush, NULL)
{
    static const struct {
        const char *policy;
        int status;
    } cases[] = {{"allow", 200}, {"deny", 429}, {"error", 500}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        serve("--on-error", cases[i].policy);
        start_nginx();
        server_kill(&server);
        await_status("/healthz", 503);
        get_from(nginx_socket, "/mail", cases[i].status);
        serving_end();
        get_from(nginx_socket, "/mail", 500); /* weir serve itself is away */
        end_nginx();
        server_restart(&server);
    }
}

/* libmicrohttpd has no room for so many arguments, nor for an answer: the connection ends, and not with
 * somebody else's request. */
SERVE_TEST(test_more_arguments_than_there_is_room_for)
{
    static const int counts[] = {300, 600, 5000};

    for (size_t i = 0; i < COUNT(counts); i++) {
        char *text = malloc(32000), *end = text + sprintf(text, "GET /take/mail?");
        int fd = http_open(serving.where);

        for (int n = 0; n < counts[i]; n++)
            end += sprintf(end, "a=1&");
        end += sprintf(end, " HTTP/1.1\r\nHost: x\r\n\r\n");
        (void)http_send(fd, text, (size_t)(end - text));
        if (http_receive(fd, false, &serving.reply))
            assert_in_range(serving.reply.status, 400, 431);
        close(fd);
        free(text);
    }
}

TESTS(serving_setup, teardown)
