/* Who says which Redis it is: Sentinels and nodes of clusters over TLS, with logins and names of all kinds, far away, stalled, and such as
 * answer nonsense. test_sentinel and test_cluster have failovers. */
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/redis/sentinel.h"
#include "tests/both.h"
#include "tests/fake.h"
#include "tests/proxy.h"
#include "tests/secure.h"
#include "tests/several.h"
#include "tests/stage.h"

static struct server redis, sentinel;
static int port, sealed_port;           /* of the Redis */
static int sentinel_port, sentinel_tls; /* of the Sentinel */

/* "SCHEME://HOSTS...", thirty-two at a time. */
static const char *url(const char *format, ...) WEIR_PRINTF(1, 2);

static const char *url(const char *format, ...)
{
    static char made[32][600];
    static unsigned next;
    char *at = made[next++ % 32];
    va_list list;

    va_start(list, format);
    vsnprintf(at, sizeof made[0], format, list);
    va_end(list);
    return at;
}

static const char *number(int n)
{
    return url("%d", n);
}

static const char *file(const char *name)
{
    return url("%s/%s", redis.folder, name);
}

/* A Redis on both ports whose certificate is for localhost, and a Sentinel that knows it by several names. */
static int set_up(void **state)
{
    port = server_free_port();
    sentinel_port = server_free_port();
    sentinel_tls = server_free_port();
    server_start_with(&redis, false, (const char *const[]){"--port", number(port), NULL});
    issuer_make(redis.folder, "ca");
    certificate_make(redis.folder, "name", "ca", "DNS:localhost", 0);
    certificate_make(redis.folder, "both", "ca", "DNS:localhost,IP:127.0.0.1", 0);
    sealed_port = server_listen_tls(&redis, "name", "ca");
    server_do(&redis, "CONFIG", "SET", "bind", "127.0.0.1 ::1");
    server_start_sentinel(&sentinel, (const char *const[]){"--port",
                                                           number(sentinel_port),
                                                           "--tls-port",
                                                           number(sentinel_tls),
                                                           "--bind",
                                                           "127.0.0.1",
                                                           "::1",
                                                           "--tls-auth-clients",
                                                           "no",
                                                           "--tls-ca-cert-file",
                                                           file("ca.crt"),
                                                           "--tls-cert-file",
                                                           file("both.crt"),
                                                           "--tls-key-file",
                                                           file("both.key"),
                                                           "--sentinel",
                                                           "resolve-hostnames",
                                                           "yes",
                                                           "--sentinel",
                                                           "announce-hostnames",
                                                           "yes",
                                                           "--sentinel",
                                                           "monitor",
                                                           "weir",
                                                           "127.0.0.1",
                                                           number(port),
                                                           "1",
                                                           "--sentinel",
                                                           "monitor",
                                                           "six",
                                                           "::1",
                                                           number(port),
                                                           "1",
                                                           "--sentinel",
                                                           "monitor",
                                                           "a b/c?d%",
                                                           "127.0.0.1",
                                                           number(port),
                                                           "1",
                                                           "--sentinel",
                                                           "monitor",
                                                           "sealed",
                                                           "127.0.0.1",
                                                           number(sealed_port),
                                                           "1",
                                                           "--sentinel",
                                                           "monitor",
                                                           "named",
                                                           "localhost",
                                                           number(sealed_port),
                                                           "1",
                                                           NULL});
    return 0;
}

static int tear_down(void **state)
{
    server_stop(&sentinel);
    server_stop(&redis);
    return 0;
}

/* ---- Real ones */

TEST(names_of_masters_and_hosts)
{
    both_work(url("redis+sentinel://127.0.0.1:%d/weir", sentinel_port));
    both_work(url("redis+sentinel://localhost:%d/weir/0", sentinel_port));
    both_work(url("redis+sentinel://[::1]:%d/weir", sentinel_port));
    both_work(url("redis+sentinel://[::1]:%d,127.0.0.1:1/six", sentinel_port));
    both_work(url("redis+sentinel://127.0.0.1:%d/a%%20b%%2Fc%%3Fd%%25", sentinel_port));
    both_come_to(url("redis+sentinel://127.0.0.1:%d/wei", sentinel_port), WEIR_ECONFIG,
                 "know no master wei;");
}

