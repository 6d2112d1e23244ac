/* Who sends slowly to weir serve (serve/callers.c): each connection has a time for its head and for its body. The loop is the test's own, and so is
 * the routes; time-outs are short where somebody is to miss one, and for ever where nobody may. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"
#include <ev.h>

#include "core/clock.h"
#include "serve/http.h"
#include "serve/http_routes.h"
#include "serve/listen.h"
#include "serve/response.h"
#include "tests/http.h"
#include "tests/program.h"

#define EVER_US INT64_C(3600000000)
#define SHORT_US 200000
#define TEST_US 30000000

/* ---- Routes that answer each request with the size of its body, as soon as it may */

struct http_request {
    struct MHD_Connection *connection;
    size_t size;
};

static bool may_answer;
static struct http_request *waiting;

const char *http_routes_wrong_take(const struct http_routes *routes, struct MHD_Connection *connection)
{
    (void)routes, (void)connection;
    return NULL;
}

struct http_request *http_request_new(struct http_routes *routes, struct MHD_Connection *connection,
                                      const char *method, const char *address)
{
    struct http_request *v = calloc(1, sizeof *v);

    (void)routes, (void)method, (void)address;
    if (v)
        v->connection = connection;
    return v;
}

enum MHD_Result http_request_begin(struct http_request *v)
{
    (void)v;
    return MHD_YES;
}

enum MHD_Result http_request_body(struct http_request *v, const char *bytes, size_t len)
{
    (void)bytes;
    v->size += len;
    return MHD_YES;
}

enum MHD_Result http_request_go_on(struct http_request *v)
{
    char text[32];
    struct MHD_Response *r;
    enum MHD_Result queued;

    if (!may_answer) {
        waiting = v;
        MHD_suspend_connection(v->connection);
        return MHD_YES;
    }
    r = response_of("text/plain", text, (size_t)snprintf(text, sizeof text, "%zu", v->size));
    queued = MHD_queue_response(v->connection, 200, r);
    MHD_destroy_response(r);
    return queued;
}

void http_request_free(struct http_request *v)
{
    free(v);
}

/* Nobody takes here. */
bool take_batcher_ask(struct take_batcher *t, struct asked *a)
{
    (void)t, (void)a;
    return true;
}

bool take_batcher_check(struct take_batcher *t, struct asked *a)
{
    (void)t, (void)a;
    return true;
}

/* ---- The server and one client, in turns */

static char folder[64];
static struct ev_loop *loop;
static struct listener listener = {.fd = -1};
static struct http *http;
static int client;

static void on_tick(struct ev_loop *l, struct ev_timer *timer, int revents)
{
    (void)l, (void)timer, (void)revents;
}

static void turn(void)
{
    struct ev_timer tick;

    ev_timer_init(&tick, on_tick, 0.01, 0);
    ev_timer_start(loop, &tick);
    ev_run(loop, EVRUN_ONCE);
    ev_timer_stop(loop, &tick);
}

static void begin(int64_t head_us, int64_t body_us, int64_t bytes_per_s)
{
    const struct callers_patience patience = {head_us, body_us, bytes_per_s};
    char where[96];
    struct error e;

    may_answer = true;
    waiting = NULL;
    snprintf(where, sizeof where, "unix:%s/serve.sock", folder);
    assert_int_equal(listen_open(&listener, where, false, -1, &e), 0);
    http = http_new(loop, listener.fd, SERVE_ERROR, &patience);
    assert_non_null(http);
    http_use(http, NULL, (struct http_routes *)folder); /* not looked into */
    client = http_open(where + strlen("unix:"));
    fcntl(client, F_SETFL, O_NONBLOCK);
}

static void end(void)
{
    close(client);
    turn();
    http_free(http);
    listen_close(&listener);
    http = NULL;
}

/* What has come, up to now; NULL: the end of the connection. Static. */
static const char *received(void)
{
    static char text[4096];
    ssize_t n = recv(client, text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return n == 0 || (n < 0 && errno != EAGAIN) ? NULL : text;
}

/* Takes turns until the end of the connection, or until it has received that text; NULL: for ever. Sends a byte at each, if dribbles. What
 * was received. Static. */
static const char *go_on(const char *until, bool dribbles)
{
    static char all[4096];
    int64_t limit_us = clock_mono_us() + TEST_US;
    const char *some = "";

    for (*all = '\0'; some && !(until && strstr(all, until)); some = received()) {
        if (clock_mono_us() > limit_us)
            fail_msg("nothing happens; received: %s", all);
        strncat(all, some, sizeof all - strlen(all) - 1);
        turn();
        if (dribbles)
            (void)send(client, "x", 1, MSG_NOSIGNAL);
    }
    return all;
}

static void send_text(const char *text)
{
    assert_true(http_send(client, text, strlen(text)));
}

static void rest(int64_t us)
{
    for (int64_t end_us = clock_mono_us() + us; clock_mono_us() < end_us;)
        turn();
}

/* ---- Cases */

TEST(test_a_head_that_does_not_end)
{
    static const char *const heads[] = {"", "G", "GET / HTTP/1.1\r\nHost: x",
                                        "GET / HTTP/1.1\r\nHost: x\r\nA: "};

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        begin(SHORT_US, EVER_US, 1);
        send_text(heads[i]);
        assert_string_equal(go_on(NULL, *heads[i]), "");
        end();
    }
}

/* On a connection that was kept; on a machine that stands still the first one may be late. */
TEST(test_the_head_of_the_next_request)
{
    const char *text = "";

    while (!*text) {
        begin(SHORT_US, EVER_US, 1);
        send_text("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nA: ");
        text = go_on(NULL, true);
        end();
    }
    assert_non_null(strstr(text, "200 OK"));
    assert_null(strstr(text, "408"));
}

TEST(test_a_body_that_does_not_end)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
    const char *text;

    begin(EVER_US, SHORT_US, INT64_C(1000000000));
    send_text(head);
    send_text("x");
    text = go_on(NULL, true);
    assert_non_null(strstr(text, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"));
    assert_non_null(strstr(text, "{\"error\":\"the body came too slowly; send less in a request\"}"));
    end();

    begin(EVER_US, SHORT_US, INT64_C(1000000000)); /* nor begins */
    send_text(head);
    assert_string_equal(go_on(NULL, false), "");
    end();
}

TEST(test_what_has_come_gives_time)
{
    char body[101];

    memset(body, 'x', sizeof body);
    begin(EVER_US, SHORT_US, 1); /* a byte, a second */
    send_text(textf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n%.100s", body));
    rest(4 * SHORT_US);
    send_text("x");
    assert_non_null(strstr(go_on("\r\n\r\n101", false), "200 OK"));
    end();
}

/* Who waits for an answer is not slow. */
TEST(test_who_waits)
{
    do { /* on a machine that stands still the request may be late */
        if (http)
            end();
        begin(SHORT_US, SHORT_US, 1);
        may_answer = false;
        send_text("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
        rest(4 * SHORT_US);
    } while (!waiting);
    may_answer = true;
    MHD_resume_connection(waiting->connection);
    http_run_soon(http);
    assert_non_null(strstr(go_on("\r\n\r\n1", false), "200 OK"));
    end();
}

static int setup(void **state)
{
    folder_make(folder);
    signal(SIGPIPE, SIG_IGN);
    loop = ev_loop_new(0);
    assert_non_null(loop);
    return 0;
}

static int teardown(void **state)
{
    ev_loop_destroy(loop);
    folder_remove(folder);
    return 0;
}

TESTS(setup, teardown)
