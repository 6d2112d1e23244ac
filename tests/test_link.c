/* The connection of a worker: every callback once, whatever happens to the connection. */
#include <ev.h>
#include <hiredis/hiredis.h>

#include "core/clock.h"
#include "core/redis/link.h"
#include "core/script/script.h"
#include "queue/enqueue/enqueue.h"
#include "tests/proxy.h"
#include "tests/server.h"
#include "tests/test.h"

#define LIMIT_S 60 /* for any condition */
#define WATCH_EVERY_US 50000
#define ANSWERS_MAX 20000
#define PATIENT 50.0

struct fixture;

/* What became of one request. */
struct answer {
    struct fixture *f;
    int calls; /* must become 1 */
    bool lost;
    bool returned; /* had link_send returned before? */
    int order;     /* the how manieth callback was it? */
    long long integer;
    char text[64]; /* of strings and errors */
    int type;
    size_t len;
};

struct fixture {
    struct server server;
    struct proxy *proxy;
    struct ev_loop *loop;
    struct ev_timer watchdog;
    int64_t end_us, watched_us, stood_us; /* stood: for how long the loop stood still */

    struct link *link;
    int ups, downs;
    struct error why;
    int64_t down_at_us[64]; /* by a clock that stands still when the loop does */

    struct answer answers[ANSWERS_MAX];
    int sent, answered;
    void (*in_answer)(struct answer *answer); /* called in the callback */
};

/* ---- The bench */

static void on_up(void *arg)
{
    struct fixture *f = arg;

    assert_true(link_is_up(f->link));
    f->ups++;
}

/* How late the watchdog is: so long the loop stood still, on a busy machine. */
static int64_t late_us(const struct fixture *f, int64_t now_us)
{
    int64_t late = f->watched_us ? now_us - f->watched_us - WATCH_EVERY_US : 0;

    return late > 0 ? late : 0;
}

static void on_down(void *arg, const struct error *why)
{
    struct fixture *f = arg;
    int64_t now_us = clock_mono_us();

    assert_false(link_is_up(f->link));
    assert_int_equal(f->sent, f->answered); /* the callbacks come first */
    f->down_at_us[f->downs++ % 64] = now_us - f->stood_us - late_us(f, now_us);
    f->why = *why;
}

static const struct link_events events = {.on_up = on_up, .on_down = on_down};

static void on_watchdog(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
    struct fixture *f = timer->data;
    int64_t now_us = clock_mono_us();

    (void)loop;
    (void)revents;
    f->stood_us += late_us(f, now_us);
    f->watched_us = now_us;
    fail_if(now_us > f->end_us, "nothing came of it in %d s: %d ups, %d downs (%s), %d of %d answered",
            LIMIT_S, f->ups, f->downs, f->why.text, f->answered, f->sent);
}

/* Runs the loop until the condition holds. */
#define RUN_UNTIL(f, condition)                                                                              \
    do {                                                                                                     \
        (f)->end_us = clock_mono_us() + LIMIT_S * INT64_C(1000000);                                          \
        while (!(condition))                                                                                 \
            ev_run((f)->loop, EVRUN_ONCE);                                                                   \
    } while (0)

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    server_start(&f->server, false);
    f->proxy = proxy_start(&f->server);
    f->loop = ev_loop_new(EVFLAG_AUTO);
    ev_timer_init(&f->watchdog, on_watchdog, WATCH_EVERY_US / 1e6, WATCH_EVERY_US / 1e6);
    f->watchdog.data = f;
    ev_timer_start(f->loop, &f->watchdog);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    link_free(f->link);
    assert_int_equal(f->sent, f->answered);
    for (int i = 0; i < f->sent; i++)
        assert_int_equal(f->answers[i].calls, 1);
    ev_timer_stop(f->loop, &f->watchdog);
    ev_loop_destroy(f->loop);
    proxy_stop(f->proxy);
    server_stop(&f->server);
    free(f);
    return 0;
}

#define LINK_TEST(name) TEST_OF(name, fixture, set_up, tear_down)

