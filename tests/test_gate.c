/* gate.lua in a real Redis against the leaky bucket of gate_model.h and against gcra.c, under virtual time;
 * what it does about clocks, pauses, garbage and lifetimes. */
#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/redis.h"
#include "tests/gate_model.h"
#include "tests/server.h"
#include "throttle/gcra.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define BEGIN_US INT64_C(1795000000000000)
#define AHEAD_US 5000
#define PREFIX "weir:{0}:"
#define GATE PREFIX "gate:g#0"

static struct server server;
static struct redis *redis;
static struct error error;
static uint64_t seed;

/* What claim does with one gate: take up to most jobs at the earliest, when that is near enough. */
static const char claim_text[] =
    "local g = gate_load('g#0', ARGV[2])\n"
    "if not g then return {'no rule'} end\n"
    "local cost, most, later = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])\n"
    "local s, k = gate_start(g, cost), 0\n"
    "if s <= now + AHEAD then\n"
    "  k = gate_count(g, s + later, most, cost)\n"
    "  gate_take(g, s + later, k, cost)\n"
    "end\n"
    "gate_save(g)\n"
    "return {s == math.huge and 'never' or us(s), k, us(g.tat_us), us(g.tat_rem), g.garbage and 1 or 0,\n"
    "        us(gate_resets(g)), us(g.pause)}\n";

/* ARGV[4] starts of a backlog, one after the other, each at the earliest; the clock follows. */
static const char backlog_text[] = "local g = gate_load('g#0', ARGV[2])\n"
                                   "local cost, s = tonumber(ARGV[3]), now\n"
                                   "for _ = 1, ARGV[4] do\n"
                                   "  s = gate_start(g, cost)\n"
                                   "  now = s\n"
                                   "  gate_take(g, s, 1, cost)\n"
                                   "end\n"
                                   "gate_save(g)\n"
                                   "return {us(s)}\n";

static const char rules_text[] = "local known = {}\n"
                                 "for i = 2, #ARGV do known[i - 1] = rule_read(ARGV[i]) and 1 or 0 end\n"
                                 "return known\n";

/* A script of this test: the parts that it uses, and its text. */
static char claim_sha[41], backlog_sha[41], rules_sha[41];

static size_t read_part(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t len;

    if (!f)
        fail_msg("%s: cannot be opened; tests run in the project's folder", path);
    len = fread(out, 1, size - 1, f);
    out[len] = '\0';
    fclose(f);
    return len;
}

static redisReply *ask(struct args *a)
{
    redisReply *reply = NULL;

    if (redis_call(redis, a, &reply, NULL, &error) < 0)
        fail_msg("%s", error.text);
    args_free(a);
    return reply;
}

static void load(const char *text, char sha[41])
{
    static char source[64 * 1024];
    size_t len = read_part("core/base.lua", source, sizeof source);
    struct args a;
    redisReply *reply;

    len += read_part("core/now.lua", source + len, sizeof source - len);
    len += read_part("throttle/gate.lua", source + len, sizeof source - len);
    snprintf(source + len, sizeof source - len, "%s", text);
    args_init(&a);
    args_add(&a, "SCRIPT");
    args_add(&a, "LOAD");
    args_add(&a, source);
    reply = ask(&a);
    snprintf(sha, 41, "%s", reply->str);
    freeReplyObject(reply);
}

static int setup(void **state)
{
    struct redis_address address;

    (void)state;
    server_start(&server, false);
    assert_int_equal(redis_address_parse(server.url, &address, &error), 0);
    redis = redis_new(&address);
    assert_non_null(redis);
    load(claim_text, claim_sha);
    load(backlog_text, backlog_sha);
    load(rules_text, rules_sha);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    redis_free(redis);
    server_stop(&server);
    return 0;
}

static int flush(void **state)
{
    (void)state;
    free(server_ask(&server, "FLUSHALL", NULL));
    return 0;
}

/* ---- Calls */

static void begin_call(struct args *a, const char *sha, int64_t now_us)
{
    args_clear(a);
    args_add(a, "EVALSHA");
    args_add(a, sha);
    args_add(a, "1");
    args_add(a, PREFIX);
    if (now_us < 0)
        args_add(a, "");
    else
        args_add_int(a, now_us);
}

