/* The blocking connection: what it says when Redis is not as it should be, and what it never repeats. */
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "core/script/script.h"
#include "core/wire/wire.h"
#include "tests/proxy.h"
#include "tests/server.h"
#include "tests/test.h"

struct fixture {
    struct server server;
    struct proxy *proxy;
    struct redis *direct, *proxied;
    struct args a;
    struct redisReply *reply;
    struct error e;
    bool sent;
};

static struct redis *open_url(const char *url)
{
    struct redis_address address;
    struct redis *r;
    struct error e;

    assert_int_equal(redis_address_parse(url, &address, &e), 0);
    r = redis_new(&address);
    assert_non_null(r);
    return r;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    server_start(&f->server, false);
    f->proxy = proxy_start(&f->server);
    f->direct = open_url(f->server.url);
    f->proxied = open_url(proxy_url(f->proxy));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    redis_free(f->direct);
    redis_free(f->proxied);
    args_free(&f->a);
    proxy_stop(f->proxy);
    server_stop(&f->server);
    free(f);
    return 0;
}

#define REDIS_TEST(name) TEST_OF(name, fixture, set_up, tear_down)

static const struct args *command(struct fixture *f, const char *word, ...)
{
    va_list rest;

    args_clear(&f->a);
    va_start(rest, word);
    for (; word; word = va_arg(rest, const char *))
        args_add(&f->a, word);
    va_end(rest);
    return &f->a;
}

static const struct args *any_script(struct fixture *f)
{
    script_begin(&f->a, "claim", "test:{0}:", -1);
    return &f->a;
}

static const struct args *any_look(struct fixture *f)
{
    script_begin(&f->a, "batch_show", "test:{0}:", -1);
    args_add(&f->a, "b");
    return &f->a;
}

static int call(struct fixture *f, struct redis *r, const struct args *a)
{
    int status;

    f->e = (struct error){0};
    f->sent = !f->sent;
    status = redis_call(r, a, &f->reply, &f->sent, &f->e);
    assert_int_equal(status, f->e.status);
    if (status)
        assert_null(f->reply);
    return status;
}

