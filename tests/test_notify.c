/* What systemd hears of weir worker and weir serve: a socket of the test's own stands for its one. */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/clock.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/stage.h"

#define HEARS_MS 60000

static int heard_at = -1;
static char heard[1024]; /* the last message */

/* Listens in the stage's folder, or at a name that has no file; programs that are started from now on know of it. */
static void listen_as_systemd(struct stage *s, bool abstract)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *name = textf("%s%s/notify", abstract ? "@" : "", s->server.folder);

    memcpy(at.sun_path, name, strlen(name));
    if (abstract)
        at.sun_path[0] = '\0';
    heard_at = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(heard_at, (const struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "60000000", 1);
}

static void end_listening(void)
{
    close(heard_at);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
}

static const char *hear(void)
{
    struct pollfd ready = {.fd = heard_at, .events = POLLIN};
    ssize_t len;

    if (poll(&ready, 1, HEARS_MS) != 1)
        fail_msg("nothing more was heard");
    len = recv(heard_at, heard, sizeof heard - 1, 0);
    assert_true(len > 0);
    heard[len] = '\0';
    return heard;
}

/* Goes on until a message has that line. */
static void hear_line(const char *line)
{
    char text[sizeof heard + 2];
    const char *wanted = textf("\n%s\n", line);

    do
        snprintf(text, sizeof text, "\n%s\n", hear());
    while (!strstr(text, wanted));
}

STAGE_TEST(worker_says_what_it_does)
{
    char environment[16384];
    pid_t worker;

    listen_as_systemd(s, false);
    worker = stage_weir(s, "worker", "--exec", "run=sh -c 'env >environment'", "-c", "3", NULL);
    hear_line("READY=1");
    stage_await_workers(s, 1);
    hear_line("WATCHDOG=1");
    stage_enqueue(s, "run", NULL, 0, 5);
    hear_line("STATUS=0 of 3 executors busy, 5 jobs ended");
    assert_int_equal(kill(worker, SIGTSTP), 0);
    hear_line("STATUS=takes no more jobs: 0 of 3 executors busy, 5 jobs ended");
    assert_int_equal(stage_end(worker), 0);
    assert_true(read_text(s->server.folder, "environment", environment, sizeof environment));
    assert_non_null(strstr(environment, "WEIR_JOB_ID="));
    assert_null(strstr(environment, "NOTIFY_SOCKET"));
    assert_null(strstr(environment, "WATCHDOG_USEC"));
    end_listening();
}

/* A Redis that takes what is asked and does not answer: until that is an error, no turn ends, and nothing but the clock goes on. */
STAGE_TEST(only_a_turn_is_a_sign_of_life)
{
    struct proxy *proxy = proxy_start(&s->server);
    pid_t worker;

    listen_as_systemd(s, true);
    worker = stage_weir(s, "worker", "--redis", proxy_url(proxy), "--exec", "run=true", NULL);
    hear_line("READY=1");
    hear_line("WATCHDOG=1");
    proxy_blackhole(proxy, true);
    while (strstr(hear(), "WATCHDOG=1"))
        ;
    assert_non_null(strstr(heard, "STATUS=0 of 10 executors busy"));
    do
        hear();
    while (strstr(heard, "executors busy"));
    assert_non_null(strstr(heard, "WATCHDOG=1")); /* it knows that Redis is away: it lives */
    proxy_blackhole(proxy, false);
    hear_line("STATUS=0 of 10 executors busy, 0 jobs ended");
    hear_line("WATCHDOG=1");
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(proxy);
    end_listening();
}

STAGE_TEST(not_ready_without_redis)
{
    pid_t worker;

    listen_as_systemd(s, false);
    worker = stage_weir(s, "worker", "--redis", "unix:///nowhere/at/all", "--exec", "run=true", NULL);
    assert_non_null(strstr(hear(), "STATUS="));
    assert_null(strstr(heard, "READY=1"));
    assert_null(strstr(hear(), "READY=1"));
    assert_non_null(strstr(heard, "WATCHDOG=1"));
    assert_int_equal(stage_end(worker), 0);
    end_listening();
}

STAGE_TEST(serve_is_ready)
{
    char socket[128];
    pid_t serve;

    listen_as_systemd(s, false);
    snprintf(socket, sizeof socket, "unix:%s/http", s->server.folder);
    serve = program_start(
        s->server.folder, "serve",
        (const char *[]){built("weir"), "serve", "--listen", socket, "--redis", s->server.url, NULL});
    assert_string_equal(hear(), "READY=1");
    assert_int_equal(access(socket + strlen("unix:"), R_OK), 0);
    assert_int_equal(kill(serve, SIGTERM), 0);
    assert_string_equal(hear(), "STOPPING=1");
    assert_int_equal(program_end(serve), 0);
    end_listening();
}

STAGE_TESTS(NULL, NULL)