static void add_claim(struct args *a, int64_t now_us, const struct rule *rule, int64_t cost, int64_t most,
                      int64_t later)
{
    char stored[RULE_TEXT_SIZE];

    rule_write(rule, stored);
    begin_call(a, claim_sha, now_us);
    args_add(a, stored);
    args_add_int(a, cost);
    args_add_int(a, most);
    args_add_int(a, later);
}

struct claimed {
    int64_t start_us; /* INT64_MAX: never */
    int64_t k, tat_us, tat_rem, garbage, resets_us, pause_us;
};

static struct claimed claimed_of(redisReply *r)
{
    struct claimed c;

    if (r->type != REDIS_REPLY_ARRAY || r->elements != 7)
        fail_msg("claim: unexpected answer %s", r->str ? r->str : "");
    c.start_us = strcmp(r->element[0]->str, "never") == 0 ? INT64_MAX : atoll(r->element[0]->str);
    c.k = r->element[1]->integer;
    c.tat_us = atoll(r->element[2]->str);
    c.tat_rem = atoll(r->element[3]->str);
    c.garbage = r->element[4]->integer;
    c.resets_us = atoll(r->element[5]->str);
    c.pause_us = atoll(r->element[6]->str);
    freeReplyObject(r);
    return c;
}

static struct claimed claim(int64_t now_us, const struct rule *rule, int64_t cost, int64_t most)
{
    struct args a;

    args_init(&a);
    add_claim(&a, now_us, rule, cost, most, 0);
    return claimed_of(ask(&a));
}

static void set_state(const char *text)
{
    free(server_ask(&server, "SET", GATE, text, NULL));
}

/* ---- Random sequences */

/* One call and what it must answer. */
struct step {
    struct rule rule;
    int64_t now_us, cost, most, later;
    int64_t start_us, k;
    struct gcra after;
};

struct pair {
    struct gcra gcra;
    struct model model;
    int64_t wrote_us;
};

/* What loading does: the clock's step back, the changed rule. Both are written. */
static void bring_up_to_date(struct pair *p, const struct step *s)
{
    if (s->now_us < p->wrote_us) {
        p->gcra.tat_us -= p->wrote_us - s->now_us;
        model_step_back(&p->model, p->wrote_us - s->now_us);
        p->wrote_us = s->now_us;
    }
    if (memcmp(&s->rule, &p->gcra.rule, sizeof s->rule) != 0 && p->wrote_us) {
        gcra_change(&p->gcra, &s->rule, s->now_us);
        model_change(&p->model, &s->rule, s->now_us);
        p->wrote_us = s->now_us;
    } else if (!p->wrote_us) {
        gcra_init(&p->gcra, &s->rule);
        model_init(&p->model, &s->rule);
    }
}

/* Fills in what the step must answer; false: the model and gcra.c differ. */
static bool foresee(struct pair *p, struct step *s)
{
    bring_up_to_date(p, s);
    s->start_us = model_start(&p->model, s->now_us, s->cost);
    s->k = 0;
    if (gcra_start(&p->gcra, s->now_us, s->cost) != s->start_us)
        return false;
    if (s->start_us <= s->now_us + AHEAD_US) {
        if (s->start_us + s->later > s->now_us + AHEAD_US)
            s->later = 0;
        s->k = model_count(&p->model, s->start_us + s->later, s->most, s->cost);
        gcra_take(&p->gcra, s->start_us + s->later, s->k, s->cost);
        for (int64_t i = 0; i < s->k; i++)
            model_take(&p->model, s->start_us + s->later, s->cost);
        p->wrote_us = s->now_us;
    }
    s->after = p->gcra;
    return true;
}

static int64_t move_clock(const struct pair *p, int64_t now_us, uint64_t *random)
{
    const struct rule *r = &p->gcra.rule;
    int64_t t_us = r->period_us / r->count;

    switch (random_in(random, 0, 7)) {
    case 0:
        return now_us + random_magnitude(random, t_us);
    case 1:
        return gcra_start(&p->gcra, now_us, 1) + random_in(random, -AHEAD_US - 1, 2);
    case 2:
        return now_us + random_magnitude(random, t_us * random_magnitude(random, r->burst));
    case 3:
        return random_in(random, 0, 3) ? now_us : now_us - random_magnitude(random, INT64_C(7200000000));
    case 4:
        return random_in(random, 0, 9) ? now_us + 1 : now_us + random_magnitude(random, INT64_C(7200000000));
    default:
        return now_us;
    }
}

