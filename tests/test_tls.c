/* rediss://: both kinds of connection over TLS, and a line for each way it fails. */
#include <dirent.h>
#include <ev.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/both.h"
#include "tests/proxy.h"
#include "tests/secure.h"
#include "tests/stage_group.h"

#define DAY_US INT64_C(86400000000)
#define HOST "DNS:localhost,IP:127.0.0.1"
#define MEBIBYTE (1024 * 1024)

static int port;
static char url[200], trust[160]; /* rediss://localhost:PORT?cacert=..., "cacert=..." */

static const char *folder(void)
{
    return stage.server.folder;
}

static int set_up(void **state)
{
    stage_start(state);
    issuer_make(folder(), "ca");
    issuer_make(folder(), "other");
    certificate_make(folder(), "good", "ca", HOST, 0);
    port = server_listen_tls(&stage.server, "good", "ca");
    snprintf(trust, sizeof trust, "cacert=%s/ca.crt", folder());
    snprintf(url, sizeof url, "rediss://localhost:%d?%s", port, trust);
    return 0;
}

/* ---- Certificates */

TEST(the_certificate_is_checked)
{
    both_work(url);
    both_work(textf("rediss://127.0.0.1:%d?%s", port, trust));
    both_work(textf("rediss://localhost:%d?insecure=yes", port));
    both_come_to(textf("rediss://localhost:%d?db=0", port), WEIR_EUNREACHABLE,
                 "issuer that is not known here");
    both_come_to(textf("rediss://localhost:%d?cacert=%s/other.crt", port, folder()), WEIR_EUNREACHABLE,
                 "issuer that is not known here");
    both_come_to(textf("rediss://localhost:%d?%s&sni=redis.example", port, trust), WEIR_EUNREACHABLE,
                 "not for the name redis.example");
}

TEST(system_issuers)
{
    setenv("SSL_CERT_FILE", textf("%s/ca.crt", folder()), 1); /* as if it were the system's */
    both_work(textf("rediss://localhost:%d?db=0", port));
    unsetenv("SSL_CERT_FILE");
}

TEST(a_folder_of_issuers)
{
    char text[4096];
    struct outcome o;
    const char *issuers = textf("%s/issuers", folder());

    assert_int_equal(mkdir(issuers, 0777), 0);
    assert_true(read_text(folder(), "ca.crt", text, sizeof text));
    write_text(issuers, "ca.pem", text);
    run_in(&o, NULL, "/usr/bin/env", "openssl", "rehash", issuers, NULL);
    assert_int_equal(o.code, 0);
    both_work(textf("rediss://localhost:%d?cacertdir=%s", port, issuers));
}

