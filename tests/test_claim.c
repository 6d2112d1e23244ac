/* claim by itself, under virtual time: leases, order and shares, types that a worker cannot run, limits, the
 * duty. Random sequences: test_lanes.c. */
#include <inttypes.h>

#include "tests/play.h"
#include "tests/scene.h"

/* ---- Claim: order and shares */

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

WORKER_TEST(test_lanes_and_queue_share_the_executors)
{
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
    redis_do("LTRIM", QUEUE, "0", "1"); /* what one has no use for is the other's */
    expect_share(10, 0, 8, 2);
    expect_share(7, 0, 7, 0);
    enqueue("default", "t", "x y z");
    redis_do("LTRIM", LANE("slow"), "0", "0");
    claim("w", 10, 0);
    assert_int_equal(leased("slow"), 1);
    assert_int_equal(leased("t"), 3);
    assert_false(turns.claim.more);
}

WORKER_TEST(test_due_types_share_alike)
{
    static const char *const types[] = {"slow", "t0", "t1", "t2"};

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
    assert_int_equal(leased("t1"), 5); /* what it did not need is shared by the others */
    assert_int_equal(leased("t2"), 5);
    turns_check();
}

WORKER_TEST(test_a_closed_type_costs_the_others_nothing)
{
    int claims = 0;

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

SCENE_TEST(test_bodies_are_bounded_in_one_claim)
{
    const size_t size = 1000 * 1000;
    char *body = malloc(size + 1);
    start("w");
    memset(body, 'x', size);
    body[size] = '\0';
    memcpy(body, "{\"type\":\"t\",\"args\":\"", 20);
    memcpy(body + size - 2, "\"}", 2);
    for (int i = 0; i < 10; i++)
        push("default", body);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(claim("w", 30, 0), 1);
        assert_int_equal(turns.claim.more, i < 9);
    }
    free(body);
}

WORKER_TEST(test_a_turn_of_many_executors_mints_different_tokens)
{
    static const char *const types[] = {"a", "b", "c", "d", "e", "f"};
    const int jobs = 900;
    long long leases = COUNT(types);

    ask.chunk = 1000;
    ask.types = (struct names){types, COUNT(types)};
    for (size_t i = 0; i < COUNT(types); i++) {
        must(turns_rate(types[i], CLOSED_RULE));
        enqueue_many(types[i], jobs);
    }
    while (redis_number("LLEN", QUEUE) > 0)
        claim("w", 100, 0);
    for (size_t i = 0; i < COUNT(types); i++)
        must(turns_rate(types[i], ""));
    while (leases < jobs * (long long)COUNT(types)) {
        size_t n = claim("w", 10000, 10000);

        assert_true(n > 0);
        leases += (long long)n;
        assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1 + leases);
    }
    turns_check();
}

/* ---- Claim: types that a worker cannot run */

/* A worker that says which types it runs. */
static void start_with_types(const char *worker, const char *types)
{
    static char info[70000];
    const char *words[] = {worker, "", "g", "30000000", info, "", "0", "1", "default"};

    snprintf(info, sizeof info, "{\"lease\":30.0,\"types\":[%s]}", types);
    do
        must(turns_script("adopt", words, COUNT(words)));
    while (turns.reply->element[1]->integer > 0);
}

static size_t claim_after(int64_t us, bool held)
{
    turns.now_us += us;
    ask.held = held;
    return claim("w", 50, 0);
}

static int64_t dead_jobs(void)
{
    return redis_number("ZCARD", PREFIX "dead");
}