static void check_step(const struct step *s, int sequence, int number, const struct claimed *c)
{
    char rule[RULE_TEXT_SIZE];

    if (c->start_us == s->start_us && c->k == s->k && !c->garbage &&
        (s->start_us > s->now_us + AHEAD_US ||
         (c->tat_us == s->after.tat_us && c->tat_rem == s->after.tat_rem)))
        return;
    rule_write(&s->rule, rule);
    fail_msg("WEIR_SEED=%llu: sequence %d, step %d: %s, now %lld, cost %lld, most %lld: start %lld "
             "(gate.lua) %lld "
             "(model), k %lld %lld, TAT %lld+%lld %lld+%lld",
             (unsigned long long)seed, sequence, number, rule, (long long)s->now_us, (long long)s->cost,
             (long long)s->most, (long long)c->start_us, (long long)s->start_us, (long long)c->k,
             (long long)s->k, (long long)c->tat_us, (long long)c->tat_rem, (long long)s->after.tat_us,
             (long long)s->after.tat_rem);
}

static void run_sequence(uint64_t *random, int sequence)
{
    enum { STEPS = 300 };
    static struct step steps[STEPS];
    static struct redisReply *replies[STEPS];
    struct rule rule = random_rule(random);
    struct pair p = {.wrote_us = 0};
    int64_t now_us = BEGIN_US;
    struct args a;

    free(server_ask(&server, "DEL", GATE, NULL));
    args_init(&a);
    for (int i = 0; i < STEPS; i++) {
        struct step *s = &steps[i];

        *s = (struct step){.rule = rule, .now_us = now_us, .most = random_magnitude(random, 200)};
        s->cost = random_in(random, 0, 2) ? 1 : random_magnitude(random, rule.burst + rule.burst / 8);
        s->later = random_in(random, 0, 2) ? 0 : random_in(random, 0, 2);
        if (!foresee(&p, s))
            fail_msg("WEIR_SEED=%llu: sequence %d, step %d: gcra.c and the model differ",
                     (unsigned long long)seed, sequence, i);
        add_claim(&a, s->now_us, &s->rule, s->cost, s->most, s->later);
        assert_int_equal(redis_append(redis, &a, &error), 0);
        now_us = move_clock(&p, now_us, random);
        if (now_us > BEGIN_US * 2 || now_us < BEGIN_US / 2)
            now_us = BEGIN_US;
        if (random_in(random, 0, 24) == 0)
            rule = random_rule(random);
    }
    args_free(&a);
    for (int i = 0; i < STEPS; i++)
        if (redis_result(redis, &replies[i], &error) < 0)
            fail_msg("WEIR_SEED=%llu: sequence %d, step %d: %s", (unsigned long long)seed, sequence, i,
                     error.text);
    for (int i = 0; i < STEPS; i++) {
        struct claimed c = claimed_of(replies[i]);

        check_step(&steps[i], sequence, i, &c);
    }
}

static void test_random_sequences_equal_model_and_gcra(void **state)
{
    uint64_t random;

    (void)state;
    seed = random_seed();
    random = seed;
    for (int i = 0; i < 150; i++)
        run_sequence(&random, i);
}

/* ---- Long runs */

/* The n-th start of a backlog is the exact time, rounded up; over an hour that is far better than one part in
 * a million. Costs stand for many starts where there are too many to make one by one. */