/* A call that must succeed and answer with this number. */
static void counts_to(struct fixture *f, struct redis *r, const char *key, long long n)
{
    fail_if(call(f, r, command(f, "INCR", key, NULL)) != 0, "%s", f->e.text);
    assert_int_equal(f->reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(f->reply->integer, n);
    assert_false(f->sent);
    freeReplyObject(f->reply);
}

static void says(const struct fixture *f, int status, const char *text)
{
    assert_int_equal(f->e.status, status);
    fail_if(!strstr(f->e.text, text), "'%s' is not in: %s", text, f->e.text);
}

/* A call that must fail with this status and say that. */
static void fails(struct fixture *f, struct redis *r, const struct args *a, int status, const char *text)
{
    call(f, r, a);
    says(f, status, text);
}

/* Runs a script without its arguments: it runs when it refuses them. A busy machine may take longer to load the functions than a call waits. */
static void runs_a_script(struct fixture *f, struct redis *r)
{
    int status = call(f, r, any_script(f));

    for (int tries = 0; tries < 5 && status && strstr(f->e.text, "no answer within 5 s"); tries++)
        status = call(f, r, any_script(f));
    fail_if(status != 0 && status != WEIR_EINPUT, "%s", f->e.text);
    freeReplyObject(f->reply);
}

/* Through the proxy with all steps of a handshake: AUTH, SELECT, ROLE, PING. */
#define STEPS 4
static struct redis *open_with_all_steps(struct fixture *f)
{
    return open_url(textf("unix://weir-test:any@%s?db=3", proxy_url(f->proxy) + strlen("unix://")));
}

/* ---- Calls */

REDIS_TEST(answers_of_all_kinds)
{
    char *big = malloc(3000001);

    counts_to(f, f->direct, "n", 1);
    assert_int_equal(call(f, f->direct, command(f, "GET", "nothing", NULL)), 0);
    assert_int_equal(f->reply->type, REDIS_REPLY_NIL);
    freeReplyObject(f->reply);
    assert_int_equal(call(f, f->direct, command(f, "ECHO", "", NULL)), 0);
    assert_string_equal(f->reply->str, "");
    freeReplyObject(f->reply);
    memset(big, 'b', 3000000);
    big[3000000] = '\0';
    assert_int_equal(call(f, f->direct, command(f, "ECHO", big, NULL)), 0);
    assert_string_equal(f->reply->str, big);
    freeReplyObject(f->reply);
    free(big);
    args_clear(&f->a);
    args_add(&f->a, "ECHO");
    args_add_bytes(&f->a, "a\0\r\n", 4);
    assert_int_equal(call(f, f->direct, &f->a), 0);
    assert_int_equal(f->reply->len, 4);
    assert_memory_equal(f->reply->str, "a\0\r\n", 4);
    freeReplyObject(f->reply);
}

REDIS_TEST(error_replies)
{
    counts_to(f, f->direct, "n", 1);
    fails(f, f->direct, command(f, "LPUSH", "n", "x", NULL), WEIR_ECONFIG, "WRONGTYPE");
    fails(f, f->direct, command(f, "NONSENSE", NULL), WEIR_ECONFIG, "NONSENSE");
    assert_int_equal(
        call(f, f->direct, command(f, "EVAL", "return redis.error_reply('WEIR type: no name')", "0", NULL)),
        WEIR_EINPUT);
    assert_string_equal(f->e.text, "type: no name");
    stage_do(f, "CONFIG", "SET", "maxmemory", "1");
    fails(f, f->direct, command(f, "SET", "k", "v", NULL), WEIR_ENOTNOW, "maxmemory");
    stage_do(f, "CONFIG", "SET", "maxmemory", "0");
    assert_false(f->sent);
    counts_to(f, f->direct, "n", 2);
}

REDIS_TEST(memory_failure_is_an_error)
{
    f->a.failed = true;
    fails(f, f->direct, &f->a, WEIR_EINTERNAL, "out of memory");
    assert_false(f->sent);
    counts_to(f, f->direct, "n", 1);
}

REDIS_TEST(a_missing_function_is_repeated_once)
{
    runs_a_script(f, f->direct);
    stage_do(f, "FUNCTION", "FLUSH");
    stage_do(f, "CONFIG", "RESETSTAT");
    runs_a_script(f, f->direct);
    assert_int_equal(server_calls(&f->server, "fcall"), 2);
    assert_int_equal(server_calls(&f->server, "function|load"), 1);
    fails(f, f->direct, command(f, "FCALL", "weir_0123456789ab_gone", "0", NULL), WEIR_ENOTNOW,
          "FUNCTION FLUSH");
    assert_int_equal(server_calls(&f->server, "fcall"), 4);
}

/* A library of another version stays, and so does ours when another connection finds it. */
REDIS_TEST(libraries_stay)
{
    char *list;

    server_do(&f->server, "FUNCTION", "LOAD",
              "#!lua name=weir_0123456789ab\nredis.register_function('weir_0123456789ab_claim', function() "
              "return 1 end)");
    runs_a_script(f, f->direct);
    runs_a_script(f, f->proxied);
    list = server_ask(&f->server, "FUNCTION", "LIST", "LIBRARYNAME", "weir_*", NULL);
    assert_non_null(strstr(list, "weir_0123456789ab"));
    assert_non_null(strstr(list, script_digest));
    free(list);
    assert_int_equal(server_calls(&f->server, "function|load"), 2); /* theirs, and ours once */
}

REDIS_TEST(loading_needs_a_permission_only_once)
{
    struct redis *poor;

    stage_do(f, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", "-function");
    poor = open_url(textf("unix://poor:pw@%s", f->server.socket));
    fails(f, poor, any_script(f), WEIR_EREFUSED, "+function|load");
    runs_a_script(f, f->direct);
    runs_a_script(f, poor);
    redis_free(poor);
}

REDIS_TEST(a_full_redis_runs_what_it_has)
{
    runs_a_script(f, f->direct);
    stage_do(f, "CONFIG", "SET", "maxmemory", "1");
    runs_a_script(f, f->proxied);
    assert_int_equal(redis_load_scripts(f->direct, &f->e), 0); /* nothing was missed */
    stage_do(f, "FUNCTION", "FLUSH");
    fails(f, f->direct, any_script(f), WEIR_ENOTNOW, "without the functions");
    stage_do(f, "CONFIG", "SET", "maxmemory", "0");
    runs_a_script(f, f->direct);
}

REDIS_TEST(a_call_that_was_killed)
{
    char *killed = NULL;

    stage_do(f, "CONFIG", "SET", "busy-reply-threshold", "1");
    free(
        server_ask(&f->server, "FUNCTION", "LOAD",
                   "#!lua name=spin\nredis.register_function{function_name='spin', callback=function() while "
                   "true do end end, flags={'no-writes'}}",
                   NULL));
    assert_int_equal(redis_append(f->proxied, command(f, "FCALL", "spin", "0", NULL), &f->e), 0);
    assert_int_equal(redis_flush(f->proxied, &f->e), 0);
    for (int64_t end_us = clock_mono_us() + 60000000; clock_mono_us() < end_us && !killed;) {
        char *answer = server_ask(&f->server, "FUNCTION", "KILL", NULL);

        killed = strcmp(answer, "OK") == 0 ? answer : (free(answer), NULL);
    }
    assert_non_null(killed);
    free(killed);
    assert_int_equal(redis_result(f->proxied, &f->reply, &f->e), WEIR_ENOTNOW);
    says(f, WEIR_ENOTNOW, "somebody ended this call by FUNCTION KILL before it changed anything");
}

REDIS_TEST(too_few_replicas)
{
    stage_do(f, "CONFIG", "SET", "min-replicas-to-write", "1");
    fails(f, f->direct, command(f, "INCR", "n", NULL), WEIR_EUNREACHABLE,
          "fewer replicas are in sync than its min-replicas-to-write (NOREPLICAS");
    stage_do(f, "CONFIG", "SET", "min-replicas-to-write", "0");
    runs_a_script(f, f->direct);
    stage_do(f, "CONFIG", "SET", "min-replicas-to-write", "1");
    assert_int_equal(call(f, f->proxied, any_look(f)),
                     0); /* another connection finds the functions, and reads */
    freeReplyObject(f->reply);
}

/* ---- No memory */

static void *no_string(const redisReadTask *task, char *text, size_t len)
{
    (void)task, (void)text, (void)len;
    return NULL;
}

REDIS_TEST(no_memory_for_an_answer)
{
    static redisReplyObjectFunctions starving = {.createString = no_string, .freeObject = freeReplyObject};
    struct redisReply *reply;
    struct wire wire;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    wire_init(&wire, &(struct redis_address){.socket_path = "here"}, NULL);
    wire.fd = ends[0];
    wire.reader = redisReaderCreateWithFunctions(&starving);
    assert_int_equal(write(ends[1], "+OK\r\n", 5), 5);
    assert_int_equal(wire_receive(&wire, &f->e), 1);
    assert_int_equal(wire_reply(&wire, &reply, &f->e), WEIR_EINTERNAL);
    says(f, WEIR_EINTERNAL, "redis here: out of memory for an answer; free some and try again");
    wire_close(&wire);
    close(ends[1]);
}

/* ---- Lost connections */

REDIS_TEST(an_idle_connection_is_renewed)
{
    counts_to(f, f->proxied, "n", 1);
    for (int i = 2; i < 6; i++) {
        proxy_cut_all(f->proxy);
        counts_to(f, f->proxied, "n", i);
    }
    proxy_inject(f->proxy, "+late\r\n"); /* an answer to nobody must not become ours */
    counts_to(f, f->proxied, "n", 6);
    counts_to(f, f->direct, "n", 7);
    server_restart(&f->server);
    counts_to(f, f->direct, "n", 1);
}

REDIS_TEST(a_lost_answer_is_not_asked_for_again)
{
    counts_to(f, f->proxied, "n", 1);
    for (int i = 0; i < 5; i++) {
        proxy_cut_before(f->proxy, PROXY_REPLIES, 1);
        fails(f, f->proxied, command(f, "INCR", "n", NULL), WEIR_EUNREACHABLE, "connection lost");
        assert_true(f->sent);
        assert_true(proxy_has_cut(f->proxy));
        assert_int_equal(stage_number(f, "GET", "n"), 2 * i + 2);
        counts_to(f, f->proxied, "n", 2 * i + 3);
    }
}

REDIS_TEST(a_request_that_was_cut_is_in_doubt_too)
{
    counts_to(f, f->proxied, "n", 1);
    for (size_t byte = 1; byte < 20; byte++) {
        proxy_cut_after_bytes(f->proxy, PROXY_REQUESTS, byte);
        assert_int_equal(call(f, f->proxied, command(f, "INCR", "n", NULL)), WEIR_EUNREACHABLE);
        assert_true(f->sent);
        counts_to(f, f->proxied, "n", (long long)byte + 1);
    }
}

REDIS_TEST(cuts_within_the_handshake)
{
    for (int n = 1; n <= STEPS; n++) {
        struct redis *r = open_with_all_steps(f);

        proxy_cut_before(f->proxy, PROXY_REPLIES, (unsigned)n);
        assert_int_equal(call(f, r, command(f, "INCR", "n", NULL)), WEIR_EUNREACHABLE);
        assert_false(f->sent);
        counts_to(f, r, "n", n);
        redis_free(r);
    }
}

REDIS_TEST(a_silent_redis_times_out)
{
    int64_t began_us;

    counts_to(f, f->proxied, "n", 1);
    proxy_blackhole(f->proxy, true);
    began_us = clock_mono_us();
    assert_int_equal(call(f, f->proxied, command(f, "INCR", "n", NULL)), WEIR_EUNREACHABLE);
    assert_in_range(clock_mono_us() - began_us, 4900000, 9900000);
    says(f, WEIR_EUNREACHABLE, "no answer within 5 s");
    assert_true(f->sent);
    proxy_blackhole(f->proxy, false);
    assert_int_equal(call(f, f->proxied, command(f, "ECHO", "mine", NULL)), 0);
    assert_string_equal(f->reply->str, "mine");
    freeReplyObject(f->reply);
}

REDIS_TEST(a_silent_redis_times_out_from_the_start)
{
    int64_t began_us = clock_mono_us();

    proxy_blackhole(f->proxy, true);
    assert_int_equal(call(f, f->proxied, command(f, "INCR", "n", NULL)), WEIR_EUNREACHABLE);
    assert_in_range(clock_mono_us() - began_us, 4900000, 9900000);
    says(f, WEIR_EUNREACHABLE, "no answer within 5 s");
    assert_false(f->sent);
    proxy_blackhole(f->proxy, false);
    counts_to(f, f->proxied, "n", 1);
}

REDIS_TEST(slow_links_are_only_slow)
{
    proxy_trickle(f->proxy, true);
    counts_to(f, f->proxied, "n", 1);
    proxy_trickle(f->proxy, false);
    proxy_delay(f->proxy, PROXY_REPLIES, 50000);
    counts_to(f, f->proxied, "n", 2);
}

static void on_alarm(int signal)
{
    (void)signal;
}

REDIS_TEST(signals_do_not_matter)
{
    const struct sigaction act = {.sa_handler = on_alarm};
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};

    proxy_delay(f->proxy, PROXY_REPLIES, 20000);
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 1; i <= 10; i++) {
        counts_to(f, f->proxied, "n", i);
        if (i % 3 == 0)
            proxy_cut_all(f->proxy);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_DFL);
}

