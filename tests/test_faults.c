/* A key of another kind in the place of one of a queue's stops that queue and nothing else; in the place of a gate it
 * closes the gate. It is named, and what stood still goes on when it is gone. */
#include <inttypes.h>

#include "tests/scene.h"

#define LATER_US (11 * SECOND_US) /* later_records.again(), and a little more for each that waits there */
#define RATE "10/1000000/10"

static const char *const queues[] = {"other",
                                     "default"}; /* a fault is met behind jobs that would have started */
static const char *const types[] = {"t", "slow", "free", "once", "keyed"};

static int begin(void **state)
{
    scene_begin(state);
    ask.queues = (struct names){queues, COUNT(queues)};
    ask.types = (struct names){types, COUNT(types)};
    must(turns_adopt("w", "", NULL, 0, ask.queues, NULL));
    must(turns_rate("slow", RATE));
    return 0;
}

static const char *planted;

static void plant(const char *key)
{
    planted = key;
    redis_do("DEL", key);
    free(strstr(key, "gate:") ? redis_text("RPUSH", key, "x") : redis_text("SET", key, "x"));
}

static bool is_named(const char *key)
{
    for (size_t i = 0; i < turns.claim.fault_count; i++)
        if (turns.claim.faults[i].len > strlen(key) &&
            memcmp(turns.claim.faults[i].at, key, strlen(key)) == 0)
            return true;
    return false;
}

static void expect_named(const char *key)
{
    if (!is_named(key))
        fail_msg("%s is not named", key);
}

/* The ids that claims lease until nothing is due any more, sorted; no more claims than that. */
static void expect_started(const char *ids, int claims)
{
    char found[1000] = "";

    do {
        assert_true(claims-- > 0);
        claim("w", 10, 10);
        for (size_t i = 0; i < turns.claim.lease_count; i++) {
            struct span body = turns.claim.leases[i].body;
            size_t len = strlen(found);

            snprintf(found + len, sizeof found - len, "%s%.2s", len ? " " : "",
                     body.at + strlen("{\"id\":\""));
        }
    } while (turns.claim.more || (turns.claim.next_us >= 0 && turns.claim.next_us <= turns.now_us));
    if (strcmp(found, ids) != 0)
        fail_msg("%s: started: %s, not %s; faults %zu: %.*s; next %" PRId64, planted, found, ids,
                 turns.claim.fault_count, turns.claim.fault_count ? (int)turns.claim.faults[0].len : 0,
                 turns.claim.fault_count ? turns.claim.faults[0].at : "", turns.claim.next_us - turns.now_us);
}

/* A gate of all keys, or of one. */
TEST_WITH(test_a_gate_stops_its_own_jobs_only, begin, NULL)
{
    static const char *const gates[] = {PREFIX "gate:slow#0", PREFIX "gate:slow#0/a"};

    for (size_t i = 0; i < COUNT(gates); i++) {
        begin(state);
        must(turns_rate("slow", i ? RATE ",by=key" : RATE));
        plant(gates[i]);
        for (int round = 0; round < 2; round++) {
            enqueue_with("slow", round ? "a2" : "a0 a1", "\"key\":\"a\"");
            enqueue_with(i ? "slow" : "t", round ? "b2" : "b0 b1", "\"key\":\"b\"");
            expect_started(round ? "b2" : "b0 b1", 6);
            expect_named(gates[i]);
        }
        redis_do("DEL", gates[i]);
        turns.now_us += LATER_US;
        expect_started("a0 a1 a2", 6);
        assert_int_equal(turns.claim.fault_count, 0);
        turns_check();
    }
}

/* A key of a queue that was not there before, so that nothing is lost but time. */
TEST_WITH(test_a_key_of_a_queue_stops_that_queue_only, begin, NULL)
{
    static const char *const keys[] = {
        QUEUE,
        PREFIX "wake:default",
        PREFIX "sleep:default",
        PREFIX "held:default",
        PREFIX "wait:default/slow#0",
        PREFIX "wait:default/keyed#0/a",
        PREFIX "ring:default/slow",
        PREFIX "lane:default/slow/",
        PREFIX "lane:default/keyed/a",
    };

    for (size_t i = 0; i < COUNT(keys); i++) {
        begin(state);
        must(turns_rate("keyed", "1/1000000/1,by=key"));
        if (i > 0) {
            enqueue("default", "slow", "s0 s1");
            enqueue_with("keyed", "k0 k1", "\"key\":\"a\"");
            enqueue("default", "t", "t0");
        }
        enqueue("other", "slow", "o0");
        enqueue("other", "free", "o1");
        plant(keys[i]);
        ask.held = true;
        expect_started("o0 o1", 6);
        expect_named(keys[i]);
        assert_int_equal(turns.claim.paused_count, 1);          /* so nobody peeks at it again and again */
        enqueue("other", "slow", "p0 p1 p2 p3 p4 p5 p6 p7 p8"); /* what began anew has taken one slot */
        assert_int_equal(claim("w", 10, 0), 9);
        redis_do("DEL", keys[i]);
        turns.now_us += SECOND_US;
        expect_started(i > 0 ? "s0 s1 k0 t0" : "", 6);
        assert_int_equal(turns.claim.paused_count + turns.claim.fault_count, 0);
        turns_check();
    }
}

