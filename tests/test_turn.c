/* A claim that settles: what is done leaves the leases, whatever becomes of the claim. */
#include "tests/scene.h"

/* The next claim settles so many of the tokens. */
static void along(size_t count)
{
    ask.done_type = "t";
    ask.done = tokens;
    ask.done_count = (int)count;
}

static void run(const char *ids)
{
    start("w");
    enqueue("default", "t", ids);
    claim("w", 10, 0);
}

SCENE_TEST(test_settles_and_claims)
{
    run("a b");
    enqueue("default", "t", "c");
    along(2);
    claim("w", 10, 0);
    expect_leases("c");
    assert_int_equal(turns.stale, 0);
    expect_counters("t", "enqueued 3, pulled 3, done 2");
}

/* Behind a digest a claim names the types that rest: what it settles is none of them. */
SCENE_TEST(test_claims_the_type_that_it_settles)
{
    run("a");
    redis_do("HSET", ACTIVE "w", "@", "{\"types\":[\"slow\",\"t\"]}");
    ask.digest = "5f1cb89b8ac5976fc8157549a804413a02dedc4d"; /* sha1 of ["slow","t"] */
    ask.types = (struct names){NULL, 0};
    enqueue("default", "t", "b");
    along(1);
    claim("w", 10, 0);
    expect_leases("b");
}

SCENE_TEST(test_says_what_is_stale)
{
    run("a b");
    along(1);
    claim("w", 10, 0);
    along(2);
    claim("w", 10, 0);
    assert_int_equal(turns.stale, 1);
    expect_counters("t", "done 2, stale 1");
}

/* Each of the two answers is its own. */
SCENE_TEST(test_settles_where_the_claim_is_refused)
{
    static const char *const bad[] = {"no name"};

    run("a");
    along(1);
    ask.queues = (struct names){bad, 1};
    assert_int_equal(try_claim("w", 10, 0), WEIR_EINPUT);
    assert_int_equal(turns.stale, 0);
    expect_counters("t", "pulled 1, done 1");
    along(1);
    ask.queues = default_queue;
    assert_true(try_claim("x", 10, 0) != 0);
    assert_true(turn_is_unregistered(&turns.error));
    assert_int_equal(turns.stale, 1);
}

/* Who waits for the end of such a job is called by settle. */
SCENE_TEST(test_refuses_what_is_counted_in_flight)
{
    char *before;

    must(turns_rate("t", "concurrency:2"));
    run("a");
    before = turns_digest();
    along(1);
    assert_int_equal(try_claim("w", 10, 0), WEIR_EINPUT);
    nothing_changed_since(before);
}

SCENE_TEST(test_refuses_a_foreign_key)
{
    char *before;

    run("a");
    redis_do("DEL", ACTIVE "w");
    redis_do("SET", ACTIVE "w", "foreign");
    before = turns_digest();
    along(1);
    assert_true(try_claim("w", 10, 0) != 0);
    nothing_changed_since(before);
}

SCENE_TEST(test_wrong_arguments)
{
    static const char *const lines[] = {"turn",
                                        "turn w",
                                        "turn w g 2 9 0 16 0 5000 0 _ _ 1 default t",
                                        "turn w g 2 9 0 16 0 5000 0 _ _ 0 t 0.--/default/t/ x",
                                        "turn w g 2 9 0 16 0 5000 0 _ _ 0 t 0.--/default/t/ 0",
                                        "turn w g 2 9 0 16 0 5000 0 _ _ 0 t 0.--/default/t/ 1.5",
                                        "turn w g 2 9 0 16 0 5000 0 _ _ 0 t 0.--/default/t/ 2",
                                        "turn w g 2 9 0 16 0 5000 0 _ _ 0 - 0.--/default/t/ 99",
                                        "turn w g 2 9 0 16 0 5000 0 _ _ 0 ! 0.--/default/t/ 1"};
    char *before;

    run("a");
    before = turns_digest();
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(call_line(lines[i]), WEIR_EINPUT);
    nothing_changed_since(before);
}

TESTS(turns_start, turns_stop)