TEST(sentinels_over_tls)
{
    const char *trust = url("cacert=%s", file("ca.crt"));

    both_work(url("rediss+sentinel://localhost:%d/named?%s", sentinel_tls, trust));
    both_work(url("rediss+sentinel://127.0.0.1:%d/named?%s", sentinel_tls, trust));
    both_come_to(url("rediss+sentinel://localhost:%d/sealed?%s", sentinel_tls, trust), WEIR_EUNREACHABLE,
                 "127.0.0.1 is named so by the Sentinels or nodes");
    both_work(url("rediss+sentinel://localhost:%d/sealed?%s&sni=localhost", sentinel_tls, trust));
    both_work(url("rediss+sentinel://localhost:%d/sealed?insecure=yes", sentinel_tls));
    both_come_to(url("rediss+sentinel://localhost:%d/named?db=0", sentinel_tls), WEIR_EUNREACHABLE,
                 "no Sentinel answers; of the last one: redis rediss://localhost");
    both_come_to(url("redis+sentinel://localhost:%d/named", sentinel_tls), WEIR_EUNREACHABLE,
                 "takes TLS only");
}

/* 10 ms of round trip to one; the other says nothing for longer than anybody waits. */
TEST(sentinels_far_away)
{
    struct proxy *far = proxy_start_to(&sentinel, sentinel_port),
                 *stalled = proxy_start_to(&sentinel, sentinel_port);
    const char *both =
        url("redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/weir", proxy_tcp_port(stalled), proxy_tcp_port(far));
    int64_t begin_us;

    proxy_delay(far, PROXY_REQUESTS, 5000);
    proxy_delay(far, PROXY_REPLIES, 5000);
    both_work(both);
    proxy_blackhole(stalled, true);
    begin_us = clock_mono_us();
    both_work(both);
    assert_in_range(clock_mono_us() - begin_us, 20000, 4900000); /* one is waited for for 5 s */
    proxy_stop(far);
    proxy_stop(stalled);
}

static bool is_whole(struct server *node)
{
    char *info = server_ask(node, "CLUSTER", "INFO", NULL);
    bool whole = strstr(info, "cluster_state:ok");

    free(info);
    return whole;
}