/* Queues that share a limit: all of its slots are for the one that is not stopped. */
TEST_WITH(test_what_waits_in_it_holds_up_no_other_queue, begin, NULL)
{
    begin(state);
    enqueue_many("slow", 12);
    for (int i = 0; i < 60; i++)
        enqueue("other", "slow", textf("o%d", i));
    claim("w", 100, 0);
    plant(PREFIX "ring:default/slow");
    for (int i = 0; i < 40; i++) {
        turns.now_us += SECOND_US / 10;
        assert_int_equal(claim("w", 100, 0), 1);
    }
}

/* A claim begins anew for some of them; the next ones go on. */
TEST_WITH(test_there_may_be_many, begin, NULL)
{
    enum { MANY = 20 };
    static char names[MANY][16];
    const char *all[MANY + 1];

    begin(state);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "q%d", i);
        all[i] = names[i];
        enqueue(names[i], "slow", names[i]);
        plant(textf(PREFIX "lane:%s/slow/", names[i]));
    }
    all[MANY] = "other";
    enqueue("other", "slow", "o0");
    ask.queues = (struct names){all, COUNT(all)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(try_claim("w", 10, 10), WEIR_ECONFIG);
        assert_non_null(strstr(turns.error.text, "/slow/ is a string, not a list"));
    }
    expect_started("o0", 6);
    assert_int_equal(turns.claim.fault_count, MANY);
}

/* What all types need stops all, by its name. */
TEST_WITH(test_what_all_need_is_named, begin, NULL)
{
    static const char *const keys[] = {PREFIX "types", PREFIX "limits"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        begin(state);
        enqueue("default", "slow", "s0");
        plant(keys[i]);
        assert_true(try_claim("w", 5, 5) != 0);
        assert_non_null(strstr(turns.error.text, keys[i]));
        expect_list(QUEUE, "s0");
    }
}

/* ---- One of every kind */

static void enqueue_keys(const char *key)
{
    char ids[200] = "";

    for (int i = 0; i < 16; i++)
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%s%d", i ? " " : "", key, i);
    enqueue_with("keyed", ids, textf("\"key\":\"%s\"", key));
}

/* Somebody waits at each kind of place: at rates, for an end, at gates of keys, held, and to run alone. */
static void fill(void **state)
{
    begin(state);
    must(turns_adopt("dead", "", NULL, 0, ask.queues, NULL));
    enqueue("default", "slow", "suspect");
    claim("dead", 1, 0);
    must(turns_adopt("reaper", "", NULL, 0, ask.queues, NULL));
    pass("reaper", LEASE_US + SECOND_US);
    must(turns_adopt("", "reaper", NULL, 0, ask.queues, NULL));
    must(turns_adopt("w", "", NULL, 0, ask.queues, NULL));
    must(turns_rate("once", "concurrency:1"));
    must(turns_rate("keyed", "10/1000000/10,by=key"));
    must(turns_weight("keyed", "a", 3));
    enqueue("default", "nobody", "n0");
    enqueue("default", "once", "o0 o1");
    enqueue_keys("a");
    enqueue_keys("b");
    enqueue_many("slow", 12);
    claim("w", 100, 0);
    turns_check();
    turns.now_us += SECOND_US;
}

static bool was_leased(const char *id)
{
    for (size_t i = 0; i < turns.claim.lease_count; i++)
        if (memmem(turns.claim.leases[i].body.at, turns.claim.leases[i].body.len, id, strlen(id)))
            return true;
    return false;
}