WORKER_TEST(test_types_of_live_workers_are_left_to_them)
{
    start_with_types("v", "\"odd\",\"t\"");
    ask.unknown_dead = true;
    enqueue_many("odd", 600);
    for (int beats = 0; beats < 20; beats++) { /* v runs them slowly, and no other */
        assert_int_equal(claim_after(10 * SECOND_US, true), 0);
        pass("w", 0);
        pass("v", 0);
    }
    assert_int_equal(dead_jobs(), 0);
    turns_check();
    for (int beats = 0; beats < 8; beats++) { /* v is dead; its lease was 30 s */
        pass("w", 10 * SECOND_US);
        claim_after(0, true);
        assert_int_equal(dead_jobs(), 0);
    }
    start_with_types("v2", "\"odd\""); /* within the minute */
    for (int beats = 0; beats < 8; beats++) {
        pass("w", 10 * SECOND_US);
        claim_after(0, true);
    }
    assert_int_equal(dead_jobs(), 0);
    for (int looks = 0; looks < 8; looks++)
        claim_after(looks == 0 ? 10 * SECOND_US : 0, true);
    assert_int_equal(dead_jobs(), 600);
    turns_check();
}

static double score_of_run(const char *member)
{
    char *text = redis_text("ZSCORE", PREFIX "runs", member);
    double score = atof(text);

    free(text);
    return score;
}

/* A worker of very many types names them a page at a time: each is there as long as the worker is, from when `*` is over. */
SCENE_TEST(test_many_types_are_named_by_pages)
{
    static char types[20000];
    size_t used = 0;
    int named = 0;

    for (int i = 0; i < 2500; i++)
        used += (size_t)snprintf(types + used, sizeof types - used, "%s\"%x\"", i ? "," : "", i);
    start_with_types("v", types);
    assert_int_equal(redis_number("ZCARD", PREFIX "runs"), 1001);
    for (int beats = 0; beats < 60; beats++) {
        turns.now_us += LEASE_US / 4 + 1000 + beats * 7919;
        pass("v", 0);
        if (score_of_run("*") > (double)turns.now_us)
            continue;
        assert_int_equal(redis_number("ZCOUNT", PREFIX "runs", textf("%" PRId64, turns.now_us), "+inf"),
                         2500);
        named++;
    }
    assert_in_range(named, 50, 55);
    start("w");
    for (int beats = 0; beats < 30; beats++) /* a day later none is kept */
        pass("w", 4000 * SECOND_US);
    assert_int_equal(redis_number("EXISTS", PREFIX "runs"), 0);
}

/* As long as it has not named all, no type counts as unknown. */
SCENE_TEST(test_types_that_are_being_named_are_not_unknown)
{
    static char types[60000];
    size_t used = 0;

    for (int i = 0; i < 6500; i++)
        used += (size_t)snprintf(types + used, sizeof types - used, "%s\"%x\"", i ? "," : "", i);
    start("w");
    start_with_types("v", types);
    push("default", "{\"type\":\"ffff\"}");
    ask.unknown_dead = true;
    for (int beats = 0; beats < 12; beats++) { /* four leases */
        assert_int_equal(claim_after(10 * SECOND_US - 1, true), 0);
        assert_int_equal(dead_jobs(), 0);
        pass("w", 0);
    }
    claim_after(SECOND_US, true);
    assert_int_equal(dead_jobs(), 1);
}

/* Types that a pattern takes are run as long as its worker lives, and known for a minute behind that; others are not. */
WORKER_TEST(test_types_of_patterns_are_left_to_them)
{
    static const char *const patterns[] = {"\"*\"", "\"odd.*\"", "\"o*\",\"x\""};

    ask.unknown_dead = true;
    for (size_t i = 0; i < COUNT(patterns); i++) {
        start_with_types("v", patterns[i]);
        enqueue_many(textf("odd.%zu", i), 3);
        enqueue_many(textf("none%zu", i), 2);
        for (int beats = 0; beats < 20; beats++) {
            assert_int_equal(claim_after(10 * SECOND_US, true), 0);
            pass("w", 0);
            pass("v", 0);
        }
        assert_int_equal(dead_jobs(), 5 * (int64_t)i + (i == 0 ? 0 : 2));
        for (int beats = 0; beats < 8; beats++) { /* v is dead; its lease was 30 s */
            pass("w", 10 * SECOND_US);
            claim_after(0, true);
            assert_int_equal(dead_jobs(), 5 * (int64_t)i + (i == 0 ? 0 : 2));
        }
        for (int beats = 0; beats < 2; beats++) {
            pass("w", 10 * SECOND_US);
            claim_after(0, true);
        }
        assert_int_equal(dead_jobs(), 5 * (int64_t)i + 5);
        turns_check();
    }
}

