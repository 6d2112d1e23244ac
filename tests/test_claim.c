/* claim by itself, under virtual time: leases, order and shares, types that a worker cannot run, limits, the
 * duty. Random sequences: test_lanes.c. */
#include <inttypes.h>

#include "tests/scene.h"

static const char *const both_queues[] = {"high", "low"};

static void expect_word(struct span word, const char *expected)
{
    assert_string_equal(textf("%.*s", (int)word.len, word.at), expected);
}

/* ---- Claim: leases */

WORKER_TEST(test_claim_leases_what_it_grants)
{
    static const char odd[] = " \t\r\n{\"args\" : [1, 2.50], \"type\":\"t\", \"id\":\"d\"} ";
    const struct lease *lease;

    must(turns_rate("slow", "10/1000000/1"));
    enqueue("default", "t", "a");
    enqueue("default", "slow", "b c");
    push("default", odd);
    expect_leased("w", 10, "a b d");
    lease = turns.claim.leases;
    assert_memory_equal(lease[0].token.at, "1.--/default/t/", lease[0].token.len);
    expect_token(1, "@1795000000000000/default/slow/");
    assert_int_equal(lease[0].slot_us, 0);
    assert_int_equal(lease[1].slot_us, BEGIN_US);
    assert_memory_equal(lease[1].type.at, "slow", lease[1].type.len);
    assert_int_equal(lease[2].body.len, sizeof odd - 1);
    assert_memory_equal(lease[2].body.at, odd, sizeof odd - 1);
    assert_int_equal(turns.claim.now_us, BEGIN_US);
    assert_int_equal(turns.claim.next_us, BEGIN_US + 100000 - LEAD_US);
    assert_int_equal(turns.claim.later_us, -1);
    assert_false(turns.claim.more);
    assert_int_equal(turns.claim.limit_count, 2);
    expect_word(turns.claim.limits[0], "slow");
    expect_word(turns.claim.limits[1], "slow=gcra:10/1000000/1");
    expect_counters("t", "enqueued 1, pulled 2");
    expect_counters("slow", "enqueued 2, pulled 1, parked 1, served 0");
    turns_check();
}