REDIS_TEST(strangers_are_recognized)
{
    static const char *const babble[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail ESMTP\r\n", "\r\n",
                                         "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
                                         "$-7\r\n"};

    for (size_t i = 0; i < sizeof babble / sizeof *babble; i++) {
        struct redis *r = open_url(proxy_url(f->proxy));

        proxy_inject(f->proxy, babble[i]);
        fails(f, r, command(f, "INCR", "n", NULL), WEIR_EUNREACHABLE, "not a Redis server");
        assert_false(f->sent);
        counts_to(f, r, "n", (long long)i + 1);
        redis_free(r);
    }
}

REDIS_TEST(an_old_redis_is_named)
{
    static const char *const renamed[] = {"--rename-command", "FCALL", "",  "--rename-command",
                                          "FUNCTION",         "",      NULL};

    server_stop(&f->server);
    server_start_with(&f->server, false, renamed);
    redis_free(f->direct);
    f->direct = open_url(f->server.url);
    assert_int_equal(call(f, f->direct, any_script(f)), WEIR_ECONFIG);
    says(f, WEIR_ECONFIG, "(ERR unknown command 'FUNCTION'), which Weir consists of; use Redis 7.0 or later");
    assert_false(f->sent);
}

REDIS_TEST(a_replica_is_left)
{
    struct redis *humble;

    stage_do(f, "ACL", "SETUSER", "humble", "on", ">pw", "~*", "&*", "+@all", "-role", "-ping");
    humble = open_url(textf("unix://humble:pw@%s", f->server.socket));
    runs_a_script(f, humble);
    counts_to(f, f->direct, "n", 1);
    stage_do(f, "REPLICAOF", "127.0.0.1", "1");
    fails(f, f->direct, command(f, "INCR", "n", NULL), WEIR_EUNREACHABLE, "READONLY");
    assert_false(f->sent);
    assert_int_equal(call(f, f->direct, any_look(f)), WEIR_EUNREACHABLE); /* another connection by now */
    says(f, WEIR_EUNREACHABLE, "Redis: takes no writes: READONLY a replica; name the address of the master");
    assert_int_equal(call(f, humble, any_look(f)), 0); /* what it may not ask it does without */
    freeReplyObject(f->reply);
    fails(f, humble, any_script(f), WEIR_EUNREACHABLE, "takes no writes: READONLY");
    redis_free(humble);
    stage_do(f, "REPLICAOF", "NO", "ONE");
    counts_to(f, f->direct, "n", 2);
}