TEST(bad_certificates)
{
    static const struct {
        const char *name, *issuer, *names;
        int64_t shift_us;
        const char *says;
    } cases[] = {
        {"old", "ca", HOST, -2 * DAY_US, "has expired"},
        {"new", "ca", HOST, 2 * DAY_US, "not yet valid"},
        {"elsewhere", "ca", "DNS:redis.example,IP:10.1.2.3", 0, "not for the name localhost"},
        {"foreign", "other", HOST, 0, "issuer that is not known here"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        certificate_make(folder(), cases[i].name, cases[i].issuer, cases[i].names, cases[i].shift_us);
        server_show(&stage.server, cases[i].name);
        both_come_to(url, WEIR_EUNREACHABLE, cases[i].says);
        both_work(textf("rediss://localhost:%d?insecure=yes", port));
    }
    server_show(&stage.server, "elsewhere");
    both_come_to(textf("rediss://127.0.0.1:%d?%s", port, trust), WEIR_EUNREACHABLE,
                 "not for the address 127.0.0.1");
    both_work(textf("rediss://127.0.0.1:%d?%s&sni=redis.example", port, trust));
    both_work(textf("rediss://localhost:%d?%s&sni=10.1.2.3", port, trust));
    server_show(&stage.server, "good");
}

static void set(const char *name, const char *value)
{
    char *answer = server_ask(&stage.server, "CONFIG", "SET", name, value, NULL);

    assert_string_equal(answer, "OK");
    free(answer);
}

TEST(a_certificate_of_ours)
{
    static const char *const versions[] = {"TLSv1.3", "TLSv1.2"};
    char ours[400];

    certificate_make(folder(), "client", "ca", "DNS:client", 0);
    certificate_make(folder(), "stranger", "other", "DNS:client", 0);
    snprintf(ours, sizeof ours, "%s&cert=%s/client.crt&key=%s/client.key", trust, folder(), folder());
    set("tls-auth-clients", "yes");
    for (int i = 0; i < 2; i++) {
        set("tls-protocols", versions[i]);
        both_come_to(url, WEIR_EUNREACHABLE, "--tls-cert");
        both_come_to(textf("rediss://localhost:%d?%s&cert=%s/stranger.crt&key=%s/stranger.key", port, trust,
                           folder(), folder()),
                     WEIR_EUNREACHABLE, "--tls-cert");
        both_work(textf("rediss://localhost:%d?%s", port, ours));
    }
    set("tls-protocols", "");
    set("tls-auth-clients", "optional");
}

/* As of systemd. */
TEST(files_of_credentials)
{
    setenv("CREDENTIALS_DIRECTORY", folder(), 1);
    both_work(textf("rediss://localhost:%d?cacert=ca.crt&cert=client.crt&key=client.key", port));
    both_come_to(textf("rediss://localhost:%d?cacert=none", port), WEIR_ECONFIG,
                 "/none: cannot be read: No such file");
    unsetenv("CREDENTIALS_DIRECTORY");
}

TEST(unusable_files)
{
    static const struct {
        const char *parameters, *says;
    } cases[] = {
        {"cacert=nowhere.crt", "--tls-cacert nowhere.crt: cannot be read: No such file"},
        {"cacert=%s/empty", "/empty: holds no certificate"},
        {"cacertdir=%s/nowhere", "--tls-cacertdir"},
        {"insecure=yes&cert=%s/nowhere", "--tls-cert"},
        {"insecure=yes&cert=%s/empty", "holds no certificate"},
        {"insecure=yes&cert=%s/good.crt", "holds no private key"},
        {"insecure=yes&cert=%s/good.crt&key=%s/nowhere", "--tls-key"},
        {"insecure=yes&cert=%s/good.crt&key=%s/empty", "holds no private key"},
        {"insecure=yes&cert=%s/good.crt&key=%s/ca.key", "is not the key of the certificate"},
        {"insecure=yes&cert=%s/good.crt&key=%s/locked.key", "is encrypted"},
    };
    struct outcome o;
    char both[8192], key[4096], parameters[400];

    write_text(folder(), "empty", "");
    run_in(&o, folder(), "/usr/bin/env", "openssl", "pkey", "-in", "good.key", "-aes256", "-passout",
           "pass:x", "-out", "locked.key", NULL);
    assert_int_equal(o.code, 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *rest = cases[i].parameters;
        size_t len = 0;

        for (; *rest; rest += strncmp(rest, "%s", 2) == 0 ? 2 : 1)
            len += (size_t)(strncmp(rest, "%s", 2) == 0
                                ? snprintf(parameters + len, sizeof parameters - len, "%s", folder())
                                : snprintf(parameters + len, sizeof parameters - len, "%c", *rest));
        both_come_to(textf("rediss://localhost:%d?%s", port, parameters), WEIR_ECONFIG, cases[i].says);
    }
    assert_true(read_text(folder(), "good.crt", both, 4096) &&
                read_text(folder(), "good.key", key, sizeof key));
    write_text(folder(), "both.pem", strcat(both, key));
    both_work(textf("rediss://localhost:%d?%s&cert=%s/both.pem", port, trust, folder()));
}

/* ---- What is no TLS of ours */

/* Both kinds of connection come to that when this is the first thing that the other side says. */
static void answered_with(const char *bytes, const char *scheme, const char *parameters, const char *says)
{
    for (int i = 0; i < 2; i++) {
        struct proxy *proxy = proxy_start(&stage.server);
        const char *to = textf("%s:%d?%s", scheme, proxy_tcp_port(proxy), parameters);
        struct error e;

        proxy_inject(proxy, bytes);
        both_check(to, i ? both_try_link(to, &e) : both_try_blocking(to, &e), &e, WEIR_EUNREACHABLE, says);
        proxy_stop(proxy);
    }
}

TEST(a_plain_answer)
{
    answered_with("-ERR unknown command\r\n", "rediss://localhost", trust, "speaks no TLS on this port");
}

static void *try_on_thread(void *arg)
{
    struct error *e = arg;

    both_try_blocking(e->text, e);
    return NULL;
}

/* Redis waits for the end of what it takes for a command. Both at once, as each takes five seconds. */
TEST(a_plain_port)
{
    struct proxy *proxy = proxy_start(&stage.server);
    const char *to = textf("rediss://localhost:%d?%s", proxy_tcp_port(proxy), trust);
    struct error blocking, linked;
    pthread_t thread;

    proxy_blackhole(proxy, true);
    snprintf(blocking.text, sizeof blocking.text, "%s", to);
    assert_int_equal(pthread_create(&thread, NULL, try_on_thread, &blocking), 0);
    both_try_link(to, &linked);
    pthread_join(thread, NULL);
    both_check(to, blocking.status, &blocking, WEIR_EUNREACHABLE, "a plain one (redis://)");
    both_check(to, linked.status, &linked, WEIR_EUNREACHABLE, "no answer to the TLS handshake within 5 s");
    proxy_stop(proxy);
}

TEST(a_tls_port_in_plain)
{
    both_come_to(textf("redis://localhost:%d?db=0", port), WEIR_EUNREACHABLE, "takes TLS only (rediss://)");
    answered_with("\x15\x03\x03", "redis://localhost", "db=0", "write rediss://");
}

TEST(too_old)
{
    static const char *const servers[] = {"-tls1", "-tls1_1"};
    char accept[24], text[512];

    for (int i = 0; i < 2; i++) {
        const char *to;
        pid_t pid;

        pid = program_start(folder(), servers[i],
                            (const char *const[]){"/usr/bin/env", "openssl", "s_server", "-www", "-accept",
                                                  "127.0.0.1:0", servers[i], "-cipher", "ALL:@SECLEVEL=0",
                                                  "-cert", "good.crt", "-key", "good.key", NULL});
        snprintf(accept, sizeof accept, "%s.out", servers[i]);
        await_text(folder(), accept, "ACCEPT");
        assert_true(read_text(folder(), accept, text, sizeof text));
        to = textf("rediss://localhost:%d?%s", atoi(strrchr(text, ':') + 1), trust);
        both_come_to(to, WEIR_EUNREACHABLE, "no TLS of version 1.2 or newer");
        kill(pid, SIGKILL);
        program_end(pid);
    }
}

/* ---- Bytes */

static size_t echo(struct redis *r, const char *word, size_t len)
{
    struct redisReply *reply;
    struct error e;
    size_t came;

    if (both_call(r, "ECHO", word, len, &reply, &e) != 0)
        fail_msg("%s", e.text);
    assert_memory_equal(reply->str, word, len);
    came = reply->len;
    freeReplyObject(reply);
    return came;
}

static void on_answer(void *arg, const struct redisReply *reply)
{
    ((struct linked *)arg)->heard.len = reply ? reply->len : 0;
}

static void echo_by_link(struct linked *l, const char *word, size_t len)
{
    struct args a = {0};

    l->heard.len = 0;
    args_add(&a, "ECHO");
    args_add_bytes(&a, word, len);
    link_send(l->link, &a, 20, on_answer, l);
    BOTH_RUN_UNTIL(l, l->heard.len > 0);
    assert_int_equal(l->heard.len, len);
}

/* Of every size around those of records, whole and byte by byte. */
TEST(records)
{
    static const size_t sizes[] = {1, 16300, 16384, 16385, 70000, 8 * MEBIBYTE};
    struct proxy *proxy = proxy_start_to(&stage.server, port);
    const char *to = textf("rediss://localhost:%d?%s", proxy_tcp_port(proxy), trust);
    struct redis *r = both_redis(to);
    char *word = malloc(8 * MEBIBYTE);
    struct linked l;

    for (size_t i = 0; i < 8 * MEBIBYTE; i++)
        word[i] = (char)(i * 31 + i / 1000);
    both_open_link(&l, to);
    BOTH_RUN_UNTIL(&l, l.heard.up);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(echo(r, word, sizes[i]), sizes[i]);
        echo_by_link(&l, word, sizes[i]);
    }
    proxy_trickle(proxy, true);
    assert_int_equal(echo(r, word, 17000), 17000);
    echo_by_link(&l, word, 17000);
    redis_free(r);
    both_close_link(&l);
    both_work(to);
    free(word);
    proxy_stop(proxy);
}

