/* take.lua itself, under virtual time: what GCRA libraries publish, random takes of many items from limits of
 * several rules against the gates in C, and what cannot be asked. */
#include <hiredis/hiredis.h>
#include <inttypes.h>

#include "core/client/client.h"
#include "core/redis/redis.h"
#include "core/script/script.h"
#include "tests/client.h"
#include "tests/random_rule.h"
#include "tests/test.h"
#include "throttle/gate.h"

#define FIELDS 5

static struct error error;
static uint64_t seed;

static void set_limit(const char *name, const char *stored)
{
    server_do(&server, "HSET", PREFIX "limits", name, stored);
}

/* ---- Calls */

static void begin(struct args *a, int64_t now_us, bool peek, const char *rules)
{
    script_begin(a, "take", PREFIX, now_us);
    args_add(a, peek ? "1" : "0");
    args_add(a, rules);
}

static void add_item(struct args *a, const char *name, const char *key, int64_t cost)
{
    args_add(a, name);
    args_add(a, key);
    args_add_int(a, cost);
}

/* Frees the arguments. */
static redisReply *ask(struct args *a, size_t items)
{
    redisReply *reply = NULL;

    fail_if(client_call(w, a, &reply, NULL) < 0, "%s", weir_message(w));
    args_free(a);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, FIELDS * items);
    return reply;
}

struct answer {
    const char *word; /* what is wrong, or NULL */
    int64_t status, limit, remaining, retry_after_us, reset_after_us;
};

static struct answer answer_of(const redisReply *reply, size_t i)
{
    redisReply *const *field = reply->element + FIELDS * i;

    return (struct answer){
        .word = field[0]->type == REDIS_REPLY_STRING ? textf("%s", field[0]->str) : NULL,
        .status = field[0]->integer,
        .limit = field[1]->integer,
        .remaining = field[2]->integer,
        .retry_after_us = field[3]->integer,
        .reset_after_us = field[4]->integer,
    };
}

/* Answers to one call for a slot of limit mail at each of these keys, "a b c", by those rules. */
static struct answer *take_keys(int64_t now_us, const char *rules, const char *keys)
{
    static struct answer answers[8];
    char *rest = textf("%s", keys);
    struct args a = {0};
    redisReply *reply;
    size_t count = 0;

    begin(&a, now_us, false, rules);
    for (; rest; count++)
        add_item(&a, "mail", strsep(&rest, " "), 1);
    reply = ask(&a, count);
    for (size_t i = 0; i < count; i++)
        answers[i] = answer_of(reply, i);
    freeReplyObject(reply);
    return answers;
}

static struct answer take(int64_t now_us, bool peek, const char *rules, const char *name, const char *key,
                          int64_t cost)
{
    struct answer answer;
    redisReply *reply;
    struct args a = {0};

    begin(&a, now_us, peek, rules);
    add_item(&a, name, key, cost);
    reply = ask(&a, 1);
    answer = answer_of(reply, 0);
    freeReplyObject(reply);
    return answer;
}

static bool same(const struct answer *a, const struct answer *b)
{
    if (a->word || b->word)
        return a->word && b->word && strcmp(a->word, b->word) == 0;
    return a->status == b->status && a->limit == b->limit && a->remaining == b->remaining &&
           a->retry_after_us == b->retry_after_us && a->reset_after_us == b->reset_after_us;
}

static const char *text_of(const struct answer *a)
{
    return textf(
        "%s, status %" PRId64 ", limit %" PRId64 ", remaining %" PRId64 ", retry %" PRId64 ", reset %" PRId64,
        a->word ? a->word : "-", a->status, a->limit, a->remaining, a->retry_after_us, a->reset_after_us);
}

static struct answer take_now(const char *rules, const char *name, const char *key, int64_t cost)
{
    return take(BEGIN_US, false, rules, name, key, cost);
}

/* ---- Published vectors */

/* What the GCRA libraries throttled (Go) and redis-cell (Rust) answer, who call burst - 1 the max_burst.
 * Where they take nothing by a cost of 0, a peek does. */