static void start(struct fixture *f, const char *url)
{
    struct redis_address address;
    struct error e;
    int heard = f->ups + f->downs;

    assert_int_equal(redis_address_parse(url, &address, &e), 0);
    f->link = link_new(f->loop, &address, &events, f);
    assert_non_null(f->link);
    assert_false(link_is_up(f->link));
    link_start(f->link);
    assert_int_equal(f->ups + f->downs, heard);
}

static void bring_up(struct fixture *f, const char *url)
{
    start(f, url);
    RUN_UNTIL(f, f->ups == 1);
    assert_int_equal(f->downs, 0);
}

static void on_answer(void *arg, const struct redisReply *reply)
{
    struct answer *a = arg;

    assert_true(a->returned);
    a->calls++;
    a->order = a->f->answered++;
    a->lost = !reply;
    a->type = reply ? reply->type : 0;
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        a->integer = reply->integer;
    else if (reply && reply->str)
        snprintf(a->text, sizeof a->text, "%s", reply->str);
    if (reply)
        a->len = reply->type == REDIS_REPLY_ARRAY ? reply->elements : reply->len;
    if (a->f->in_answer)
        a->f->in_answer(a);
}

static struct answer *send_args(struct fixture *f, struct args *a, double timeout_s)
{
    struct answer *answer = &f->answers[f->sent++];

    assert_true(f->sent <= ANSWERS_MAX);
    *answer = (struct answer){.f = f};
    link_send(f->link, a, timeout_s, on_answer, answer);
    answer->returned = true;
    assert_null(a->bytes);
    return answer;
}

/* Sends a command. */
static struct answer *ask_words(struct fixture *f, double timeout_s, const char *word, ...)
{
    struct args a = {0};
    va_list rest;

    va_start(rest, word);
    for (; word; word = va_arg(rest, const char *))
        args_add(&a, word);
    va_end(rest);
    return send_args(f, &a, timeout_s);
}
#define ask(f, ...) ask_words(f, PATIENT, __VA_ARGS__, NULL)

static struct answer *ask_script(struct fixture *f)
{
    struct args a = {0};

    script_begin(&a, "claim", "test:{0}:", -1);
    return send_args(f, &a, PATIENT);
}

static void all_answered(struct fixture *f)
{
    RUN_UNTIL(f, f->answered == f->sent);
}

/* The link is up, again if need be, and answers what it is asked. */
static void works(struct fixture *f)
{
    struct answer *a;
    char word[24];

    RUN_UNTIL(f, link_is_up(f->link));
    snprintf(word, sizeof word, "word %d", f->sent);
    a = ask(f, "ECHO", word);
    all_answered(f);
    assert_false(a->lost);
    assert_string_equal(a->text, word);
}

static void says(const struct fixture *f, int status, const char *text)
{
    assert_int_equal(f->why.status, status);
    fail_if(!strstr(f->why.text, text), "'%s' is not in: %s", text, f->why.text);
}

/* ---- Answers */

LINK_TEST(answers_come_in_order)
{
    bring_up(f, f->server.url);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 500; i++)
            ask(f, "INCR", "n");
        ev_run(f->loop, EVRUN_ONCE);
    }
    all_answered(f);
    for (int i = 0; i < f->sent; i++) {
        assert_int_equal(f->answers[i].order, i);
        assert_int_equal(f->answers[i].integer, i + 1);
    }
    assert_int_equal(f->downs, 0);
}

LINK_TEST(answers_of_any_size)
{
    struct answer *big, *array, *error;
    char *megabytes = malloc(5000001);

    bring_up(f, proxy_url(f->proxy));
    memset(megabytes, 'm', 5000000);
    megabytes[5000000] = '\0';
    big = ask(f, "ECHO", megabytes);
    array = ask(f, "COMMAND", "LIST");
    error = ask(f, "NONSENSE", "x");
    all_answered(f);
    assert_int_equal(big->len, 5000000);
    assert_in_range(array->len, 200, 1000);
    assert_non_null(strstr(error->text, "ERR unknown command"));
    assert_int_equal(f->downs, 0);
    free(megabytes);
}

static void ask_again(struct answer *answer)
{
    if (answer->f->sent < 1000)
        ask(answer->f, "INCR", "n");
}