WORKER_TEST(test_slots_are_granted_five_ms_ahead)
{
    must(turns_rate("slow", "1000/1000000/1"));
    enqueue_many("slow", 20);
    assert_int_equal(claim("w", 20, 0), 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(turns.claim.leases[i].slot_us, BEGIN_US + i * 1000);
    assert_int_equal(turns.claim.next_us, BEGIN_US + 6000 - LEAD_US);
    turns.now_us += 1000;
    assert_int_equal(claim("w", 20, 0), 1);
    assert_int_equal(turns.claim.leases[0].slot_us, BEGIN_US + 6000);
    turns.now_us += 3500;
    assert_int_equal(claim("w", 2, 0), 2); /* an executor for each */
    assert_true(turns.claim.more);
    assert_int_equal(claim("w", 20, 0), 1);
    turns_check();
}

WORKER_TEST(test_an_unregistered_worker_leases_nothing)
{
    char *before;

    enqueue("default", "t", "a");
    before = turns_digest();
    assert_true(try_claim("nobody", 1, 0) != 0 && turn_is_unregistered(&turns.error));
    assert_true(try_claim("%s%d", 1, 0) != 0 && turn_is_unregistered(&turns.error));
    turns_unchanged(before);
}

/* Lanes that are due, without limits: of slow one job, of t all. */
static void fill_lanes_of_both(void)
{
    must(turns_rate("slow", CLOSED_RULE));
    must(turns_rate("t", CLOSED_RULE));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c d e");
    expect_leased("w", 5, "a c");
    must(turns_rate("slow", ""));
    must(turns_rate("t", ""));
}

WORKER_TEST(test_a_claim_that_fails_moves_nothing_and_strands_nothing)
{
    fill_lanes_of_both();
    redis_do("HSET", PREFIX "dead", "not", "ours");
    push("default", "garbage");
    for (int times = 0; times < 2; times++) {
        assert_true(try_claim("w", 10, 0) != 0);
        assert_non_null(strstr(turns.error.text, "WRONGTYPE"));
        expect_list(LANE("slow"), "b");
        expect_list(LANE("t"), "d e");
        assert_int_equal(redis_number("HLEN", ACTIVE "w"), 3);
    }
    redis_do("DEL", PREFIX "dead");
    claim("w", 10, 0);
    assert_int_equal(redis_number("EXISTS", LANE("slow"), LANE("t")), 0);
    turns_check();
}

WORKER_TEST(test_prefetch_is_for_jobs_without_a_limit)
{
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
    expect_leased("w", 1, "e");
    assert_int_equal(claim("w", 0, 0), 0);
    assert_int_equal(claim("w", 2, 5), 1);
    assert_false(turns.claim.more);
    turns_check();
}

/* ---- Claim: order and shares */

SCENE_TEST(test_queues_come_in_strict_order)
{
    must(turns_adopt("w", "", NULL, 0, (struct names){both_queues, 2}, NULL));
    ask.queues = (struct names){both_queues, 2};
    enqueue("low", "t", "l1 l2 l3");
    enqueue("high", "t", "h1 h2 h3 h4");
    expect_leased("w", 3, "h1 h2 h3");
    expect_leased("w", 3, "h4 l1 l2");
    enqueue("high", "t", "h5");
    assert_int_equal(claim("w", 1, 1), 2);
    expect_leases("h5 l3");
    ask.queues = default_queue;
    enqueue("low", "t", "l4");
    assert_int_equal(claim("w", 9, 9), 0); /* not its queue */
    turns_check();
}

/* Jobs ahead of a later queue would take each executor that becomes free before one with a limit of an earlier queue has met it. */
SCENE_TEST(test_no_job_is_leased_ahead_of_one_that_needs_an_executor)
{
    must(turns_adopt("w", "", NULL, 0, (struct names){both_queues, 2}, NULL));
    ask.queues = (struct names){both_queues, 2};
    must(turns_rate("slow", "1000000/1000000/1000000"));
    enqueue("high", "slow", "a b");
    enqueue("low", "t", "c d e");
    assert_int_equal(claim("w", 1, 2), 1);
    expect_leases("a");
    assert_true(turns.claim.more && turns.claim.starved);
    assert_int_equal(claim("w", 0, 2), 0);
    assert_true(turns.claim.more && turns.claim.starved);
    assert_int_equal(claim("w", 1, 2), 3);
    expect_leases("b c d");
    assert_false(turns.claim.starved);
    ask.queues = default_queue;
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

SCENE_TEST(test_a_type_without_handler_is_held_until_one_comes)
{
    struct claim_call able = ask;

    able.types = NAMES("odd");
    able.group = "able";
    start("w");
    start("v");
    enqueue("default", "odd", "a b");
    enqueue("default", "t", "c");
    assert_int_equal(claim("w", 5, 0), 1);
    assert_int_equal(turns.claim.held_count, 1);
    assert_memory_equal(turns.claim.held[0].at, "odd", 3);
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
    assert_int_equal(turns.claim.held_count, 1);
    assert_int_equal(redis_number("EXISTS", PREFIX "wake:default"), 0);
    turns_check();
    must(turns_claim(&able));
    expect_leases("b");
    redis_do("ZADD", PREFIX "runs", "8000000000000000", "odd");
    enqueue("default", "odd", "d");
    assert_int_equal(claim("w", 5, 0), 0);
    assert_int_equal(turns.claim.held_count, 0); /* v takes it */
    expect_text("odd", "ZRANGE", PREFIX "held:default", "0", "-1");
}

SCENE_TEST(test_a_type_waits_in_wake_or_in_held)
{
    struct claim_call able = ask;

    able.types = NAMES("odd");
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
    expect_leases("a b");
    turns_check();
    /* In wake until its gate opens; then a job of it is looked at by one who cannot. */
    must(turns_rate("odd", CLOSED_RULE));
    enqueue("default", "odd", "c d");
    must((able.turn++, turns_claim(&able)));
    expect_leases("c");
    enqueue("default", "odd", "e");
    claim("w", 5, 0);
    assert_int_equal(turns.claim.held_count, 0);
    expect_list(LANE("odd"), "d e");
    assert_int_equal(redis_number("ZCARD", PREFIX "wake:default"), 1);
    turns_check();
    /* What comes back stays held, and calls those who look at held types. */
    must(turns_rate("odd", ""));
    claim("w", 5, 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "held:default"), 1);
    redis_do("DEL", PREFIX "bell:g");
    start("u");
    must(turns_adopt("", "v", NULL, 0, default_queue, NULL));
    expect_list(LANE("odd"), "a b c d e");
    assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), 1);
    turns_check();
    able.worker = "u";
    able.held = true;
    must(turns_claim(&able));
    expect_leases("a b c d e");
    assert_int_equal(redis_number("EXISTS", PREFIX "held:default"), 0);
    turns_check();
}

