/* take: the script against the model under virtual time, wrong arguments, and weir_take. */
#include <hiredis/hiredis.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/client.h"
#include "core/script.h"
#include "tests/gate_model.h"
#include "tests/server.h"
#include "throttle/take.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BEGIN_US INT64_C(1795000000000000)
#define PREFIX "weir:{0}:"

static struct server server;
static struct weir *w;
static struct error error;
static uint64_t seed;

static int setup(void **state)
{
    (void)state;
    server_start(&server, false);
    w = weir_new(server.url, NULL);
    assert_non_null(w);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    weir_free(w);
    server_stop(&server);
    return 0;
}

static int flush(void **state)
{
    (void)state;
    free(server_ask(&server, "FLUSHALL", NULL));
    return 0;
}

static void set_limit(const char *name, const char *rule)
{
    free(server_ask(&server, "HSET", PREFIX "limits", name, rule, NULL));
}

/* One take at a time of the test's own. */
static int take_at(int64_t now_us, const char *target, const char *rule, int64_t cost, bool peek,
                   struct weir_take *out)
{
    struct redisReply *reply = NULL;
    struct take t;
    struct args a;
    int status;

    if (take_make(&t, target, rule, cost, peek, &error) < 0)
        return error.status;
    args_init(&a);
    take_request(&a, PREFIX, now_us, &t);
    status = redis_call(w->redis, &a, &reply, NULL, &error);
    if (status == 0) {
        status = take_reply(reply, &t, out, &error);
        freeReplyObject(reply);
    }
    args_free(&a);
    return status;
}

/* ---- Against the model */

struct step {
    int64_t now_us, cost;
    bool peek;
    struct weir_take expected;
};

static void foresee(struct model *m, struct step *s)
{
    const struct rule *r = &m->rule;
    int64_t start_us = model_start(m, s->now_us, s->cost);
    struct weir_take *e = &s->expected;
    ticks left;

    *e = (struct weir_take){
        .limit = r->burst, .allowed = start_us == s->now_us, .never = start_us == INT64_MAX};
    if (e->allowed && !s->peek)
        model_take(m, s->now_us, s->cost);
    e->retry_after_s = e->allowed || e->never ? -1 : (double)(start_us - s->now_us) / 1e6;
    left = model_left(m, s->now_us);
    if (left > 0)
        e->reset_after_s = (double)(int64_t)((left + r->count - 1) / r->count) / 1e6;
    e->remaining = left > 0 ? r->burst - (int64_t)((left + r->period_us - 1) / r->period_us) : r->burst;
    if (e->remaining < 0)
        e->remaining = 0;
}

static void check_step(const struct rule *rule, const struct step *s, const struct weir_take *t, int number)
{
    const struct weir_take *e = &s->expected;
    char text[RULE_TEXT_SIZE];

    if (t->allowed == e->allowed && t->never == e->never && t->limit == e->limit &&
        t->remaining == e->remaining && t->retry_after_s == e->retry_after_s &&
        t->reset_after_s == e->reset_after_s)
        return;
    rule_write(rule, text);
    fail_msg("WEIR_SEED=%llu: %s, step %d, cost %lld: allowed %d (model %d), remaining %lld (%lld), retry %f "
             "(%f), reset "
             "%f (%f)",
             (unsigned long long)seed, text, number, (long long)s->cost, t->allowed, e->allowed,
             (long long)t->remaining, (long long)e->remaining, t->retry_after_s, e->retry_after_s,
             t->reset_after_s, e->reset_after_s);
}

static int64_t move_clock(const struct model *m, int64_t now_us, uint64_t *random)
{
    int64_t t_us = m->rule.period_us / m->rule.count;

    switch (random_in(random, 0, 3)) {
    case 0:
        return now_us + random_magnitude(random, t_us);
    case 1:
        return model_start(m, now_us, 1) + random_in(random, 0, 1);
    case 2:
        return now_us + random_magnitude(random, t_us * random_magnitude(random, m->rule.burst));
    default:
        return now_us;
    }
}

