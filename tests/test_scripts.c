/* Each script of a turn by itself, under virtual time: what it does, what it refuses, and that what it
 * refuses has changed nothing; what stands under our names and is not ours; a Redis that is full. Random
 * sequences: test_lanes.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/script.h"
#include "tests/turns.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SECOND_US INT64_C(1000000)
#define ACTIVE PREFIX "active:"
#define QUEUE PREFIX "queue:default"
#define LANE(type) PREFIX "lane:default/" type "/"
#define CLOSED_RULE "1/86400000000/1" /* one a day */

/* ---- Asking */

static const char *const default_queue[] = {"default"}, *const both_queues[] = {"high", "low"};
static const char *const default_types[] = {"t", "slow"};
static const struct names queues = {default_queue, 1};

static struct claim_call ask; /* what the next claim asks for; turns count up by themselves */

static int begin(void **state)
{
    turns_flush(state);
    ask = (struct claim_call){.group = "g",
                              .look = 100,
                              .queues = {default_queue, 1},
                              .types = {default_types, COUNT(default_types)}};
    return 0;
}

#define redis_text(...) server_ask(&turns.server, __VA_ARGS__, NULL)
#define redis_number(...) server_number(&turns.server, __VA_ARGS__, NULL)

/* The answer to a command is that text. */
#define expect_text(text, ...)                                                                               \
    do {                                                                                                     \
        char *answer = redis_text(__VA_ARGS__);                                                              \
        assert_string_equal(answer, text);                                                                   \
        free(answer);                                                                                        \
    } while (0)

static void must(int rc)
{
    if (rc != 0)
        fail_msg("%s", turns.error.text);
}

static void start(const char *worker)
{
    must(turns_adopt(worker, "", NULL, 0, queues, NULL));
}

static int try_claim(const char *worker, int free, int prefetch)
{
    ask.worker = worker;
    ask.turn++;
    ask.free = free;
    ask.prefetch = prefetch;
    return turns_claim(&ask);
}

static size_t claim(const char *worker, int free, int prefetch)
{
    must(try_claim(worker, free, prefetch));
    return turns.claim.lease_count;
}

static void push(const char *queue, const char *body)
{
    char key[200];

    snprintf(key, sizeof key, PREFIX "queue:%s", queue);
    free(redis_text("RPUSH", key, body));
}

/* Jobs of a type, with these ids. */
static void enqueue(const char *queue, const char *type, const char *names)
{
    char text[400], *rest = text;

    snprintf(text, sizeof text, "%s", names);
    for (char *id; (id = strsep(&rest, " "));)
        must(turns_enqueue(queue, type, id, -1));
}

static void enqueue_many(const char *type, int count)
{
    for (int i = 0; i < count; i++) {
        char id[32];

        snprintf(id, sizeof id, "%s%d", type, i);
        must(turns_enqueue("default", type, id, -1));
    }
}

/* ---- Answers */

/* Appends the id in a body, and a blank before it when it is not the first. */
static void add_id(char out[1000], struct span body)
{
    struct job_view view;
    size_t len = strlen(out);

    if (job_read(body.at, body.len, &view, &turns.error) != 0)
        fail_msg("%.*s: %s", (int)body.len, body.at, turns.error.text);
    snprintf(out + len, 1000 - len, "%s%.*s", len ? " " : "", (int)view.id.len, view.id.at);
}

/* The jobs that the last claim leased, in order: "a b c". */
static void expect_leases(const char *ids)
{
    char found[1000] = "";

    for (size_t i = 0; i < turns.claim.lease_count; i++)
        add_id(found, turns.claim.leases[i].body);
    assert_string_equal(found, ids);
}

/* The jobs of a list, in order. */
static void expect_list(const char *key, const char *ids)
{
    char found[1000] = "", *text = redis_text("LRANGE", key, "0", "-1"), *rest = text;

    for (char *entry; text[0] && (entry = strsep(&rest, "\n"));) {
        char *body = strchr(entry, '{');

        assert_non_null(body);
        add_id(found, (struct span){body, strlen(body)});
    }
    free(text);
    assert_string_equal(found, ids);
}

/* "enqueued 3, done 1": these counters of a type, in that order. */
static void expect_counters(const char *type, const char *expected)
{
    char key[200], text[400], *rest = text;

    snprintf(key, sizeof key, PREFIX "stats:%s", type);
    snprintf(text, sizeof text, "%s", expected);
    for (char *one; (one = strsep(&rest, ","));) {
        char name[32], *value;
        int number;

        assert_int_equal(sscanf(one, " %31s %d", name, &number), 2);
        value = redis_text("HGET", key, name);
        if (atoi(value) != number)
            fail_msg("%s of %s: %s, not %d", name, type, value, number);
        free(value);
    }
}

/* Tokens outlive the reply that they came in. */
static char token_texts[64][200];
static struct span tokens[64];

static void keep_tokens(void)
{
    for (size_t i = 0; i < turns.claim.lease_count && i < COUNT(tokens); i++) {
        const struct span *token = &turns.claim.leases[i].token;

        assert_in_range(token->len, 1, sizeof token_texts[i] - 1);
        memcpy(token_texts[i], token->at, token->len);
        token_texts[i][token->len] = '\0';
        tokens[i] = (struct span){token_texts[i], token->len};
    }
}

static void settle(const char *worker, enum settle_verb verb, struct span token, int64_t delay_us,
                   const char *reason)
{
    int64_t stale;

    must(turns_settle_end(worker, verb, token, delay_us, reason, &stale));
    assert_int_equal(stale, 0);
}

static void expect_stale(const char *worker, enum settle_verb verb, struct span token)
{
    char *before = turns_digest(), *after;
    int64_t stale;

    must(turns_settle_end(worker, verb, token, 0, "late", &stale));
    assert_int_equal(stale, 1);
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void promote(int64_t expected)
{
    int64_t moved;

    must(turns_promote(100, &moved));
    assert_int_equal(moved, expected);
}

/* Heartbeats of worker while time passes; the last one at the end of it. */
static int64_t pass(const char *worker, int64_t us)
{
    int64_t end_us = turns.now_us + us, taken, workers;

    must(turns_reap(worker, &taken, &workers));
    while (turns.now_us < end_us) {
        turns.now_us += end_us - turns.now_us < LEASE_US / 4 ? end_us - turns.now_us : LEASE_US / 4;
        must(turns_reap(worker, &taken, &workers));
    }
    return taken;
}

/* ---- Settle */

static void test_settle_ends_jobs_by_their_verbs(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    enqueue("default", "t", "a b c d e f");
    assert_int_equal(claim("w", 5, 0), 5);
    keep_tokens();
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    assert_int_equal(stale, 0);
    settle("w", SETTLE_RETRY, tokens[1], 7000000, NULL);
    settle("w", SETTLE_THROTTLED, tokens[2], 3000000, NULL);
    settle("w", SETTLE_BACK, tokens[3], 0, NULL);
    settle("w", SETTLE_DEAD, tokens[4], 0, "bad\nweather \x01");
    expect_counters("t", "enqueued 6, pulled 5, done 1, retried 1, back 2, dead 1, scheduled 2");
    expect_text("l w:1.-1 default/t/\n@0,0,1;{\"id\":\"c\",\"type\":\"t\",\"args\":{}}\n1795000003000000\n"
                "l w:1.-0 default/t/\n@1,0,0;{\"id\":\"b\",\"type\":\"t\",\"args\":{}}\n1795000007000000",
                "ZRANGE", PREFIX "later", "0", "-1", "WITHSCORES");
    expect_text(
        "w:1.-3 default/t/ bad weather  \n{\"id\":\"e\",\"type\":\"t\",\"args\":{}}\n1795000000000000",
        "ZRANGE", PREFIX "dead", "0", "-1", "WITHSCORES");
    expect_list(LANE("t"), "d");
    expect_list(QUEUE, "f");
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1);
    turns_check();
}

static void test_a_lease_is_settled_once_and_by_its_worker(void **state)
{
    struct span strange = {"1.xx/default/t/", 15}, done;
    int64_t stale;
    struct args a;

    (void)state;
    start("w");
    start("other");
    enqueue("default", "t", "a b c");
    claim("w", 3, 0);
    keep_tokens();
    expect_stale("other", SETTLE_DEAD, tokens[0]);
    expect_stale("nobody", SETTLE_RETRY, tokens[0]);
    expect_stale("w", SETTLE_BACK, strange);
    settle("w", SETTLE_RETRY, tokens[0], 5, NULL);
    for (int verb = SETTLE_RETRY; verb <= SETTLE_DEAD; verb++)
        expect_stale("w", (enum settle_verb)verb, tokens[0]);
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    assert_int_equal(stale, 1);
    /* Three times in one call: the first of those that are no "done" counts. */
    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, "w");
    done = tokens[1];
    settle_done(&a, "t", 2);
    settle_token(&a, done);
    settle_token(&a, tokens[2]);
    settle_end(&a, SETTLE_DEAD, done, 0, "x");
    settle_end(&a, SETTLE_BACK, done, 0, "x");
    must(turns_send(&a));
    must(settle_reply(turns.reply, &stale, &turns.error));
    assert_int_equal(stale, 2);
    expect_counters("t", "done 1, dead 1, retried 1, scheduled 1");
    assert_int_equal(turns_check().leased, 0);
}

