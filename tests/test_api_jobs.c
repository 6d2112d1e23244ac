/* weir serve, from outside: jobs that come by POST, and clients that are strange or slow. */
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/client.h"
#include "tests/proxy.h"
#include "tests/serving.h"
#include "tests/stage.h"

/* ---- Jobs */

static long long waiting(const char *queue)
{
    const char *key = textf("weir:{0}:queue:%s", queue);

    return server_number(&server, "LLEN", key, NULL);
}

#define MANY 20000

/* MANY lines; the caller's. */
static char *many_lines(void)
{
    char *text = malloc(MANY * 40), *at = text;

    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "{\"type\":\"mail\",\"args\":%d}\n", i);
    return text;
}

/* The connection is lost, or weir serve is killed, in the midst of a named batch: the same request again takes what is
 * left. */
TEST_WITH(test_a_named_batch_arrives_exactly_once, serving_flush, NULL)
{
    struct proxy *proxy = proxy_start(&server);
    char *lines = many_lines();

    for (unsigned cut = 6; cut < 10; cut++) {
        char path[64];
        int fd;

        server_do(&server, "FLUSHALL");
        serving_start_at(proxy_url(proxy), NULL, serving_all_flags);
        json_decref(serving_get("/api/queues")); /* the functions are there */
        snprintf(path, sizeof path, "/api/jobs?batch=b%u", cut);
        proxy_kill_before(proxy, PROXY_REPLIES, cut, serving.pid);
        fd = http_open(serving.where);
        dprintf(fd, "POST %s HTTP/1.1\r\nHost: localhost\r\n" NDJSON "Content-Length: %zu\r\n\r\n", path,
                strlen(lines));
        (void)http_send(fd, lines, strlen(lines));
        waitpid(serving.pid, NULL, 0);
        serving.pid = 0;
        close(fd);
        serving_start_at(NULL, NULL, serving_all_flags);
        assert_int_equal(serving_status_of("POST", path, NDJSON, lines), 200);
        assert_int_equal(waiting("default"), MANY);
        assert_int_equal(serving_status_of("POST", path, NDJSON, lines), 200);
        assert_non_null(strstr(serving.reply.body, "\"resumed\":20000,\"accepted\":0"));
        assert_int_equal(waiting("default"), MANY);
        serving_end();
    }
    free(lines);
    proxy_stop(proxy);
}

TEST_WITH(test_a_body_that_is_too_large, serving_flush, NULL)
{
    char *large = malloc(2 * 1024 * 1024 + 1);
    int fd;

    memset(large, ' ', 2 * 1024 * 1024);
    large[2 * 1024 * 1024] = '\0';
    serving_start();
    fd = http_open(serving.where);
    dprintf(fd, "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\n" JSON "Content-Length: 99999999999\r\n\r\n");
    assert_true(http_receive(fd, false, &serving.reply)); /* before its body */
    assert_int_equal(serving.reply.status, 413);
    close(fd);
    fd = http_open(serving.where);
    dprintf(fd,
            "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\n" JSON "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
            strlen(large));
    assert_true(http_send(fd, large, strlen(large)));
    dprintf(fd, "\r\n0\r\n\r\n");
    assert_true(http_receive(fd, false, &serving.reply));
    assert_int_equal(serving.reply.status, 413);
    close(fd);
    serving_refused("POST", "/api/rates/a", FORM, large, 413, "too large");
    serving_end();
    free(large);
}

/* What a proxy and we could take for different requests is refused, and nothing behind it is done. */
SERVING_TEST(test_a_body_of_two_lengths)
{
    int fd;

    fd = http_open(serving.where);
    dprintf(fd, "POST /api/queues/a/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                "4\r\nTransfer-Encoding: chunked\r\n\r\n"
                "0\r\n\r\nPOST /api/queues/b/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert_true(http_receive(fd, false, &serving.reply));
    assert_int_equal(serving.reply.status, 400);
    assert_false(http_receive(fd, false, &serving.reply));
    close(fd);
    json_decref(serving_get("/api/queues"));
    assert_null(strstr(serving.reply.body, "since\":1"));
}

/* Heads of a megabyte, no head at all, versions, methods: each is answered, and what follows is answered too. */
SERVING_TEST(test_strange_requests)
{
    static const struct {
        const char *begin, *fill, *end;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "a", "\r\n\r\n", 431},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n", "X: a\r\n", "\r\n", 431},
        {"GET /jobs?q=", "a", " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414},
        {"GET / HTTP/1.0\r\n\r\n", "", "", 200},
        {"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "", 200},
        {"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "", 405},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "", "", 400},
        {"GET /jobs/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "", 404},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd = http_open(serving.where);
        bool sent = http_send(fd, cases[i].begin, strlen(cases[i].begin));

        for (size_t n = 0; *cases[i].fill && sent && n < (1 << 20); n += strlen(cases[i].fill))
            sent = http_send(fd, cases[i].fill, strlen(cases[i].fill));
        (void)(sent &&
               http_send(fd, cases[i].end, strlen(cases[i].end))); /* it may be answered before its end */
        if (!http_receive(fd, true, &serving.reply) || serving.reply.status != cases[i].status)
            fail_msg("%s: %d %s", cases[i].begin, serving.reply.status, serving.reply.head);
        close(fd);
        json_decref(serving_get("/api/status"));
    }
}

/* Hundreds of clients that send their heads byte by byte hold up nobody. */
TEST_WITH(test_slow_clients, serving_flush, NULL)
{
    static const char head[] = "GET /api/status HTTP/1.1\r\nHost: localhost\r\n";
    int slow[900];

    serving_weir("rate set api 1000/1h");
    serving_start();
    for (size_t i = 0; i < COUNT(slow); i++)
        slow[i] = http_open(serving.where);
    for (size_t k = 0; k < 10; k++) {
        for (size_t i = 0; i < COUNT(slow); i++)
            assert_true(http_send(slow[i], head + k, 1));
        assert_int_equal(serving_status_of("GET", "/take/api", "", NULL), 200);
        assert_int_equal(serving_status_of("GET", "/", "", NULL), 200);
    }
    for (size_t i = 0; i < COUNT(slow); i++)
        close(slow[i]);
    serving_end();
}

TESTS(serving_setup, serving_teardown)