/* A clock that is set back takes the times along. */
WORKER_TEST(test_types_go_back_with_the_clock)
{
    start_with_types("v", "\"odd\"");
    turns.now_us -= 3600 * SECOND_US;
    pass("w", 0);
    enqueue("default", "odd", "a");
    ask.unknown_dead = true;
    for (int beats = 0; beats < 9; beats++)
        pass("w", 10 * SECOND_US);
    assert_int_equal(claim_after(-SECOND_US, false), 0);
    assert_int_equal(dead_jobs(), 0);
    claim_after(2 * SECOND_US, true);
    assert_int_equal(dead_jobs(), 1);
}

/* ---- Claim: who looks next */

#define DUTY_US 800000 /* as in claim_duty.lua */

static int64_t duty_of(const char *worker, int free, int64_t duty_until_us)
{
    ask.duty_until_us = duty_until_us;
    claim(worker, free, 0);
    return turns.claim.duty_until_us;
}

/* Of the others one looks when the duty ends, until it has it or is silent itself. */
SCENE_TEST(test_one_worker_is_the_second)
{
    int64_t until;

    start("a");
    start("b");
    start("c");
    until = duty_of("a", 1, 0);
    assert_int_equal(turns.claim.look_us, -1);
    duty_of("b", 1, 0);
    assert_in_range(turns.claim.look_us, until, until + 50000);
    duty_of("c", 1, 0);
    assert_int_equal(turns.claim.look_us, -1);
    turns.now_us += DUTY_US;
    until = duty_of("a", 1, until);
    duty_of("b", 1, 0);
    assert_in_range(turns.claim.look_us, until, until + 50000);
    turns.now_us = turns.claim.look_us; /* a is silent */
    duty_of("c", 0, 0);
    until = duty_of("b", 1, 0);
    assert_int_equal(until, turns.now_us + DUTY_US);
    duty_of("c", 1, 0); /* its place is free at once */
    assert_in_range(turns.claim.look_us, until, until + 50000);
    turns.now_us += 2 * SECOND_US; /* c is silent as well */
    until = duty_of("b", 1, until);
    duty_of("a", 1, 0);
    assert_in_range(turns.claim.look_us, until, until + 50000);
}

/* The claim of the worker on duty notices it: a lane that waits for its gate does so no longer than before.
 */
SCENE_TEST(test_a_clock_that_is_set_back_is_noticed_by_the_duty)
{
    static const int64_t steps_us[] = {3600 * SECOND_US, SECOND_US / 2};
    int64_t until;

    for (size_t i = 0; i < COUNT(steps_us); i++) {
        scene_begin(state);
        start("a");
        start("b");
        must(turns_rate("slow", "1/1000000/1"));
        enqueue_many("slow", 20);
        until = duty_of("a", 2, 0);
        for (int k = 0; k < 10; k++) { /* the last heartbeat is longer ago than the step goes back */
            turns.now_us += DUTY_US / 2 + 1;
            until = duty_of("a", 2, until);
        }
        turns.now_us -= steps_us[i];
        duty_of("a", 2, until);
        assert_in_range(turns.claim.next_us, turns.now_us, turns.now_us + SECOND_US);
        turns_check();
    }
}

/* ---- Types that were told once */

/* A call of adopt by worker w, which names its types; digest: what its claims name instead. Returns how much is left to the next call. */
static int64_t tell_some(const char *info, char digest[64])
{
    struct adopt_call call = {
        .worker = "w", .old_worker = "", .group = "g", .lease_us = 30 * SECOND_US, .info = info, .birth = ""};
    struct adopt adopt;
    struct args a = {0};
    int64_t left;

    call.queues = default_queue;
    adopt_request(&a, PREFIX, turns.now_us, &call);
    must(turns_send(&a));
    must(adopt_reply(turns.reply, default_queue.count, &adopt, &turns.error));
    snprintf(digest, 64, "%.*s", (int)adopt.types_digest.len, adopt.types_digest.at);
    left = adopt.left;
    adopt_free(&adopt);
    return left;
}

