/* adopt by itself, under virtual time: a worker comes, comes again and leaves. */
#include "tests/scene.h"

/* Adopt as often as it is needed, first with that many tokens; returns how many calls that took. */
static int adopt_all(const char *new, const char *old, size_t running)
{
    int calls = 0;
    const char *active = textf("%s%s", ACTIVE, old);

    do {
        int64_t before = redis_number("HLEN", active);
        size_t lost;

        must(turns_adopt(new, old, tokens, calls ? 0 : running, default_queue, &lost));
        assert_int_equal(lost, 0);
        assert_in_range(before - redis_number("HLEN", active), 1, 120);
        assert_int_equal(redis_number("EXISTS", active), turns.left > 0);
        if (calls++ % 80 == 0)
            turns_check();
    } while (turns.left > 0 && calls < 2 * BIG_LEASES / 40 + 2);
    return calls;
}

/* A call gives back about 40 jobs: however many a worker had, Redis is not kept from the others. */
SCENE_TEST(test_a_worker_with_many_leases_comes_and_leaves_bit_by_bit)
{
    int calls;

    start_big();
    calls = adopt_all("new", "big", 2);
    assert_in_range(calls, BIG_LEASES / 40, BIG_LEASES / 40 + 2);
    assert_int_equal(redis_number("HLEN", ACTIVE "new"), 1 + 2);
    assert_int_equal(turns_check().parked, BIG_LEASES - 2);
    expect_text("new", "ZRANGE", PREFIX "workers", "0", "-1");
    calls = adopt_all("", "new", 0);
    assert_int_equal(calls, 1);
    start_big();
    calls = adopt_all("", "big", 0);
    assert_in_range(calls, 2, 2 * BIG_LEASES / 40 + 2);
    assert_int_equal(turns_check().parked, 2 * BIG_LEASES);
    assert_int_equal(redis_number("EXISTS", PREFIX "workers"), 0);
}

/* The answer to its claim was lost with the connection: what it has not heard of has spent nothing. Where it dropped jobs, nobody knows. */
SCENE_TEST(test_what_was_never_heard_of_gives_its_slots_back)
{
    static const char *const rules[] = {"fixed-window:3/86400000000/0", "gcra:3/86400000000/3",
                                        "fixed-window:3/86400000000/0,by=key",
                                        "sliding-log:3/86400000000 concurrency:3"};

    for (size_t r = 0; r < 2 * COUNT(rules); r++) {
        bool unheard = r % 2;
        struct span running[2];
        size_t lost;

        scene_begin(state);
        start("w1");
        must(turns_rate("slow", rules[r / 2]));
        enqueue_with("slow", "a b c d", KEY("k"));
        assert_int_equal(claim("w1", 4, 0), 3);
        running[0] = tokens[0];
        running[1] = (struct span){"-", 1};
        must(turns_adopt("w2", "w1", running, unheard ? 2 : 1, default_queue, &lost));
        assert_int_equal(lost, 0);
        if (claim("w2", 4, 0) != (unheard ? 2 : 0))
            fail_msg("%s: %zu start", rules[r / 2], turns.claim.lease_count);
        turns_check();
    }
}