static void run_sequence(uint64_t *random)
{
    enum { STEPS = 200 };
    static struct step steps[STEPS];
    static struct redisReply *replies[STEPS];
    struct rule rule = random_rule(random);
    int64_t now_us = BEGIN_US;
    struct take t = {.name = "mail"};
    struct model m;
    struct args a;

    free(server_ask(&server, "DEL", PREFIX "gate:mail#0", NULL));
    rule_write(&rule, t.rule);
    model_init(&m, &rule);
    args_init(&a);
    for (int i = 0; i < STEPS; i++) {
        struct step *s = &steps[i];

        *s = (struct step){.now_us = now_us, .cost = 1, .peek = random_in(random, 0, 3) == 0};
        if (random_in(random, 0, 1))
            s->cost = random_magnitude(random, rule.burst + rule.burst / 8 + 1);
        foresee(&m, s);
        t.cost = s->cost;
        t.peek = s->peek;
        take_request(&a, PREFIX, now_us, &t);
        assert_int_equal(redis_append(w->redis, &a, &error), 0);
        now_us = move_clock(&m, now_us, random);
        if (now_us > BEGIN_US * 2)
            now_us = BEGIN_US * 2;
    }
    args_free(&a);
    for (int i = 0; i < STEPS; i++)
        if (redis_result(w->redis, &replies[i], &error) < 0)
            fail_msg("WEIR_SEED=%llu: %s", (unsigned long long)seed, error.text);
    for (int i = 0; i < STEPS; i++) {
        struct weir_take out;

        if (take_reply(replies[i], &t, &out, &error) < 0)
            fail_msg("WEIR_SEED=%llu: %s", (unsigned long long)seed, error.text);
        freeReplyObject(replies[i]);
        check_step(&rule, &steps[i], &out, i);
    }
}

static void test_random_takes_equal_the_model(void **state)
{
    struct weir_take ignored;
    uint64_t random;

    (void)state;
    assert_int_equal(take_at(0, "x", "1/s", 1, true, &ignored),
                     0); /* loads the scripts before the pipeline */
    seed = random_seed();
    random = seed;
    for (int i = 0; i < 100; i++)
        run_sequence(&random);
}

/* ---- Cases */