static void test_a_lease_is_lost_with_its_worker(void **state)
{
    (void)state;
    start("w");
    start("dead");
    enqueue("default", "t", "a b");
    claim("dead", 1, 0);
    keep_tokens();
    pass("w", LEASE_US + SECOND_US);
    assert_int_equal(redis_number("EXISTS", ACTIVE "dead"), 0);
    expect_stale("dead", SETTLE_DEAD, tokens[0]);
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("a");
    expect_stale("dead", SETTLE_DEAD, turns.claim.leases[0].token);
    turns_check();
}

static void test_many_are_handed_back_in_order(void **state)
{
    char expected[1000] = "";
    static char many[150][200];
    struct args a;

    (void)state;
    start("w");
    enqueue_many("t", 150);
    ask.turn = 8; /* from turn 9 to turn 10 */
    for (int at = 0; at < 150; at += 75) {
        assert_int_equal(claim("w", 75, 0), 75);
        for (int i = 0; i < 75; i++)
            snprintf(many[at + i], sizeof many[0], "%.*s", (int)turns.claim.leases[i].token.len,
                     turns.claim.leases[i].token.at);
    }
    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, "w");
    for (int i = 0; i < 150; i++) { /* in any order */
        const char *token = many[(i * 77 + 5) % 150];

        settle_end(&a, SETTLE_BACK, (struct span){token, strlen(token)}, 0, NULL);
    }
    must(turns_send(&a));
    for (int i = 0; i < 150; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%st%d", i ? " " : "", i);
    expect_list(LANE("t"), expected);
    turns_check();
}

/* ---- Promote */

static void test_a_retry_comes_before_what_was_parked(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c");
    assert_int_equal(claim("w", 3, 0), 1);
    expect_leases("a");
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[0], 2000000, NULL);
    expect_list(LANE("slow"), "b c");
    turns.now_us += 1000000;
    promote(0);
    assert_int_equal(claim("w", 3, 0), 1);
    expect_leases("b");
    assert_int_equal(turns.claim.later_us, BEGIN_US + 2000000);
    turns.now_us += 1000000;
    promote(1);
    expect_list(LANE("slow"), "a c");
    expect_counters("slow", "scheduled 0, retried 1");
    assert_int_equal(claim("w", 3, 0), 1);
    expect_leases("a");
    assert_int_equal(turns.claim.leases[0].attempts, 1);
    assert_int_equal(turns.claim.later_us, -1);
    turns_check();
}

static void test_promote_keeps_the_order_of_due_times(void **state)
{
    int64_t moved;

    (void)state;
    start("w");
    must(turns_enqueue("default", "t", "late", 3000000));
    must(turns_enqueue("default", "t", "early", 1000000));
    must(turns_enqueue("default", "t", "never", 9000000));
    enqueue("default", "t", "a b c d");
    assert_int_equal(claim("w", 3, 0), 3);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[2], 1000000, NULL);
    settle("w", SETTLE_RETRY, tokens[0], 2000000, NULL);
    settle("w", SETTLE_THROTTLED, tokens[1], 3000000, NULL);
    expect_counters("t", "enqueued 4, scheduled 6");
    turns.now_us += 3000000;
    must(turns_promote(2, &moved));
    assert_int_equal(moved, 2);
    expect_list(LANE("t"), "c");
    expect_list(QUEUE, "d early");
    promote(3);
    expect_list(LANE("t"), "a b c"); /* in the order of one call; a later call goes before it */
    expect_list(QUEUE, "d early late");
    expect_counters("t", "enqueued 6, scheduled 1");
    turns_check();
}

static void test_promote_buries_what_it_cannot_read(void **state)
{
    static const char *const records[] = {
        "",
        "x",
        "q a default t",
        "q a default\n{}",
        "q a default t more\n{}",
        "q a def*ault t\n{}",
        "l a default/t\n{}",
        "l a default/t/k/k\n{}",
        "l a de fault/t/\n{}",
        "z a default/t/\n{}",
    };
    char *dead;

    (void)state;
    start("w");
    for (size_t i = 0; i < COUNT(records); i++)
        free(redis_text("ZADD", PREFIX "later", "1", records[i]));
    must(turns_enqueue("default", "t", "good", 1000));
    turns.now_us += 1000;
    promote(COUNT(records) + 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), COUNT(records));
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 0);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    for (size_t i = 0; i < COUNT(records); i++)
        assert_non_null(strstr(dead, records[i]));
    assert_non_null(strstr(dead, " // promote: this record of `later` cannot be read\nl a de fault/t/\n{}"));
    free(dead);
    expect_list(QUEUE, "good");
}

/* ---- Claim: leases */

static void test_claim_leases_what_it_grants(void **state)
{
    static const char odd[] = " \t\r\n{\"args\" : [1, 2.50], \"type\":\"t\", \"id\":\"d\"} ";
    const struct lease *lease;

    (void)state;
    start("w");
    must(turns_rate("slow", "10/1000000/1"));
    enqueue("default", "t", "a");
    enqueue("default", "slow", "b c");
    push("default", odd);
    assert_int_equal(claim("w", 10, 0), 3);
    expect_leases("a b d");
    lease = turns.claim.leases;
    assert_memory_equal(lease[0].token.at, "1.--/default/t/", lease[0].token.len);
    assert_memory_equal(lease[1].token.at, "1.-0@1795000000000000/default/slow/", lease[1].token.len);
    assert_int_equal(lease[0].slot_us, 0);
    assert_int_equal(lease[1].slot_us, BEGIN_US);
    assert_memory_equal(lease[1].type.at, "slow", lease[1].type.len);
    assert_int_equal(lease[2].body.len, sizeof odd - 1);
    assert_memory_equal(lease[2].body.at, odd, sizeof odd - 1);
    assert_int_equal(turns.claim.now_us, BEGIN_US);
    assert_int_equal(turns.claim.next_us, BEGIN_US + 100000);
    assert_int_equal(turns.claim.later_us, -1);
    assert_false(turns.claim.more);
    assert_int_equal(turns.claim.rule_count, 2);
    assert_memory_equal(turns.claim.rules[1].at, "10/1000000/1", turns.claim.rules[1].len);
    expect_counters("t", "enqueued 1, pulled 2");
    expect_counters("slow", "enqueued 2, pulled 1, parked 1, served 0");
    turns_check();
}

static void test_slots_are_granted_five_ms_ahead(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "1000/1000000/1"));
    enqueue_many("slow", 20);
    assert_int_equal(claim("w", 20, 0), 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(turns.claim.leases[i].slot_us, BEGIN_US + i * 1000);
    assert_int_equal(turns.claim.next_us, BEGIN_US + 6000);
    turns.now_us += 1000;
    assert_int_equal(claim("w", 20, 0), 1);
    assert_int_equal(turns.claim.leases[0].slot_us, BEGIN_US + 6000);
    turns.now_us += 3500;
    assert_int_equal(claim("w", 2, 0), 2); /* an executor for each */
    assert_true(turns.claim.more);
    assert_int_equal(claim("w", 20, 0), 1);
    turns_check();
}

static void test_an_unregistered_worker_leases_nothing(void **state)
{
    char *before, *after;

    (void)state;
    start("w");
    enqueue("default", "t", "a");
    free(redis_text("HSET", ACTIVE "ghost", "1.--/default/t/", "{}")); /* without "@" */
    before = turns_digest();
    assert_true(try_claim("nobody", 1, 0) != 0 && turn_is_unregistered(&turns.error));
    assert_true(try_claim("ghost", 1, 0) != 0 && turn_is_unregistered(&turns.error));
    assert_true(try_claim("%s%d", 1, 0) != 0 && turn_is_unregistered(&turns.error));
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void test_prefetch_is_for_jobs_without_a_limit(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "1000000/1000000/1000000"));
    enqueue("default", "t", "a b c");
    enqueue("default", "slow", "d e");
    enqueue("default", "t", "f");
    assert_int_equal(claim("w", 0, 2), 2);
    expect_leases("a b");
    assert_true(turns.claim.more);
    assert_int_equal(claim("w", 1, 2), 2); /* c and d; e stays at the head until an executor is free */
    expect_leases("c d");
    expect_list(QUEUE, "e f");
    assert_true(turns.claim.more);
    assert_int_equal(claim("w", 0, 2), 0);
    expect_list(QUEUE, "e f");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("e");
    assert_int_equal(claim("w", 0, 0), 0);
    assert_int_equal(claim("w", 2, 5), 1);
    assert_false(turns.claim.more);
    turns_check();
}