TEST_WITH(test_what_other_libraries_answer, client_flush, NULL)
{
    static const struct {
        const char *rule;
        int64_t at_ms, cost;
        bool peek;
        struct answer is;
    } cases[] = {
        {"gcra:1/1000000/5", 0, 6, false, {NULL, 2, 5, 5, -1, 0}},
        {"gcra:1/1000000/5", 0, 1, false, {NULL, 1, 5, 4, -1, 1000000}},
        {"gcra:1/1000000/5", 0, 1, false, {NULL, 1, 5, 3, -1, 2000000}},
        {"gcra:1/1000000/5", 0, 1, false, {NULL, 1, 5, 2, -1, 3000000}},
        {"gcra:1/1000000/5", 0, 1, false, {NULL, 1, 5, 1, -1, 4000000}},
        {"gcra:1/1000000/5", 0, 1, false, {NULL, 1, 5, 0, -1, 5000000}},
        {"gcra:1/1000000/5", 0, 1, false, {NULL, 0, 5, 0, 1000000, 5000000}},
        {"gcra:1/1000000/5", 3000, 1, false, {NULL, 1, 5, 2, -1, 3000000}},
        {"gcra:1/1000000/5", 3100, 1, false, {NULL, 1, 5, 1, -1, 3900000}},
        {"gcra:1/1000000/5", 4000, 1, false, {NULL, 1, 5, 1, -1, 4000000}},
        {"gcra:1/1000000/5", 8000, 1, false, {NULL, 1, 5, 4, -1, 1000000}},
        {"gcra:1/1000000/5", 9500, 1, false, {NULL, 1, 5, 4, -1, 1000000}},
        {"gcra:1/1000000/5", 9500, 1, true, {NULL, 1, 5, 4, -1, 1000000}},
        {"gcra:1/1000000/5", 9500, 2, false, {NULL, 1, 5, 2, -1, 3000000}},
        {"gcra:1/1000000/5", 9500, 5, false, {NULL, 0, 5, 2, 3000000, 3000000}},
        {"gcra:30/60000000/16", 0, 1, false, {NULL, 1, 16, 15, -1, 2000000}},
        {"gcra:30/60000000/16", 0, 15, false, {NULL, 1, 16, 0, -1, 32000000}},
        {"gcra:30/60000000/16", 500, 1, false, {NULL, 0, 16, 0, 1500000, 31500000}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer is = take(BEGIN_US + cases[i].at_ms * 1000, cases[i].peek, cases[i].rule,
                                cases[i].rule[5] == '1' ? "one" : "thirty", "", cases[i].cost);

        fail_if(!same(&is, &cases[i].is), "case %zu: %s", i, text_of(&is));
    }
}

/* ---- Random takes */

#define KEYS 3
#define ITEMS 20
#define RULES 4

static const char *const keys[KEYS] = {"", "a", "b"};

/* A limit, and its gates as C has them: one for each rule and key. */
struct limit {
    size_t count;
    struct rule rule[RULES];
    char stored[RULES * RULE_TEXT_SIZE + 64];
    struct gate gate[RULES][KEYS];
    int64_t paused_us;
    bool own, keyed; /* stored, or rules of the caller; is a rule keyed? */
};

static struct rule random_rate(uint64_t *random)
{
    struct rule r = random_rule(random), read;
    char stored[RULE_TEXT_SIZE];

    r.algorithm = (enum algorithm)random_in(random, 0, ALGORITHM_CONCURRENCY - 1);
    if (r.algorithm == ALGORITHM_SLIDING_LOG && r.count > 100)
        r.count = random_in(random, 1, 100);
    if (r.algorithm == ALGORITHM_FIXED_WINDOW)
        r.offset_us = random_in(random, 0, r.period_us - 1);
    if (random_in(random, 0, 1))
        strcpy(r.by, "key");
    rule_write(&r, stored);
    assert_int_equal(rule_read(stored, &read, &error), 0);
    return read;
}

static void random_limit(struct limit *l, uint64_t *random)
{
    *l = (struct limit){.count = (size_t)random_in(random, 1, RULES), .own = random_in(random, 0, 1)};
    for (size_t i = 0; i < l->count; i++) {
        l->rule[i] = random_rate(random);
        if (*l->rule[i].by)
            l->keyed = true;
        if (i)
            strcat(l->stored, " ");
        rule_write(&l->rule[i], l->stored + strlen(l->stored));
        for (int k = 0; k < KEYS; k++)
            gate_init(&l->gate[i][k], &l->rule[i]);
    }
    if (l->own && random_in(random, 0, 3) == 0) {
        l->paused_us = BEGIN_US + random_magnitude(random, 1000000);
        sprintf(l->stored + strlen(l->stored), " pause:%" PRId64 "/%" PRId64, l->paused_us, BEGIN_US);
    }
}

static void free_limit(struct limit *l)
{
    for (size_t i = 0; i < l->count; i++)
        for (int k = 0; k < KEYS; k++)
            gate_free(&l->gate[i][k]);
}

static struct gate *gate_of(struct limit *l, size_t i, int key)
{
    bool keyed = *l->rule[i].by || (!l->own && !l->keyed);

    return &l->gate[i][keyed ? key : 0];
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static struct answer foresee(struct limit *l, int64_t now_us, int key, int64_t cost, bool peek)
{
    struct answer f = {.limit = INT64_MAX, .remaining = INT64_MAX};
    int64_t start_us = max_i64(now_us, l->paused_us), resets_us = start_us;

    if (l->keyed && key == 0)
        return (struct answer){.word = "keyless"};
    if (l->own && !l->keyed && key)
        return (struct answer){.word = "unkeyed"};
    for (size_t i = 0; i < l->count; i++)
        start_us = max_i64(start_us, gate_start(gate_of(l, i, key), now_us, cost));
    f.status = start_us == now_us ? 1 : start_us == GATE_NEVER ? 2 : 0;
    f.retry_after_us = f.status ? -1 : start_us - now_us;
    for (size_t i = 0; i < l->count; i++) {
        struct gate *g = gate_of(l, i, key);

        if (f.status == 1 && !peek)
            assert_int_equal(gate_take(g, now_us, 1, cost), 0);
        f.limit = min_i64(f.limit, g->rule.burst);
        f.remaining = min_i64(
            f.remaining, gate_start(g, now_us, 1) > now_us ? 0 : gate_count(g, now_us, g->rule.burst, 1));
        resets_us = max_i64(resets_us, gate_resets(g, now_us));
    }
    if (l->paused_us > now_us)
        f.remaining = 0;
    f.reset_after_us = resets_us - now_us;
    return f;
}

static int64_t move_clock(struct limit *l, int64_t now_us, uint64_t *random)
{
    size_t i = (size_t)random_in(random, 0, (int64_t)l->count - 1);
    int64_t opens_us;

    switch (random_in(random, 0, 3)) {
    case 0:
        return now_us + random_magnitude(random, l->rule[i].period_us / l->rule[i].count);
    case 1:
        opens_us = gate_start(gate_of(l, i, 1), now_us, 1);
        return opens_us < BEGIN_US * 2 ? opens_us + random_in(random, 0, 1) : now_us;
    case 2:
        return now_us + random_magnitude(random, l->rule[i].period_us);
    default:
        return now_us;
    }
}

static void run_call(struct limit *l, int64_t now_us, int sequence, uint64_t *random)
{
    struct answer foreseen[ITEMS];
    int n = (int)random_in(random, 1, ITEMS);
    bool peek = random_in(random, 0, 3) == 0;
    redisReply *reply;
    struct args a = {0};

    begin(&a, now_us, peek, l->own ? "" : l->stored);
    for (int i = 0; i < n; i++) {
        int key = (int)random_in(random, 0, KEYS - 1);
        int64_t burst = l->rule[0].burst;
        int64_t cost = random_in(random, 0, 2) ? 1 : random_magnitude(random, burst + burst / 8 + 1);

        foreseen[i] = foresee(l, now_us, key, cost, peek);
        add_item(&a, "mail", keys[key], cost);
    }
    reply = ask(&a, (size_t)n);
    for (int i = 0; i < n; i++) {
        struct answer is = answer_of(reply, (size_t)i);

        fail_if(!same(&is, &foreseen[i]),
                "WEIR_SEED=%" PRIu64 ": sequence %d, at %" PRId64 ", item %d of %s: Lua %s; C %s", seed,
                sequence, now_us, i, l->stored, text_of(&is), text_of(&foreseen[i]));
    }
    freeReplyObject(reply);
}

TEST_WITH(test_random_takes_equal_the_gates_in_c, client_flush, NULL)
{
    static struct limit l;
    uint64_t random = seed = random_seed();

    for (int sequence = 0; sequence < 400; sequence++) {
        int64_t now_us = BEGIN_US;

        server_do(&server, "FLUSHALL");
        random_limit(&l, &random);
        if (l.own)
            set_limit("mail", l.stored);
        for (int call = 0; call < 12; call++) {
            run_call(&l, now_us, sequence, &random);
            now_us = min_i64(BEGIN_US * 2, move_clock(&l, now_us, &random));
        }
        free_limit(&l);
    }
}

/* ---- Cases */

TEST_WITH(test_all_rules_or_none, client_flush, NULL)
{
    struct answer a;

    set_limit("api", "gcra:10/1000000/10 fixed-window:3/86400000000/0,by=key");
    for (int i = 0; i < 3; i++)
        assert_int_equal(take_now("", "api", "a", 1).status, 1);
    a = take_now("", "api", "a", 1);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.limit, 3);
    assert_int_equal(a.remaining, 0);
    /* The gate of all lost nothing by that. */
    a = take(BEGIN_US, true, "", "api", "b", 1);
    assert_int_equal(a.status, 1);
    assert_int_equal(a.remaining, 3);
    assert_int_equal(server_number(&server, "EXISTS", PREFIX "gate:api#0", PREFIX "gate:api#1/a",
                                   PREFIX "gate:api#1/b", NULL),
                     2);
    a = take_now("", "api", "b", 4);
    assert_int_equal(a.status, 2);
    assert_int_equal(a.retry_after_us, -1);
}

TEST_WITH(test_rules_of_the_caller_have_gates_for_each_key, client_flush, NULL)
{
    assert_int_equal(take_now("gcra:1/1000000/1", "login", "alice", 1).status, 1);
    assert_int_equal(take_now("gcra:1/1000000/1", "login", "alice", 1).status, 0);
    assert_int_equal(take_now("gcra:1/1000000/1", "login", "bob", 1).status, 1);
    assert_int_equal(take_now("gcra:1/1000000/1", "login", "", 1).status, 1);
    assert_int_equal(server_number(&server, "EXISTS", PREFIX "gate:login#0", PREFIX "gate:login#0/alice",
                                   PREFIX "gate:login#0/bob", NULL),
                     3);
}

/* Nothing of a limit that was there in an earlier call is kept. */
TEST_WITH(test_a_changed_limit_counts_at_once, client_flush, NULL)
{
    set_limit("mail", "gcra:1/1000000/1");
    assert_int_equal(take_now("", "mail", "", 1).status, 1);
    assert_int_equal(take_now("", "mail", "", 1).status, 0);
    set_limit("mail", "gcra:1/1000000/3");
    assert_int_equal(take_now("", "mail", "", 1).remaining, 1);
    set_limit("mail", "gcra:1/1000000/3 pause:1795000002000000/1795000000000000");
    assert_int_equal(take_now("", "mail", "", 1).retry_after_us, 2000000);
    set_limit("mail", "gcra:1/1000000/3,by=key");
    assert_string_equal(take_now("", "mail", "", 1).word, "keyless");
    server_do(&server, "HDEL", PREFIX "limits", "mail");
    assert_string_equal(take_now("", "mail", "", 1).word, "missing");
}

TEST_WITH(test_a_denial_stands_until_it_says, client_flush, NULL)
{
    struct answer a;

    set_limit("mail", "gcra:3/1000000/2 sliding-log:4/1000000");
    for (int64_t now_us = BEGIN_US, starts = 0; starts < 50;) {
        a = take(now_us, false, "", "mail", "", 1);
        starts += a.status;
        if (a.status == 1)
            continue;
        assert_int_equal(take(now_us + a.retry_after_us - 1, true, "", "mail", "", 1).status, 0);
        assert_int_equal(take(now_us + a.retry_after_us, true, "", "mail", "", 1).status, 1);
        now_us += a.retry_after_us;
    }
}

TEST_WITH(test_nothing_is_taken_ahead, client_flush, NULL)
{
    assert_int_equal(take_now("gcra:1000/1000000/1", "x", "", 1).status, 1);
    assert_int_equal(take(BEGIN_US + 999, false, "gcra:1000/1000000/1", "x", "", 1).status, 0);
}

TEST_WITH(test_what_is_wrong_with_an_item, client_flush, NULL)
{
    static const struct {
        const char *rules, *name, *key, *word;
    } cases[] = {
        {"", "nobody", "", "missing"},
        {"", "nobody", "key", "missing"},
        {"", "mail", "key", "unkeyed"},
        {"", "keyed", "", "keyless"},
        {"gcra:9/1000000/9", "mail", "", "differs"},
        {"gcra:9/1000000/9,by=key", "new", "", "keyless"},
        {"gcra:9/1000000/9", "broken", "", "unreadable"},
        {"", "broken", "", "unreadable"},
        {"", "jobs", "", "concurrency"},
        {"gcra:9/1000000/9 concurrency:3", "new", "", "concurrency"},
    };
    redisReply *reply;
    struct args a;

    set_limit("mail", "gcra:100/60000000/20 weights:1");
    set_limit("keyed", "gcra:100/60000000/20,by=args.x");
    set_limit("broken", "100/1m");
    set_limit("jobs", "gcra:100/60000000/20 concurrency:3");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer is = take_now(cases[i].rules, cases[i].name, cases[i].key, 1);

        fail_if(!is.word || strcmp(is.word, cases[i].word) != 0, "%s %s/%s: %s", cases[i].rules,
                cases[i].name, cases[i].key, is.word ? is.word : "nothing wrong");
    }
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 1);
    assert_int_equal(take_now("gcra:100/60000000/20", "mail", "", 1).status, 1); /* no others than its own */

    /* The others of a call are served. */
    args_init(&a);
    begin(&a, BEGIN_US, false, "");
    add_item(&a, "mail", "", 1);
    add_item(&a, "nobody", "", 1);
    add_item(&a, "keyed", "k", 1);
    add_item(&a, "mail", "", 1);
    reply = ask(&a, 4);
    assert_int_equal(answer_of(reply, 0).remaining, 18);
    assert_string_equal(answer_of(reply, 1).word, "missing");
    assert_int_equal(answer_of(reply, 2).status, 1);
    assert_int_equal(answer_of(reply, 3).remaining, 17);
    freeReplyObject(reply);
}