LINK_TEST(callbacks_may_send)
{
    bring_up(f, f->server.url);
    f->in_answer = ask_again;
    ask(f, "INCR", "n");
    RUN_UNTIL(f, f->answered == 1000);
    assert_int_equal(f->answers[999].integer, 1000);
    f->in_answer = NULL;
}

/* ---- Cuts */

LINK_TEST(cut_before_each_answer)
{
    long long n = 0;

    bring_up(f, proxy_url(f->proxy));
    for (int cut = 1; cut <= 6; cut++) {
        int first = f->sent;

        proxy_cut_before(f->proxy, PROXY_REPLIES, (unsigned)cut);
        for (int i = 0; i < 5; i++)
            ask(f, "INCR", "n");
        all_answered(f);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(f->answers[first + i].lost, i + 1 >= cut);
            assert_int_equal(f->answers[first + i].order, first + i);
            if (i + 1 < cut)
                assert_int_equal(f->answers[first + i].integer, n + i + 1);
        }
        if (cut <= 5) {
            RUN_UNTIL(f, f->downs == cut);
            says(f, WEIR_EUNREACHABLE, "connection lost");
        }
        n += 5;
        assert_int_equal(stage_number(f, "GET", "n"), n); /* sent once, not again */
        proxy_cut_before(f->proxy, PROXY_REPLIES, 0);
        works(f);
    }
    assert_int_equal(f->downs, 5);
    assert_int_equal(f->ups, 6);
}

LINK_TEST(cut_after_each_byte)
{
    bring_up(f, proxy_url(f->proxy));
    for (size_t bytes = 1; bytes <= 3 * 11; bytes++) {
        int first = f->sent;

        proxy_cut_after_bytes(f->proxy, PROXY_REPLIES, bytes);
        for (int i = 0; i < 3; i++)
            ask(f, "ECHO", "12345"); /* $5 12345: 11 bytes */
        all_answered(f);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(f->answers[first + (int)i].lost, (i + 1) * 11 > bytes);
        RUN_UNTIL(f, f->downs == (int)bytes);
        works(f);
    }
}

LINK_TEST(cut_before_each_request)
{
    bring_up(f, proxy_url(f->proxy));
    for (int cut = 1; cut <= 3; cut++) {
        int first = f->sent;

        stage_do(f, "DEL", "n");
        proxy_cut_before(f->proxy, PROXY_REQUESTS, (unsigned)cut);
        for (int i = 0; i < 3; i++)
            ask(f, "INCR", "n");
        all_answered(f);
        assert_true(f->answers[first + cut - 1].lost && f->answers[first + 2].lost);
        works(f);
        assert_in_range(stage_number(f, "INCRBY", "n", "0"), 0, cut - 1);
    }
    assert_int_equal(f->downs, 3);
}

LINK_TEST(cut_within_the_handshake)
{
    char url[200]; /* of a handshake with all steps: AUTH, SELECT, ROLE, PING */

    snprintf(url, sizeof url, "unix://weir-test:any@%s?db=3", proxy_url(f->proxy) + strlen("unix://"));
    proxy_cut_before(f->proxy, PROXY_REPLIES, 1);
    start(f, url);
    for (int cut = 1; cut <= 4; cut++) {
        RUN_UNTIL(f, f->downs == 2 * cut - 1);
        assert_int_equal(f->ups, cut - 1);
        works(f);
        proxy_cut_before(f->proxy, PROXY_REPLIES, (unsigned)cut + 1);
        link_drop(f->link, "the test says so");
        assert_false(link_is_up(f->link));
    }
}

/* ---- Time */

LINK_TEST(silence_times_out)
{
    struct answer *a, *b;
    int64_t began_us;

    bring_up(f, proxy_url(f->proxy));
    proxy_blackhole(f->proxy, true);
    began_us = clock_mono_us();
    a = ask_words(f, 0.3, "PING", NULL);
    b = ask_words(f, 2 * LIMIT_S, "PING", NULL);
    all_answered(f);
    assert_true(a->lost && b->lost);
    assert_true(clock_mono_us() - began_us >= 290000);
    says(f, WEIR_EUNREACHABLE, "no answer within 0.3 s");
    proxy_blackhole(f->proxy, false);
    works(f);
}