/* Everything that was received is decrypted: no answer waits for the next one to come. */
TEST(many_small_answers)
{
    struct redis *r = both_redis(url);
    struct redisReply *reply;
    struct error e;
    struct args a = {0};

    args_add(&a, "PING");
    for (int i = 0; i < 20000; i++)
        assert_int_equal(redis_append(r, &a, &e), 0);
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(redis_result(r, &reply, &e), 0);
        freeReplyObject(reply);
    }
    args_free(&a);
    redis_free(r);
}

/* ---- Ends */

TEST(cut_anywhere)
{
    struct proxy *proxy = proxy_start_to(&stage.server, port);
    const char *to = textf("rediss://localhost:%d?%s", proxy_tcp_port(proxy), trust);

    for (size_t n = 1; n < 1000; n += 70) {
        enum proxy_side side = n / 70 % 2 ? PROXY_REQUESTS : PROXY_REPLIES;
        size_t after = side == PROXY_REQUESTS ? n / 3 + 1 : n; /* a client says less than it is answered */
        struct error e;

        proxy_cut_after_bytes(proxy, side, after);
        both_check(to, both_try_blocking(to, &e), &e, WEIR_EUNREACHABLE, "");
        proxy_cut_after_bytes(proxy, side, after);
        both_check(to, both_try_link(to, &e), &e, WEIR_EUNREACHABLE, "");
    }
    both_work(to);
    proxy_stop(proxy);
}