/* ---- Not reachable, not allowed */

REDIS_TEST(nobody_there)
{
    struct redis *tcp = open_url("redis://127.0.0.1:1"), *name = open_url("redis://no-such-host.invalid");

    server_kill(&f->server);
    assert_int_equal(call(f, f->direct, command(f, "PING", NULL)), WEIR_EUNREACHABLE);
    says(f, WEIR_EUNREACHABLE, "connection refused; is it running?");
    says(f, WEIR_EUNREACHABLE, f->server.url);
    assert_false(f->sent);
    unlink(f->server.socket);
    fails(f, f->direct, command(f, "PING", NULL), WEIR_EUNREACHABLE, "no such socket");
    fails(f, tcp, command(f, "PING", NULL), WEIR_EUNREACHABLE,
          "redis redis://127.0.0.1:1/0: connection refused");
    fails(f, name, command(f, "PING", NULL), WEIR_EUNREACHABLE, "cannot find the host");
    redis_free(tcp);
    redis_free(name);
}

REDIS_TEST(over_tcp)
{
    struct redis *r = open_url(proxy_tcp_url(f->proxy));

    counts_to(f, r, "n", 1);
    redis_free(r);
    /* ::1 refuses where it is known */
    r = open_url(textf("redis://localhost:%d/3", proxy_tcp_port(f->proxy)));
    counts_to(f, r, "n", 1);
    redis_free(r);
}