TEST_WITH(test_a_thousand_items_and_no_more, client_flush, NULL)
{
    for (int n = 1000; n <= 1001; n++) {
        redisReply *reply = NULL;
        struct args a = {0};

        begin(&a, BEGIN_US, false, "gcra:1/1000000/1");
        for (int i = 0; i < n; i++)
            add_item(&a, "login", textf("%d", i), 1);
        if (n == 1000) {
            freeReplyObject(ask(&a, 1000));
            continue;
        }
        assert_true(client_call(w, &a, &reply, NULL) < 0);
        args_free(&a);
    }
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 1000);
}

TEST_WITH(test_wrong_arguments_change_nothing, client_flush, NULL)
{
    static const char *const calls[][9] = {
        {"0", "gcra:1/1000000/1"},
        {"0", "gcra:1/1000000/1", "mail", ""},
        {"0", "gcra:1/1000000/1", "mail", "", "1", "more"},
        {"2", "gcra:1/1000000/1", "mail", "", "1"},
        {"", "gcra:1/1000000/1", "mail", "", "1"},
        {"0", "gcra:1/1000000/1", "", "", "1"},
        {"0", "gcra:1/1000000/1", "a/b", "", "1"},
        {"0", "gcra:1/1000000/1", "mail", "a/b", "1"},
        {"0", "1/1s", "mail", "", "1"},
        {"0", "gcra:1/1000000/1 weights:1", "mail", "", "1"},
        {"0", "gcra:1/1000000/1 ", "mail", "", "1"},
        {"0", "gcra:1/1000000/1", "mail", "", "0"},
        {"0", "gcra:1/1000000/1", "mail", "", "-1"},
        {"0", "gcra:1/1000000/1", "mail", "", "1.5"},
        {"0", "gcra:1/1000000/1", "mail", "", "nan"},
        {"0", "gcra:1/1000000/1", "mail", "", "inf"},
        {"0", "gcra:1/1000000/1", "mail", "", "x"},
        {"0", "gcra:1/1000000/1", "mail", "", ""},
        {"0", "gcra:1/1000000/1", "mail", "", "1", "mail", "", "0"},
    };

    for (size_t i = 0; i < COUNT(calls); i++) {
        redisReply *reply = NULL;
        struct args a = {0};

        script_begin(&a, "take", PREFIX, BEGIN_US);
        for (size_t j = 0; j < COUNT(calls[i]) && calls[i][j]; j++)
            args_add(&a, calls[i][j]);
        assert_int_equal(client_call(w, &a, &reply, NULL), WEIR_EINPUT);
        fail_if(strncmp(weir_message(w), "take: w", 7) != 0, "call %zu: %s", i, weir_message(w));
        args_free(&a);
    }
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

/* What one key's gate says besides its algorithm's words is not the next key's. */
TEST_WITH(test_a_pause_or_hold_of_a_key_is_its_own, client_flush, NULL)
{
    static const char *const states[] = {
        "1795000000000000 1795000009000000 - - gcra:1/1000000/1 0 0",
        "1795000000000000 0 7,1795000009000000,mail/42 - gcra:1/1000000/1 0 0",
    };

    for (size_t i = 0; i < COUNT(states); i++) {
        struct answer *is;

        server_do(&server, "FLUSHALL");
        server_do(&server, "SET", PREFIX "gate:mail#0/a", states[i]);
        is = take_keys(BEGIN_US, "gcra:1/1000000/1", "a b");
        assert_int_equal(is[0].retry_after_us, 9000000);
        assert_int_equal(is[1].status, 1);
    }
}

/* Each is an answer of its own: those before and behind it are served. */
TEST_WITH(test_keys_of_another_kind_are_told, client_flush, NULL)
{
    static const char *const rules[] = {"gcra:1/1000000/1", "gcra:1/1000000/1 gcra:9/1000000/9",
                                        "gcra:1/1000000/1,adapt=1..2"};

    server_do(&server, "RPUSH", PREFIX "gate:mail#0/b", "x");
    for (size_t i = 0; i < COUNT(rules); i++) {
        struct answer *is;

        server_do(&server, "DEL", PREFIX "gate:mail#0/a", PREFIX "gate:mail#0/c");
        is = take_keys(BEGIN_US, rules[i], "a b c");
        assert_int_equal(is[0].status, 1);
        assert_string_equal(is[1].word, "foreign");
        assert_int_equal(is[2].status, 1);
        assert_int_equal(take_now(rules[i], "mail", "a", 1).status, 0);
        assert_int_equal(server_number(&server, "LLEN", PREFIX "gate:mail#0/b", NULL), 1);
    }
}

/* Of one call: a gate that is asked for twice, and whose pause the first of them ends by the clock. */
TEST_WITH(test_a_key_may_come_twice, client_flush, NULL)
{
    static const char *const states[] = {
        NULL,
        "1795000000000000 0 - - gcra:1/1000000/2 1795000000000000 0",
        "1795000000000000 1795000000000001 - - gcra:1/1000000/2 1795000000000000 0",
        "1795000000000000 0 7,1795000000000001,mail - gcra:1/1000000/2 1795000000000000 0",
        "1795000900000000 0 - - gcra:1/1000000/2 1795000900000000 0",
        "1795000000000000 0 - - gcra:5/1000000/5 1795000000000000 0",
    };

    for (size_t i = 0; i < COUNT(states); i++) {
        struct answer *is;

        server_do(&server, "FLUSHALL");
        if (states[i])
            server_do(&server, "SET", PREFIX "gate:mail#0/a", states[i]);
        is = take_keys(BEGIN_US + 1, "gcra:1/1000000/2", "a a a");
        assert_true(is[0].status == 1 && is[1].status == 1 && is[2].status == 0);
    }
}

TESTS(client_start, client_stop)