#define NO_HANDLER "no handler for its type: no worker has run it for a minute\n{\"id\":\""

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

WORKER_TEST(test_unknown_types_are_dead_where_that_is_asked_for)
{
    char *dead;

    enqueue("default", "odd", "a");
    push("default", "{\"type\":\"odd\"}");
    enqueue("default", "t", "b");
    ask.unknown_dead = true;
    assert_int_equal(claim("w", 5, 0), 1);
    expect_text("odd", "ZRANGE", PREFIX "held:default", "0", "-1");
    assert_int_equal(claim_after(60 * SECOND_US - 1, true), 0);
    assert_int_equal(dead_jobs(), 0);
    turns_check();
    enqueue("default", "odd", "c");
    assert_int_equal(claim_after(1, false), 0); /* those that are held wait until held types are looked at */
    assert_int_equal(dead_jobs(), 1);
    assert_int_equal(claim_after(0, true), 0);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_non_null(strstr(unstamped(dead), "w:3.d1 default/odd/ " NO_HANDLER "c\""));
    assert_non_null(strstr(dead, "w:4.d1 default/odd/ " NO_HANDLER "a\""));
    assert_non_null(strstr(dead, "w:4.d2 default/odd/ " NO_HANDLER "w.1.1\""));
    free(dead);
    expect_counters("odd", "enqueued 2, pulled 1, parked 2, served 2, unstarted 3, dead 3");
    assert_int_equal(redis_number("EXISTS", PREFIX "held:default"), 0);
    turns_check();
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

/* Jobs of such a type that are cancelled are not dead, and those of a paused batch stand aside. */
SCENE_TEST(test_held_jobs_that_are_not_to_run_are_not_buried)
{
    use_secret();
    start("w");
    push("default", "@0,0,0,s" SECRET ",bnight;{\"id\":\"a\",\"type\":\"odd\"}");
    enqueue("default", "odd", "b c");
    ask.unknown_dead = true;
    claim("w", 5, 0);
    redis_do("HSET", PREFIX "halted", "b/night", "paused 1");
    redis_do("HSET", PREFIX "cancelled", "b", "waiting 1 default/odd");
    claim_after(60 * SECOND_US, true);
    assert_int_equal(redis_number("LLEN", PREFIX "aside:night"), 1);
    assert_int_equal(dead_jobs(), 1);
    expect_counters("odd", "parked 3, served 3, unstarted 3, back 2, dead 1, cancelled 1, set_aside 1");
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

/* ---- Claim: limits */

WORKER_TEST(test_a_limit_that_cannot_be_read_closes_its_type)
{
    redis_do("HSET", PREFIX "limits", "slow", "ten a second");
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c");
    expect_leased("w", 5, "c");
    assert_int_equal(turns.claim.broken_count, 1);
    assert_memory_equal(turns.claim.broken[0].at, "slow", 4);
    assert_int_equal(turns.claim.next_us, -1);
    assert_false(turns.claim.more);
    assert_int_equal(claim("w", 5, 0), 0);
    assert_int_equal(turns.claim.broken_count, 0); /* told once */
    turns_check();
    must(turns_rate("slow", "100/1000000/100"));
    expect_leased("w", 5, "a b");
    turns_check();
}

WORKER_TEST(test_a_changed_limit_takes_effect_at_once)
{
    must(turns_rate("slow", "1/3600000000/1"));
    enqueue_many("slow", 20);
    assert_int_equal(claim("w", 20, 0), 1);
    assert_int_equal(turns.claim.next_us, BEGIN_US + INT64_C(3600000000) - LEAD_US);
    turns.now_us += SECOND_US;
    must(turns_rate("slow", "10/1000000/1"));
    assert_int_equal(claim("w", 20, 0), 0); /* the slot that is in use is one of the new rule's */
    assert_int_equal(turns.claim.next_us, turns.now_us + 100000 - LEAD_US);
    turns.now_us += 100000;
    assert_int_equal(claim("w", 20, 0), 1);
    must(turns_rate("slow", "10/1000000/5"));
    assert_int_equal(claim("w", 20, 0), 4);
    must(turns_rate("slow", ""));
    assert_int_equal(claim("w", 20, 0), 14);
    turns_check();
}

WORKER_TEST(test_claim_marks_the_rates_once_a_second)
{
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

#define DUTY_US 800000 /* as in claim_duty.lua */

static int64_t duty_of(const char *worker, int free, int64_t duty_until_us)
{
    ask.duty_until_us = duty_until_us;
    claim(worker, free, 0);
    return turns.claim.duty_until_us;
}

SCENE_TEST(test_one_worker_has_the_duty)
{
    int64_t until;

    start("a");
    start("b");
    until = duty_of("a", 1, 0);
    assert_int_equal(until, BEGIN_US + DUTY_US);
    assert_int_equal(duty_of("b", 1, 0), 0);
    turns.now_us += DUTY_US / 4;
    assert_int_equal(duty_of("a", 1, until), until); /* not renewed at each turn */
    turns.now_us += DUTY_US / 2;
    until = duty_of("a", 1, until);
    assert_int_equal(until, turns.now_us + DUTY_US);
    assert_int_equal(duty_of("b", 1, 0), 0);
    turns.now_us = until + 1; /* a is silent */
    assert_int_equal(duty_of("b", 1, 0), turns.now_us + DUTY_US);
    assert_int_equal(duty_of("a", 1, until), 0);
    turns.now_us -= 3600 * SECOND_US; /* b's time lies too far ahead */
    assert_int_equal(duty_of("a", 1, 0), turns.now_us + DUTY_US);
    ask.group = "others";
    assert_int_equal(duty_of("b", 1, 0), turns.now_us + DUTY_US);
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

SCENE_TEST(test_who_is_busy_passes_the_duty_on)
{
    int64_t until;

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
    assert_int_equal(duty_of("b", 1, 0), BEGIN_US + DUTY_US);
    /* Nothing waits and no duty: no ring. */
    redis_do("DEL", PREFIX "spare:g");
    assert_int_equal(duty_of("a", 0, 0), 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "spare:g"), 0);
    /* More than b can take: another is woken, by one token. */
    enqueue("default", "t", "p q r");
    assert_int_equal(duty_of("b", 1, turns.claim.duty_until_us), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
    claim("b", 1, 0);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
}

SCENE_TEST(test_news_ring_for_the_worker_on_duty)
{
    start("a");
    start("b");
    duty_of("a", 1, 0);
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "x y");
    assert_int_equal(duty_of("b", 3, 0), 0); /* parks y: a does not know when it opens */
    assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), 1);
    redis_do("DEL", PREFIX "bell:g");
    enqueue("default", "slow", "z");
    assert_int_equal(duty_of("b", 3, 0), 0); /* behind y: no news */
    assert_int_equal(redis_number("EXISTS", PREFIX "bell:g"), 0);
    redis_do("HSET", PREFIX "duty", "elsewhere", "c 1795000002000000 high,low", "gone",
             "d 1794000000000000 default", "odd", "what?");
    must(turns_rate("slow", "2/1000000/1"));
    assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), 1);
    redis_do("DEL", PREFIX "bell:g", PREFIX "bell:elsewhere");
    must(turns_adopt("", "b", NULL, 0, default_queue, NULL)); /* hands x back */
    assert_int_equal(redis_number("EXISTS", PREFIX "bell:g", PREFIX "bell:elsewhere"), 1);
    heartbeat("a");
    expect_text("g\ng/second\nelsewhere", "HKEYS",
                PREFIX "duty"); /* one was silent for days, one makes no sense */
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

/* ---- How many claim ahead */

static int crowd_of(const char *worker, int prefetch)
{
    assert_int_equal(try_claim(worker, 2, prefetch), 0);
    return turns.claim.crowd;
}

SCENE_TEST(test_a_crowd_is_counted)
{
    turns.now_us += 3600 * SECOND_US; /* Redis has forgotten who claimed before */
    start("a");
    start("b");
    start("c");
    assert_int_equal(crowd_of("a", 0), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(crowd_of("b", 20), 1);
    assert_int_equal(crowd_of("c", 20), 2);
    turns.now_us += 250000; /* in the next period those of the last one count */
    assert_int_equal(crowd_of("a", 0), 2);
    assert_int_equal(crowd_of("a", 20), 2);
    turns.now_us += 250000;
    assert_int_equal(crowd_of("b", 20), 1);
    turns.now_us += SECOND_US; /* nobody came for long */
    assert_int_equal(crowd_of("a", 0), 0);
    turns.now_us -= 60 * SECOND_US; /* the clock is set back */
    assert_int_equal(crowd_of("c", 20), 1);
}

TESTS(turns_start, turns_stop)