static void test_an_hour_of_backlog_is_exact(void **state)
{
    static const struct {
        struct rule rule;
        int64_t cost, starts;
    } runs[] = {
        {{7, 1000000, 7}, 1, 7 * 3600},     {{7, 1000000, 1}, 1, 7 * 3600},
        {{30000, 1000000, 1}, 1, 100000},   {{30000, 1000000, 3000}, 1000, 30 * 3600},
        {{1000000, 1000000, 1}, 1, 100000}, {{1000000, 1000000, 100000}, 99991, 36000},
        {{1, 1500000, 1}, 1, 2400},         {{1, 86400000000, 1}, 1, 1000},
        {{999983, 1000003, 10}, 7, 50000},
    };
    enum { A_CALL = 5000 };

    (void)state;
    for (size_t i = 0; i < COUNT(runs); i++) {
        const struct rule *r = &runs[i].rule;
        int64_t s = BEGIN_US, left = runs[i].starts;
        char stored[RULE_TEXT_SIZE];
        ticks exact;

        free(server_ask(&server, "DEL", GATE, NULL));
        rule_write(r, stored);
        for (int64_t n; left > 0; left -= n) {
            struct args a;
            redisReply *reply;

            n = left < A_CALL ? left : A_CALL;
            args_init(&a);
            begin_call(&a, backlog_sha, s);
            args_add(&a, stored);
            args_add_int(&a, runs[i].cost);
            args_add_int(&a, n);
            reply = ask(&a);
            s = atoll(reply->element[0]->str);
            freeReplyObject(reply);
        }
        exact = ((ticks)runs[i].starts * runs[i].cost - r->burst) * r->period_us;
        assert_int_equal(s - BEGIN_US, (int64_t)((exact + r->count - 1) / r->count));
    }
}

/* ---- Clocks */

static void test_a_clock_that_steps_back_delays_nothing(void **state)
{
    const struct rule rule = {10, 1000000, 1};
    const int64_t back_us = BEGIN_US - INT64_C(3600000000);

    (void)state;
    assert_int_equal(claim(BEGIN_US, &rule, 1, 1).k, 1);
    /* Denied, and written all the same: the wait counts from the first look after the step. */
    assert_int_equal(claim(back_us, &rule, 1, 1).start_us, back_us + 100000);
    assert_int_equal(claim(back_us + 60000, &rule, 1, 1).start_us, back_us + 100000);
    assert_int_equal(claim(back_us + 95000, &rule, 1, 1).k, 1);
}

static void test_a_clock_that_goes_and_comes_back_grants_one_burst(void **state)
{
    const struct rule rule = {10, 1000000, 5};
    const int64_t far_us = BEGIN_US + INT64_C(3600000000);

    (void)state;
    assert_int_equal(claim(BEGIN_US, &rule, 1, 10).k, 5);
    assert_int_equal(claim(far_us, &rule, 1, 10).k, 5);
    assert_int_equal(claim(BEGIN_US, &rule, 1, 10).k, 0);
    assert_int_equal(claim(BEGIN_US, &rule, 1, 10).start_us, BEGIN_US + 100000);
}

static void test_a_pause_holds_and_is_no_tat(void **state)
{
    const struct rule rule = {10, 1000000, 5};
    struct claimed c;
    char text[128];

    (void)state;
    snprintf(text, sizeof text, "%lld 0 %lld %lld 10/1000000/5", (long long)BEGIN_US, (long long)BEGIN_US,
             (long long)BEGIN_US + 7000000);
    set_state(text);
    c = claim(BEGIN_US + 1, &rule, 1, 10);
    assert_int_equal(c.k, 0);
    assert_int_equal(c.start_us, BEGIN_US + 7000000);
    assert_int_equal(c.resets_us, BEGIN_US + 7000000);
    /* Back by a second: the pause moves with the clock. */
    assert_int_equal(claim(BEGIN_US - 1000000, &rule, 1, 10).start_us, BEGIN_US + 6000000);
    c = claim(BEGIN_US + 6000000, &rule, 1, 10);
    assert_int_equal(c.k, 5);
}

static void test_no_state_closes_a_gate_for_longer_than_its_rule(void **state)
{
    const struct rule rule = {10, 1000000, 5};
    struct claimed c;

    (void)state;
    set_state("8999999999999999 0 1795000000000000 0 10/1000000/5");
    c = claim(BEGIN_US, &rule, 1, 1);
    assert_int_equal(c.garbage, 0);
    assert_int_equal(c.start_us, BEGIN_US + AHEAD_US + 100000);
    assert_int_equal(claim(BEGIN_US + 50000, &rule, 1, 1).start_us, BEGIN_US + AHEAD_US + 100000);
    assert_int_equal(claim(BEGIN_US + AHEAD_US + 100000, &rule, 1, 1).k, 1);
}