REDIS_TEST(logins)
{
    static const char *const options[] = {"--requirepass", "sesame", NULL};
    static const struct {
        const char *login, *tail;
        int status;
        const char *says;
    } cases[] = {
        {":sesame@", "", 0, NULL},
        {":sesame@", "?db=3", 0, NULL},
        {"default:sesame@", "", 0, NULL},
        {"", "", WEIR_EREFUSED, "wants a password"},
        {":wrong@", "", WEIR_EREFUSED, "WRONGPASS"},
        {"nobody:sesame@", "", WEIR_EREFUSED, "WRONGPASS"},
        {":sesame@", "?db=9999", WEIR_ECONFIG, "refused the database"},
        {"few:rights@", "", WEIR_EREFUSED, "NOPERM"},
    };
    struct redis *r;

    server_stop(&f->server);
    server_start_with(&f->server, false, options);
    stage_do(f, "ACL", "SETUSER", "few", "on", ">rights", "+ping");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        r = open_url(textf("unix://%s%s%s", cases[i].login, f->server.socket, cases[i].tail));
        assert_int_equal(call(f, r, command(f, "INCR", "n", NULL)), cases[i].status);
        if (cases[i].says)
            says(f, cases[i].status, cases[i].says);
        assert_null(strstr(f->e.text, "sesame"));
        assert_false(f->sent);
        freeReplyObject(f->reply);
        redis_free(r);
    }
}

REDIS_TEST(a_password_that_is_not_asked_for)
{
    struct redis *r;

    r = open_url(textf("unix://:sesame@%s", f->server.socket));
    fails(f, r, command(f, "PING", NULL), WEIR_EREFUSED, "without any password configured");
    redis_free(r);
}

REDIS_TEST(no_room_for_another_client)
{
    struct redis *another = open_url(f->server.url);

    counts_to(f, f->direct, "n", 1);
    stage_do(f, "CONFIG", "SET", "maxclients", "1");
    fails(f, another, command(f, "INCR", "n", NULL), WEIR_EUNREACHABLE, "maxclients");
    assert_false(f->sent);
    redis_free(another);
    fails(f, f->proxied, command(f, "INCR", "n", NULL), WEIR_EUNREACHABLE, "maxclients");
    counts_to(f, f->direct, "n", 2);
}

