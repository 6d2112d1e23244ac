/* weir serve, from outside, while many ask, Redis is away, or it ends. */
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/serving.h"
#include "tests/stage.h"

static long long calls(void)
{
    return server_calls(&server, "fcall_ro") + server_calls(&server, "fcall");
}

TEST_WITH(test_many_readers_ask_redis_once, serving_flush, NULL)
{
    int fds[200];
    long before, one;
    int64_t began_us;

    serving_fill();
    serving_start();
    before = calls();
    json_decref(serving_get("/api/rates/mail"));
    one = calls() - before;
    json_decref(serving_get("/api/rates"));
    before = calls();
    began_us = clock_mono_us();
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = http_open(serving.where);
        dprintf(fds[i], "GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    for (size_t i = 0; i < COUNT(fds); i++) {
        assert_true(http_receive(fds[i], false, &serving.reply));
        assert_int_equal(serving.reply.status, 200);
        close(fds[i]);
    }
    /* An answer is fresh for a second: of 200 a few. */
    assert_in_range(calls() - before, 1, (3 + (clock_mono_us() - began_us) / 1000000) * one + 10);
    serving_end();
}

/* Redis is 0.1 s away, and a check of all of it takes many calls: takes do not wait for it, nor for half a body. */
TEST(test_takes_wait_for_nothing_else)
{
    struct proxy *proxy = proxy_start(&server);
    int doctor, half;

    serving_flush(state);
    serving_fill();
    serving_weir("rate set api 1000/1h");
    serving_start_at(proxy_url(proxy), NULL, serving_all_flags);
    json_decref(serving_get("/api/doctor"));
    while (serving_status_of("GET", "/take/api", "", NULL) != 200)
        ;
    proxy_delay(proxy, PROXY_REPLIES, 100000);
    clock_sleep_until(clock_mono_us() + 1000000); /* the answer of before is not fresh any more */
    half = http_open(serving.where);
    dprintf(half, "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\n" NDJSON
                  "Content-Length: 1000000\r\n\r\n{\"type\":");
    doctor = http_open(serving.where);
    dprintf(doctor, "GET /api/doctor HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(serving_status_of("GET", "/take/api", "", NULL), 200);
    assert_int_equal(recv(doctor, &serving.reply, 1, MSG_PEEK | MSG_DONTWAIT), -1);
    assert_true(http_receive(doctor, false, &serving.reply));
    assert_int_equal(serving.reply.status, 200);
    close(doctor);
    close(half);
    serving_end();
    proxy_stop(proxy);
}

SERVING_TEST(test_redis_away)
{
    json_decref(serving_get("/api/status"));
    server_kill(&server);
    clock_sleep_until(clock_mono_us() + 1000000); /* as above */
    serving_refused("GET", "/api/status", "", NULL, 503, "error");
    serving_refused("GET", "/", "", NULL, 503, "http-equiv=\"refresh\"");
    assert_non_null(strstr(serving.reply.body, "data-away"));
    serving_refused("POST", "/api/queues/q/pause", FORM, "", 503, "error");
    serving_refused("POST", "/api/jobs", NDJSON, "{\"type\":\"a\"}", 503, "error");
    server_restart(&server);
    serving_act("/api/queues/q/pause", "create=true");
    json_decref(serving_get("/api/status"));
}

/* Who waits when it ends is answered. */
TEST_WITH(test_the_end, serving_flush, NULL)
{
    struct proxy *proxy = proxy_start(&server);
    int waits[3], asked;

    serving_start_at(proxy_url(proxy), NULL, serving_all_flags);
    json_decref(serving_get("/api/status"));
    serving_act("/api/queues/q/pause", "create=true"); /* what was read is not fresh any more */
    kill(server.pid, SIGSTOP);
    asked = proxy_trips(proxy);
    for (size_t i = 0; i < COUNT(waits); i++) {
        waits[i] = http_open(serving.where);
        dprintf(waits[i], "GET /api/%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                i == 0   ? "status"
                : i == 1 ? "queues"
                         : "rates");
    }
    for (size_t i = 0; i < COUNT(waits); i++)
        http_await_read(waits[i]);
    await(proxy_trips(proxy) > asked); /* the first is under way */
    kill(serving.pid, SIGTERM);
    for (size_t i = COUNT(waits); i-- > 0;) {
        if (i == 0)
            kill(server.pid, SIGCONT);
        assert_true(http_receive(waits[i], false, &serving.reply));
        assert_int_equal(serving.reply.status, i == 0 ? 200 : 503);
        close(waits[i]);
    }
    assert_int_equal(program_end(serving.pid), 0);
    serving.pid = 0;
    proxy_stop(proxy);
}

static int ask_hold(const char *tag)
{
    char body[80];
    int fd = http_open(serving.where);

    snprintf(body, sizeof body, "limit=gpu&ttl=1h&wait=60&tag=%s", tag);
    dprintf(fd, "POST /hold HTTP/1.1\r\nHost: localhost\r\n" FORM "Content-Length: %zu\r\n\r\n%s",
            strlen(body), body);
    return fd;
}

/* Who waits for a slot stands in line, and waits for no thread. Those who hang up meanwhile hold nothing: the one who stays has the slot. */
SERVING_TEST(test_who_hangs_up_while_it_waits_holds_nothing)
{
    int gone[12], stays;
    char tag[8];

    serving_weir("rate set gpu concurrency=1");
    assert_int_equal(serving_status_of("POST", "/hold", FORM, "limit=gpu&ttl=1h&tag=first"), 200);
    for (size_t i = 0; i < COUNT(gone); i++) {
        snprintf(tag, sizeof tag, "w%zu", i);
        gone[i] = ask_hold(tag);
    }
    await(server_number(&server, "ZCARD", "weir:{0}:line:gpu", NULL) == COUNT(gone));
    json_decref(serving_get("/api/status"));
    stays = ask_hold("stays");
    await(server_number(&server, "ZCARD", "weir:{0}:line:gpu", NULL) == COUNT(gone) + 1);
    for (size_t i = 0; i < COUNT(gone); i++)
        close(gone[i]);
    assert_int_equal(serving_status_of("POST", "/hold/gpu~first/end", FORM, ""), 200);
    assert_true(http_receive(stays, false, &serving.reply));
    assert_int_equal(serving.reply.status, 200);
    await(server_number(&server, "ZCARD", "weir:{0}:line:gpu", NULL) == 0);
    assert_int_equal(server_number(&server, "ZCARD", "weir:{0}:holds", NULL), 1);
    close(stays);
}

TESTS(serving_setup, serving_teardown)