static void test_garbage_counts_as_unused(void **state)
{
    static const char *const garbage[] = {
        "",
        "x",
        "1795000009000000",
        "1795000009000000 0 1795000000000000 0",
        "1795000009000000 0 1795000000000000 0 ",
        "1795000009000000 0 1795000000000000 0 10/s",
        "1795000009000000 10 1795000000000000 0 10/1000000/5",
        "1795000009000000 0 1795000000000000 0 10/1000000/5 x",
        "1795000009000000 -1 1795000000000000 0 10/1000000/5",
        "1795000009000000 0 -1 0 10/1000000/5",
        "9007199254740992 0 1795000000000000 0 10/1000000/5",
        "1795000009000000 0 9007199254740992 0 10/1000000/5",
        "1795000009000000 0 1795000000000000 9007199254740992 10/1000000/5",
        "-9007199254740992 0 1795000000000000 0 10/1000000/5",
        "99999999999999999999999999999999999999999999999999999999999999999999999 0 1 0 10/1000000/5",
        "nan 0 1795000000000000 0 10/1000000/5",
        "1e15 0 1795000000000000 0 10/1000000/5",
        "1795000009000000 0 1795000000000000 0 0/1000000/5",
    };
    const struct rule rule = {10, 1000000, 5};

    (void)state;
    for (size_t i = 0; i < COUNT(garbage); i++) {
        struct claimed c;

        set_state(garbage[i]);
        c = claim(BEGIN_US, &rule, 1, 10);
        if (c.garbage != 1 || c.k != 5 || c.tat_us != BEGIN_US + 500000)
            fail_msg("%s: garbage %lld, k %lld", garbage[i], (long long)c.garbage, (long long)c.k);
        assert_int_equal(claim(BEGIN_US, &rule, 1, 10).garbage, 0);
    }
}

static void test_a_gate_of_another_kind_is_an_error(void **state)
{
    const struct rule rule = {10, 1000000, 5};
    struct redisReply *reply;
    struct args a;

    (void)state;
    free(server_ask(&server, "RPUSH", GATE, "x", NULL));
    args_init(&a);
    add_claim(&a, BEGIN_US, &rule, 1, 1, 0);
    assert_true(redis_call(redis, &a, &reply, NULL, &error) < 0);
    assert_non_null(strstr(error.text, "WRONGTYPE"));
    args_free(&a);
    assert_int_equal(server_number(&server, "LLEN", GATE, NULL), 1);
}

/* ---- Lifetimes, in real time */

static void test_the_key_lives_until_it_says_nothing(void **state)
{
    static const struct rule rules[] = {
        {1, 1500000, 1},     {7, 1000000, 7},  {1000000, 1000000, 1},
        {1, 86400000000, 1}, {10, 1000000, 5}, {3, 1000, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rules); i++) {
        const struct rule *r = &rules[i];
        int64_t t_ms = (r->period_us / r->count + 999) / 1000, before_us, ttl_ms, passed_ms;

        free(server_ask(&server, "DEL", GATE, NULL));
        before_us = clock_mono_us();
        assert_int_equal(claim(-1, r, 1, 1).k, 1);
        ttl_ms = server_number(&server, "PTTL", GATE, NULL);
        passed_ms = (clock_mono_us() - before_us) / 1000 + 1;
        if (ttl_ms > t_ms + 2 || (ttl_ms < t_ms - passed_ms && !(ttl_ms == -2 && passed_ms >= t_ms)))
            fail_msg("T of %lld ms: the key lives %lld ms", (long long)t_ms, (long long)ttl_ms);
    }
}

static void test_a_key_that_is_gone_was_open(void **state)
{
    const struct rule rule = {1, 150000, 1};
    int64_t end_us;
    struct claimed c, later;

    (void)state;
    c = claim(-1, &rule, 1, 1);
    assert_int_equal(c.k, 1);
    end_us = clock_mono_us() + 10000000;
    while (server_number(&server, "EXISTS", GATE, NULL) == 1)
        if (clock_mono_us() > end_us)
            fail_msg("the key does not expire");
    later = claim(-1, &rule, 1, 1);
    assert_int_equal(later.k, 1);
    assert_true(later.start_us >= c.start_us + 150000);
}