LINK_TEST(late_answers_are_nobodys)
{
    struct answer *late;

    bring_up(f, proxy_url(f->proxy));
    proxy_delay(f->proxy, PROXY_REPLIES, 400000);
    late = ask_words(f, 0.1, "ECHO", "late", NULL);
    RUN_UNTIL(f, f->downs == 1);
    assert_true(late->lost);
    works(f); /* its handshake is slow too */
    proxy_delay(f->proxy, PROXY_REPLIES, 0);
    works(f);
    assert_int_equal(f->downs, 1);
}

LINK_TEST(a_silent_peer_is_left)
{
    int64_t began_us = clock_mono_us();

    proxy_blackhole(f->proxy, true);
    start(f, proxy_url(f->proxy));
    RUN_UNTIL(f, f->downs == 1);
    assert_in_range(clock_mono_us() - began_us, 4900000, 9900000);
    says(f, WEIR_EUNREACHABLE, "no answer within 5 s");
    proxy_blackhole(f->proxy, false);
    works(f);
    assert_int_equal(f->ups, 1);
}

LINK_TEST(answers_that_have_come_are_not_late)
{
    struct answer *a;

    bring_up(f, f->server.url);
    a = ask_words(f, 0.5, "ECHO", "here", NULL);
    ev_run(f->loop, EVRUN_NOWAIT);               /* sends */
    clock_sleep_until(clock_mono_us() + 600000); /* the process is held up */
    while (server_calls(&f->server, "echo") == 0)
        ;
    server_calls(&f->server, ""); /* two calls later the answer to the first is out */
    all_answered(f);
    assert_string_equal(a->text, "here");
    assert_int_equal(f->downs, 0);
}

/* It begins to connect there, and goes on when its time for that is over. */
static void held_up_while_connecting(struct fixture *f, const char *url)
{
    start(f, url);
    ev_run(f->loop, EVRUN_ONCE);
    clock_sleep_until(clock_mono_us() + 5100000);
    RUN_UNTIL(f, f->ups + f->downs > 0);
    assert_int_equal(f->downs, 0);
    works(f);
}

LINK_TEST(a_connection_that_has_come_is_not_late)
{
    held_up_while_connecting(f, f->server.url);
}

LINK_TEST(an_address_that_has_come_is_not_late)
{
    held_up_while_connecting(f, textf("redis://localhost:%d", proxy_tcp_port(f->proxy)));
}

LINK_TEST(slow_links_are_only_slow)
{
    proxy_trickle(f->proxy, true);
    bring_up(f, proxy_url(f->proxy));
    for (int i = 1; i <= 50; i++)
        ask(f, "INCR", "n");
    all_answered(f);
    assert_int_equal(f->answers[49].integer, 50);
    assert_int_equal(f->downs, 0);
}

/* ---- Functions */

LINK_TEST(missing_functions_repeat_each_once)
{
    bring_up(f, f->server.url);
    stage_do(f, "FUNCTION", "FLUSH");
    stage_do(f, "CONFIG", "RESETSTAT");
    for (int i = 0; i < 7; i++) {
        ask_script(f);
        ask(f, "INCR", "n");
    }
    all_answered(f);
    assert_int_equal(server_calls(&f->server, "fcall"), 14);
    assert_int_equal(server_calls(&f->server, "incr"), 7);
    assert_int_equal(server_calls(&f->server, "function|load"), 1);
    for (int i = 0; i < 14; i++)
        assert_null(strstr(f->answers[i].text, "not found"));
    for (int i = 0; i < 7; i++) /* the repeated ones keep their order */
        assert_int_equal(f->answers[2 * i].order, 7 + i);
    assert_int_equal(f->downs, 0);
    assert_int_equal(f->ups, 1);
}