static void test_an_interrupted_job_is_not_prefetched(void **state)
{
    (void)state;
    start("w");
    start("dead");
    enqueue("default", "t", "a b");
    claim("dead", 2, 0);
    pass("w", LEASE_US + SECOND_US);
    enqueue("default", "t", "c");
    assert_int_equal(claim("w", 0, 5), 0);
    assert_true(turns.claim.more);
    assert_int_equal(claim("w", 1, 5), 1);
    expect_leases("a");
    assert_int_equal(turns.claim.leases[0].interrupted, 1);
    assert_int_equal(claim("w", 1, 5), 2);
    expect_leases("b c");
    turns_check();
}

/* ---- Claim: order and shares */

static void test_queues_come_in_strict_order(void **state)
{
    (void)state;
    must(turns_adopt("w", "", NULL, 0, (struct names){both_queues, 2}, NULL));
    ask.queues = (struct names){both_queues, 2};
    enqueue("low", "t", "l1 l2 l3");
    enqueue("high", "t", "h1 h2 h3 h4");
    assert_int_equal(claim("w", 3, 0), 3);
    expect_leases("h1 h2 h3");
    assert_int_equal(claim("w", 3, 0), 3);
    expect_leases("h4 l1 l2");
    enqueue("high", "t", "h5");
    assert_int_equal(claim("w", 1, 1), 2);
    expect_leases("h5 l3");
    ask.queues = (struct names){default_queue, 1};
    enqueue("low", "t", "l4");
    assert_int_equal(claim("w", 9, 9), 0); /* not its queue */
    turns_check();
}

/* Leaves n jobs of type slow in its lane, due now and without a limit. */
static void fill_lane(int n)
{
    must(turns_rate("slow", CLOSED_RULE));
    enqueue_many("slow", n + 1);
    while (redis_number("LLEN", QUEUE) > 0)
        claim("w", 1, 0);
    must(turns_rate("slow", ""));
}

/* The number of leases of that type in the last claim. */
static int leased(const char *type)
{
    int n = 0;

    for (size_t i = 0; i < turns.claim.lease_count; i++)
        n += strlen(type) == turns.claim.leases[i].type.len &&
             memcmp(type, turns.claim.leases[i].type.at, strlen(type)) == 0;
    return n;
}

static void expect_share(int free, int prefetch, int from_lane, int from_queue)
{
    claim("w", free, prefetch);
    if (leased("slow") != from_lane || leased("t") != from_queue)
        fail_msg("free %d, prefetch %d: %d from the lane, %d from the queue", free, prefetch, leased("slow"),
                 leased("t"));
    assert_true(turns.claim.more);
}

static void test_lanes_and_queue_share_the_executors(void **state)
{
    (void)state;
    start("w");
    fill_lane(80);
    enqueue_many("t", 80);
    expect_share(10, 0, 5, 5);
    expect_share(11, 0, 6, 5);
    expect_share(2, 0, 1, 1);
    expect_share(0, 8, 4, 4);
    expect_share(2, 2, 2, 2);
    for (int i = 0; i < 6; i++) { /* with one, every other turn */
        bool odd = (ask.turn + 1) % 2;

        expect_share(1, 0, !odd, odd);
    }
    free(redis_text("LTRIM", QUEUE, "0", "1")); /* what one has no use for is the other's */
    expect_share(10, 0, 8, 2);
    expect_share(7, 0, 7, 0);
    enqueue("default", "t", "x y z");
    free(redis_text("LTRIM", LANE("slow"), "0", "0"));
    claim("w", 10, 0);
    assert_int_equal(leased("slow"), 1);
    assert_int_equal(leased("t"), 3);
    assert_false(turns.claim.more);
}

static void test_due_types_share_alike(void **state)
{
    static const char *const types[] = {"slow", "t0", "t1", "t2"};

    (void)state;
    start("w");
    ask.types = (struct names){types, 4};
    for (int k = 1; k < 4; k++) {
        must(turns_rate(types[k], CLOSED_RULE));
        enqueue_many(types[k], k == 1 ? 3 : 40);
    }
    for (int i = 0; i < 10; i++)
        claim("w", 1 + i, 0);
    assert_int_equal(redis_number("LLEN", QUEUE), 0);
    for (int k = 1; k < 4; k++)
        must(turns_rate(types[k], ""));
    assert_int_equal(claim("w", 12, 0), 12);
    assert_int_equal(leased("t0"), 2); /* it had one that ran */
    assert_int_equal(leased("t1"), 6);
    assert_int_equal(leased("t2"), 4);
    turns_check();
}

static void test_a_closed_type_costs_the_others_nothing(void **state)
{
    int claims = 0;

    (void)state;
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue_many("slow", 4001);
    enqueue("default", "t", "behind");
    assert_int_equal(claim("w", 1, 0), 1);
    do {
        long long before = redis_number("LLEN", LANE("slow")), moved;

        claims++;
        claim("w", 2, 0);
        moved = redis_number("LLEN", LANE("slow")) - before;
        assert_in_range(moved, 0, 2000); /* bounded */
    } while (turns.claim.lease_count == 0);
    expect_leases("behind");
    assert_in_range(claims, 2, 20);
    assert_false(turns.claim.more);
    turns_check();
}

static void test_bodies_are_bounded_in_one_claim(void **state)
{
    const size_t size = 1000 * 1000;
    char *body = malloc(size + 1);
    int jobs = 0, claims = 0;

    (void)state;
    start("w");
    memset(body, 'x', size);
    body[size] = '\0';
    memcpy(body, "{\"type\":\"t\",\"args\":\"", 20);
    memcpy(body + size - 2, "\"}", 2);
    for (int i = 0; i < 30; i++)
        push("default", body);
    for (; jobs < 30; claims++) {
        size_t n = claim("w", 30, 0);

        assert_in_range(n, 1, 10);
        jobs += (int)n;
    }
    assert_in_range(claims, 3, 5);
    assert_false(turns.claim.more);
    free(body);
}

static void test_a_turn_of_many_executors_mints_different_tokens(void **state)
{
    (void)state;
    start("w");
    ask.look = 1000;
    enqueue_many("t", 4500);
    for (int left = 4500; left > 0;) {
        size_t n = claim("w", 10000, 10000);

        assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1 + 4500 - (left -= (int)n));
        assert_true(n > 0);
    }
    turns_check();
}

/* ---- Claim: what foreign clients push */

struct body {
    const char *text;
    size_t len;
};
#define BODY(text)                                                                                           \
    {                                                                                                        \
        text, sizeof(text) - 1                                                                               \
    }

static void push_bytes(struct span body)
{
    struct args a;

    args_init(&a);
    args_add(&a, "RPUSH");
    args_add(&a, QUEUE);
    args_add_bytes(&a, body.at, body.len);
    must(turns_send(&a));
}

/* The last claim has buried one job, with exactly these bytes. */
static void expect_buried(struct span body, const char *reason)
{
    const char *end = NULL;
    struct args a;

    args_init(&a);
    args_add(&a, "ZPOPMIN");
    args_add(&a, PREFIX "dead");
    must(turns_send(&a));
    if (turns.reply->elements == 2)
        end = memchr(turns.reply->element[0]->str, '\n', turns.reply->element[0]->len);
    if (!end)
        fail_msg("%.60s: not dead", body.at);
    if (!strstr(turns.reply->element[0]->str, reason))
        fail_msg("%.60s: dead: %s", body.at, turns.reply->element[0]->str);
    end++;
    assert_int_equal(body.len, turns.reply->element[0]->len - (size_t)(end - turns.reply->element[0]->str));
    assert_memory_equal(body.at, end, body.len);
}

