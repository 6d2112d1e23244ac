/* weir job cancel of jobs that workers have: what becomes of them then. What weir job says: transcripts/job.txt. */
#include "tests/scene_weir.h"

#define CANCELLED PREFIX "cancelled"

static void expect_shown(const char *id, const char *part)
{
    must_say(textf("job show %s", id), part);
}

static void expect_cancelled(const char *id, const char *says)
{
    must_say(textf("job cancel %s", id), says);
}

TEST_WITH(test_a_job_that_is_parked, begin_now, NULL)
{
    start("w");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c");
    claim("w", 1, 0);
    claim("w", 1, 0);
    expect_shown("b", "1 of 2 in its lane");
    expect_cancelled("b", "it was parked and is gone");
    turns.now_us += SECOND_US;
    claim("w", 2, 0);
    expect_leases("c");
    turns_check();
}

TEST_WITH(test_a_running_job_is_told, begin_now, NULL)
{
    start("w");
    must(turns_rate("t", "1/1000000/1"));
    enqueue("default", "t", "a");
    claim("w", 1, 0);
    expect_shown("a", "\nlease:     ends in");
    expect_cancelled("a", "job a runs on worker w, which was asked to stop it");
    expect_text(token_texts[0], "LRANGE", PREFIX "told:w", "0", "-1");
    expect_shown("a", "its worker was asked to stop it");
    must_say("job show --json a", "\"cancelled_at\":1");
    /* Handed back instead: it ends. */
    settle("w", SETTLE_BACK, tokens[0], 0, NULL);
    assert_int_equal(redis_number("EXISTS", CANCELLED, LANE("t")), 0);
    expect_counters("t", "cancelled 1, back 1, dead 0, retried 0");
    turns_check();
}

/* It is done all the same: nothing of the cancelling is left, and the next job of that id runs. */
TEST_WITH(test_a_cancelled_job_that_is_done, begin_now, NULL)
{
    int64_t stale;

    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_cancelled("a", "job a runs on worker w, which was asked to stop it");
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    assert_int_equal(stale, 0);
    expect_counters("t", "cancelled 0, done 1");
    assert_int_equal(redis_number("EXISTS", CANCELLED), 0);
    push("default", "{\"id\":\"a\",\"type\":\"t\"}");
    claim("w", 1, 0);
    expect_leases("a");
}

/* Whatever else becomes of it, it ends, for its batch too. */
TEST_WITH(test_a_cancelled_job_that_comes_back_ends, begin_now, NULL)
{
    static const enum settle_verb verbs[] = {SETTLE_RETRY, SETTLE_THROTTLED, SETTLE_BACK, SETTLE_INTERRUPTED,
                                             SETTLE_DEAD};
    enum { REAPED = COUNT(verbs), ADOPTED, ALL };

    for (size_t i = 0; i < ALL; i++) {
        scene_begin(NULL);
        must(turns_rate("t", "10/1000000/10"));
        start("w");
        start("other");
        redis_do("HSET", PREFIX "batch:b", "total", "1", "sealed", "1");
        redis_do("SET", PREFIX "unique:lock", "a");
        use_secret();
        push("default", "@0,2,0,s" SECRET ",bb,ulock;{\"id\":\"a\",\"type\":\"t\"}");
        redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
        assert_int_equal(claim("w", 1, 0), 1);
        must(turns_script("cancel", (const char *[]){"a", "tell", "w", token_texts[0]}, 4));
        if (i == REAPED)
            assert_int_equal(pass("other", LEASE_US), 1);
        else if (i == ADOPTED)
            must(turns_adopt("w2", "w", NULL, 0, default_queue, NULL));
        else
            settle("w", verbs[i], tokens[0], 3, "x");
        expect_counters("t", "cancelled 1, back 1, dead 0, retried 0");
        expect_text("1", "HGET", PREFIX "batch:b", "cancelled");
        assert_int_equal(redis_number("EXISTS", PREFIX "unique:lock", LANE("t"), PREFIX "later",
                                      PREFIX "dead", PREFIX "stop:t/", PREFIX "told:w"),
                         i < REAPED ? 1 : 0); /* "told:w", which goes with w */
        turns_check();
    }
}

/* Under its new id a worker is told of what it has taken along. */
TEST_WITH(test_a_worker_that_reconnects_is_told, begin_now, NULL)
{
    start("w");
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 2, 0), 2);
    expect_cancelled("a", "job a runs on worker w, which was asked to stop it");
    must(turns_adopt("w2", "w", tokens, 2, default_queue, NULL));
    assert_int_equal(redis_number("EXISTS", PREFIX "told:w"), 0);
    expect_text(token_texts[0], "LRANGE", PREFIX "told:w2", "0", "-1");
    expect_shown("a", "its worker was asked to stop it");
    must(turns_script("cancel_heard", (const char *[]){"w2", token_texts[0]}, 2));
    assert_int_equal(redis_number("EXISTS", PREFIX "told:w2"), 0);
}

TESTS(turns_start, turns_stop)