static void ask_enqueue(struct fixture *f, int number)
{
    struct args a = {0};
    const char *id = textf("j%d", number);
    const char *body = textf("{\"id\":\"j%d\",\"type\":\"t\"}", number);

    enqueue_request(&a, "test:{0}:", -1,
                    &(struct enqueue){.queue = {"default", 7},
                                      .type = {"t", 1},
                                      .id = {id, strlen(id)},
                                      .body = {body, strlen(body)},
                                      .delay_us = -1,
                                      .at_us = -1,
                                      .keep_ms = 60000,
                                      .tag = id});
    send_args(f, &a, PATIENT);
}

static void ask_look(struct fixture *f)
{
    struct args a = {0};

    script_begin(&a, "batch_show", "test:{0}:", -1);
    args_add(&a, "none");
    assert_memory_equal(a.bytes, "FCALL_RO", strlen("FCALL_RO"));
    send_args(f, &a, PATIENT);
}

/* Of one pipeline: what comes behind the flush is refused, and sent again in order, exactly once. */
LINK_TEST(functions_flushed_within_a_pipeline)
{
    static const char *const order = "{\"id\":\"j0\",\"type\":\"t\"}\n{\"id\":\"j1\",\"type\":\"t\"}\n"
                                     "{\"id\":\"j2\",\"type\":\"t\"}\n{\"id\":\"j3\",\"type\":\"t\"}\n"
                                     "{\"id\":\"j4\",\"type\":\"t\"}";
    char *queue;

    bring_up(f, f->server.url);
    ask_look(f);
    all_answered(f);
    for (int i = 0; i < 5; i++) {
        ask_enqueue(f, i);
        ask_look(f);
        if (i == 1)
            ask(f, "FUNCTION", "FLUSH");
    }
    all_answered(f);
    queue = server_ask(&f->server, "LRANGE", "test:{0}:queue:default", "0", "-1", NULL);
    assert_string_equal(unstamped(queue), order);
    free(queue);
    for (int i = 0; i < f->sent; i++)
        assert_null(strstr(f->answers[i].text, "not found"));
    assert_int_equal(server_calls(&f->server, "function|load"),
                     2); /* the first call of all, and behind the flush */
    assert_int_equal(f->downs, 0);
}

LINK_TEST(missing_twice_is_passed_on)
{
    struct answer *unknown;

    bring_up(f, f->server.url);
    unknown = ask(f, "FCALL", "weir_0123456789ab_gone", "0");
    all_answered(f);
    assert_non_null(strstr(unknown->text, "not found"));
    assert_int_equal(server_calls(&f->server, "fcall"), 2);
    works(f);
    assert_int_equal(f->downs, 0);
}

LINK_TEST(cut_while_repeating)
{
    bring_up(f, proxy_url(f->proxy));
    for (int cut = 1; cut <= 3 + 1 + 3; cut++) {
        stage_do(f, "FUNCTION", "FLUSH");
        proxy_cut_before(f->proxy, PROXY_REPLIES, (unsigned)cut);
        for (int i = 0; i < 3; i++)
            ask_script(f);
        all_answered(f);
        assert_true(f->answers[f->sent - 1].lost);
        works(f);
        assert_int_equal(f->downs, cut);
    }
}

LINK_TEST(loading_is_refused_only_when_missed)
{
    struct answer *script;

    stage_do(f, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", "-function");
    bring_up(f, textf("unix://poor:pw@%s", f->server.socket));
    works(f);
    script = ask_script(f);
    all_answered(f);
    assert_true(script->lost);
    RUN_UNTIL(f, f->downs == 1);
    says(f, WEIR_EREFUSED, "+function|load");
    stage_do(f, "FUNCTION", "LOAD", script_library);
    works(f);
    script = ask_script(f);
    all_answered(f);
    assert_false(script->lost);
    assert_int_equal(f->downs, 1);
}

/* ---- Coming back */

LINK_TEST(it_backs_off_and_comes_back)
{
    bring_up(f, f->server.url);
    works(f);
    server_kill(&f->server);
    RUN_UNTIL(f, f->downs == 1);
    says(f, WEIR_EUNREACHABLE, "connection lost");
    RUN_UNTIL(f, f->downs == 7);
    says(f, WEIR_EUNREACHABLE, "connection refused; is it running?");
    for (int i = 1; i < 7; i++) /* 0.1 s doubling, and two turns of the loop */
        assert_in_range(f->down_at_us[i] - f->down_at_us[i - 1], 0, (100000 << (i - 1)) + 200000);
    server_restart(&f->server);
    works(f);
    assert_int_equal(f->ups, 2);
    server_kill(&f->server);
    RUN_UNTIL(f, f->downs >= 9); /* a good answer has set the delay back */
    assert_in_range(f->down_at_us[8] - f->down_at_us[7], 0, 100000 + 200000);
}

LINK_TEST(it_survives_many_restarts)
{
    bring_up(f, f->server.url);
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 100; k++)
            ask(f, "INCR", "n");
        if (i % 2)
            ev_run(f->loop, EVRUN_NOWAIT);
        server_kill(&f->server);
        all_answered(f);
        RUN_UNTIL(f, !link_is_up(f->link));
        server_restart(&f->server);
        works(f);
    }
    assert_int_equal(f->ups, 6);
}