static void test_what_is_no_job_is_dead_with_its_bytes(void **state)
{
    static const struct body bodies[] = {
        BODY(""),
        BODY(" "),
        BODY("x"),
        BODY("{"),
        BODY("}"),
        BODY("[]"),
        BODY("[{\"type\":\"t\"}]"),
        BODY("1"),
        BODY("null"),
        BODY("true"),
        BODY("\"t\""),
        BODY("{}"),
        BODY("{\"id\":\"x\"}"),
        BODY("{\"type\":1}"),
        BODY("{\"type\":null}"),
        BODY("{\"type\":\"\"}"),
        BODY("{\"type\":[\"t\"]}"),
        BODY("{\"type\":\"a b\"}"),
        BODY("{\"type\":\"a/b\"}"),
        BODY("{\"type\":\"a\\nb\"}"),
        BODY("{\"type\":\"a:b\"}"),
        BODY("{\"type\":\"{t}\"}"),
        BODY("{\"type\":\"../t\xc3\xa4\"}"),
        BODY("{\"type\":\"t\\u0000\"}"),
        BODY("{\"id\":\"x\",\"type\":\"a b\"}"),
        BODY("{\"id\":\"x\",\"type\":\"\"}"),
        BODY("{\"id\":\"x\",\"type\":\"t}"),
        BODY("{type:\"t\"}"),
        BODY("{'type':'t'}"),
        BODY("{\"type\":\"t\""),
        BODY("{\"type\":\"t\",}"),
        BODY("{\"type\":\"t\"} x"),
        BODY("{\"type\":\"t\"}{\"type\":\"t\"}"),
        BODY("\xef\xbb\xbf{\"type\":\"t\"}"),
        BODY("\0{\"type\":\"t\"}"),
        BODY("@1,0,0;{\"type\":\"t\"}"),
        BODY("\n\n\n"),
        BODY("%s%n%d"),
    };
    char name[300], deep[8200];

    (void)state;
    start("w");
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct span body = {bodies[i].text, bodies[i].len};

        push_bytes(body);
        if (claim("w", 1, 0) != 0)
            fail_msg("%s: leased", body.at);
        assert_false(turns.claim.more);
        expect_buried(body, "default// unreadable: ");
    }
    memset(name, 0, sizeof name);
    snprintf(name, sizeof name, "{\"type\":\"%0129d\"}", 1);
    push_bytes((struct span){name, strlen(name)});
    assert_int_equal(claim("w", 1, 0), 0);
    expect_buried((struct span){name, strlen(name)}, "unreadable: ");
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"type\":\"t\",\"args\":", 19);
    push_bytes((struct span){deep, sizeof deep});
    assert_int_equal(claim("w", 1, 0), 0);
    expect_buried((struct span){deep, sizeof deep}, "unreadable: ");
    assert_int_equal(turns_check().foreign, 0);
}

static void test_a_body_may_have_a_mebibyte(void **state)
{
    const size_t most = JOB_BODY_MAX;
    char *body = malloc(most + 1);

    (void)state;
    start("w");
    memset(body, 'x', most + 1);
    memcpy(body, "{\"id\":\"a\",\"type\":\"t\",\"args\":\"", 29);
    memcpy(body + most - 2, "\"}", 2);
    push_bytes((struct span){body, most});
    assert_int_equal(claim("w", 1, 0), 1);
    assert_int_equal(turns.claim.leases[0].body.len, most);
    memcpy(body + most - 2, "x\"}", 3);
    push_bytes((struct span){body, most + 1});
    enqueue("default", "t", "next");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("next");
    expect_buried((struct span){body, most + 1}, "larger than 1048576 bytes");
    free(body);
}

/* Lua reads the type only; the worker judges the rest, and gets it byte for byte. */
static void test_what_lua_need_not_judge_is_passed_on(void **state)
{
    static const struct body bodies[] = {
        BODY("{\"id\":\"a\",\"type\":\"t\",\"args\":12345678901234567890}"),
        BODY("{\"id\":\"a\",\"type\":\"t\",\"args\":NaN}"),
        BODY("{\"id\":\"a\",\"type\":\"t\"} and more"),
        BODY("{\"id\":\"a\",\"type\":\"t\",\"args\":[],\"args\":{}}"),
        BODY("{\"id\":\"a\",\"type\":\"t\",\"unknown\":[1e999,\"\\u0000\",\"\xff\"]}"),
        BODY("{\"args\":[1.0,{},[]],\"id\":\"a\",\"type\":\"t\"}"),
        BODY("{\"id\":null,\"type\":\"t\"}"),
        BODY("{\"id\":\"a\",\"type\":\"t\"}\0"),
        BODY("{\"type\":\"t\",\"id\":0}\0{"),
        BODY("{\"type\":\"t\",\"id\":[]}"),
        BODY("{\"id\":\"\",\"type\":\"t\",\"x\":\"\0\"}"),
        BODY("{\"type\":\"slow\",\"id\":\"a\",\"type\":\"t\"}"),
    };

    (void)state;
    start("w");
    for (size_t i = 0; i < COUNT(bodies); i++) {
        push_bytes((struct span){bodies[i].text, bodies[i].len});
        assert_int_equal(claim("w", 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].body.len, bodies[i].len);
        assert_memory_equal(turns.claim.leases[0].body.at, bodies[i].text, bodies[i].len);
        assert_memory_equal(turns.claim.leases[0].type.at, "t", 1);
    }
}

static void test_a_job_without_an_id_gets_one(void **state)
{
    (void)state;
    start("w");
    push("default", "{\"type\":\"t\"}");
    push("default", "  {  \"args\":{\"id\":7},\"type\":\"t\"}");
    push("default", "{\"type\":\"t\"}");
    must(turns_rate("slow", CLOSED_RULE));
    push("default", "{\"type\":\"slow\"}");
    push("default", "{\"type\":\"slow\"}");
    assert_int_equal(claim("w", 5, 0), 4);
    expect_leases("w.1.0 w.1.1 w.1.2 w.1.3");
    assert_memory_equal(turns.claim.leases[1].body.at,
                        "{\"id\":\"w.1.1\",  \"args\":{\"id\":7},\"type\":\"t\"}",
                        turns.claim.leases[1].body.len);
    expect_list(LANE("slow"), "w.1.4");
    push("default", "{\"type\":\"t\"}");
    assert_int_equal(claim("w", 5, 0), 1);
    expect_leases("w.2.0");
    assert_int_equal(turns_check().foreign, 6);
}

/* ---- Claim: types that a worker cannot run */

static void test_a_type_without_handler_is_held_until_one_comes(void **state)
{
    static const char *const odd[] = {"odd"};
    struct claim_call able = ask;

    (void)state;
    able.types = (struct names){odd, 1};
    able.group = "able";
    start("w");
    start("v");
    enqueue("default", "odd", "a b");
    enqueue("default", "t", "c");
    assert_int_equal(claim("w", 5, 0), 1);
    assert_int_equal(turns.claim.aside_count, 1);
    assert_memory_equal(turns.claim.aside[0].at, "odd", 3);
    assert_int_equal(turns.claim.next_us, -1);
    expect_text("odd", "ZRANGE", PREFIX "held:default", "0", "-1");
    turns_check();
    able.worker = "v";
    able.free = 1;
    able.turn = 1;
    must(turns_claim(&able));
    assert_int_equal(turns.claim.lease_count, 0); /* it did not look */
    able.held = true;
    must(turns_claim(&able));
    expect_leases("a");
    assert_int_equal(redis_number("EXISTS", PREFIX "held:default"), 0);
    turns_check();
    assert_int_equal(claim("w", 5, 0), 0); /* due, and w cannot: set aside again */
    assert_int_equal(turns.claim.aside_count, 1);
    assert_int_equal(redis_number("EXISTS", PREFIX "wake:default"), 0);
    turns_check();
}

static void test_a_type_waits_in_wake_or_in_held(void **state)
{
    static const char *const odd[] = {"odd"};
    struct claim_call able = ask;

    (void)state;
    able.types = (struct names){odd, 1};
    able.worker = "v";
    able.free = 5;
    able.turn = 1;
    start("w");
    start("v");
    /* Held; then a job of it is looked at by one who can run it. */
    enqueue("default", "odd", "a");
    claim("w", 5, 0);
    enqueue("default", "odd", "b");
    must(turns_claim(&able));
    assert_int_equal(turns.claim.lease_count + (size_t)turns.claim.more, 1);
    turns_check();
    must((able.turn++, turns_claim(&able)));
    expect_leases("a b");
    turns_check();
    /* In wake until its gate opens; then a job of it is looked at by one who cannot. */
    must(turns_rate("odd", CLOSED_RULE));
    enqueue("default", "odd", "c d");
    must((able.turn++, turns_claim(&able)));
    expect_leases("c");
    enqueue("default", "odd", "e");
    claim("w", 5, 0);
    assert_int_equal(turns.claim.aside_count, 0);
    expect_list(LANE("odd"), "d e");
    assert_int_equal(redis_number("ZCARD", PREFIX "wake:default"), 1);
    turns_check();
    /* What comes back wakes a held type. */
    must(turns_rate("odd", ""));
    claim("w", 5, 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "held:default"), 1);
    must(turns_adopt("", "v", NULL, 0, queues, NULL));
    expect_list(LANE("odd"), "a b c d e");
    assert_int_equal(redis_number("EXISTS", PREFIX "held:default"), 0);
    turns_check();
}