/* A node alone is a cluster. Its certificate is for localhost, it does not know its own address. */
TEST(a_cluster_over_tls)
{
    struct server node;
    const char *trust = url("cacert=%s", file("ca.crt")), *address;
    int node_port;

    node_port = server_free_port();
    server_start_with(
        &node, false,
        (const char *const[]){"--cluster-enabled", "yes", "--cluster-port", number(server_free_port()),
                              "--tls-port", number(node_port), "--tls-cluster", "yes", "--bind", "127.0.0.1",
                              "--tls-auth-clients", "no", "--tls-ca-cert-file", file("ca.crt"),
                              "--tls-cert-file", file("name.crt"), "--tls-key-file", file("name.key"), NULL});
    server_do(&node, "CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    await(is_whole(&node));
    address = url("rediss+cluster://localhost:%d?%s", node_port, trust);
    both_work(address);
    server_do(&node, "CONFIG", "SET", "cluster-announce-ip", "127.0.0.1");
    both_come_to(address, WEIR_EUNREACHABLE, "127.0.0.1 is named so by the Sentinels or nodes");
    server_do(&node, "CONFIG", "SET", "cluster-announce-hostname", "localhost",
              "cluster-preferred-endpoint-type", "hostname");
    both_work(address);
    server_stop(&node);
}

/* ---- Such as answer nonsense */

static const char *master_at(int at)
{
    static char text[100];
    const char *digits = textf("%d", at);

    snprintf(text, sizeof text, "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n", strlen(digits), digits);
    return text;
}

TEST(sentinels_that_make_no_sense)
{
    static char long_host[400];
    const char *const answers[] = {
        "+OK\r\n",
        ":1\r\n",
        "*2\r\n$-1\r\n$-1\r\n",
        "*2\r\n$0\r\n\r\n$4\r\n6379\r\n",
        "*2\r\n$9\r\n127.0.0.1\r\n:6379\r\n",
        "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n99999\r\n",
        "*2\r\n$9\r\n127.0.0.1\r\n$2\r\n-1\r\n",
        "*2\r\n$9\r\n127.0.0.1\r\n$1\r\nx\r\n",
        "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
        "*2\r\n*1\r\n$1\r\na\r\n*0\r\n",
        long_host,
    };
    struct fake *f = fake_start((const struct fake_line[]){{NULL, NULL, 0}});

    snprintf(long_host, sizeof long_host, "*2\r\n$300\r\n%0300d\r\n$4\r\n6379\r\n", 7);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const struct fake_line lines[] = {
            {"SENTINEL GET", answers[i], 0}, {"SENTINEL MASTER", "*0\r\n", 0}, {NULL, NULL, 0}};

        fake_say(f, lines);
        both_come_to(url("redis+sentinel://127.0.0.1:%d/weir", fake_port(f)), WEIR_EUNREACHABLE,
                     "make no sense");
    }
    fake_say(
        f, (const struct fake_line[]){{"SENTINEL", "HTTP/1.1 400 Bad Request\r\n\r\n", 0}, {NULL, NULL, 0}});
    both_come_to(url("redis+sentinel://127.0.0.1:%d/weir", fake_port(f)), WEIR_EUNREACHABLE,
                 "no Sentinel answers");
    fake_say(f, (const struct fake_line[]){{NULL, NULL, 0}}); /* closes */
    both_come_to(url("redis+sentinel://127.0.0.1:%d/weir", fake_port(f)), WEIR_EUNREACHABLE,
                 "no Sentinel answers");
    fake_stop(f);
}

/* It says without an end that there is another master, and it is the same one. */
TEST(a_sentinel_that_cries_wolf)
{
    const struct fake_line lines[] = {
        {"SENTINEL GET", master_at(port), 0},
        {"SENTINEL MASTER", "*2\r\n$12\r\nconfig-epoch\r\n$1\r\n7\r\n", 0},
        {"SUBSCRIBE",
         "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
         "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$12\r\nother a b c \r\n"
         "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$12\r\nweir a b c d\r\n",
         0},
        {NULL, NULL, 0}};
    struct fake *f = fake_start(lines);
    int64_t begin_us = clock_mono_us();
    struct linked l;

    both_open_link(&l, url("redis+sentinel://127.0.0.1:%d/weir", fake_port(f)));
    BOTH_RUN_UNTIL(&l, fake_heard(f, "SUBSCRIBE") > 4);
    assert_true(clock_mono_us() - begin_us >= 3 * 100000); /* each is asked, ten a second at most */
    assert_true(l.heard.up && !l.heard.down);
    both_close_link(&l);
    fake_stop(f);
}