/* ---- Pipelines */

REDIS_TEST(pipelines_answer_in_order)
{
    for (int i = 0; i < 20000; i++)
        assert_int_equal(
            redis_append(f->direct, command(f, i == 9999 ? "NONSENSE" : "INCR", "n", NULL), &f->e), 0);
    assert_int_equal(redis_flush(f->direct, &f->e), 0);
    for (int i = 0; i < 20000; i++) {
        int status = redis_result(f->direct, &f->reply, &f->e);

        assert_int_equal(status, i == 9999 ? WEIR_ECONFIG : 0);
        if (status)
            assert_null(f->reply);
        else
            assert_int_equal(f->reply->integer, i < 9999 ? i + 1 : i);
        freeReplyObject(f->reply);
    }
    counts_to(f, f->direct, "n", 20000);
}

REDIS_TEST(pipelines_tell_of_missing_functions)
{
    counts_to(f, f->direct, "n", 1);
    stage_do(f, "FUNCTION", "FLUSH");
    assert_int_equal(redis_append(f->direct, any_script(f), &f->e), 0);
    assert_int_equal(redis_append(f->direct, command(f, "INCR", "n", NULL), &f->e), 0);
    assert_int_equal(redis_append(f->direct, any_script(f), &f->e), 0);
    assert_int_equal(redis_result(f->direct, &f->reply, &f->e), WEIR_ENOTNOW);
    assert_int_equal(redis_result(f->direct, &f->reply, &f->e), 0);
    assert_int_equal(f->reply->integer, 2);
    freeReplyObject(f->reply);
    assert_int_equal(redis_result(f->direct, &f->reply, &f->e), WEIR_ENOTNOW);
    assert_int_equal(redis_load_scripts(f->direct, &f->e), 0);
    runs_a_script(f, f->direct);
    assert_int_equal(server_calls(&f->server, "function|load"), 1);
    stage_do(f, "FUNCTION", "FLUSH");
    assert_int_equal(redis_append(f->direct, any_script(f), &f->e), 0);
    assert_int_equal(redis_result(f->direct, &f->reply, &f->e), WEIR_ENOTNOW);
    runs_a_script(f, f->proxied); /* which misses them too, and is first */
    assert_int_equal(redis_load_scripts(f->direct, &f->e), 0);
    runs_a_script(f, f->direct);
    assert_int_equal(redis_load_scripts(f->direct, &f->e), 0); /* nothing is missing */
    assert_int_equal(server_calls(&f->server, "function|load"), 3);
}

REDIS_TEST(a_lost_pipeline_is_lost_whole)
{
    counts_to(f, f->proxied, "n", 1);
    for (unsigned n = 1; n <= 5; n++) {
        proxy_cut_before(f->proxy, PROXY_REPLIES, n);
        for (int i = 0; i < 5; i++)
            assert_int_equal(redis_append(f->proxied, command(f, "INCR", "n", NULL), &f->e), 0);
        for (unsigned i = 1; i < n; i++) {
            assert_int_equal(redis_result(f->proxied, &f->reply, &f->e), 0);
            freeReplyObject(f->reply);
        }
        assert_int_equal(redis_result(f->proxied, &f->reply, &f->e), WEIR_EUNREACHABLE);
        assert_null(f->reply);
        assert_int_equal(redis_result(f->proxied, &f->reply, &f->e),
                         WEIR_EUNREACHABLE); /* nothing is left of it */
        assert_null(f->reply);
        counts_to(f, f->proxied, "n", 5 * n + n + 1);
    }
}

REDIS_TEST(a_long_pipeline_fits_any_socket)
{
    char *chunk = malloc(1000001);

    memset(chunk, 'c', 1000000);
    chunk[1000000] = '\0';
    for (int i = 0; i < 40; i++)
        assert_int_equal(redis_append(f->proxied, command(f, "RPUSH", "list", chunk, NULL), &f->e), 0);
    for (int i = 1; i <= 40; i++) {
        assert_int_equal(redis_result(f->proxied, &f->reply, &f->e), 0);
        assert_int_equal(f->reply->integer, i);
        freeReplyObject(f->reply);
    }
    free(chunk);
}

TESTS(NULL, NULL)