static void tell_types(const char *info, char digest[64])
{
    while (tell_some(info, digest) > 0)
        ;
}

/* A claim that names the types by a digest finds none: the worker is to begin anew. */
static void expect_unregistered(const char *digest)
{
    ask.digest = digest;
    assert_int_equal(try_claim("w", 2, 0), WEIR_EINPUT);
    assert_true(turn_is_unregistered(&turns.error));
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1);
}

SCENE_TEST(test_types_are_told_once)
{
    char digest[64], other[64];

    tell_types("{\"types\":[\"slow\",\"t\"]}", digest);
    ask.digest = digest;
    ask.types = (struct names){NULL, 0};
    enqueue("default", "t", "a");
    enqueue("default", "odd", "b");
    assert_int_equal(claim("w", 2, 0), 1);
    expect_text("odd", "ZRANGE", PREFIX "held:default", "0", "0");
    assert_int_equal(redis_number("EXISTS", PREFIX "spare:g"), 0);
    /* One of them rests for a while: another worker of the group is called. */
    ask.types = NAMES("t");
    enqueue("default", "t", "c");
    enqueue("default", "slow", "d");
    assert_int_equal(claim("w", 2, 0), 1);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
    ask.types = (struct names){NULL, 0};
    ask.held = true;
    assert_int_equal(claim("w", 2, 0), 1);
    ask.held = false;
    /* What was kept between calls is lost. */
    redis_do("FUNCTION", "FLUSH");
    enqueue("default", "t", "e");
    assert_int_equal(claim("w", 2, 0), 1);
    /* Another digest, or a worker that says something else by now: it is told again. */
    tell_types("{\"types\":[\"t\"]}", other);
    redis_do("DEL", ACTIVE "w");
    tell_types("{\"types\":[\"t\"]}", other);
    assert_string_not_equal(digest, other);
    enqueue("default", "t", "f");
    expect_unregistered("0123456789012345678901234567890123456789");
    redis_do("FUNCTION", "FLUSH");
    expect_unregistered(digest);
    ask.digest = other;
    assert_int_equal(claim("w", 2, 0), 1);
    redis_do("DEL", ACTIVE "w");
    assert_true(try_claim("w", 2, 0) != 0);
    assert_true(turn_is_unregistered(&turns.error));
}

/* Of very many a call reads some. A claim that comes before all are read knows all. */
SCENE_TEST(test_types_that_are_not_all_read)
{
    char info[6000] = "{\"types\":[\"slow\"", digest[64];

    for (int i = 0; i < 600; i++)
        sprintf(info + strlen(info), ",\"n%d\"", i);
    strcat(info, ",\"t\"]}");
    enqueue("default", "t", "a");
    assert_int_equal(tell_some(info, digest), 1);
    ask.digest = digest;
    ask.types = (struct names){NULL, 0};
    assert_int_equal(claim("w", 2, 0), 1);
    assert_int_equal(tell_some(info, digest), 0);
}

/* However many others there are: else two workers could keep each other from it. */
SCENE_TEST(test_types_that_are_being_read_are_not_forgotten)
{
    char some[6000] = "{\"types\":[\"slow\"", first[64];

    for (int i = 0; i < 600; i++)
        sprintf(some + strlen(some), ",\"n%d\"", i);
    strcat(some, "]}");
    assert_int_equal(tell_some(some, first), 1);
    start("v");
    for (int i = 0; i < 11; i++) { /* 110,000 names */

        name_types("v", textf("a%d", i), "b", 10000);
        claim("v", 0, 0);
    }
    assert_int_equal(tell_some(some, first), 0);
}

PLAY("claim")

TESTS(turns_start, turns_stop)