static void test_unknown_types_are_dead_where_that_is_asked_for(void **state)
{
    char *dead;

    (void)state;
    start("w");
    enqueue("default", "odd", "a");
    push("default", "{\"type\":\"odd\"}");
    enqueue("default", "t", "b");
    ask.unknown_dead = true;
    assert_int_equal(claim("w", 5, 0), 1);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_non_null(
        strstr(dead, "w:1.d1 default/odd/ this worker has no handler for its type\n{\"id\":\"a\""));
    assert_non_null(
        strstr(dead, "w:1.d2 default/odd/ this worker has no handler for its type\n{\"id\":\"w.1.1\""));
    free(dead);
    expect_counters("odd", "enqueued 1, pulled 2, dead 2");
    turns_check();
}

/* ---- Claim: limits */

static void test_a_limit_that_cannot_be_read_closes_its_type(void **state)
{
    (void)state;
    start("w");
    free(redis_text("HSET", PREFIX "limits", "slow", "ten a second"));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c");
    assert_int_equal(claim("w", 5, 0), 1);
    expect_leases("c");
    assert_int_equal(turns.claim.broken_count, 1);
    assert_memory_equal(turns.claim.broken[0].at, "slow", 4);
    assert_int_equal(turns.claim.next_us, -1);
    assert_false(turns.claim.more);
    assert_int_equal(claim("w", 5, 0), 0);
    assert_int_equal(turns.claim.broken_count, 0); /* told once */
    turns_check();
    must(turns_rate("slow", "100/1000000/100"));
    assert_int_equal(claim("w", 5, 0), 2);
    expect_leases("a b");
    turns_check();
}

static void test_a_changed_limit_takes_effect_at_once(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "1/3600000000/1"));
    enqueue_many("slow", 20);
    assert_int_equal(claim("w", 20, 0), 1);
    assert_int_equal(turns.claim.next_us, BEGIN_US + INT64_C(3600000000));
    turns.now_us += SECOND_US;
    must(turns_rate("slow", "10/1000000/1"));
    assert_int_equal(claim("w", 20, 0), 0); /* the slot that is in use is one of the new rule's */
    assert_int_equal(turns.claim.next_us, turns.now_us + 100000);
    turns.now_us += 100000;
    assert_int_equal(claim("w", 20, 0), 1);
    must(turns_rate("slow", "10/1000000/5"));
    assert_int_equal(claim("w", 20, 0), 4);
    must(turns_rate("slow", ""));
    assert_int_equal(claim("w", 20, 0), 14);
    turns_check();
}

static void test_claim_marks_the_rates_once_a_second(void **state)
{
    (void)state;
    start("w");
    enqueue("default", "t", "a b c d e");
    ask.mark = true;
    claim("w", 1, 0);
    expect_text("0\n0\n1795000000000000\n1", "HMGET", PREFIX "stats:t", "last_us", "last", "mark_us", "mark");
    turns.now_us += 999999;
    claim("w", 1, 0);
    expect_text("1795000000000000\n1", "HMGET", PREFIX "stats:t", "mark_us", "mark");
    turns.now_us += 1;
    claim("w", 2, 0);
    expect_text("1795000000000000\n1\n1795000001000000\n4", "HMGET", PREFIX "stats:t", "last_us", "last",
                "mark_us", "mark");
    turns.now_us -= 3600 * SECOND_US; /* the clock was set back */
    claim("w", 1, 0);
    expect_text("1794996401000000\n5", "HMGET", PREFIX "stats:t", "mark_us", "mark");
}

/* ---- Claim: who looks next */

static int64_t duty_of(const char *worker, int free, int64_t duty_until_us)
{
    ask.duty_until_us = duty_until_us;
    claim(worker, free, 0);
    return turns.claim.duty_until_us;
}

static void test_one_worker_has_the_duty(void **state)
{
    int64_t until;

    (void)state;
    start("a");
    start("b");
    until = duty_of("a", 1, 0);
    assert_int_equal(until, BEGIN_US + 2 * SECOND_US);
    assert_int_equal(duty_of("b", 1, 0), 0);
    turns.now_us += SECOND_US / 2;
    assert_int_equal(duty_of("a", 1, until), until); /* not renewed at each turn */
    turns.now_us += SECOND_US;
    until = duty_of("a", 1, until);
    assert_int_equal(until, turns.now_us + 2 * SECOND_US);
    assert_int_equal(duty_of("b", 1, 0), 0);
    turns.now_us = until + 1; /* a is silent */
    assert_int_equal(duty_of("b", 1, 0), turns.now_us + 2 * SECOND_US);
    assert_int_equal(duty_of("a", 1, until), 0);
    turns.now_us -= 3600 * SECOND_US; /* b's time lies too far ahead */
    assert_int_equal(duty_of("a", 1, 0), turns.now_us + 2 * SECOND_US);
    ask.group = "others";
    assert_int_equal(duty_of("b", 1, 0), turns.now_us + 2 * SECOND_US);
}

static void test_who_is_busy_passes_the_duty_on(void **state)
{
    int64_t until;

    (void)state;
    start("a");
    start("b");
    must(turns_rate("slow", "1/1000000/1"));
    until = duty_of("a", 1, 0);
    enqueue("default", "slow", "x y");
    assert_int_equal(duty_of("a", 2, until), until); /* one runs, one waits */
    assert_int_equal(redis_number("EXISTS", PREFIX "spare:g"), 0);
    assert_int_equal(duty_of("a", 0, until), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
    assert_int_equal(redis_number("HEXISTS", PREFIX "duty", "g"), 0);
    assert_in_range(redis_number("PTTL", PREFIX "spare:g"), 1, 60000);
    assert_int_equal(duty_of("b", 1, 0), BEGIN_US + 2 * SECOND_US);
    /* Nothing waits and no duty: no ring. */
    free(redis_text("DEL", PREFIX "spare:g"));
    assert_int_equal(duty_of("a", 0, 0), 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "spare:g"), 0);
    /* More than b can take: another is woken, by one token. */
    enqueue("default", "t", "p q r");
    assert_int_equal(duty_of("b", 1, turns.claim.duty_until_us), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
    claim("b", 1, 0);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
}

static void test_news_ring_for_the_worker_on_duty(void **state)
{
    (void)state;
    start("a");
    start("b");
    duty_of("a", 1, 0);
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "x y");
    assert_int_equal(duty_of("b", 3, 0), 0); /* parks y: a does not know when it opens */
    assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), 1);
    free(redis_text("DEL", PREFIX "bell:g"));
    enqueue("default", "slow", "z");
    assert_int_equal(duty_of("b", 3, 0), 0); /* behind y: no news */
    assert_int_equal(redis_number("EXISTS", PREFIX "bell:g"), 0);
    free(redis_text("HSET", PREFIX "duty", "elsewhere", "c 1795000002000000 high,low", "gone",
                    "d 1794000000000000 default", "odd", "what?"));
    must(turns_rate("slow", "2/1000000/1"));
    assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), 1);
    free(redis_text("DEL", PREFIX "bell:g", PREFIX "bell:elsewhere"));
    must(turns_adopt("", "b", NULL, 0, queues, NULL)); /* hands x back */
    assert_int_equal(redis_number("EXISTS", PREFIX "bell:g", PREFIX "bell:elsewhere"), 1);
    expect_text("g\nelsewhere", "HKEYS", PREFIX "duty"); /* one was silent for days, one makes no sense */
}

/* ---- Adopt */

static void test_adopt_takes_over(void **state)
{
    struct span running[4];
    char *before, *after;
    size_t lost;

    (void)state;
    start("w1");
    enqueue("default", "t", "a b c d e");
    claim("w1", 5, 0);
    keep_tokens();
    running[0] = tokens[1];
    running[1] = tokens[3];
    running[2] = (struct span){"7.--/default/t/", 15};
    must(turns_adopt("w2", "w1", running, 3, queues, &lost));
    assert_int_equal(lost, 1);
    assert_memory_equal(turns.reply->element[4]->str, "7.--/default/t/", 15);
    expect_text(PREFIX "bell:g", "ECHO", turns.reply->element[1]->str);
    expect_list(LANE("t"), "a c e");
    assert_int_equal(redis_number("EXISTS", ACTIVE "w1"), 0);
    assert_int_equal(redis_number("HLEN", ACTIVE "w2"), 3);
    expect_text("w2", "ZRANGE", PREFIX "workers", "0", "-1");
    expect_counters("t", "pulled 5, back 3");
    turns_check();
    before = turns_digest(); /* its answer was lost: once more */
    must(turns_adopt("w2", "w1", running, 3, queues, &lost));
    after = turns_digest();
    assert_string_equal(before, after);
    assert_int_equal(lost, 1);
    free(before);
    free(after);
    expect_stale("w1", SETTLE_BACK, tokens[1]);
    settle("w2", SETTLE_BACK, tokens[1], 0, NULL);
    expect_list(LANE("t"), "b a c e");
    turns_check();
}