/* What a job of a type without limits meets where one key holds something else. */
TEST_WITH(test_others_go_on_whatever_it_is, begin, NULL)
{
    static const char *const suspects_first[] = {"default", "other"};
    static const struct {
        const char *key;
        bool of_queue, unnamed; /* unnamed: claims do not need it, or would not notice */
    } rows[] = {
        {PREFIX "wake:default", true, false},
        {PREFIX "sleep:default", true, false},
        {PREFIX "held:default", true, false},
        {PREFIX "wait:default/-", true, false},
        {PREFIX "ring:default/slow", true, false},
        {PREFIX "ring:default/keyed", true, false},
        {PREFIX "lane:default/slow/", true, false},
        {PREFIX "lane:default/keyed/a", true, false},
        {PREFIX "wait:default/slow#0", true, false},
        {PREFIX "wait:default/keyed#0/a", true, false},
        {PREFIX "gate:slow#0", false, false},
        {PREFIX "gate:once#0", false, false},
        {PREFIX "gate:keyed#0/a", false, false},
        {PREFIX "at:once#0", false, true},
        {PREFIX "credit:default/keyed", false, false},
        {PREFIX "weights", false, false},
        {PREFIX "alone", false, false},
        {PREFIX "wake:default!", true, false},
        {PREFIX "held:default!", true, false},
        {PREFIX "wait:default!/-", true, false},
        {PREFIX "ring:default!/slow", false, true},
        {PREFIX "lane:default!/slow/", false, true},
        {PREFIX "opened", false, true},
        {PREFIX "queues", false, true},
        {PREFIX "duty", false, true},
        {PREFIX "stats:t", false, true},
        {PREFIX "stop:slow/", false, true},
        {PREFIX "told:w", false, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        bool t = false, free_job = false, named = false;
        const char *worker = strchr(rows[i].key, '!') ? "idle" : "w";

        fill(state);
        must(turns_adopt("idle", "", NULL, 0, ask.queues, NULL));
        ask.queues = (struct names){suspects_first, COUNT(suspects_first)};
        ask.held = true;
        ask.alone = strchr(rows[i].key, '!') && !rows[i].unnamed;
        enqueue("default", "once", "o2");
        enqueue("default", "t", "tee");
        enqueue("other", "free", "fff");
        plant(rows[i].key);
        for (int claims = 0; claims < 6; claims++) {
            if (try_claim(worker, 30, 30) != 0)
                fail_msg("%s: %s", rows[i].key, turns.error.text);
            t |= was_leased("tee");
            free_job |= was_leased("fff");
            named |= is_named(rows[i].key);
            turns.now_us += SECOND_US;
        }
        if (t == rows[i].of_queue || !free_job || named == rows[i].unnamed)
            fail_msg("%s: of its queue %s, of another %s, %s", rows[i].key, t ? "started" : "waits",
                     free_job ? "started" : "waits", named ? "named" : "not named");
    }
}

/* Who cannot be listed at a gate that only an end opens looks again by itself. */
TEST_WITH(test_who_cannot_be_listed_looks_again, begin, NULL)
{
    begin(state);
    must(turns_rate("once", "concurrency:1"));
    redis_do("SET", PREFIX "at:once#0", "x");
    enqueue("default", "once", "o0 o1");
    assert_int_equal(claim("w", 10, 0), 1);
    expect_named(PREFIX "at:once#0");
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    turns.now_us += 2 * SECOND_US;
    assert_int_equal(claim("w", 10, 0), 1);
}

/* Of a retried job it keeps the way to its lane: it comes again, and is not dead. */
TEST_WITH(test_a_retried_job_waits_for_its_lane, begin, NULL)
{
    static const char *const keys[] = {PREFIX "lane:default/t/", PREFIX "ring:default/t",
                                       PREFIX "wait:default/-", PREFIX "held:default"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        int64_t moved;

        begin(state);
        enqueue("default", "t", "r0");
        enqueue("other", "t", "r1");
        assert_int_equal(claim("w", 0, 2), 2);
        settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "no");
        settle("w", SETTLE_RETRY, tokens[1], SECOND_US, "no");
        plant(keys[i]);
        turns.now_us += SECOND_US;
        must(turns_promote(10, &moved));
        assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 0);
        expect_started("r1", 6);
        redis_do("DEL", keys[i]);
        turns.now_us += LATER_US;
        must(turns_promote(10, &moved));
        expect_started("r0", 6);
        expect_counters("t", "scheduled 0");
        turns_check();
    }
}

/* A key that waits at no name of ours keeps nobody from being woken. */
TEST_WITH(test_a_waiter_that_is_none_is_passed_over, begin, NULL)
{
    fill(state);
    redis_do("ZADD", PREFIX "wait:default/keyed#0/a", "1", "no lane");
    redis_do("ZADD", PREFIX "wait:default/slow#0", "1", "no/type");
    claim("w", 30, 0);
    claim("w", 30, 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "lane:default/keyed/a", LANE("slow")), 0);
}

TESTS(turns_start, turns_stop)