static void drop_once(struct answer *answer)
{
    answer->f->in_answer = NULL;
    link_drop(answer->f->link, "the test says so");
    assert_false(link_is_up(answer->f->link));
    ask(answer->f, "INCR", "n"); /* of a callback that has not noticed */
    assert_int_equal(answer->f->downs, 0);
}

LINK_TEST(dropping)
{
    bring_up(f, f->server.url);
    for (int i = 0; i < 3; i++)
        ask(f, "INCR", "n");
    f->in_answer = drop_once;
    RUN_UNTIL(f, f->downs == 1);
    says(f, WEIR_EUNREACHABLE, "the test says so");
    assert_int_equal(f->answered, 4);
    assert_int_equal(f->answers[0].integer, 1);
    for (int i = 1; i < 4; i++)
        assert_true(f->answers[i].lost);
    assert_int_equal(stage_number(f, "GET", "n"), 3);
    works(f);
    link_drop(f->link, "once");
    link_drop(f->link, "twice");
    RUN_UNTIL(f, f->downs == 2);
    link_drop(f->link, "while down");
    works(f);
    assert_int_equal(f->downs, 2);
}

LINK_TEST(freeing_answers_everybody)
{
    bring_up(f, f->server.url);
    for (int i = 0; i < 3; i++)
        ask(f, "INCR", "n");
    link_free(f->link);
    f->link = NULL;
    assert_int_equal(f->answered, 3);
    assert_true(f->answers[2].lost);
    assert_int_equal(f->downs, 0);
    ev_run(f->loop, EVRUN_NOWAIT);
    start(f, f->server.url); /* freed before it was up */
    ev_run(f->loop, EVRUN_NOWAIT);
}

LINK_TEST(memory_failure_loses_the_link_only)
{
    struct args a = {.failed = true};
    struct answer *failed, *next;

    bring_up(f, f->server.url);
    failed = send_args(f, &a, PATIENT);
    assert_int_equal(failed->calls, 0);
    assert_false(link_is_up(f->link));
    next = ask(f, "INCR", "n");
    all_answered(f);
    assert_true(failed->lost && next->lost);
    RUN_UNTIL(f, f->downs == 1);
    says(f, WEIR_EINTERNAL, "out of memory");
    works(f);
}

/* ---- Refusals and strangers */

LINK_TEST(logins)
{
    static const char *const options[] = {"--requirepass", "sesame", NULL};
    static const struct {
        const char *login, *tail;
        int status;
        const char *says;
    } cases[] = {
        {"", "", WEIR_EREFUSED, "NOAUTH"},
        {":wrong@", "", WEIR_EREFUSED, "WRONGPASS"},
        {":sesame@", "?db=9999", WEIR_ECONFIG, "refused the database"},
        {"default:sesame@", "?db=3", 0, NULL},
    };

    server_stop(&f->server);
    server_start_with(&f->server, false, options);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->ups = f->downs = 0;
        start(f, textf("unix://%s%s%s", cases[i].login, f->server.socket, cases[i].tail));
        RUN_UNTIL(f, f->ups + f->downs == 1);
        assert_int_equal(f->ups, cases[i].status == 0);
        if (cases[i].status)
            says(f, cases[i].status, cases[i].says);
        assert_null(strstr(f->why.text, "sesame"));
        if (f->ups)
            works(f);
        link_free(f->link);
        f->link = NULL;
    }
}