static void test_adopt_after_being_reaped_has_lost_all(void **state)
{
    size_t lost;

    (void)state;
    start("w");
    start("slow");
    enqueue("default", "t", "a b");
    claim("slow", 2, 0);
    keep_tokens();
    pass("w", LEASE_US + SECOND_US);
    must(turns_adopt("slow2", "slow", tokens, 2, queues, &lost));
    assert_int_equal(lost, 2);
    expect_list(LANE("t"), "a b");
    turns_check();
}

static void test_who_leaves_hands_all_back_and_the_duty_on(void **state)
{
    (void)state;
    start("w");
    start("v");
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 2, 0), 2);
    assert_true(duty_of("w", 1, 0) > 0);
    must(turns_adopt("", "v", NULL, 0, queues, NULL));
    assert_int_equal(redis_number("HEXISTS", PREFIX "duty", "g"), 1); /* not its own */
    must(turns_adopt("", "w", NULL, 0, queues, NULL));
    assert_int_equal(redis_number("HEXISTS", PREFIX "duty", "g"), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
    assert_int_equal(redis_number("EXISTS", ACTIVE "w", PREFIX "workers", ACTIVE), 0);
    expect_list(LANE("t"), "a b");
    must(turns_adopt("", "never-there", NULL, 0, queues, NULL));
    turns_check();
}

static void test_a_lease_that_cannot_be_read_is_dead(void **state)
{
    char *dead;

    (void)state;
    start("w");
    start("old");
    start("gone");
    free(redis_text("HSET", ACTIVE "old", "what is this", "{\"id\":\"a\",\"type\":\"t\"}"));
    free(redis_text("HSET", ACTIVE "gone", "1.--/de fault/t/", "{\"id\":\"b\",\"type\":\"t\"}"));
    must(turns_adopt("new", "old", NULL, 0, queues, NULL));
    for (int64_t passed = 0; passed <= LEASE_US + SECOND_US; passed += LEASE_US / 4) {
        pass("w", LEASE_US / 4);
        pass("new", 0);
    }
    assert_int_equal(redis_number("EXISTS", ACTIVE "gone"), 0);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_non_null(
        strstr(dead, "old:unread1 // its lease cannot be read: what is this\n{\"id\":\"a\",\"type\":\"t\"}"));
    assert_non_null(
        strstr(dead, "its lease cannot be read: 1.--/de fault/t/\n{\"id\":\"b\",\"type\":\"t\"}"));
    free(dead);
}

/* ---- Reap */

static int64_t tick(const char *worker)
{
    int64_t taken, workers;

    must(turns_reap(worker, &taken, &workers));
    return workers;
}