static void test_under_virtual_time_nothing_expires(void **state)
{
    const struct rule rule = {1, 1000, 1};

    (void)state;
    assert_int_equal(claim(BEGIN_US, &rule, 1, 1).k, 1);
    assert_int_equal(server_number(&server, "PTTL", GATE, NULL), -1);
}

static void test_what_was_only_looked_at_is_not_written(void **state)
{
    const struct rule rule = {10, 1000000, 5};
    struct args a;

    (void)state;
    assert_int_equal(claim(BEGIN_US, &rule, 6, 1).start_us, INT64_MAX);
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
    args_init(&a);
    begin_call(&a, claim_sha, BEGIN_US);
    args_add(&a, "10/1s");
    freeReplyObject(ask(&a));
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

/* ---- Rules */

/* A stored rule, often with something wrong or out of bounds. */
static void random_stored(uint64_t *random, char out[RULE_TEXT_SIZE])
{
    static const char bytes[] = "0123456789/ -x";
    struct rule r = random_rule(random);

    switch (random_in(random, 0, 5)) {
    case 0:
        r.count = random_magnitude(random, INT64_C(4000000000));
        break;
    case 1:
        r.period_us = random_magnitude(random, INT64_C(700000000000000));
        break;
    case 2:
        r.burst = random_magnitude(random, INT64_C(4000000000));
        break;
    case 3:
        r.burst =
            (int64_t)((ticks)INT64_C(315360000000000) * r.count / r.period_us) + random_in(random, 0, 2);
        break;
    }
    rule_write(&r, out);
    if (random_in(random, 0, 9) == 0)
        out[random_in(random, 0, (int64_t)strlen(out) - 1)] = bytes[random_in(random, 0, sizeof bytes - 2)];
}

static void test_lua_and_c_know_the_same_rules(void **state)
{
    enum { RULES = 4000 };
    static char texts[RULES][RULE_TEXT_SIZE];
    uint64_t random;
    redisReply *reply;
    struct args a;

    (void)state;
    seed = random_seed();
    random = seed;
    args_init(&a);
    begin_call(&a, rules_sha, BEGIN_US);
    for (int i = 0; i < RULES; i++) {
        random_stored(&random, texts[i]);
        if (i == 0) /* tau is ten years and half a microsecond */
            strcpy(texts[i], "2/1104588441331/572");
        args_add(&a, texts[i]);
    }
    reply = ask(&a);
    for (int i = 0; i < RULES; i++) {
        struct rule r;

        if ((rule_read(texts[i], &r, &error) == 0) != (reply->element[i]->integer == 1))
            fail_msg("WEIR_SEED=%llu: %s: Lua %lld, C says otherwise", (unsigned long long)seed, texts[i],
                     reply->element[i]->integer);
    }
    freeReplyObject(reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_random_sequences_equal_model_and_gcra, flush),
        cmocka_unit_test_setup(test_an_hour_of_backlog_is_exact, flush),
        cmocka_unit_test_setup(test_a_clock_that_steps_back_delays_nothing, flush),
        cmocka_unit_test_setup(test_a_clock_that_goes_and_comes_back_grants_one_burst, flush),
        cmocka_unit_test_setup(test_a_pause_holds_and_is_no_tat, flush),
        cmocka_unit_test_setup(test_no_state_closes_a_gate_for_longer_than_its_rule, flush),
        cmocka_unit_test_setup(test_garbage_counts_as_unused, flush),
        cmocka_unit_test_setup(test_a_gate_of_another_kind_is_an_error, flush),
        cmocka_unit_test_setup(test_the_key_lives_until_it_says_nothing, flush),
        cmocka_unit_test_setup(test_a_key_that_is_gone_was_open, flush),
        cmocka_unit_test_setup(test_under_virtual_time_nothing_expires, flush),
        cmocka_unit_test_setup(test_what_was_only_looked_at_is_not_written, flush),
        cmocka_unit_test_setup(test_lua_and_c_know_the_same_rules, flush),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
