/* A key that holds something else than it should stops what needs it and nothing else: it is named, claims go
 * on, and what stood still goes on when the key is gone. */
#include <inttypes.h>

#include "tests/scene.h"

#define LATER_US (11 * SECOND_US) /* later_records.again(), and a little more for each that waits there */
#define RATE "10/1000000/10"

static const char *const queues[] = {"default", "other"};
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
    free(redis_text("DEL", key));
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

/* Of one type. */
static const char *const keys_of_slow[] = {
    PREFIX "gate:slow#0",
    PREFIX "wait:default/slow#0",
    PREFIX "ring:default/slow",
    PREFIX "lane:default/slow/",
};

static void test_it_stops_its_own_type_only(void **state)
{
    for (size_t i = 0; i < COUNT(keys_of_slow); i++) {
        int64_t moved;

        begin(state);
        plant(keys_of_slow[i]);
        for (int round = 0; round < 2; round++) {
            enqueue("default", "slow", round ? "s2" : "s0 s1");
            enqueue("default", "t", round ? "t2" : "t0 t1");
            expect_started(round ? "t2" : "t0 t1", 6);
            expect_named(keys_of_slow[i]);
        }
        assert_int_equal(redis_number("EXISTS", QUEUE), 0);
        free(redis_text("DEL", keys_of_slow[i]));
        turns.now_us += LATER_US;
        must(turns_promote(10, &moved));
        expect_started("s0 s1 s2", 6);
        assert_int_equal(turns.claim.fault_count, 0);
        turns_check();
    }
}

/* What waits already stays where it is. */
static void test_it_keeps_what_waits_of_its_own_type_only(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        begin(state);
        must(turns_rate("t", RATE));
        enqueue_many("slow", 12);
        enqueue_many("t", 12);
        assert_int_equal(claim("w", 30, 0), 20);
        turns.now_us += SECOND_US;
        plant(keys_of_slow[i]);
        expect_started("t1 t1", 6);
        expect_named(keys_of_slow[i]);
        if (i == 1)
            continue; /* nobody knows any more who waited there: that is for the doctor */
        free(redis_text("DEL", keys_of_slow[i]));
        turns.now_us += LATER_US;
        expect_started("sl sl", 6);
        turns_check();
    }
}

/* The gate, or the lane, of one key. */
static void test_it_stops_its_own_key_only(void **state)
{
    static const char *const keys[] = {
        PREFIX "gate:slow#0/a",
        PREFIX "lane:default/slow/a",
    };

    for (size_t i = 0; i < COUNT(keys); i++) {
        int64_t moved;

        begin(state);
        must(turns_rate("slow", "10/1000000/10,by=key"));
        plant(keys[i]);
        enqueue_with("slow", "a0 a1", "\"key\":\"a\"");
        enqueue_with("slow", "b0 b1", "\"key\":\"b\"");
        expect_started("b0 b1", 6);
        expect_named(keys[i]);
        free(redis_text("DEL", keys[i]));
        turns.now_us += LATER_US;
        must(turns_promote(10, &moved));
        expect_started("a0 a1", 6);
        turns_check();
    }
}

/* Of a whole queue. */
static void test_it_stops_its_own_queue_only(void **state)
{
    static const char *const keys[] = {QUEUE, PREFIX "wake:default", PREFIX "held:default"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        begin(state);
        if (i > 0)
            enqueue("default", "slow", "s0 s1");
        enqueue("other", "slow", "o0");
        enqueue("other", "free", "o1");
        plant(keys[i]);
        ask.held = true;
        expect_started("o0 o1", 6);
        expect_named(keys[i]);
        assert_int_equal(turns.claim.paused_count, 1); /* so nobody peeks at it again and again */
        free(redis_text("DEL", keys[i]));
        expect_started(i > 0 ? "s0 s1" : "", 6);
        assert_int_equal(turns.claim.paused_count, 0);
        turns_check();
    }
}

/* Two at once, and one that only comes to light without the other. */
static void test_there_may_be_several(void **state)
{
    begin(state);
    must(turns_rate("free", RATE));
    plant(PREFIX "ring:default/slow");
    plant(PREFIX "lane:default/free/");
    plant(PREFIX "wake:other");
    enqueue("default", "slow", "s0");
    enqueue("default", "free", "f0");
    enqueue("default", "t", "t0");
    enqueue("other", "t", "o0");
    expect_started("t0", 6);
    assert_int_equal(turns.claim.fault_count, 3);
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 2);
}

