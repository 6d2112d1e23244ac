/* claim of jobs that cost more slots than one. Under virtual time. */
#include "tests/scene.h"

WORKER_TEST(test_a_job_takes_as_many_slots_as_it_costs)
{
    must(turns_rate("slow", "10/1000000/5"));
    must(turns_use("slow", "use", "2", NULL, 0));
    enqueue_with("slow", "three", "\"cost\":3");
    enqueue("default", "slow", "two");
    enqueue_with("slow", "five", "\"key\":\"k\",\"cost\":5");
    enqueue_with("slow", "one", "\"args\":{},\"cost\":1");
    expect_claim("three two");
    expect_token(0, "@1795000000000000*3/default/slow/");
    expect_token(1, "@1795000000000000*2/default/slow/");
    assert_int_equal(turns.claim.leases[0].cost, 3);
    expect_next(5 * 100000 - LEAD_US);
    turns.now_us += 5 * 100000;
    expect_claim("five");
    expect_next(100000 - LEAD_US);
    turns.now_us += 100000;
    expect_claim("one");
    expect_token(0, "@1795000000600000/default/slow/");
    assert_int_equal(turns.claim.leases[0].cost, 1);
}

/* One that waits for several slots keeps its turn against jobs of other keys, which need less. */
WORKER_TEST(test_a_cost_behind_jobs_that_begin_alike)
{
    must(turns_rate("slow", "10/1000000/10"));
    for (const char *id = "abcd"; *id; id++)
        push("default", textf("@0,0,0,t-JIgFkI;{\"id\":\"%c\",\"type\":\"slow\",%s}", *id,
                              *id == 'd' ? "\"cost\":5" : "\"args\":{}"));
    assert_int_equal(claim("w", 10, 0), 4);
    assert_int_equal(turns.claim.leases[2].cost, 1);
    assert_int_equal(turns.claim.leases[3].cost, 5);
    turns_check();
}

WORKER_TEST(test_a_cheap_job_of_another_key_does_not_pass)
{
    must(turns_rate("slow", "gcra:10/1000000/5 gcra:1000/1000000/1000,by=key"));
    enqueue_with("slow", "a", KEY("a") ",\"cost\":3");
    enqueue_with("slow", "b", KEY("b") ",\"cost\":5");
    enqueue_with("slow", "c", KEY("c"));
    enqueue_with("slow", "d", KEY("d") ",\"cost\":2");
    expect_claim("a");
    expect_next(3 * 100000 - LEAD_US);
    enqueue_with("slow", "e", KEY("e"));
    turns.now_us += 2 * 100000;
    expect_claim("");
    turns.now_us += 100000;
    expect_in_turn("b c d e");
}

/* Several jobs of one lane, which the gate of its key lets start at once: as many as their costs fit there. */
WORKER_TEST(test_alike_jobs_of_a_key_fit_its_gate)
{
    must(turns_rate("slow", "gcra:1000/1000000/1000 gcra:10/1000000/5,by=key"));
    must(turns_use("slow", "use", "2", NULL, 0));
    enqueue_with("slow", "a b c d e f g", KEY("k"));
    expect_claim("a b");
    turns.now_us += 5 * 100000;
    expect_claim("c d");
    turns.now_us += 5 * 100000;
    expect_claim("e f");
}

/* What stopped an earlier job in the same claim does not park one that only lacks an executor. */
WORKER_TEST(test_a_job_without_an_executor_stays_in_the_queue)
{
    must(turns_rate("slow", CLOSED_RULE));
    must(turns_rate("t", "10/1000000/5"));
    enqueue("default", "slow", "s0 s1");
    enqueue("default", "t", "a b");
    claim("w", 2, 5);
    expect_leases("s0 a");
    expect_list(LANE("slow"), "s1");
    expect_list(QUEUE, "b");
    expect_list(LANE("t"), "");
}

/* Jobs that are alike are leased without a question for each, as far as nothing else stands between them. */
WORKER_TEST(test_alike_jobs_keep_their_order_among_others)
{
    must(turns_rate("slow", "10/1000000/10"));
    enqueue("default", "slow", "a b");
    enqueue_with("slow", "c", "\"cost\":3");
    enqueue("default", "slow", "d e");
    enqueue("default", "t", "f g");
    enqueue("default", "slow", "h i j k");
    expect_leased("w", 20, "a b c d e f g h i j");
    expect_token(2, "@1795000000000000*3/default/slow/");
    expect_token(4, "@1795000000000000/default/slow/");
    expect_list(LANE("slow"), "k");
    expect_next(100000 - LEAD_US);
    enqueue("default", "slow", "l m");
    enqueue_with("slow", "n", "\"cost\":3");
    enqueue("default", "slow", "o p q r s");
    expect_leased("w", 20, "");
    turns.now_us += 10 * 100000;
    expect_leased("w", 20, "k l m n o p q r");
    expect_token(3, "@1795000001000000*3/default/slow/");
    expect_token(7, "@1795000001000000/default/slow/");
    expect_list(LANE("slow"), "s");
    expect_next(100000 - LEAD_US);
    expect_counters("slow", "pulled 8, parked 9, served 8");
    expect_text("costs=own", "HGET", PREFIX "types", "slow");
}