static void test_the_silent_are_reaped_and_the_others_live(void **state)
{
    (void)state;
    start("w");
    start("dead");
    enqueue("default", "t", "a b c d");
    assert_int_equal(claim("dead", 3, 0), 3);
    pass("w", LEASE_US - 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    assert_int_equal(pass("w", 1), 3);
    expect_text("w", "ZRANGE", PREFIX "workers", "0", "-1");
    expect_list(LANE("t"), "a b c");
    expect_counters("t", "pulled 3, back 3");
    assert_true(turns_reap("dead", &(int64_t){0}, &(int64_t){0}) != 0 && turn_is_unregistered(&turns.error));
    assert_int_equal(redis_number("EXISTS", ACTIVE "dead"), 0);
    turns_check();
}

static void test_a_job_that_kills_its_workers_is_dead(void **state)
{
    char *dead;

    (void)state;
    start("w");
    enqueue("default", "t", "poison");
    for (int i = 0; i < 3; i++) {
        char name[8];

        snprintf(name, sizeof name, "d%d", i);
        start(name);
        assert_int_equal(claim(name, 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].interrupted, i);
        pass("w", LEASE_US + SECOND_US);
        turns_check();
    }
    assert_int_equal(claim("w", 1, 0), 0);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_string_equal(dead, "d2:3.-- default/t/ its worker died 3 times\n"
                              "@0,3,0;{\"id\":\"poison\",\"type\":\"t\",\"args\":{}}");
    free(dead);
    expect_counters("t", "dead 1, back 2");
}

static void test_after_an_outage_nobody_is_reaped_for_a_lease(void **state)
{
    (void)state;
    start("w");
    start("v");
    assert_int_equal(tick("w"), 0); /* the first one ever */
    turns.now_us += 3600 * SECOND_US;
    assert_int_equal(tick("w"), 0);
    pass("w", LEASE_US - 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    tick("v");
    pass("w", SECOND_US);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    pass("w", LEASE_US);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
    /* A gap of a little more than half a lease is an outage too. */
    start("u");
    pass("w", LEASE_US - LEASE_US / 4);
    turns.now_us += LEASE_US / 2 + 1;
    assert_int_equal(tick("w"), 0);
    turns.now_us += LEASE_US / 2;
    assert_int_equal(tick("w"), 0);
    turns.now_us += LEASE_US / 2;
    assert_int_equal(tick("w"), 1);
}

static void test_a_clock_that_was_set_back_strands_nothing(void **state)
{
    (void)state;
    start("w");
    start("dead");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c");
    assert_int_equal(claim("dead", 3, 0), 2);
    tick("w");
    turns.now_us -= 3600 * SECOND_US;
    assert_int_equal(tick("w"), 0);
    turns_check(); /* no deadline is more than a lease away */
    assert_int_equal(claim("w", 3, 0), 0);
    assert_int_equal(turns.claim.next_us, turns.now_us + SECOND_US); /* not an hour and a second */
    pass("w", LEASE_US);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
    expect_list(LANE("slow"), "a b");
    expect_list(LANE("t"), "c");
    free(redis_text("SET", PREFIX "reap", "what 1"));
    start("v");
    pass("w", LEASE_US - 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    free(redis_text("SET", PREFIX "reap", "1 9999999999999999")); /* no amnesty lasts longer than a lease */
    pass("w", LEASE_US + SECOND_US);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
}

static void test_many_dead_workers_are_reaped_bit_by_bit(void **state)
{
    int64_t workers = 0;

    (void)state;
    start("w");
    for (int i = 0; i < 20; i++) {
        char name[8];

        snprintf(name, sizeof name, "d%d", i);
        start(name);
        must(turns_enqueue("default", "t", name, -1));
        claim(name, 1, 0);
    }
    pass("w", LEASE_US - 1);
    for (turns.now_us++; workers < 20;) {
        int64_t some = tick("w");

        assert_in_range(some, 1, 8);
        workers += some;
    }
    assert_int_equal(turns_check().parked, 20);
}

/* ---- Drained, status */

static void test_drained_counts_what_a_draining_worker_waits_for(void **state)
{
    struct drained d;
    struct args a;
    char *before, *after;

    (void)state;
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b c");
    enqueue("default", "t", "d e");
    claim("w", 3, 0);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[1], SECOND_US, NULL);
    must(turns_enqueue("default", "t", "later", 2 * SECOND_US));
    enqueue("default", "t", "f");
    enqueue("low", "t", "not-mine");
    turns.now_us += SECOND_US;
    before = turns_digest();
    args_init(&a);
    drained_request(&a, PREFIX, turns.now_us, queues, ask.types);
    must(turns_send(&a));
    must(drained_reply(turns.reply, &d, &turns.error));
    assert_int_equal(d.waiting, 1);
    assert_int_equal(d.parked, 2);
    assert_int_equal(d.running, 2);
    assert_int_equal(d.due, 1);
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void test_status_says_what_there_is(void **state)
{
    static const char *const pieces[] = {
        "\"now\":\"1795000000000000\"",
        "\"default\":1",
        "\"parked\":1",
        "\"rule\":\"1\\/1000000\\/1\"",
        "\"tat\":\"1795000001000000\"",
        "\"opens\":\"1795000001000000\"",
        "\"until\":\"1795000030000000\"",
        "\"running\":2",
        "\"dead\":1",
        "\"later\":1",
        "\"pulled\":\"1\"",
        "\"held\":true",
    };
    char *before, *after;

    (void)state;
    must(turns_script("status", NULL, 0)); /* of nothing at all */
    start("w");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c");
    enqueue("default", "odd", "d");
    push("default", "garbage");
    must(turns_enqueue("default", "t", "later", SECOND_US));
    claim("w", 6, 0);
    enqueue("default", "t", "e");
    before = turns_digest();
    must(turns_script("status", NULL, 0));
    for (size_t i = 0; i < COUNT(pieces); i++)
        if (!strstr(turns.reply->str, pieces[i]))
            fail_msg("%s is not in %s", pieces[i], turns.reply->str);
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* ---- Wrong arguments */

static int call_in_words(const char *call)
{
    char text[300], *rest = text;
    const char *words[20], *script;
    size_t n = 0;

    snprintf(text, sizeof text, "%s", call);
    script = strsep(&rest, " ");
    for (char *word; (word = strsep(&rest, " "));)
        words[n++] = strcmp(word, "_") == 0 ? "" : strcmp(word, "TOKEN") == 0 ? "1.--/default/t/" : word;
    return turns_script(script, words, n);
}

static void test_wrong_arguments_change_nothing(void **state)
{
    static const char *const calls[] = {
        /* the script and its words; _ is empty */
        "settle",
        "settle w gone TOKEN 0 _",
        "settle w %s%d TOKEN 0 _",
        "settle w retry",
        "settle w retry TOKEN",
        "settle w retry TOKEN 5",
        "settle w retry TOKEN _ _",
        "settle w retry TOKEN soon _",
        "settle w retry TOKEN nan _",
        "settle w retry TOKEN inf _",
        "settle w retry TOKEN -5 _",
        "settle w retry TOKEN 0.5 _",
        "settle w back @ 0 _",
        "settle w back 1.--/default 0 _",
        "settle w back 1.--/de:fault/t/ 0 _",
        "settle w dead _ 0 x",
        "settle w done",
        "settle w done t",
        "settle w done t 0",
        "settle w done t x TOKEN",
        "settle w done t 2 TOKEN",
        "settle w done t nan TOKEN",
        "settle w done t 1.5 TOKEN TOKEN",
        "settle w done t 4001 TOKEN",
        "settle w done a:t 1 TOKEN",
        "settle w dead TOKEN 0 x done t 9",
        "settle w done t 1 TOKEN dead TOKEN 0",
        "promote",
        "promote _",
        "promote 0",
        "promote -1",
        "promote 1001",
        "promote nan",
        "promote 1.5",
        "promote many",
        "claim",
        "claim w",
        "claim w g 1 1 0 10 0 _",
        "claim w g 1 1 0 10 0 _ 1",
        "claim w g 1 1 0 10 0 _ 0 default t",
        "claim w g 1 1 0 10 0 _ 3 default t",
        "claim w g 1 1 0 10 0 _ x default t",
        "claim w g 1 1 0 10 0 _ nan default t",
        "claim w g 1 1 0 10 0 _ 1 de:fault t",
        "claim w g 1 1 0 10 0 _ 2 default default t",
        "claim w g x 1 0 10 0 _ 1 default t",
        "claim w g 1.5 1 0 10 0 _ 1 default t",
        "claim w g -1 1 0 10 0 _ 1 default t",
        "claim w g 1 -1 0 10 0 _ 1 default t",
        "claim w g 1 nan 0 10 0 _ 1 default t",
        "claim w g 1 1 -1 10 0 _ 1 default t",
        "claim w g 1 1 inf 10 0 _ 1 default t",
        "claim w g 1 1 0 0 0 _ 1 default t",
        "claim w g 1 1 0 1001 0 _ 1 default t",
        "claim w g 1 1 0 2.5 0 _ 1 default t",
        "claim w g 1 1 0 10 soon _ 1 default t",
        "claim v g 1 1 0 10 0 h 1 default t",
        "adopt",
        "adopt n w g",
        "adopt n w g 30000000 {}",
        "adopt n w g 30000000 {} 1",
        "adopt n w g 30000000 {} 0 default",
        "adopt n w g 30000000 {} 2 default",
        "adopt n w g 30000000 {} nan default",
        "adopt n w g long {} 1 default",
        "adopt n w g 0 {} 1 default",
        "adopt n w g -1 {} 1 default",
        "adopt n w g nan {} 1 default",
        "adopt w w g 30000000 {} 1 default",
        "adopt _ _ g 30000000 {} 1 default",
        "reap",
        "reap w",
        "reap w 30000000",
        "reap w 0 3",
        "reap w -5 3",
        "reap w nan 3",
        "reap w 0.5 3",
        "reap w 30000000 0",
        "reap w 30000000 x",
        "reap v 30000000 3",
        "drained",
        "drained 0",
        "drained x default",
        "drained 2 default",
        "drained nan default",
    };
    char *before, *after;

    (void)state;
    start("w");
    enqueue("default", "t", "a b c");
    must(turns_enqueue("default", "t", "later", 1));
    claim("w", 2, 0);
    turns.now_us += SECOND_US;
    before = turns_digest();
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (call_in_words(calls[i]) == 0)
            fail_msg("%s: not refused", calls[i]);
        if (turns.error.status != WEIR_EINPUT)
            fail_msg("%s: %s", calls[i], turns.error.text);
        after = turns_digest();
        if (strcmp(before, after) != 0)
            fail_msg("%s: has changed something", calls[i]);
        free(after);
    }
    free(before);
    turns_check();
}

/* ---- Answers of another shape */

/* What Lua text answers. */
static const struct redisReply *answer(const char *lua)
{
    struct args a;

    args_init(&a);
    args_add(&a, "EVAL");
    args_add(&a, lua);
    args_add(&a, "0");
    must(turns_send(&a));
    return turns.reply;
}

static void test_answers_are_checked(void **state)
{
    static const char *const claims[] = {
        "return 1",
        "return 'x'",
        "return false",
        "return {}",
        "return {'1','','','0',0,{},{},{}}",
        "return {'1','','','0',0,1,{},{},{}}",
        "return {'1','','','0',0,{},{},{},'x'}",
        "return {'1','','','0',0,{'token','{}'},{},{},{}}",
        "return {'1','','','0',0,{'1.1/q/t','{}'},{},{},{}}",
        "return {'1','','','0',0,{1,'{}'},{},{},{}}",
        "return {'1','','','0',0,{'1.1/q/t/',''},{},{},{}}",
        "return {'1','','','0',0,{'1.1/q/t/',7},{},{},{}}",
        "return {'1','','','0',0,{'1.1/q/t/','@1,2;{}'},{},{},{}}",
        "return {'1','','','0',0,{'1.1/q/t/','@'},{},{},{}}",
        "return {'1','','','0',0,{'1.1/q/t/','@1,2,3'},{},{},{}}",
        "return {{},{},{},{},{},{},{},{},{{'x'}}, 7}",
    };
    static const char *const numbers[] = {"return 'x'", "return {1}", "return false"};
    struct adopt adopt;
    struct drained drained;
    struct error e;
    int64_t n, m;

    (void)state;
    for (size_t i = 0; i < COUNT(claims); i++)
        if ((claim_reply(answer(claims[i]), &turns.claim, &e) == 0) != (i == COUNT(claims) - 1))
            fail_msg("%s: taken", claims[i]);
    assert_int_equal(turns.claim.next_us, -1);
    assert_int_equal(claim_reply(answer("return {1,'','3','4',1,{'1.z@55/q/t/','@1,22,3;{}'},{},{'x'},{}}"),
                                 &turns.claim, &e),
                     0);
    assert_int_equal(turns.claim.leases[0].interrupted, 22);
    assert_int_equal(turns.claim.leases[0].slot_us, 55);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        assert_true(settle_reply(answer(numbers[i]), &n, &e) != 0);
        assert_true(promote_reply(answer(numbers[i]), &n, &e) != 0);
        assert_true(reap_reply(answer(numbers[i]), &n, &m, &e) != 0);
        assert_true(drained_reply(answer(numbers[i]), &drained, &e) != 0);
        assert_true(adopt_reply(answer(numbers[i]), 1, &adopt, &e) != 0);
    }
    assert_true(adopt_reply(answer("return {'1','b','s'}"), 1, &adopt, &e) != 0);
    assert_int_equal(adopt_reply(answer("return {'1','b',{},'q', 4}"), 1, &adopt, &e), 0);
    assert_int_equal(adopt.lost_count, 1);
    adopt_free(&adopt);
    assert_true(claim_reply(NULL, &turns.claim, &e) != 0);
    assert_true(settle_reply(NULL, &n, &e) != 0);
}

/* ---- A Redis that is full */

static void test_a_full_redis_is_drained(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    start("dead");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c");
    enqueue("default", "t", "d e f g h i j");
    enqueue("default", "odd", "k");
    push("default", "garbage");
    must(turns_enqueue("default", "t", "later", SECOND_US));
    claim("dead", 3, 0);
    free(redis_text("CONFIG", "SET", "maxmemory", "1mb"));
    assert_true(turns_enqueue("default", "t", "refused", -1) != 0);
    assert_int_equal(turns.error.status, WEIR_ENOTNOW);
    assert_int_equal(claim("w", 5, 0), 5);
    expect_leases("f g h i j");
    keep_tokens();
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    for (int verb = SETTLE_RETRY; verb <= SETTLE_DEAD; verb++)
        settle("w", (enum settle_verb)verb, tokens[1 + verb], 0, "x");
    pass("w", LEASE_US + SECOND_US);
    promote(3);
    must(turns_adopt("v", "w", NULL, 0, queues, NULL));
    turns_check();
    for (int i = 0; i < 20; i++) {
        size_t n = claim("v", 9, 0);

        keep_tokens();
        for (size_t k = 0; k < n; k++)
            settle("v", SETTLE_DEAD, tokens[k], 0, "over");
        turns.now_us += SECOND_US;
    }
    must(turns_adopt("", "v", NULL, 0, queues, NULL));
    free(redis_text("CONFIG", "SET", "maxmemory", "0"));
    expect_counters("slow", "dead 3");
    expect_counters("t", "dead 7, done 1");
    assert_int_equal(turns_check().parked, 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 11);
}

/* ---- Other kinds under our names */

/* Everything at once: jobs in queue, lanes, leases, later, held and dead, and a worker whose time is over. */
static void build_stage(void)
{
    start("w");
    start("dead");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "t", "a b");
    claim("dead", 2, 0);
    enqueue("default", "slow", "c d e");
    enqueue("default", "t", "f g h i j k");
    enqueue("default", "odd", "l");
    must(turns_enqueue("default", "t", "m", 2 * SECOND_US));
    claim("w", 6, 0);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, NULL);
    settle("w", SETTLE_DEAD, tokens[1], 0, "x");
    pass("w", LEASE_US - 1);
    turns.now_us += SECOND_US;
    enqueue("default", "odd", "n");
    enqueue("default", "slow", "o");
    enqueue("default", "t", "p");
    push("default", "garbage");
}