/* What all types need stops all, by its name. */
static void test_what_all_need_is_named(void **state)
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
    char ids[200] = "", field[32];

    for (int i = 0; i < 16; i++)
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%s%d", i ? " " : "", key, i);
    snprintf(field, sizeof field, "\"key\":\"%s\"", key);
    enqueue_with("keyed", ids, field);
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
static void test_others_go_on_whatever_it_is(void **state)
{
    static const struct {
        const char *key;
        bool of_queue, unnamed; /* unnamed: claims do not need it, or would not notice */
    } rows[] = {
        {PREFIX "wake:default", true, false},
        {PREFIX "sleep:default", true, false},
        {PREFIX "held:default", true, false},
        {PREFIX "wait:default/-", true, false},
        {PREFIX "ring:default/slow", false, false},
        {PREFIX "ring:default/keyed", false, false},
        {PREFIX "lane:default/slow/", false, false},
        {PREFIX "lane:default/keyed/a", false, false},
        {PREFIX "wait:default/slow#0", false, false},
        {PREFIX "wait:default/keyed#0/a", false, false},
        {PREFIX "gate:slow#0", false, false},
        {PREFIX "gate:once#0", false, false},
        {PREFIX "gate:keyed#0/a", false, false},
        {PREFIX "at:once#0", false, true},
        {PREFIX "credit:default/keyed", false, false},
        {PREFIX "weights", false, false},
        {PREFIX "alone", false, false},
        {PREFIX "wake:default!", false, false},
        {PREFIX "held:default!", false, false},
        {PREFIX "wait:default!/-", false, false},
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

        fill(state);
        ask.held = true;
        ask.alone = strchr(rows[i].key, '!') && !rows[i].unnamed;
        enqueue("default", "once", "o2");
        enqueue("default", "t", "tee");
        enqueue("other", "free", "fff");
        plant(rows[i].key);
        for (int claims = 0; claims < 6; claims++) {
            if (try_claim("w", 30, 30) != 0)
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
static void test_who_cannot_be_listed_looks_again(void **state)
{
    begin(state);
    must(turns_rate("once", "concurrency:1"));
    free(redis_text("SET", PREFIX "at:once#0", "x"));
    enqueue("default", "once", "o0 o1");
    assert_int_equal(claim("w", 10, 0), 1);
    expect_named(PREFIX "at:once#0");
    keep_tokens();
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    turns.now_us += 2 * SECOND_US;
    assert_int_equal(claim("w", 10, 0), 1);
}

/* Of a retried job it keeps the way to its lane: it comes again, and is not dead. */
static void test_a_retried_job_waits_for_its_lane(void **state)
{
    static const char *const keys[] = {PREFIX "lane:default/t/", PREFIX "ring:default/t",
                                       PREFIX "wait:default/-", PREFIX "held:default"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        int64_t moved;

        begin(state);
        enqueue("default", "t", "r0");
        enqueue("other", "t", "r1");
        assert_int_equal(claim("w", 0, 2), 2);
        keep_tokens();
        settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "no");
        settle("w", SETTLE_RETRY, tokens[1], SECOND_US, "no");
        plant(keys[i]);
        turns.now_us += SECOND_US;
        must(turns_promote(10, &moved));
        assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 0);
        expect_started("r1", 6);
        free(redis_text("DEL", keys[i]));
        turns.now_us += LATER_US;
        must(turns_promote(10, &moved));
        expect_started("r0", 6);
        expect_counters("t", "scheduled 0");
        turns_check();
    }
}

/* A key that waits at no name of ours keeps nobody from being woken. */
static void test_a_waiter_that_is_none_is_passed_over(void **state)
{
    fill(state);
    free(redis_text("ZADD", PREFIX "wait:default/keyed#0/a", "1", "no lane"));
    free(redis_text("ZADD", PREFIX "wait:default/slow#0", "1", "no/type"));
    claim("w", 30, 0);
    claim("w", 30, 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "lane:default/keyed/a", LANE("slow")), 0);
}

/* Types that share a gate: the one whose ring is something else lets the other have all of its slots. */
static void test_it_lets_others_pass_at_a_shared_gate(void **state)
{
    static const char *const shared[] = {"both"};
    int leased = 0;

    begin(state);
    must(turns_rate("slow", ""));
    must(turns_rate("both", RATE));
    must(turns_use("slow", "use", "", shared, 1));
    must(turns_use("t", "use", "", shared, 1));
    enqueue_many("slow", 12);
    enqueue_many("t", 60);
    claim("w", 100, 0);
    plant(PREFIX "ring:default/slow");
    for (int i = 0; i < 40; i++) {
        turns.now_us += SECOND_US / 10;
        leased += (int)claim("w", 100, 0);
    }
    assert_in_range(leased, 38, 42);
}

/* The other keys of its type are not late. */
static void test_a_lane_of_a_ring_keeps_no_other(void **state)
{
    int leased = 0;

    begin(state);
    must(turns_rate("keyed", "gcra:1/1000000/1,by=key gcra:100/1000000/1"));
    enqueue_with("keyed", "a0 a1", "\"key\":\"a\"");
    enqueue_with("keyed", "b0 b1 b2 b3 b4 b5 b6", "\"key\":\"b\"");
    claim("w", 10, 0);
    plant(PREFIX "lane:default/keyed/a");
    for (int i = 0; i < 50; i++) {
        turns.now_us += SECOND_US / 10;
        leased += (int)claim("w", 10, 0);
    }
    assert_in_range(leased, 5, 6);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(test_##name, begin)
    const struct CMUnitTest tests[] = {
        TEST(it_stops_its_own_type_only),
        TEST(it_keeps_what_waits_of_its_own_type_only),
        TEST(it_stops_its_own_key_only),
        TEST(it_stops_its_own_queue_only),
        TEST(there_may_be_several),
        TEST(what_all_need_is_named),
        TEST(others_go_on_whatever_it_is),
        TEST(who_cannot_be_listed_looks_again),
        TEST(a_retried_job_waits_for_its_lane),
        TEST(a_waiter_that_is_none_is_passed_over),
        TEST(it_lets_others_pass_at_a_shared_gate),
        TEST(a_lane_of_a_ring_keeps_no_other),
    };

    return cmocka_run_group_tests_name("faults", tests, turns_start, turns_stop);
}