/* The same where their slots come one after the other. */
WORKER_TEST(test_alike_jobs_start_when_their_slots_come)
{
    must(turns_rate("slow", "1000/1000000/2"));
    enqueue("default", "slow", "1 2 3 4 5 6 7 a b");
    enqueue_with("slow", "c", "\"cost\":2");
    enqueue("default", "slow", "d e f g");
    expect_leased("w", 20, "1 2 3 4 5 6 7");
    turns.now_us += 100000;
    expect_leased("w", 4, "a b c d");
    expect_token(1, "@1795000000100000/default/slow/");
    expect_token(2, "@1795000000102000*2/default/slow/");
    expect_token(3, "@1795000000103000/default/slow/");
    expect_leased("w", 20, "e f");
    expect_token(0, "@1795000000104000/default/slow/");
    expect_token(1, "@1795000000105000/default/slow/");
    expect_list(LANE("slow"), "g");
    expect_next(6000 - LEAD_US + 1000);
    turns.now_us += 6000;
    enqueue("default", "slow", "h i j k");
    expect_leased("w", 20, "g h i j k");
    expect_token(0, "@1795000000106000/default/slow/");
    expect_token(4, "@1795000000110000/default/slow/");
}

/* Where slots come fast and a burst makes up for a late look there is no need to look early. */
SCENE_TEST(test_a_look_is_early_as_far_as_slots_would_be_lost)
{
    static const struct {
        const char *rule;
        int64_t opens_us, early_us;
    } cases[] = {
        {"gcra:100/1000000/1", 10000, LEAD_US},
        {"gcra:1000/1000000/2", 6000, LEAD_US - 1000},
        {"gcra:1000/1000000/3", 6000, LEAD_US - 2000},
        {"gcra:1000/1000000/4", 6000, 0},
        {"gcra:200/1000000/2", 10000, 0},
        {"gcra:100/1000000/2", 10000, LEAD_US},
        {"token-bucket:1000/1000000/4", 6000, 0},
        {"fixed-window:100/1000000/0", SECOND_US, LEAD_US},
        {"sliding-log:100/1000000", SECOND_US, LEAD_US},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        worker_begin(state);
        must(turns_rate("slow", cases[i].rule));
        enqueue_many("slow", 101);
        claim("w", 200, 0);
        expect_next(cases[i].opens_us - cases[i].early_us);
        turns.now_us = turns.claim.next_us;
        assert_true(claim("w", 1, 0) == 1);
        assert_int_equal(turns.claim.leases[0].slot_us, BEGIN_US + cases[i].opens_us);
    }
    /* A job that takes the whole burst loses by being late. */
    worker_begin(state);
    must(turns_rate("slow", "1000/1000000/9"));
    enqueue_with("slow", "a b", "\"cost\":9");
    expect_claim("a");
    expect_next(9000 - LEAD_US);
}

WORKER_TEST(test_a_job_in_flight_is_one_whatever_it_costs)
{
    must(turns_rate("slow", "concurrency:2"));
    enqueue_with("slow", "a b c", "\"cost\":100");
    expect_claim("a b");
    expect_token(0, "@1795000000000000*100/default/slow/~slow#0");
}

/* A worker that has not heard the answer says once more what has ended. */
WORKER_TEST(test_an_end_that_is_repeated_makes_room_once)
{
    int64_t stale;

    must(turns_rate("slow", "concurrency:2"));
    enqueue("default", "slow", "a b c d");
    expect_claim("a b");
    for (int i = 0; i < 2; i++) {
        must(turns_settle_done("w", "slow", tokens, 1, &stale));
        assert_int_equal(stale, i);
    }
    expect_claim("c");
}

WORKER_TEST(test_a_cost_that_never_fits_is_dead)
{
    char *dead;

    must(turns_rate("slow", "10/1000000/5"));
    assert_int_equal(turns_script("enqueue", WORDS("default", "slow", "dear", "1000", "tag", "", "", "6", "",
                                                   "", "", "{\"id\":\"dear\",\"type\":\"slow\",\"cost\":6}")),
                     WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "a job costs 6 and limit slow never lets more than 5 start"));
    enqueue_with("slow", "fits", "\"cost\":5");
    enqueue_with("slow", "r", "\"cost\":1");
    enqueue_with("slow", "q", "\"cost\":6"); /* its sender did not say so */
    expect_claim("fits");
    turns.now_us += 5 * 100000;
    expect_claim("r");
    enqueue_with("slow", "s", "\"cost\":7");
    expect_claim("");
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_non_null(strstr(dead, " default/slow/ its cost of 6 can never fit limit slow: gcra:10/1000000/5\n"
                                 "{\"id\":\"q\""));
    assert_non_null(strstr(dead, "its cost of 7 can never fit limit slow: gcra:10/1000000/5\n{\"id\":\"s\""));
    free(dead);
    expect_counters("slow", "enqueued 4, pulled 2, parked 2, served 2, dead 2");
    assert_int_equal(turns_check().parked, 0);
}

TESTS(turns_start, turns_stop)
