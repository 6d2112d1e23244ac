/* take.lua itself, under virtual time: what GCRA libraries publish, random takes of many items from limits of
 * several rules against the gates in C, and what cannot be asked. */
#include <hiredis/hiredis.h>
#include <inttypes.h>

#include "core/client/client.h"
#include "core/redis/redis.h"
#include "core/script/script.h"
#include "tests/client.h"
#include "tests/play.h"
#include "tests/random_rule.h"
#include "tests/scene_client.h"
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
static redisReply *send_items(struct args *a, size_t items)
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

static struct answer take(int64_t now_us, bool peek, const char *rules, const char *name, const char *key,
                          int64_t cost)
{
    struct answer answer;
    redisReply *reply;
    struct args a = {0};

    begin(&a, now_us, peek, rules);
    add_item(&a, name, key, cost);
    reply = send_items(&a, 1);
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
    reply = send_items(&a, (size_t)n);
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

TEST_WITH(test_a_thousand_items_and_no_more, client_flush, NULL)
{
    for (int n = 1000; n <= 1001; n++) {
        redisReply *reply = NULL;
        struct args a = {0};

        begin(&a, BEGIN_US, false, "gcra:1/1000000/1");
        for (int i = 0; i < n; i++)
            add_item(&a, "login", textf("%d", i), 1);
        if (n == 1000) {
            freeReplyObject(send_items(&a, 1000));
            continue;
        }
        assert_true(client_call(w, &a, &reply, NULL) < 0);
        args_free(&a);
    }
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 1000);
}

PLAY("take_script")

TESTS(scene_start_client, scene_stop_client)