SCENE_TEST(test_adopt_takes_over)
{
    struct span running[4];
    char *before, *after;
    size_t lost;

    start("w1");
    enqueue("default", "t", "a b c d e");
    claim("w1", 5, 0);
    running[0] = tokens[1];
    running[1] = tokens[3];
    running[2] = (struct span){"7.--/default/t/", 15};
    must(turns_adopt("w2", "w1", running, 3, default_queue, &lost));
    assert_int_equal(lost, 1);
    assert_memory_equal(turns.reply->element[11]->str, "7.--/default/t/", 15);
    expect_text(PREFIX "bell:g", "ECHO", turns.reply->element[7]->str);
    assert_int_equal(turns.reply->element[6]->integer, 1); /* so many workers are registered */
    expect_list(LANE("t"), "a c e");
    assert_int_equal(redis_number("EXISTS", ACTIVE "w1"), 0);
    assert_int_equal(redis_number("HLEN", ACTIVE "w2"), 3);
    expect_text("w2", "ZRANGE", PREFIX "workers", "0", "-1");
    expect_counters("t", "pulled 5, back 3");
    turns_check();
    before = turns_digest(); /* its answer was lost: once more */
    must(turns_adopt("w2", "w1", running, 3, default_queue, &lost));
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

WORKER_TEST(test_adopt_after_being_reaped_has_lost_all)
{
    size_t lost;

    start("slow");
    enqueue("default", "t", "a b");
    claim("slow", 2, 0);
    pass("w", LEASE_US + SECOND_US);
    must(turns_adopt("slow2", "slow", tokens, 2, default_queue, &lost));
    assert_int_equal(lost, 2);
    expect_list(ALONE("t"), "a b");
    turns_check();
}

static void know_birth(void)
{
    snprintf(turns.birth, sizeof turns.birth, "%s", turns.reply->element[2]->str);
}

/* Whoever comes back to a Redis that has lost all hears of it, not only the first one. */
WORKER_TEST(test_adopt_after_all_data_are_lost_says_so)
{
    char before[128];
    size_t lost;

    know_birth();
    start("v");
    assert_string_equal(turns.reply->element[2]->str, turns.birth);
    snprintf(before, sizeof before, "%s", turns.birth);
    enqueue("default", "t", "a b");
    claim("w", 2, 0);
    assert_int_equal(redis_number("HEXISTS", PREFIX "about", "lost"), 0);
    redis_do("FLUSHALL");
    turns.now_us += SECOND_US;
    for (int times = 0; times < 2; times++) { /* its answer was lost */
        must(turns_adopt("w2", "w", tokens, 1, default_queue, &lost));
        assert_int_equal(lost, 1);
        assert_string_not_equal(turns.reply->element[2]->str, before);
    }
    must(turns_adopt("v2", "v", NULL, 0, default_queue, &lost));
    assert_string_not_equal(turns.reply->element[2]->str, before);
    assert_int_equal(redis_number("HGET", PREFIX "about", "lost"), turns.now_us);
    know_birth();
    turns.now_us += SECOND_US;
    must(turns_adopt("v3", "v2", NULL, 0, default_queue, &lost));
    assert_int_equal(redis_number("HGET", PREFIX "about", "lost"), turns.now_us - SECOND_US);
    turns.birth[0] = '\0';
    turns_check();
}

WORKER_TEST(test_who_leaves_hands_all_back_and_the_duty_on)
{
    start("v");
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 2, 0), 2);
    claim("w", 1, 0);
    assert_true(turns.claim.duty_until_us > 0);
    must(turns_adopt("", "v", NULL, 0, default_queue, NULL));
    assert_int_equal(redis_number("HEXISTS", PREFIX "duty", "g"), 1); /* not its own */
    must(turns_adopt("", "w", NULL, 0, default_queue, NULL));
    assert_int_equal(redis_number("HEXISTS", PREFIX "duty", "g"), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
    assert_int_equal(redis_number("EXISTS", ACTIVE "w", PREFIX "workers", ACTIVE), 0);
    expect_list(LANE("t"), "a b");
    must(turns_adopt("", "never-there", NULL, 0, default_queue, NULL));
    turns_check();
}

/* What a key of another kind keeps from its lane waits in `later`; where that is not ours either, all stays with the
 * old id, and the worker begins. */
WORKER_TEST(test_adopt_puts_off_what_cannot_go_back)
{
    size_t lost;

    enqueue("default", "t", "a b");
    enqueue("default", "slow", "c");
    assert_int_equal(claim("w", 3, 0), 3);
    redis_do("MSET", LANE("t"), "foreign", PREFIX "later", "foreign");
    must(turns_adopt("w2", "w", tokens, 1, default_queue, &lost));
    assert_int_equal(lost, 0);
    assert_int_equal(turns.left, 0);
    assert_int_equal(redis_number("HLEN", ACTIVE "w2"), 2); /* "@" and a */
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 3);
    redis_do("DEL", PREFIX "later");
    must(turns_adopt("w2", "w", tokens, 1, default_queue, &lost));
    expect_list(LANE("slow"), "c");
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 1);
    turns.now_us += 11 * SECOND_US;
    promote(1);
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 1);
    assert_non_null(strstr(turns.reply->element[4]->str, LANE("t") " is a string, not a list"));
    redis_do("DEL", LANE("t"));
    turns.now_us += 11 * SECOND_US;
    promote(1);
    expect_list(LANE("t"), "b");
    expect_text("w2", "ZRANGE", PREFIX "workers", "0", "-1");
    turns_check();
}

WORKER_TEST(test_a_lease_that_cannot_be_read_is_dead)
{
    char *dead;

    start("old");
    start("gone");
    redis_do("HSET", ACTIVE "old", "what is this", "{\"id\":\"a\",\"type\":\"t\"}");
    redis_do("HSET", ACTIVE "gone", "1.--/de fault/t/", "{\"id\":\"b\",\"type\":\"t\"}");
    must(turns_adopt("new", "old", NULL, 0, default_queue, NULL));
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

SCENE_TEST(test_adopt_keeps_a_lease_that_cannot_be_buried)
{
    start("old");
    redis_do("HSET", ACTIVE "old", "what is this", "{}");
    redis_do("SET", PREFIX "dead", "foreign");
    must(turns_adopt("new", "old", NULL, 0, default_queue, NULL));
    expect_text("{}", "HGET", ACTIVE "old", "what is this");
    expect_text("foreign", "GET", PREFIX "dead");
}

TESTS(turns_start, turns_stop)