/* The tokens that a worker was told of. */
static char told[200][200];
static int told_count;

static void tell(void)
{
    for (size_t i = 0; i < turns.claim.lease_count; i++)
        snprintf(told[told_count++], sizeof told[0], "%.*s", (int)turns.claim.leases[i].token.len,
                 turns.claim.leases[i].token.at);
}

/* Every script a few times; errors are expected. Nothing is done, so that no job may be missing. */
static void run_all_scripts(void)
{
    static const enum settle_verb verbs[] = {SETTLE_RETRY, SETTLE_DEAD, SETTLE_BACK, SETTLE_THROTTLED};
    struct args a;

    for (int round = 0; round < 3; round++) {
        int64_t n, m;

        for (size_t i = 0; i < COUNT(verbs); i++)
            (void)!turns_settle_end("w", verbs[i], tokens[2 + i], 0, "x", &n);
        (void)!turns_promote(100, &n);
        (void)!turns_reap("w", &n, &m);
        for (int k = 0; k < 2; k++) {
            ask.held = k;
            ask.mark = true;
            if (try_claim("w", 2, 1) == 0)
                tell();
        }
        (void)!turns_rate("slow", round % 2 ? "" : "1000/1000000/1");
        args_init(&a);
        drained_request(&a, PREFIX, turns.now_us, queues, ask.types);
        (void)!turns_send(&a);
        (void)!turns_script("status", NULL, 0);
        turns.now_us += SECOND_US;
    }
}

static void check_leases_are_told(const char *key)
{
    char *keys = redis_text("HKEYS", ACTIVE "w"), *rest = keys;

    for (char *token; strncmp(keys, "(error)", 7) != 0 && keys[0] && (token = strsep(&rest, "\n"));) {
        bool known = strcmp(token, "@") == 0;

        for (int i = 0; i < told_count; i++)
            known |= strcmp(token, told[i]) == 0;
        if (!known)
            fail_msg("%s: a lease that nobody was told of: %s", key, token);
    }
    free(keys);
}

static void run_with_foreign(const char *key, bool list)
{
    char *before, *after;

    begin(NULL);
    told_count = 0;
    build_stage();
    for (size_t i = 0; i < COUNT(tokens); i++)
        memcpy(told[told_count++], token_texts[i], sizeof told[0]);
    free(redis_text("DEL", key));
    free(list ? redis_text("RPUSH", key, "foreign") : redis_text("SET", key, "foreign"));
    before = invariants_ids(turns.redis, PREFIX);
    run_all_scripts();
    expect_text(list ? "list" : "string", "TYPE", key);
    expect_text("foreign", list ? "LPOP" : "GET", key);
    after = invariants_ids(turns.redis, PREFIX);
    if (strcmp(before, after) != 0)
        fail_msg("%s: jobs before: %s; after: %s", key, before, after);
    check_leases_are_told(key);
    free(before);
    free(after);
}

static void test_what_is_not_ours_is_left_alone(void **state)
{
    static const char *const names[] = {
        "queue:default",
        "lane:default/slow/",
        "lane:default/t/",
        "lane:default/odd/",
        "wake:default",
        "held:default",
        "limits",
        "types",
        "queues",
        "later",
        "active:w",
        "active:dead",
        "workers",
        "duty",
        "bell:g",
        "spare:g",
        "dead",
        "stats:slow",
        "stats:t",
        "stats:odd",
    };
    static const char *const texts[] = {"gate:slow#0", "reap"};
    char key[200];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(key, sizeof key, PREFIX "%s", names[i]);
        run_with_foreign(key, false);
    }
    for (size_t i = 0; i < COUNT(texts); i++) {
        snprintf(key, sizeof key, PREFIX "%s", texts[i]);
        run_with_foreign(key, true);
    }
}

/* A repaired key, and all runs to its end. */
static void test_a_key_that_was_mended_works_again(void **state)
{
    static const char *const names[] = {"dead", "later", "stats:t", "duty", "types"};
    char key[200];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(key, sizeof key, PREFIX "%s", names[i]);
        run_with_foreign(key, false);
        free(redis_text("DEL", key));
        for (int k = 0; k < 30; k++) {
            int64_t n, m;

            must(turns_promote(100, &n));
            must(turns_reap("w", &n, &m));
            claim("w", 50, 50);
            keep_tokens();
            for (size_t j = 0; j < turns.claim.lease_count && j < COUNT(tokens); j++) {
                char type[20];

                snprintf(type, sizeof type, "%s", strstr(token_texts[j], "/t/") ? "t" : "slow");
                must(turns_settle_done("w", type, &tokens[j], 1, &m));
                assert_int_equal(m, 0);
            }
            turns.now_us += SECOND_US;
        }
        assert_int_equal(redis_number("EXISTS", QUEUE, LANE("t"), LANE("slow"), PREFIX "later"), 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(test_##name, begin)
    const struct CMUnitTest tests[] = {
        TEST(settle_ends_jobs_by_their_verbs),
        TEST(a_lease_is_settled_once_and_by_its_worker),
        TEST(a_lease_is_lost_with_its_worker),
        TEST(many_are_handed_back_in_order),
        TEST(a_retry_comes_before_what_was_parked),
        TEST(promote_keeps_the_order_of_due_times),
        TEST(promote_buries_what_it_cannot_read),
        TEST(claim_leases_what_it_grants),
        TEST(slots_are_granted_five_ms_ahead),
        TEST(an_unregistered_worker_leases_nothing),
        TEST(prefetch_is_for_jobs_without_a_limit),
        TEST(an_interrupted_job_is_not_prefetched),
        TEST(queues_come_in_strict_order),
        TEST(lanes_and_queue_share_the_executors),
        TEST(due_types_share_alike),
        TEST(a_closed_type_costs_the_others_nothing),
        TEST(bodies_are_bounded_in_one_claim),
        TEST(a_turn_of_many_executors_mints_different_tokens),
        TEST(what_is_no_job_is_dead_with_its_bytes),
        TEST(a_body_may_have_a_mebibyte),
        TEST(what_lua_need_not_judge_is_passed_on),
        TEST(a_job_without_an_id_gets_one),
        TEST(a_type_without_handler_is_held_until_one_comes),
        TEST(a_type_waits_in_wake_or_in_held),
        TEST(unknown_types_are_dead_where_that_is_asked_for),
        TEST(a_limit_that_cannot_be_read_closes_its_type),
        TEST(a_changed_limit_takes_effect_at_once),
        TEST(claim_marks_the_rates_once_a_second),
        TEST(one_worker_has_the_duty),
        TEST(who_is_busy_passes_the_duty_on),
        TEST(news_ring_for_the_worker_on_duty),
        TEST(adopt_takes_over),
        TEST(adopt_after_being_reaped_has_lost_all),
        TEST(who_leaves_hands_all_back_and_the_duty_on),
        TEST(a_lease_that_cannot_be_read_is_dead),
        TEST(the_silent_are_reaped_and_the_others_live),
        TEST(a_job_that_kills_its_workers_is_dead),
        TEST(after_an_outage_nobody_is_reaped_for_a_lease),
        TEST(a_clock_that_was_set_back_strands_nothing),
        TEST(many_dead_workers_are_reaped_bit_by_bit),
        TEST(drained_counts_what_a_draining_worker_waits_for),
        TEST(status_says_what_there_is),
        TEST(wrong_arguments_change_nothing),
        TEST(answers_are_checked),
        TEST(a_full_redis_is_drained),
        TEST(what_is_not_ours_is_left_alone),
        TEST(a_key_that_was_mended_works_again),
    };

    return cmocka_run_group_tests_name("scripts", tests, turns_start, turns_stop);
}