LINK_TEST(a_replica_is_left)
{
    struct answer *first, *second;

    bring_up(f, f->server.url);
    stage_do(f, "REPLICAOF", "127.0.0.1", "1");
    first = ask(f, "INCR", "n");
    second = ask(f, "INCR", "n");
    RUN_UNTIL(f, f->downs == 1);
    assert_int_equal(strncmp(first->text, "READONLY", 8), 0);
    assert_true(second->lost);
    says(f, WEIR_EUNREACHABLE, "READONLY");
    RUN_UNTIL(f, f->downs == 2); /* it says that it is a replica */
    says(f, WEIR_EUNREACHABLE, "READONLY");
    assert_int_equal(f->ups, 1);
    stage_do(f, "REPLICAOF", "NO", "ONE");
    works(f);
}

/* Answers that nobody asked for, of Redis or of a stranger; then it works. */
LINK_TEST(what_is_said_at_first)
{
    static const char *const cases[][2] = {
        {"-ERR max number of clients reached\r\n", "maxclients"},
        {"-LOADING Redis is loading the dataset in memory\r\n", "loading"},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "not a Redis server"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int downs = f->downs;

        link_free(f->link);
        proxy_inject(f->proxy, cases[i][0]);
        start(f, proxy_url(f->proxy));
        RUN_UNTIL(f, f->downs > downs);
        says(f, WEIR_EUNREACHABLE, cases[i][1]);
        works(f);
    }
    proxy_inject(f->proxy, "+unasked\r\n");
    RUN_UNTIL(f, f->downs == (int)COUNT(cases) + 1);
    says(f, WEIR_EUNREACHABLE, "nobody asked for");
    works(f);
}

/* Whatever comes: no crash, every callback once, and a good connection afterwards. */
LINK_TEST(garbage)
{
    static const char alphabet[] = "*$+-:0123456789\r\n\r\nxyz";
    unsigned seed = 20261121;
    char bytes[64];

    bring_up(f, proxy_url(f->proxy));
    for (int round = 0; round < 60; round++) {
        int len = 1 + rand_r(&seed) % 40;

        for (int i = 0; i < len; i++)
            bytes[i] = alphabet[(unsigned)rand_r(&seed) % (sizeof alphabet - 1)];
        bytes[len] = '\0';
        RUN_UNTIL(f, link_is_up(f->link));
        proxy_inject(f->proxy, bytes);
        if (link_is_up(f->link))
            for (int i = 0; i < 3; i++)
                ask(f, "PING");
        ev_run(f->loop, EVRUN_NOWAIT);
        link_drop(f->link, "next round");
        all_answered(f);
        RUN_UNTIL(f, !link_is_up(f->link));
        if (round % 3 == 2)
            works(f);
    }
    works(f);
}

LINK_TEST(over_tcp)
{
    bring_up(f, proxy_tcp_url(f->proxy));
    works(f);
    link_free(f->link);
    f->ups = 0;
    bring_up(f,
             textf("redis://localhost:%d/3", proxy_tcp_port(f->proxy))); /* ::1 refuses where it is known */
    works(f);
    link_free(f->link);
    start(f, "redis://127.0.0.1:1");
    RUN_UNTIL(f, f->downs == 1);
    says(f, WEIR_EUNREACHABLE, "redis redis://127.0.0.1:1/0: connection refused");
    link_free(f->link);
    start(f, "redis://no-such-host.invalid");
    RUN_UNTIL(f, f->downs == 2);
    says(f, WEIR_EUNREACHABLE, "cannot find the host");
}

/* There is no such string, and no such list: a command that blocked in vain says so by the same. */
LINK_TEST(nothing_is_nil)
{
    struct answer *string, *list;

    bring_up(f, f->server.url);
    string = ask(f, "GET", "none");
    list = ask(f, "BLPOP", "none", "0.01");
    all_answered(f);
    assert_int_equal(string->type, REDIS_REPLY_NIL);
    assert_int_equal(list->type, REDIS_REPLY_NIL);
}

TESTS(NULL, NULL)