/* A child of fork() holds the connection open that the Sentinel and this process have closed: it is not heard of again and again. */
TEST(a_child_holds_the_connection)
{
    const struct fake_line lines[] = {{"SENTINEL GET", master_at(port), 0},
                                      {"SENTINEL MASTER", "*0\r\n", 0},
                                      {NULL, NULL, 0}}; /* SUBSCRIBE ends it */
    struct fake *f = fake_start(lines);
    struct redis_address address, master;
    struct watch *watch;
    struct pollfd fd = {.events = POLLIN};
    struct error e;
    pid_t child;

    assert_int_equal(
        redis_address_parse(url("redis+sentinel://127.0.0.1:%d/weir", fake_port(f)), &address, &e), 0);
    assert_int_equal(sentinel_find(&address, &master, &watch, &e), 0);
    fd.fd = watch_fd(watch);
    await(poll(&fd, 1, 0) == 1);
    child = fork();
    if (child == 0) {
        sleep(30);
        _exit(0);
    }
    watch_hear(watch);
    assert_int_equal(poll(&fd, 1, 0), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    watch_free(watch);
    fake_stop(f);
}

/* One range for all slots, at that port of 127.0.0.1. */
static const char *all_slots_at(int at)
{
    static char text[100];

    snprintf(text, sizeof text, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", at);
    return text;
}

/* It works on after some refusals that mean: later. */
TEST(nodes_that_refuse_for_a_while)
{
    static const char *const refusals[] = {
        "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        "-CLUSTERDOWN The cluster is down\r\n",
        "-ASK 13907 127.0.0.1:1\r\n",
        "-MOVED 13907 127.0.0.1:1\r\n",
        "-MOVED nonsense\r\n",
    };
    struct fake *f = fake_start((const struct fake_line[]){{NULL, NULL, 0}});
    struct redis *r = both_redis(url("redis+cluster://127.0.0.1:%d", fake_port(f)));
    struct redisReply *reply;
    struct error e;

    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct fake_line lines[] = {{"CLUSTER SLOTS", all_slots_at(fake_port(f)), 0},
                                          {"ROLE", "*1\r\n$6\r\nmaster\r\n", 0},
                                          {"FUNCTION", "+weir\r\n", 0},
                                          {"INCR", refusals[i], 2},
                                          {"INCR", ":7\r\n", 0},
                                          {"", "+OK\r\n", 0},
                                          {NULL, NULL, 0}};

        fake_say(f, lines);
        if (both_call(r, "INCR", "k", 1, &reply, &e) != 0)
            fail_msg("%s: %s", refusals[i], e.text);
        assert_int_equal(reply->integer, 7);
        assert_int_equal(fake_heard(f, "INCR"), 3 * (i + 1));
        freeReplyObject(reply);
    }
    redis_free(r);
    fake_stop(f);
}

/* What is asked on a thread meanwhile, since it takes its time to fail. */
struct slow {
    const char *to, *says;
    pthread_t thread;
    struct error e;
};

static void *ask_slowly(void *arg)
{
    struct slow *s = arg;
    struct redis *r = both_redis(s->to);
    struct redisReply *reply;

    if (both_call(r, "INCR", "k", 1, &reply, &s->e) == 0)
        freeReplyObject(reply);
    redis_free(r);
    return NULL;
}

/* A node that sends everybody back to itself, a plain port that is spoken to by TLS, Sentinels that say nothing: all come to an end. */
TEST(what_fails_late)
{
    struct fake *circle = fake_start((const struct fake_line[]){{NULL, NULL, 0}});
    struct fake *silent = fake_start((const struct fake_line[]){{"", "", 0}, {NULL, NULL, 0}});
    const struct fake_line lines[] = {{"CLUSTER SLOTS", all_slots_at(fake_port(circle)), 0},
                                      {"INCR", "-MOVED 13907 127.0.0.1:1\r\n", 0},
                                      {"", "+OK\r\n", 0},
                                      {NULL, NULL, 0}};
    struct slow all[] = {
        {.to = url("redis+cluster://127.0.0.1:%d", fake_port(circle)), .says = "keys are not there now"},
        {.to = url("rediss+sentinel://127.0.0.1:%d/weir?insecure=yes", sentinel_port),
         .says = "no answer to the TLS handshake"},
        {.to = url("redis+sentinel://127.0.0.1:%d/weir", fake_port(silent)), .says = "no Sentinel answers"},
    };

    fake_say(circle, lines);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&all[i].thread, NULL, ask_slowly, &all[i]), 0);
    for (size_t i = 0; i < 3; i++) {
        pthread_join(all[i].thread, NULL);
        both_check(all[i].to, all[i].e.status, &all[i].e, WEIR_EUNREACHABLE, all[i].says);
    }
    assert_in_range(fake_heard(circle, "INCR"), 10, 200);
    fake_stop(circle);
    fake_stop(silent);
}