static void test_the_fields(void **state)
{
    struct weir_take t;

    (void)state;
    set_limit("mail", "100/60000000/20");
    assert_int_equal(take_at(BEGIN_US, "mail", NULL, 0, false, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(t.limit, 20);
    assert_int_equal(t.remaining, 19);
    assert_true(t.retry_after_s == -1);
    assert_true(t.reset_after_s == 0.6);
    assert_int_equal(take_at(BEGIN_US, "mail", NULL, 20, false, &t), 0);
    assert_int_equal(t.allowed, 0);
    assert_int_equal(t.never, 0);
    assert_int_equal(t.remaining, 19);
    assert_true(t.retry_after_s == 0.6);
    assert_int_equal(take_at(BEGIN_US, "mail", NULL, 21, false, &t), 0);
    assert_int_equal(t.never, 1);
    assert_int_equal(t.allowed, 0);
    assert_true(t.retry_after_s == -1);
    assert_int_equal(take_at(BEGIN_US, "mail", NULL, INT64_MAX, false, &t), 0);
    assert_int_equal(t.never, 1);
}

static void test_a_peek_takes_nothing(void **state)
{
    struct weir_take t;

    (void)state;
    set_limit("mail", "1/1000000/1");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(take_at(BEGIN_US, "mail", NULL, 1, true, &t), 0);
        assert_int_equal(t.allowed, 1);
        assert_int_equal(t.remaining, 1);
    }
    assert_int_equal(server_number(&server, "EXISTS", PREFIX "gate:mail#0", NULL), 0);
    assert_int_equal(take_at(BEGIN_US, "mail", NULL, 1, false, &t), 0);
    assert_int_equal(take_at(BEGIN_US + 999999, "mail", NULL, 1, true, &t), 0);
    assert_int_equal(t.allowed, 0);
    assert_true(t.retry_after_s == 1e-6);
    assert_int_equal(take_at(BEGIN_US + 1000000, "mail", NULL, 1, false, &t), 0);
    assert_int_equal(t.allowed, 1);
}

/* A slot that a worker could be granted 5 ms ahead is not open yet for a caller who goes ahead now. */
static void test_nothing_is_taken_ahead(void **state)
{
    struct weir_take t;

    (void)state;
    assert_int_equal(take_at(BEGIN_US, "x", "1000/s,burst=1", 1, false, &t), 0);
    assert_int_equal(take_at(BEGIN_US + 999, "x", "1000/s,burst=1", 1, false, &t), 0);
    assert_int_equal(t.allowed, 0);
}

static void test_keys_have_gates_of_their_own(void **state)
{
    struct weir_take t;

    (void)state;
    assert_int_equal(take_at(BEGIN_US, "login/alice", "1/1m", 1, false, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(take_at(BEGIN_US, "login/alice", "1/1m", 1, false, &t), 0);
    assert_int_equal(t.allowed, 0);
    assert_int_equal(take_at(BEGIN_US, "login/bob", "1/1m", 1, false, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(take_at(BEGIN_US, "login", "1/1m", 1, false, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(server_number(&server, "EXISTS", PREFIX "gate:login#0", PREFIX "gate:login#0/alice",
                                   PREFIX "gate:login#0/bob", NULL),
                     3);
}

static void test_an_over_full_gate_has_nothing_left(void **state)
{
    struct weir_take t;

    (void)state;
    set_limit("mail", "10/1000000/5");
    free(server_ask(&server, "SET", PREFIX "gate:mail#0",
                    "1795000000504000 0 1795000000000000 0 10/1000000/5", NULL));
    assert_int_equal(take_at(BEGIN_US, "mail", NULL, 1, true, &t), 0);
    assert_int_equal(t.remaining, 0);
    assert_true(t.retry_after_s == 0.104);
    free(server_ask(&server, "SET", PREFIX "gate:mail#0",
                    "1795000000000000 0 1795000000000000 1795000003000000 10/1000000/5", NULL));
    assert_int_equal(take_at(BEGIN_US, "mail", NULL, 1, false, &t), 0);
    assert_int_equal(t.allowed, 0);
    assert_int_equal(t.remaining, 0);
    assert_true(t.retry_after_s == 3 && t.reset_after_s == 3);
}

static void test_what_cannot_be_asked(void **state)
{
    static const struct {
        const char *target, *rule;
        int64_t cost;
        int status;
        const char *says;
    } cases[] = {
        {"nobody", NULL, 1, WEIR_ENOTFOUND, "limit nobody: there is none"},
        {"nobody/key", NULL, 1, WEIR_ENOTFOUND, "limit nobody: there is none"},
        {"mail/key", NULL, 1, WEIR_EINPUT, "limit mail: it has no keys"},
        {"mail", "100/1m,burst=21", 1, WEIR_EINPUT, "limit mail: it has another rule"},
        {"broken", NULL, 1, WEIR_EINPUT, "limit broken: its rule cannot be read"},
        {"", NULL, 1, WEIR_EINPUT, "limit '': no name"},
        {"/key", NULL, 1, WEIR_EINPUT, "limit '': no name"},
        {"mail/", "1/s", 1, WEIR_EINPUT, "key '': no name"},
        {"mail/a/b", "1/s", 1, WEIR_EINPUT, "key 'a/b': no name"},
        {"a b", "1/s", 1, WEIR_EINPUT, "limit 'a b': no name"},
        {"x", "1/0s", 1, WEIR_EINPUT, "rule '1/0s': the period"},
        {"x", "1/s", -1, WEIR_EINPUT, "cost -1: below 1"},
    };
    struct weir_take t;

    (void)state;
    set_limit("mail", "100/60000000/20");
    set_limit("broken", "100/1m");
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(take_at(BEGIN_US, cases[i].target, cases[i].rule, cases[i].cost, false, &t),
                         cases[i].status);
        if (strncmp(error.text, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("%s: %s", cases[i].target, error.text);
    }
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 1);
    assert_int_equal(take_at(BEGIN_US, "mail", "100/1m,burst=20", 1, false, &t),
                     0); /* its own rule is none other */
}

static void test_names_have_128_characters_at_most(void **state)
{
    char name[200] = "";
    struct weir_take t;

    (void)state;
    memset(name, 'n', 128);
    assert_int_equal(take_at(BEGIN_US, name, "1/s", 1, false, &t), 0);
    name[128] = '/';
    memset(name + 129, 'k', 10);
    assert_int_equal(take_at(BEGIN_US, name, "1/s", 1, false, &t), 0);
    name[128] = 'n';
    assert_int_equal(take_at(BEGIN_US, name, "1/s", 1, false, &t), WEIR_EINPUT);
}

static void test_wrong_arguments_change_nothing(void **state)
{
    static const char *const calls[][6] = {
        {"mail", "", "1/1000000/1", "1"},         {"mail", "", "1/1000000/1", "1", "0", "more"},
        {"", "", "1/1000000/1", "1", "0"},        {"a/b", "", "1/1000000/1", "1", "0"},
        {"mail", "a/b", "1/1000000/1", "1", "0"}, {"mail", "", "1/1s", "1", "0"},
        {"mail", "", "1/1000000/1", "0", "0"},    {"mail", "", "1/1000000/1", "-1", "0"},
        {"mail", "", "1/1000000/1", "1.5", "0"},  {"mail", "", "1/1000000/1", "nan", "0"},
        {"mail", "", "1/1000000/1", "x", "0"},    {"mail", "", "1/1000000/1", "", "0"},
        {"mail", "", "1/1000000/1", "1", ""},     {"mail", "", "1/1000000/1", "1", "2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(calls); i++) {
        struct redisReply *reply;
        struct args a;

        args_init(&a);
        script_begin(&a, "take", PREFIX, BEGIN_US);
        for (size_t j = 0; j < 6 && calls[i][j]; j++)
            args_add(&a, calls[i][j]);
        assert_int_equal(redis_call(w->redis, &a, &reply, NULL, &error), WEIR_EINPUT);
        if (strncmp(error.text, "take: w", 7) != 0)
            fail_msg("call %zu: %s", i, error.text);
        args_free(&a);
    }
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

static void test_keys_of_another_kind_are_an_error(void **state)
{
    struct weir_take t;

    (void)state;
    free(server_ask(&server, "SET", PREFIX "limits", "x", NULL));
    assert_int_equal(take_at(BEGIN_US, "mail", NULL, 1, false, &t), WEIR_ECONFIG);
    free(server_ask(&server, "DEL", PREFIX "limits", NULL));
    free(server_ask(&server, "RPUSH", PREFIX "gate:mail#0", "x", NULL));
    assert_int_equal(take_at(BEGIN_US, "mail", "1/s", 1, false, &t), WEIR_ECONFIG);
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 1);
}

static void test_answers_of_another_version_are_refused(void **state)
{
    struct redisReply word = {.type = REDIS_REPLY_STRING, .str = "maybe", .len = 5};
    struct redisReply number = {.type = REDIS_REPLY_INTEGER}, nil = {.type = REDIS_REPLY_NIL};
    struct redisReply few = {.type = REDIS_REPLY_ARRAY};
    const struct redisReply *const answers[] = {&word, &number, &nil, &few, NULL};
    const struct take t = {.name = "mail"};
    struct weir_take out;

    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++)
        assert_int_equal(take_reply(answers[i], &t, &out, &error), WEIR_EINTERNAL);
}

/* ---- The library, in real time */

static void test_weir_take(void **state)
{
    struct weir_take t;
    int64_t ttl_ms;

    (void)state;
    assert_int_equal(weir_take(w, "mail", NULL, 0, 0, &t), WEIR_ENOTFOUND);
    assert_string_equal(weir_message(w),
                        "limit mail: there is none; set it with weir rate set, or give a rule");
    assert_int_equal(weir_rate_set(w, "mail", "1/1h"), 0);
    assert_int_equal(weir_take(w, "mail", NULL, 0, WEIR_TAKE_PEEK, &t), 0);
    assert_int_equal(t.allowed, 1);
    assert_int_equal(weir_take(w, "mail", NULL, 0, 0, &t), 0);
    assert_int_equal(t.allowed, 1);
    ttl_ms = server_number(&server, "PTTL", PREFIX "gate:mail#0", NULL);
    assert_true(ttl_ms > 3590000 && ttl_ms <= 3600001);
    assert_int_equal(weir_take(w, "mail", NULL, 0, 0, &t), 0);
    assert_int_equal(t.allowed, 0);
    assert_true(t.retry_after_s > 3590 && t.retry_after_s <= 3600);
}

static void test_weir_take_reports_a_wrong_address(void **state)
{
    struct weir *lost = weir_new("redis://", "no good");
    struct weir_take t;

    (void)state;
    assert_non_null(lost);
    assert_int_equal(weir_take(lost, "mail", NULL, 0, 0, &t), WEIR_ECONFIG);
    weir_free(lost);
    lost = weir_new("/nowhere/redis.sock", NULL);
    assert_int_equal(weir_take(lost, "mail", NULL, 0, 0, &t), WEIR_EUNREACHABLE);
    weir_free(lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_random_takes_equal_the_model, flush),
        cmocka_unit_test_setup(test_the_fields, flush),
        cmocka_unit_test_setup(test_a_peek_takes_nothing, flush),
        cmocka_unit_test_setup(test_nothing_is_taken_ahead, flush),
        cmocka_unit_test_setup(test_keys_have_gates_of_their_own, flush),
        cmocka_unit_test_setup(test_an_over_full_gate_has_nothing_left, flush),
        cmocka_unit_test_setup(test_what_cannot_be_asked, flush),
        cmocka_unit_test_setup(test_names_have_128_characters_at_most, flush),
        cmocka_unit_test_setup(test_wrong_arguments_change_nothing, flush),
        cmocka_unit_test_setup(test_keys_of_another_kind_are_an_error, flush),
        cmocka_unit_test_setup(test_answers_of_another_version_are_refused, flush),
        cmocka_unit_test_setup(test_weir_take, flush),
        cmocka_unit_test_setup(test_weir_take_reports_a_wrong_address, flush),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