/* Redis dies while a handshake is under way. */
TEST(killed_in_the_handshake)
{
    struct proxy *proxy = proxy_start_to(&stage.server, port);
    const char *to = textf("rediss://localhost:%d?%s", proxy_tcp_port(proxy), trust);
    struct linked l;

    proxy_stall(proxy, PROXY_REPLIES, 200000);
    both_open_link(&l, to);
    while (proxy_accepted(proxy) == 0)
        ev_run(l.loop, EVRUN_ONCE);
    server_kill(&stage.server);
    BOTH_RUN_UNTIL(&l, l.heard.down);
    assert_int_equal(l.heard.why.status, WEIR_EUNREACHABLE);
    server_restart(&stage.server);
    BOTH_RUN_UNTIL(&l, l.heard.up);
    both_close_link(&l);
    proxy_stop(proxy);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

TEST(a_hundred_connections)
{
    int before = open_files();
    struct error e;

    for (int i = 0; i < 100; i++)
        if (both_try_blocking(url, &e) != 0)
            fail_msg("%s", e.text);
    assert_true(open_files() <= before); /* what a proxy had may close meanwhile */
}

/* Idle, and the peer goes: the next call opens another connection. */
TEST(an_idle_connection_that_ended)
{
    struct redis *r = both_redis(url);
    struct error e;

    assert_int_equal(both_ping(r, &e), 0);
    stage_do(&stage, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    assert_int_equal(both_ping(r, &e), 0);
    redis_free(r);
}

/* A child that frees its parent's connection says nothing on it. */
TEST(a_child)
{
    struct redis *r = both_redis(url);
    long long connections;
    struct error e;
    pid_t pid;

    assert_int_equal(both_ping(r, &e), 0);
    pid = fork();
    if (pid == 0) {
        int failed = both_ping(r, &e);

        redis_free(r);
        _exit(failed != 0);
    }
    assert_int_equal(program_end(pid), 0);
    connections = server_number(
        &stage.server, "EVAL", "return redis.call('INFO', 'stats'):match('total_connections_received:(%d+)')",
        "0", NULL);
    assert_int_equal(both_ping(r, &e), 0);
    assert_int_equal(
        stage_number(&stage, "EVAL",
                     "return redis.call('INFO', 'stats'):match('total_connections_received:(%d+)')", "0"),
        connections + 1); /* that of this question */
    redis_free(r);
}

/* ---- Workers */

/* Far, in single bytes, cut again and again. */
TEST(a_worker_under_load)
{
    struct proxy *proxy = proxy_start_to(&stage.server, port);
    const char *to = textf("rediss://localhost:%d?%s", proxy_tcp_port(proxy), trust);
    pid_t pid;

    stage_do(&stage, "FLUSHALL");
    pid = stage_actor(&stage, "far", textf("url=%s", to), "lease=2", NULL);
    stage_await_workers(&stage, 1);
    proxy_delay(proxy, PROXY_REPLIES, 2000);
    proxy_trickle(proxy, true);
    for (int i = 0; i < 4; i++) {
        stage_enqueue(&stage, "mark", NULL, i * 40, 40);
        await(history_count(&stage, "effect", -1) > i * 40);
        proxy_cut_all(proxy);
    }
    stage_await_done(&stage, 160);
    assert_int_equal(stage_end(pid), 0);
    proxy_stop(proxy);
}

/* The end of the process ends what OpenSSL keeps: not before jobs are given back. */
TEST(exit_gives_back)
{
    char option[300];
    pid_t pid;

    stage_do(&stage, "FLUSHALL");
    snprintf(option, sizeof option, "url=%s", url);
    stage_enqueue(&stage, "mark", "{\"exit\":1}", 0, 1);
    pid = stage_actor(&stage, "exits", option, NULL);
    assert_int_equal(program_end(pid), 70);
    await_text(folder(), "exits.err", "ended the process by exit()");
    assert_int_equal(stage_number(&stage, "ZCARD", stage_key(&stage, "workers")), 0);
}

/* ---- The command */

TEST(flags)
{
    char to[64];
    struct outcome o;
    const char *ca = textf("%s/ca.crt", folder());

    snprintf(to, sizeof to, "rediss://localhost:%d", port);
    run_in(&o, folder(), built("weir"), "status", "--redis", to, "--tls-cacert", ca, "--tls-cert",
           "client.crt", "--tls-key", "client.key", NULL);
    assert_int_equal(o.code, 0);
    snprintf(to, sizeof to, "rediss://127.0.0.1:%d/0?db=1", port);
    run_in(&o, folder(), built("weir"), "status", "--redis", to, "--tls-cacert", "./ca.crt", "--tls-sni",
           "localhost", NULL);
    assert_int_equal(o.code, 0);
    run_in(&o, folder(), built("weir"), "status", "--redis", to, "--tls-insecure", NULL);
    assert_int_equal(o.code, 0);
    run_in(&o, folder(), built("weir"), "status", "--redis", to, NULL);
    assert_int_equal(o.code, 69);
    assert_non_null(strstr(o.err, "name the issuer's by --tls-cacert"));
    run_in(&o, folder(), built("weir"), "status", "--redis", stage.server.url, "--tls-cacert", ca, NULL);
    assert_int_equal(o.code, 78);
    assert_non_null(strstr(o.err, "for rediss:// alone"));
}

STAGE_TESTS(set_up, stage_stop)