TEST(nodes_that_make_no_sense)
{
    static const struct {
        const char *answer, *says;
    } cases[] = {
        {"+OK\r\n", "no node of the cluster holds slot"},
        {"*0\r\n", "no node of the cluster holds slot"},
        {"*1\r\n*0\r\n", "no node of the cluster holds slot"},
        {"*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n", "no node of the cluster holds slot"},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:0\r\n", "no node of the cluster holds slot"},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n*1\r\n$9\r\n127.0.0.1\r\n", "no node of the cluster holds slot"},
        {"*1\r\n*3\r\n:0\r\n:16383\r\n$1\r\nx\r\n", "no node of the cluster holds slot"},
        {"*1\r\n*3\r\n$1\r\n0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
         "no node of the cluster holds slot"},
        {"*99999999999\r\n", "no node of the cluster answers"},
        {"-ERR This instance has cluster support disabled\r\n", "no node of a cluster"},
    };
    struct fake *f = fake_start((const struct fake_line[]){{NULL, NULL, 0}});

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fake_line says[] = {{"CLUSTER SLOTS", cases[i].answer, 0}, {NULL, NULL, 0}};

        fake_say(f, says);
        both_come_to(url("redis+cluster://127.0.0.1:%d", fake_port(f)),
                     strstr(cases[i].answer, "disabled") ? WEIR_ECONFIG : WEIR_EUNREACHABLE, cases[i].says);
    }
    fake_stop(f);
}

/* Every slot stands alone: 16,384 ranges, 10 MB. */
TEST(a_cluster_in_pieces)
{
    enum { FIRST = 12288, SLOTS = 4096, RANGE = 120 };
    char *text = malloc(SLOTS * RANGE + 64), *at = text;
    struct fake *f = fake_start((const struct fake_line[]){{NULL, NULL, 0}});
    struct fake_line lines[] = {{"CLUSTER SLOTS", text, 0},
                                {"ROLE", "*1\r\n$6\r\nmaster\r\n", 0},
                                {"FUNCTION", "+weir\r\n", 0},
                                {"PING", "+PONG\r\n", 0},
                                {NULL, NULL, 0}};

    assert_non_null(text);
    at += sprintf(at, "*%d\r\n", SLOTS);
    for (int slot = FIRST; slot < FIRST + SLOTS; slot++)
        at += sprintf(at, "*4\r\n:%d\r\n:%d\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n$40\r\n%040d\r\n", slot, slot,
                      slot == 13907 ? fake_port(f) : 1, slot);
    fake_say(f, lines);
    both_work(url("redis+cluster://127.0.0.1:%d", fake_port(f)));
    fake_stop(f);
    free(text);
}

/* The last one turns off the user without a password. */
TEST(logins_at_sentinels)
{
    server_do(&sentinel, "ACL", "SETUSER", "heard", "on", ">pw", "-@all", "+sentinel|get-master-addr-by-name",
              "+sentinel|master", "+subscribe", "&+switch-master");
    server_do(&sentinel, "ACL", "SETUSER", "deaf", "on", ">pw", "-@all", "+sentinel|get-master-addr-by-name",
              "+sentinel|master");
    server_do(&sentinel, "ACL", "SETUSER", "poor", "on", ">pw", "-@all");
    server_do(&sentinel, "ACL", "SETUSER", "default", "resetpass", ">s3cret");
    both_work(
        url("redis+sentinel://127.0.0.1:%d/weir?sentinel-user=heard&sentinel-password=pw", sentinel_port));
    both_work(
        url("redis+sentinel://127.0.0.1:%d/weir?sentinel-user=deaf&sentinel-password=pw", sentinel_port));
    both_work(url("redis+sentinel://127.0.0.1:%d/weir?sentinel-password=s3cret", sentinel_port));
    both_come_to(
        url("redis+sentinel://127.0.0.1:%d/weir?sentinel-user=poor&sentinel-password=pw", sentinel_port),
        WEIR_EREFUSED, "'sentinel|get-master-addr-by-name' command; write their login");
    both_come_to(
        url("redis+sentinel://127.0.0.1:%d/weir?sentinel-user=heard&sentinel-password=no", sentinel_port),
        WEIR_EREFUSED, "the Sentinels refuse: Redis: refused");
    both_come_to(
        url("redis+sentinel://127.0.0.1:%d/weir", sentinel_port), WEIR_EREFUSED,
        "the Sentinels refuse: Redis: wants a password (NOAUTH Authentication required.); write their login");
}

TESTS(set_up, tear_down)
